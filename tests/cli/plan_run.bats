#!/usr/bin/env bats
# What plan promises, rank_memory holds after the run: to the byte, by category and in total.

load ../lib/procs.bash

setup() {
    sl=$builddir/shardlaunch
    T=$(mktemp -d)
    job=$T/job.toml
    export SHARDLAUNCH_STATE=$T/state
    unset SHARDLAUNCH_DB
    for i in $(seq 400); do echo "line $i of a text that says little, $((i * i)) times"; done >"$T/text"
    cat >"$job" <<'TOML'
[model]
kind = "gpt"
layers = 2
heads = 2
width = 24
ffn_width = 50
context = 16
dropout = 0.1
[data]
train = "text"
valid_fraction = 0.1
tokenizer = "byte"
[train]
steps = 1
batch = 24
lr = 1e-3
seed = 1
TOML
}

teardown() {
    end_bearers
    rm -rf "$T"
}

# agree RANKS STRATEGY [OPTION...]: one line "rank category bytes peak" a row, from both sides
agree() {
    local ranks=$1 strategy=$2
    shift 2
    set -- --set resources.ranks_per_node="$ranks" --set train.strategy="$strategy" "$@"
    "$sl" plan "$job" --json "$@" >"$T/plan.json" || return 1
    jq -r --argjson n "$ranks" '.strategies[0] as $p | range($n) as $r
        | (($p.per_rank // [])[$r] // $p) as $q
        | ($q.categories | to_entries[] | "\($r) \(.key) \(.value.bytes) \(.value.peak_bytes)"),
          "\($r) total \($q.total_bytes) \($q.total_bytes)"' "$T/plan.json" | sort >"$T/want"
    rm -rf "$T/state"
    env TMPDIR="$T" "$sl" "$job" --no-web "$@" >"$T/out" 2>&1 3>&- || { cat "$T/out"; return 1; }
    sqlite3 -separator ' ' "$T/state/shardlaunch.db" "select rank, category, bytes, peak_bytes
        from rank_memory where category <> 'process' and step = 1" | sort >"$T/got"
    [ "$(wc -l <"$T/want")" -eq $((7 * ranks)) ] && diff "$T/want" "$T/got"
}

other="--set train.recompute=unit --set train.micro_batch=2 --set model.tie_embeddings=false"

@test "1 rank: every strategy's plan is its run" {
    for s in dp ddp zero1 zero2 zero3; do
        agree 1 $s
        agree 1 $s $other
    done
}

@test "3 ranks: every strategy's plan is its run" {
    for s in dp ddp zero1 zero2 zero3; do
        agree 3 $s
        agree 3 $s $other
    done
}

@test "4 ranks: every strategy's plan is its run" {
    for s in dp ddp zero1 zero2 zero3; do
        agree 4 $s
        agree 4 $s $other
    done
}

@test "recompute, accumulation, tied weights and bf16 each alone" {
    agree 3 zero3 --set train.recompute=unit
    agree 3 zero3 --set train.micro_batch=2
    agree 3 zero3 --set model.tie_embeddings=false
    agree 3 zero3 --set train.precision=bf16
    agree 3 dp --set train.precision=bf16 --set train.recompute=unit
}
