#!/bin/bash
# Tokens/s and peak memory of the reference shape beside PyTorch's on this machine: alternated runs of both,
# medians. usage: PYTHON=/path/to/python-with-torch pytorch.sh [VOCAB [ROUNDS [STEPS]]]
. "$(dirname "$0")/bench.bash"
vocab=${1:-8192} rounds=${2:-3} steps=${3:-12}
reference_job "$work/job.toml" "$vocab" "$steps"
for ((k = 0; k < rounds; k++)); do
    "${PYTHON:-python3}" "$here/pytorch.py" "$vocab" "$steps" 2 >>"$work/torch" 2>"$work/version" || { cat "$work/version"; exit 1; }
    "$SL" run "$work/job.toml" --ranks 1 --no-web --set resources.threads=2 2>"$work/err" || { cat "$work/err"; exit 1; }
    sql "SELECT step_ms FROM rank_throughput WHERE job = (SELECT max(id) FROM jobs) AND step > 2" | median >>"$work/ours"
done
cat "$work/version"
awk -v o="$(median <"$work/ours")" -v t="$(cut -d' ' -f1 "$work/torch" | median)" -v rss="$(cut -d' ' -f3 "$work/torch" | median)" \
    -v pss="$(sql "SELECT max(peak_bytes) / 1048576.0 FROM rank_memory WHERE category = 'process'")" -v v="$vocab" 'BEGIN {
    printf "vocabulary %d: shardlaunch %.0f tokens/s, %.0f MiB; PyTorch %.0f tokens/s, %.0f MiB; ratio of speed %.2f, of memory %.2f\n",
        v, 1024000 / o, pss, 1024000 / t, rss, t / o, pss / rss }'
