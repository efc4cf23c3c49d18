#!/bin/bash
# Memory per rank and strategy against the formulas of the design: bytes of parameters, gradients and
# optimizer per parameter, and what is in flight. Nothing runs: the plan is exact (tests/run/plan_is_run.bats).
. "$(dirname "$0")/bench.bash"
reference_job "$work/job.toml" 8192 2
params=$("$SL" plan "$work/job.toml" --ranks 1 --strategy ddp --json | jq '.strategies[0].categories.parameters.bytes / 4')
printf '%-6s %5s %10s %10s %9s %9s %10s %10s\n' strategy ranks state_MiB B/param formula extra_% inflight total_MiB
for s in dp ddp zero1 zero2 zero3; do
    for n in 1 2 3 4 8; do
        "$SL" plan "$work/job.toml" --ranks $n --strategy $s --json --set train.batch=$((n == 3 ? 3 : 8)) |
            jq -r --arg s $s --argjson n $n --argjson p "$params" '.strategies[0] as $x | ($x.per_rank[0] // $x) as $x
                | ($x.categories | .parameters.bytes + .gradients.bytes + .optimizer.bytes) as $state
                | ({dp: 16, ddp: 16, zero1: (8 + 8 / $n), zero2: (4 + 12 / $n), zero3: (16 / $n)}[$s]) as $f
                | [$s, $n, $state / 1048576, $state / $p, $f, 100 * ($state / $p / $f - 1), $x.categories.communication.peak_bytes / 1048576, $x.total_bytes / 1048576] | @tsv' |
            awk -F'\t' '{ printf "%-8s %4d %9.1f %10.3f %9.3f %9.3f %10.2f %10.1f\n", $1, $2, $3, $4, $5, $6, $7, $8 }'
    done
done
