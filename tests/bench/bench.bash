# bench.bash - what the benchmarks share: a job of the reference shape, alternated runs, medians
#
# Every figure is a ratio measured side by side in one run; absolute times on a shared machine drift.

set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
builddir=${builddir:-$here/../../build}
SL=$builddir/shardlaunch
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_STATE_HOME=$work/state
DB=$XDG_STATE_HOME/shardlaunch/shardlaunch.db
mkdir -p "$XDG_STATE_HOME"

# The reference shape: 6 layers, 6 heads, width 384, context 256, batch 4, fp32 (tokens are made up).
reference_job() { # FILE VOCAB STEPS
    "$here/tokens.sh" 60000 "$2" >"$work/train.bin"
    cat >"$1" <<EOF
name = "reference"
[resources]
ranks_per_node = 1
[model]
kind = "gpt"
layers = 6
heads = 6
width = 384
context = 256
dropout = 0.0
[data]
train = "$work/train.bin"
valid_fraction = 0.05
tokenizer = "uint16"
vocab_size = $2
[train]
strategy = "ddp"
steps = $3
batch = 4
lr = 3e-4
eval_samples = 1
EOF
}

sql() { sqlite3 -readonly "$DB" "$1"; }
median() { sort -g | awk '{ v[NR] = $1 } END { if (NR) print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
# lowest and highest of the middle 80 %
interval() { sort -g | awk '{ v[NR] = $1 } END { k = int(NR / 10); print v[1 + k] " " v[NR - k] }'; }
