#!/usr/bin/env bats
# Random jobs with a fixed seed, each trained under all five strategies through the whole program: the
# database must hold the same losses and norms to the bit, and every run its plan to the byte.
#
# SL_FUZZ_SEED and SL_FUZZ_ROUNDS look elsewhere, or longer; the seed of a round is printed when it fails.

load ../lib/common

setup() {
    sl_setup
    sl_text "$BATS_TEST_TMPDIR/text" 9000
    sl_job "$BATS_TEST_TMPDIR/job.toml" "$BATS_TEST_TMPDIR/text"
    cd "$BATS_TEST_TMPDIR"
}

# one_of WORD...: into $pick; bash's own RANDOM differs by version
one_of() {
    x=$(((x * 1103515245 + 12345) % 2147483648))
    local i=$((x / 65536 % $# + 1))
    pick=${!i}
}

# A job into set (options), ranks, accum.
random_job() {
    local heads micro
    one_of 1 2 2 3 3 4 5 7 8 11; ranks=$pick
    one_of 1 1 2 3 5; heads=$pick
    one_of 1 2 3; micro=$pick
    one_of 1 1 1 2 3; accum=$pick
    set=(--set "model.heads=$heads" --set "train.batch=$((ranks * micro * accum))" --set "train.micro_batch=$micro")
    one_of 1 2 3 5 8; set+=(--set "model.width=$((heads * pick))")
    one_of 0 1 7 33; set+=(--set "model.ffn_width=$pick")
    one_of 1 1 2 3; set+=(--set "model.layers=$pick")
    one_of 1 2 7 16 33; set+=(--set "model.context=$pick")
    one_of 0 0.1 0.5 0.999; set+=(--set "model.dropout=$pick")
    one_of true false; set+=(--set "model.tie_embeddings=$pick")
    one_of none unit; set+=(--set "train.recompute=\"$pick\"")
    one_of fp32 fp32 bf16; set+=(--set "train.precision=\"$pick\"")
    one_of 0 1e-6 0.1 1 1000; set+=(--set "train.grad_clip=$pick")
    one_of constant linear cosine; set+=(--set "train.schedule=\"$pick\"")
    one_of 0 1 3; set+=(--set "train.warmup=$pick")
    one_of 0 0.1; set+=(--set "train.weight_decay=$pick")
    one_of 1e-4 1e-2 0.3; set+=(--set "train.lr=$pick")
    one_of 0 1 2 9007199254740991; set+=(--set "train.seed=$pick")
    one_of 1 2 17; set+=(--set "train.eval_samples=$pick")
    one_of 0 1 2; set+=(--set "train.eval_every=$pick")
    one_of byte byte word; set+=(--set "data.tokenizer=\"$pick\"")
    if [ "$pick" = word ]; then
        one_of 3 4 13 29; set+=(--set "data.vocab_size=$pick")
    fi
    set+=(--set train.steps=3)
}

# numbers ID: every loss and norm of a run, as bits that a comparison of text keeps apart
numbers() {
    sql "SELECT * FROM (SELECT step, 'loss' n, printf('%!.20g', loss) FROM rank_throughput WHERE job = $1 AND rank = 0
        UNION ALL SELECT step, name, printf('%!.20g', value) FROM metrics WHERE job = $1 AND name <> 'lr') ORDER BY 1, 2"
}

# as_planned STRATEGY ID
as_planned() {
    "$SL" plan job.toml --strategy "$1" --ranks "$ranks" --json "${set[@]}" | jq -r --argjson n "$ranks" '.strategies[0] as $s
        | range($n) as $r | ($s | if .per_rank then .per_rank[$r] else . end)
        | (.categories | to_entries[] | "\($r)|\(.key)|\(.value.bytes)"), "\($r)|total|\(.total_bytes)"' | sort >plan
    sql "SELECT DISTINCT rank || '|' || category || '|' || bytes FROM rank_memory WHERE job = $2 AND category <> 'process'" |
        sort >run
    [ -s plan ] && cmp -s plan run || { diff plan run; return 1; }
}

# near A B: all numbers within 1e-5 relative; bf16 rounds a gradient (2^-9) as often as it is stored
near() {
    local tol=1e-5
    [[ "${set[*]}" != *bf16* ]] || tol=1e-2
    paste -d'|' "$1" "$2" | awk -F'|' -v tol=$tol '{ d = $3 - $6; m = $3 < 0 ? -$3 : $3; if (d < 0) d = -d
        if ($1 != $4 || $2 != $5 || !(d <= tol * m + 1e-7)) { print; bad = 1 } } END { exit bad || !NR }'
}

same() { cmp -s "$1" "$2" || { echo "$1 and $2 differ:"; diff "$1" "$2"; return 1; }; }

one_round() {
    local s id
    for s in dp ddp zero1 zero2 zero3; do
        "$SL" run job.toml --strategy $s --ranks "$ranks" --no-web -q "${set[@]}" 2>err || { cat err; return 1; }
        id=$(sql 'SELECT max(id) FROM jobs')
        numbers "$id" >"$s"
        [ "$(wc -l <"$s")" -ge 7 ] || { cat "$s"; return 1; }
        as_planned $s "$id" || { echo "$s: not as planned"; return 1; }
    done
    same dp ddp && same ddp zero1 && same zero2 zero3 || return 1
    if [ "$accum" = 1 ]; then same ddp zero2; else near ddp zero2; fi
}

@test "random jobs report the same numbers under every strategy, and what they planned" {
    x=${SL_FUZZ_SEED:-1}
    local i
    for ((i = 0; i < ${SL_FUZZ_ROUNDS:-12}; i++)); do
        local seed=$x
        random_job
        one_round || { echo "SL_FUZZ_SEED=$seed SL_FUZZ_ROUNDS=1: $ranks ranks, ${set[*]}"; return 1; }
    done
}
