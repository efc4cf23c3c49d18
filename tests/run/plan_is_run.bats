#!/usr/bin/env bats
# What `plan --json` prints is what a run records, category by category and in total, to the byte.

load ../lib/common

setup() {
    sl_setup
    sl_text "$BATS_TEST_TMPDIR/text" 20000
    sl_job "$BATS_TEST_TMPDIR/job.toml" "$BATS_TEST_TMPDIR/text"
    cd "$BATS_TEST_TMPDIR"
}

# compare STRATEGY RANKS [--set ...]: run it, then hold every rank's rows against the plan
compare() {
    local s=$1 n=$2 id r want got
    shift 2
    "$SL" plan job.toml --strategy "$s" --ranks "$n" --json "$@" >plan.json || return 1
    "$SL" run job.toml --strategy "$s" --ranks "$n" --no-web "$@" 2>err || { cat err; return 1; }
    id=$(sql 'SELECT max(id) FROM jobs')
    for ((r = 0; r < n; r++)); do
        want=$(jq -r --argjson r "$r" '.strategies[0] | (if .per_rank then .per_rank[$r] else . end)
            | (.categories | to_entries[] | "\(.key)|\(.value.bytes)|\(.value.peak_bytes)"), "total|\(.total_bytes)"' plan.json | sort)
        got=$(sql "SELECT category || '|' || bytes || CASE category WHEN 'total' THEN '' ELSE '|' || peak_bytes END
            FROM rank_memory m WHERE job = $id AND rank = $r AND category <> 'process' AND step =
            (SELECT max(step) FROM rank_memory WHERE job = $id AND rank = $r AND category = m.category) ORDER BY 1" | sort -u)
        if [ -z "$want" ] || [ "$want" != "$got" ]; then
            echo "$s, $n ranks, rank $r, $*: plan:" "$want" "run:" "$got"
            return 1
        fi
    done
}

all() {
    local s n
    for s in dp ddp zero1 zero2 zero3; do
        for n in 1 3 4; do compare "$s" "$n" "$@"; done
    done
}

@test "plan and run agree: plain" { all; }
@test "plan and run agree: recompute" { all --set 'train.recompute="unit"'; }
@test "plan and run agree: accumulation" { all --set train.micro_batch=1; }
@test "plan and run agree: untied weights" { all --set model.tie_embeddings=false; }
@test "plan and run agree: bf16, untied, recompute, accumulation at once" {
    all --set 'train.precision="bf16"' --set model.tie_embeddings=false --set 'train.recompute="unit"' --set train.micro_batch=1
}

@test "the memory that the system counts is the plan's and a base of at most 64 MiB" {
    ! ldd "$SL" | grep -q 'lib[at]san' || skip "the sanitizer's own memory counts, too"
    # a plan of well above 300 MB, so that 10 % is more than noise
    "$SL" run job.toml --strategy zero2 --ranks 2 --no-web --set model.width=768 --set model.heads=12 --set model.layers=5 \
        --set model.context=32 --set train.batch=4 --set train.steps=2 --set train.eval_samples=1 2>err || { cat err; false; }
    run sql "SELECT count(*) FROM (SELECT rank, max(CASE category WHEN 'total' THEN bytes END) plan,
        max(CASE category WHEN 'process' THEN peak_bytes END) process FROM rank_memory GROUP BY rank)
        WHERE plan > 300000000 AND process BETWEEN 0.9 * plan AND 1.1 * plan + 67108864"
    [ "$output" = 2 ]
}
