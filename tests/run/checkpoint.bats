#!/usr/bin/env bats
# Checkpoints as a person meets them: stop and go on, other ranks, refusals, export

load ../lib/common
load ../lib/procs

setup() {
    sl_setup
    T=$BATS_TEST_TMPDIR/t # what this test starts is found by it
    mkdir "$T"
    sl_text "$BATS_TEST_TMPDIR/text" 20000
    sl_job "$BATS_TEST_TMPDIR/job.toml" "$BATS_TEST_TMPDIR/text"
    cd "$BATS_TEST_TMPDIR"
    RUNS=$XDG_STATE_HOME/shardlaunch/runs
}

teardown() { end_bearers; }

train() { "$SL" run job.toml --no-web -q "$@" 2>err 3>&-; }
losses() { # ID FROM: behind step FROM, to the last digit
    sql "SELECT group_concat(step || ':' || printf('%.17g', loss)) FROM (SELECT step, loss FROM rank_throughput
        WHERE job = $1 AND rank = 0 AND step > $2 ORDER BY step)"
}
resume() { echo "checkpoint.resume=\"$1\""; }
ckpt() { echo "$RUNS/$1/checkpoints/$(printf 'step-%08d' "$2")"; }

@test "a run that goes on from a checkpoint has the losses of the one that was not interrupted" {
    local s
    for s in ddp zero3; do
        train --strategy "$s" -n 3 --set train.steps=30 --set checkpoint.every=10 --set 'train.schedule="cosine"' --set train.warmup=4
        id=$(sql 'SELECT max(id) FROM jobs')
        train --strategy "$s" -n 3 --set train.steps=30 --set 'train.schedule="cosine"' --set train.warmup=4 --set "$(resume "$(ckpt "$id" 20)")"
        [ "$(losses "$id" 20)" = "$(losses $((id + 1)) 0)" ]
        [ "$(sql "SELECT value FROM metrics WHERE job = $id AND name = 'valid.loss'")" = \
            "$(sql "SELECT value FROM metrics WHERE job = $((id + 1)) AND name = 'valid.loss'")" ]
    done
    run sql "SELECT count(*) FROM events WHERE job = $id AND kind = 'checkpoint' AND message LIKE 'step _0: %/step-000000_0'"
    [ "$output" = 3 ]
    run sql "SELECT count(*) FROM metrics WHERE job = $id AND name = 'ckpt_ms' AND value >= 0"
    [ "$output" = 3 ]
}

@test "other ranks, another strategy and another micro-batch go on from it" {
    train --strategy zero2 -n 4 --set train.steps=20 --set checkpoint.every=10
    train --strategy ddp -n 3 --set train.micro_batch=2 --set train.steps=20 --set "$(resume "$(ckpt 1 10)")"
    run sql "SELECT count(*), max(abs(a.loss - b.loss)) < 1e-4 FROM rank_throughput a JOIN rank_throughput b USING (step)
        WHERE a.job = 1 AND b.job = 2 AND a.rank = 0 AND b.rank = 0"
    [ "$output" = "10|1" ]
}

@test "the same command again goes on from the newest in an explicit folder" {
    set -- -n 2 --set checkpoint.every=5 --set 'checkpoint.dir="kept/{name}"' --set checkpoint.keep=2
    train "$@" --set train.steps=20
    [ "$(ls kept/tiny)" = "step-00000015
step-00000020" ]
    train "$@" --set train.steps=30 # a constant rate: more steps are the same training
    [ "$(sql 'SELECT min(step) FROM rank_throughput WHERE job = 2')" = 21 ]
    [ "$(ls kept/tiny)" = "step-00000025
step-00000030" ]
    rm -r kept
    train -n 2 --set train.steps=30
    [ "$(losses 3 20)" = "$(losses 2 0)" ]
}

@test "a killed run goes on when it is started again" {
    set -- -n 2 --set checkpoint.every=20 --set 'checkpoint.dir="kept"' --set train.steps=3000 --set train.eval_samples=1
    env TMPDIR="$T" "$SL" run job.toml --no-web "$@" >"$T/out" 2>&1 3>&- &
    pid=$!
    some() { compgen -G 'kept/step-*/manifest.json' >/dev/null; }
    until_true some
    kill -9 $pid # the keeper; the agent and the ranks follow
    wait $pid || :
    nobody() { [ -z "$(bearers)" ]; }
    until_true nobody
    newest=$(ls -d kept/step-* | tail -1)
    at=$((10#${newest#kept/step-}))
    [ "$at" -lt 3000 ]
    train "$@" --set train.steps=$((at + 20))
    [ "$(sql 'SELECT min(step) FROM rank_throughput WHERE job = 2')" = $((at + 1)) ]
    [ "$(ls kept | tail -1)" = "$(printf 'step-%08d' $((at + 20)))" ]
}

@test "two live runs on one folder: the second is refused" {
    env TMPDIR="$T" "$SL" run job.toml --no-web --set checkpoint.every=50 --set 'checkpoint.dir="kept"' --set train.steps=100000 >"$T/out" 2>&1 3>&- &
    pid=$!
    some() { [ -e kept/.lock ]; }
    until_true some
    run "$SL" run job.toml --no-web --set 'checkpoint.dir="kept"'
    kill -QUIT $pid
    wait $pid || :
    [ "$status" -eq 2 ]
    [[ "$output" == *"another run writes its checkpoints in "*kept* ]]
    [ "$(sql 'SELECT state FROM jobs WHERE id = 2')" = failed ]
}

@test "a folder that cannot be written is refused before anything starts" {
    run "$SL" run job.toml --no-web --set checkpoint.every=5 --set 'checkpoint.dir="/proc/none"'
    [ "$status" -eq 5 ]
    [[ "$output" == *"/proc/none"* ]]
    [ "$(sql 'SELECT count(*) FROM rank_throughput')" = 0 ]
}

@test "another training, a damaged file and a path that is none are refused" {
    train --set train.steps=20 --set checkpoint.every=10
    run "$SL" run job.toml --no-web --set train.steps=20 --set train.lr=0.5 --set "$(resume "$(ckpt 1 20)")"
    [ "$status" -eq 2 ]
    [[ "$output" == *"train.lr 0.001, here 0.5"* ]]
    printf '\xff' | dd of="$(ckpt 1 20)/shard-00000.safetensors" bs=1 seek=50000 conv=notrunc 2>/dev/null
    run "$SL" run job.toml --no-web --set train.steps=20 --set "$(resume "$(ckpt 1 20)")"
    [ "$status" -eq 2 ]
    [[ "$output" == *"shard-00000.safetensors"*"damaged"* ]]
    run "$SL" logs "$(sql 'SELECT max(id) FROM jobs')" # what the terminal shows is cut
    [[ "$output" == *"The one before it: "*"step-00000010"* ]]
    run "$SL" run job.toml --no-web --set "$(resume nowhere)"
    [ "$status" -eq 2 ]
    [[ "$output" == *"nowhere\" is no checkpoint and holds none"* ]]
}

@test "asked to stop: a checkpoint, from which it goes on to the same end" {
    env TMPDIR="$T" "$SL" run job.toml --no-web -n 2 --set train.steps=100000 >"$T/out" 2>&1 3>&- &
    pid=$!
    some() { [ "$(sql 'SELECT count(*) FROM rank_throughput WHERE step > 2' 2>/dev/null)" -gt 0 ]; }
    until_true some
    kill -TERM $pid
    await $pid
    [ "$status" -eq 75 ]
    dir=$(ls -d "$RUNS"/1/checkpoints/step-*)
    at=$((10#${dir##*/step-}))
    train -n 2 --set train.steps=$((at + 20)) --set "$(resume "$RUNS/1/checkpoints")"
    train -n 2 --set train.steps=$((at + 20))
    [ "$(losses 3 $at)" = "$(losses 2 0)" ]
}

@test "export writes what the field reads" {
    train -n 3 --set checkpoint.every=2 --set model.tie_embeddings=false
    "$SL" export "$RUNS/1/checkpoints" --to out
    [ "$(jq -r '[.model_type, .n_embd, .n_layer, .n_head, .vocab_size, .tie_word_embeddings] | join(" ")' out/config.json)" = \
        "gpt2 24 2 2 256 false" ]
    len=$(od -An -tu8 -N8 out/model.safetensors | tr -d ' ')
    head -c $((8 + len)) out/model.safetensors | tail -c +9 >header
    [ "$(jq -c '."transformer.h.1.attn.c_attn.weight".shape' header)" = "[24,72]" ] # [in, out]
    [ "$(jq -c '."transformer.wte.weight".shape, ."lm_head.weight".shape' header)" = "[256,24]
[256,24]" ]
    [ "$(jq -r 'del(.__metadata__) | keys | length' header)" -eq 29 ]
    [ "$(stat -c %s out/model.safetensors)" -eq $((8 + len + $(jq 'del(.__metadata__) | [.[].data_offsets[1]] | max' header))) ]
    run "$SL" export "$RUNS/1/checkpoints" --to out
    [ "$status" -eq 2 ]
    [[ "$output" == *"is there already"* ]]
    run "$SL" export out --to more
    [ "$status" -eq 2 ]
}

@test "saving and going on take no memory beside a buffer" {
    set -- -n 2 --set model.width=384 --set model.heads=6 --set model.layers=3 --set model.context=16 --set train.batch=2 \
        --set train.steps=3 --set train.eval_samples=1
    train "$@"
    train "$@" --set checkpoint.every=1
    train "$@" --set "$(resume "$(ckpt 2 1)")" # and so does going on
    # behind a run's first step, with all ranks alive: memory that is shared counts by halves, and in full when the peer has gone
    first="(SELECT job, rank, bytes, min(step) FROM rank_memory WHERE category = 'process' AND step > 0 GROUP BY job, rank)"
    sql "SELECT * FROM $first"
    run sql "SELECT count(*) FROM $first WHERE bytes <= 1.05 * (SELECT max(bytes) FROM $first WHERE job = 1)"
    [ "$output" = 6 ]
}
