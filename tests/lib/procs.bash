# procs.bash - processes of a test's runs: found by what they carry or by parentage, never by name
#
# The test sets T (a folder of its own) and starts everything with TMPDIR=$T in the environment.

bearers() { # pids of all that this test has started and that still lives
    grep -lzFx "TMPDIR=$T" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3
}

end_bearers() {
    local p
    for p in $(bearers); do kill -9 "$p" 2>/dev/null || :; done
}

nothing_left() { # no process, no temporary folder; waits 5 s at most
    local i
    for i in $(seq 100); do
        [ -z "$(bearers)" ] && break
        sleep 0.05
    done
    [ -z "$(bearers)" ] || return 1
    [ -z "$(find "$T" -maxdepth 1 -name 'shardlaunch-*')" ]
}

children() { cat /proc/"$1"/task/*/children 2>/dev/null; }

until_true() { # COMMAND...: at most 20 s; shows $T/out when it gives up
    local i
    for i in $(seq 400); do
        if "$@"; then return 0; fi
        sleep 0.05
    done
    echo "gave up waiting for: $*; output:"
    cat "$T/out"
    return 1
}

agent_of() { children "$1" | tr -d ' '; } # of a keeper

rank_pid() { # KEEPER RANK
    local p
    for p in $(children "$(agent_of "$1")"); do
        if grep -qzx "PMIX_RANK=$2" "/proc/$p/environ" 2>/dev/null; then echo "$p"; fi
    done
}

await() { # PID: its exit status into $status
    status=0
    wait "$1" || status=$?
    echo "status $status, output:" # bats shows it when the test fails
    cat "$T/out" 2>/dev/null || :
}

# With sanitizers: a signal must stay a signal, and libpmix's own leaks are not ours.
export LSAN_OPTIONS=suppressions=$BATS_TEST_DIRNAME/../lib/lsan.supp:print_suppressions=0
export ASAN_OPTIONS=handle_segv=0:handle_sigbus=0

# small_job PATH: a job of two ranks that takes a moment, and its text in the same folder
small_job() {
    for i in $(seq 400); do echo "line $i of a text that says little, $((i * i)) times"; done >"$(dirname "$1")/text"
    cat >"$1" <<'TOML'
name = "small"
[resources]
ranks_per_node = 2
threads = 1
[model]
kind = "gpt"
layers = 1
heads = 2
width = 32
context = 32
[data]
train = "text"
valid_fraction = 0.1
tokenizer = "byte"
[train]
strategy = "zero2"
steps = 5
batch = 8
lr = 1e-3
seed = 1
TOML
}
