#!/usr/bin/env bats
# What a run trains on: text by bytes, text by words, ready-made tokens; and data that will not do

load ../lib/procs.bash

setup() {
    sl=$builddir/shardlaunch
    T=$(mktemp -d)
    export SHARDLAUNCH_STATE=$T/state
    unset SHARDLAUNCH_DB
    for i in $(seq 400); do echo "line $i of $((i * i % 17)) words, $((i % 7)) of them rare"; done >"$T/text"
    cat >"$T/job.toml" <<'TOML'
[resources]
ranks_per_node = 2
[model]
layers = 1
heads = 2
width = 32
context = 16
[data]
train = "text"
valid_fraction = 0
tokenizer = "word"
vocab_size = 50
[train]
steps = 4
batch = 8
lr = 1e-3
TOML
}

teardown() {
    end_bearers
    rm -rf "$T"
}

train() { env TMPDIR="$T" "$sl" run "$T/job.toml" --no-web "$@" 2>&1 3>&-; }

losses() { # ID: one a step, to the last digit
    sqlite3 -readonly "$T/state/shardlaunch.db" "SELECT group_concat(printf('%.17g', loss)) FROM
        (SELECT loss FROM rank_throughput WHERE job = $1 AND rank = 0 ORDER BY step)"
}

@test "words trained from a text and from a token file of the same words: the same losses" {
    train
    "$sl" data build "$T/text" --tokenizer word --vocab-size 50 --out "$T/text.tokens"
    train --set data.tokenizer=uint16 --set "data.train=\"$T/text.tokens\""
    tail -c +65 "$T/text.tokens" >"$T/text.bin" # the bare array, as nanoGPT has it
    train --set data.tokenizer=uint16 --set "data.train=\"$T/text.bin\""
    [ "$(losses 1 | tr , '\n' | wc -l)" -eq 4 ]
    [ "$(losses 1)" = "$(losses 2)" ]
    [ "$(losses 1)" = "$(losses 3)" ]
}

@test "the losses hang on the data and on the seed" {
    train
    train --set train.seed=2
    sed -i 's/^line/& &/' "$T/text"
    train
    [ "$(losses 1)" != "$(losses 2)" ]
    [ "$(losses 1)" != "$(losses 3)" ]
}

@test "a text is tokenised once, and anew when it has changed" {
    train
    train --set train.strategy=ddp
    [ "$(find "$T/state" -name '*.tokens' | wc -l)" -eq 1 ]
    echo more >>"$T/text"
    train
    [ "$(find "$T/state" -name '*.tokens' | wc -l)" -eq 2 ]
}

@test "tokens that were damaged on disk are made anew, with a note, and give the same losses" {
    train
    tokens=$(find "$T/state" -name '*.tokens')
    printf '\7' | dd of="$tokens" bs=1 seek=100 conv=notrunc status=none
    run train
    [ "$status" -eq 0 ]
    [[ $output == *"token files that were damaged have been made anew: 1, "* ]]
    [ "$(losses 1)" = "$(losses 2)" ]
    run train
    [[ $output != *damaged* ]]
}

@test "a validation file is read with the training file's words" {
    head -n 40 "$T/text" >"$T/valid"
    run train --set 'data.valid="valid"'
    [ "$status" -eq 0 ]
    [[ $output == *"valid.loss "* ]]
}

@test "less than one batch is refused in numbers, with status 2 and no rank started" {
    head -n 3 "$T/text" >"$T/few" # 3 lines of 9 words and an end
    run train --set 'data.train="few"'
    [ "$status" -eq 2 ]
    [[ $output == *"30 training tokens make 1 samples of context 16, fewer than one batch of 8"* ]]
    [[ $output == *"at least 129 training tokens"* ]]
    [ -z "$(find "$T/state" -name 'rank-*.log')" ]
}

@test "an empty file, one that is not UTF-8 and tokens beyond the vocabulary are refused" {
    : >"$T/empty"
    run train --set 'data.train="empty"'
    [ "$status" -eq 2 ]
    [[ $output == *'empty" is empty'* ]]
    printf 'caf\351\n' >"$T/latin1"
    run train --set 'data.train="latin1"'
    [ "$status" -eq 2 ]
    [[ $output == *'latin1:1:4: byte 0xe9 at offset 3 is not UTF-8'* ]]
    "$sl" data build "$T/text" --tokenizer word --vocab-size 60 --out "$T/more.tokens"
    run train --set data.tokenizer=uint16 --set 'data.train="more.tokens"'
    [ "$status" -eq 2 ]
    [[ $output == *"is not below vocab_size 50"* ]]
}

@test "a token file is not trained on as if it were text" {
    "$sl" data build "$T/text" --out "$T/text.tokens"
    for kind in byte word; do
        run train --set data.tokenizer=$kind --set data.vocab_size=256 --set 'data.train="text.tokens"'
        [ "$status" -eq 2 ]
        [[ $output == *'data.train: "'*'text.tokens" holds tokens, not text'* ]]
        [[ $output == *'data.tokenizer = "uint16"'* ]]
    done
    run "$sl" data build "$T/text.tokens"
    [ "$status" -eq 2 ]
    [[ $output == *"holds tokens, not text"* ]]
}
