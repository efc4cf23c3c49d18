#!/bin/bash
# Step time of zero1, zero2, zero3 over ddp at the same ranks: alternated runs, median of the ratios of
# neighbouring runs and the middle 80 % of them. usage: ratios.sh [RANKS [ROUNDS [STEPS]]]
. "$(dirname "$0")/bench.bash"
ranks=${1:-2} rounds=${2:-7} steps=${3:-12}
reference_job "$work/job.toml" 8192 "$steps"
for ((k = 0; k < rounds; k++)); do
    for s in ddp zero1 zero2 zero3; do
        "$SL" run "$work/job.toml" --ranks "$ranks" --strategy $s --no-web --set resources.threads=1 2>"$work/err" || { cat "$work/err"; exit 1; }
        # median step of the run without its first two
        sql "SELECT step_ms FROM rank_throughput WHERE job = (SELECT max(id) FROM jobs) AND rank = 0 AND step > 2" | median >>"$work/$s"
    done
done
echo "step time over ddp, $ranks ranks, one thread a rank, reference shape, $rounds alternated rounds of $steps steps"
for s in zero1 zero2 zero3; do
    paste "$work/$s" "$work/ddp" | awk '{ print $1 / $2 }' >"$work/ratio"
    echo "$s $(median <"$work/ratio") [$(interval <"$work/ratio")]"
done
echo "ddp median step: $(median <"$work/ddp") ms"
