#!/bin/bash
# Processor time a step and strategy, all processes of the job: a run of 3 + STEPS steps less one of 3, so that
# start and end fall out; alternated rounds. On a machine that others use too it says what a strategy costs when
# the wall clock cannot. usage: cpu.sh [RANKS [ROUNDS [STEPS]]]
. "$(dirname "$0")/bench.bash"
ranks=${1:-2} rounds=${2:-3} steps=${3:-8}
reference_job "$work/job.toml" 8192 3

spent() { # STRATEGY STEPS: user + system seconds of a whole run
    local took TIMEFORMAT='%U %S'
    took=$( { time "$SL" run "$work/job.toml" --ranks "$ranks" --strategy "$1" --no-web --set resources.threads=1 \
        --set train.steps="$2" >/dev/null 2>"$work/err"; } 2>&1) || { cat "$work/err" >&2; return 1; }
    awk '{ print $1 + $2 }' <<<"$took"
}

for ((k = 0; k < rounds; k++)); do
    for s in ddp zero1 zero2 zero3; do
        short=$(spent $s 3) long=$(spent $s $((3 + steps)))
        awk -v a="$short" -v b="$long" -v n="$steps" 'BEGIN { print 1000 * (b - a) / n }' >>"$work/$s"
        echo "$short" >>"$work/start.$s"
    done
done
echo "processor time a step, $ranks ranks, one thread a rank, reference shape, medians of $rounds rounds; load $(cut -d' ' -f1 /proc/loadavg)"
for s in ddp zero1 zero2 zero3; do
    paste "$work/$s" "$work/ddp" | awk '{ print $1 / $2 }' >"$work/ratio"
    echo "$s $(median <"$work/$s") ms, over ddp $(median <"$work/ratio") [$(interval <"$work/ratio")]; start and 3 steps $(median <"$work/start.$s") s"
done
