#!/bin/bash
# Achieved GFLOP/s of a training step over the best sgemm rate of the same minutes: the reference shape, one
# rank with 2 threads. 6 N tokens + 12 L C T tokens a step, N the parameters that take part in products.
# The sgemm rate is taken before and after every run, and the best of all counts. On a machine that others use too, the
# fastest quarter of the steps says more than the median: both are printed. usage: ceiling.sh [VOCAB [ROUNDS [STEPS]]]
. "$(dirname "$0")/bench.bash"
vocab=${1:-8192} rounds=${2:-3} steps=${3:-15}
reference_job "$work/job.toml" "$vocab" "$steps"
params=$("$SL" plan "$work/job.toml" --ranks 1 --strategy ddp --json | jq '.strategies[0].categories.parameters.bytes / 4')
flop=$(awk -v n="$params" -v t=1024 'BEGIN { printf "%.0f", 6 * (n - 256 * 384) * t + 12 * 6 * 384 * 256 * t }')
for ((k = 0; k < rounds; k++)); do
    "$builddir/tests/bench/sgemm" 2 >>"$work/sgemm"
    "$SL" run "$work/job.toml" --ranks 1 --no-web --set resources.threads=2 2>"$work/err" || { cat "$work/err"; exit 1; }
    sql "SELECT step_ms FROM rank_throughput WHERE job = (SELECT max(id) FROM jobs) AND step > 2" >>"$work/step"
    "$builddir/tests/bench/sgemm" 2 >>"$work/sgemm"
done
best=$(sort -g "$work/sgemm" | tail -1)
quartile=$(sort -g "$work/step" | awk '{ v[NR] = $1 } END { print v[int((NR + 3) / 4)] }')
awk -v f="$flop" -v q="$quartile" -v ms="$(median <"$work/step")" -v best="$best" -v p="$params" -v peak="$(sql "SELECT max(peak_bytes) / 1048576.0 FROM rank_memory WHERE category = 'process'")" 'BEGIN {
    printf "parameters %d, %.1f GFLOP a step, median step %.1f ms, %.0f tokens/s, process peak %.0f MiB\n", p, f / 1e9, ms, 1024000 / ms, peak
    printf "achieved %.1f GFLOP/s, best sgemm %.1f GFLOP/s, share %.3f\n", f / ms / 1e6, best, f / ms / 1e6 / best
    printf "lower quartile %.1f ms, share %.3f\n", q, f / q / 1e6 / best }'
