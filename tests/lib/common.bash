# common.bash - what every bats file here shares: the program, its own state folder, a text
# Tests run side by side with other people's jobs: everything lives below $BATS_TEST_TMPDIR.

SL="${builddir:-$BATS_TEST_DIRNAME/../../build}/shardlaunch"

# With sanitizers: a signal must stay a signal.
export ASAN_OPTIONS=handle_segv=0:handle_sigbus=0

sl_setup() {
    export XDG_STATE_HOME="$BATS_TEST_TMPDIR/state" TMPDIR="$BATS_TEST_TMPDIR/tmp"
    unset SHARDLAUNCH_DB SHARDLAUNCH_SERVER
    mkdir -p "$XDG_STATE_HOME" "$TMPDIR"
    DB="$XDG_STATE_HOME/shardlaunch/shardlaunch.db"
}

# sl_text FILE BYTES: English-like text from a fixed generator (awk's own rand differs by version)
sl_text() {
    awk -v n="$2" 'BEGIN { x = 12345; w = split("in the beginning god created heaven and earth without form void darkness upon face of deep spirit moved waters let there be light", word, " ")
        while (len < n) { x = (x * 1103515245 + 12345) % 2147483648; t = word[int(x / 65536) % w + 1] ((int(x / 7) % 9) ? " " : ".\n"); printf "%s", t; len += length(t) } }' | head -c "$2" >"$1"
}

# sl_job FILE TEXT [line...]: a tiny job of a few milliseconds a step; extra lines are --set by the caller
sl_job() {
    cat >"$1" <<EOF
name = "tiny"
[resources]
ranks_per_node = 1
threads = 1
[model]
kind = "gpt"
layers = 2
heads = 2
width = 24
context = 16
dropout = 0.1
[data]
train = "$2"
valid_fraction = 0.1
tokenizer = "byte"
[train]
strategy = "zero2"
steps = 2
batch = 12
lr = 1e-3
seed = 7
eval_samples = 5
EOF
}

sql() { sqlite3 -readonly -cmd '.timeout 5000' "$DB" "$1"; }
