#!/usr/bin/env bats
# What the program finds around it: variables of other programs, limits of the shell.

load ../lib/common

setup() {
    sl_setup
    sl_text "$BATS_TEST_TMPDIR/text" 20000
    sl_job "$BATS_TEST_TMPDIR/job.toml" "$BATS_TEST_TMPDIR/text"
    cd "$BATS_TEST_TMPDIR"
}

@test "a person's OpenMP variables pin nothing, change no number of threads and print nothing" {
    [ "$(nproc)" -gt 1 ] || skip "one core: pinned and free look the same"
    local free v
    free=$("$SL" plan job.toml --set resources.threads=0 2>&1)
    for v in "OMP_PROC_BIND=true OMP_PLACES=cores" GOMP_CPU_AFFINITY=0 OMP_NUM_THREADS=rubbish OMP_DYNAMIC=x OMP_THREAD_LIMIT=x; do
        run env $v "$SL" plan job.toml --set resources.threads=0
        [ "$output" = "$free" ] || { echo "$v: $output"; false; }
    done
    env OMP_PROC_BIND=true OMP_PLACES=cores "$SL" run job.toml --no-web --set resources.threads=0 --set train.steps=1000000 2>err &
    local keeper=$! i rank allowed=
    for ((i = 0; i < 200; i++)); do
        rank=$(cat /proc/"$(cat /proc/$keeper/task/*/children 2>/dev/null | tr -d ' ')"/task/*/children 2>/dev/null | tr -d ' ') || :
        allowed=$(sed -n 's/^Cpus_allowed://p' /proc/"${rank:-none}"/status 2>/dev/null) || :
        [ "$(cat /proc/"${rank:-none}"/comm 2>/dev/null)" != sl-rank ] || break
        sleep 0.05
    done
    kill -QUIT $keeper
    wait $keeper || :
    [ "$allowed" = "$(sed -n 's/^Cpus_allowed://p' /proc/self/status)" ] || { cat err; echo "a rank may use: $allowed"; false; }
}

@test "a limit on the size of files is an error with its reason, not a death by signal" {
    "$SL" list >/dev/null
    run bash -c 'ulimit -f 0; "$0" run job.toml --no-web 2>&1 | cat; exit ${PIPESTATUS[0]}' "$SL"
    [ "$status" -eq 5 ]
    [[ "$output" == *"File too large"* ]]
    run bash -c 'ulimit -f 600; "$0" run job.toml --no-web 2>&1 | cat; exit ${PIPESTATUS[0]}' "$SL"
    [ "$status" -eq 5 ]
    [[ "$output" == *"shared memory"*"File too large"* ]]
}

@test "Ctrl-C between the job's entry in the store and its start is obeyed, and no job is lost" {
    local i
    for ((i = 1; i <= 8; i++)); do
        env --default-signal=INT "$SL" run job.toml --no-web --set train.steps=1000000 2>err 3>&- &
        local keeper=$!
        local n=0 # no pause: the moment is short
        until [ -e "$XDG_STATE_HOME/shardlaunch/runs/$i" ] || ((++n > 500000)); do :; done
        kill -INT $keeper
        local rc=0
        wait $keeper || rc=$?
        [ $rc -eq 75 ] || [ $rc -eq 130 ] || { cat err; false; }
    done
    "$SL" list >/dev/null # sweeps
    [ "$(sql "SELECT group_concat(DISTINCT state) FROM jobs")" = stopped ] || { "$SL" list; false; }
    [ -z "$(ls "$TMPDIR")" ]
}

@test "token files that are cut short under a run: the rank's death says what may have happened" {
    head -c 20000 /dev/zero >tokens
    "$SL" run job.toml --no-web --set 'data.train="tokens"' --set 'data.tokenizer="uint16"' --set data.vocab_size=9 --set train.steps=10000000 \
        2>err 3>&- &
    local i run=$! rc=0
    for ((i = 0; i < 400; i++)); do
        [ "$(sql 'SELECT state FROM jobs' 2>/dev/null)" != running ] || break
        sleep 0.05
    done
    : >tokens
    for ((i = 0; i < 400; i++)); do
        [ "$(sql 'SELECT state FROM jobs')" = running ] || break
        sleep 0.05
    done
    kill -QUIT $run 2>/dev/null || :
    wait $run || rc=$?
    [ $rc -eq 1 ] || { cat err; false; }
    grep -q 'was killed by signal 7' err
    grep -q 'cut short while it was read' err
}
