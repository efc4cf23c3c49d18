#!/usr/bin/env bats
# shardlaunch data: token files from texts, and what it says about them

setup() {
    program=$builddir/shardlaunch
    cd "$BATS_TEST_TMPDIR" || exit 1
    printf 'the cat sat\non the mat\n' >a.txt
}

@test "build with bytes keeps every byte" {
    run "$program" data build a.txt
    [ "$status" -eq 0 ]
    [ "$output" = "a.txt.tokens: 23 tokens, vocabulary 256" ]
    # behind the header of 64 bytes every second byte is the text, the others are zero
    tail -c +65 a.txt.tokens | tr -d '\0' | cmp - a.txt
    [ "$(stat -c %s a.txt.tokens)" -eq $((64 + 2 * 23)) ]
}

@test "build with words writes the words beside the tokens, most frequent first" {
    mkdir out
    run "$program" data build a.txt --tokenizer word --vocab-size 100 --out out
    [ "$status" -eq 0 ]
    [ "$output" = "out/a.txt.tokens: 8 tokens, vocabulary 7" ]
    [ "$(tr '\n' ' ' <out/a.txt.vocab)" = "<unk> <eos> the cat mat on sat " ]
    run "$program" data inspect out/a.txt.tokens --context 3
    [ "$status" -eq 0 ]
    [[ $output == *"tokenizer      word"* ]]
    [[ $output == *"samples        2 of context 3"* ]]
    [[ $output == *"first text     the cat sat <eos> on the mat <eos>"* ]]
}

@test "inspect --json is one JSON value with all of it" {
    "$program" data build a.txt --tokenizer word --vocab-size 4 --out a.tokens
    "$program" data inspect a.tokens --json >a.json
    [ "$(jq -r .tokenizer a.json)" = word ]
    [ "$(jq -r .tokens a.json)" = 8 ]
    [ "$(jq -r .vocab_size a.json)" = 4 ]
    [ "$(jq -c .first_tokens a.json)" = "[2,3,0,1,0,2,0,1]" ]
    [ "$(jq -r .first_text a.json)" = "the cat <unk> <eos> <unk> the <unk> <eos>" ]
}

@test "a bare array of uint16 is read as it is" {
    printf '\1\0\2\0\0\4' >x.bin
    "$program" data inspect x.bin --json --context 1 >x.json
    [ "$(jq -c .first_tokens x.json)" = "[1,2,1024]" ]
    [ "$(jq -c '[.tokenizer, .vocab_size, .largest_token, .samples]' x.json)" = "[null,null,1024,2]" ]
    run "$program" data inspect x.bin --vocab-size 1000
    [ "$status" -eq 2 ]
    [[ $output == *"token 1024 at position 2 is not below vocab_size 1000"* ]]
}

@test "what is wrong is named, with status 2" {
    : >empty.txt
    printf 'good\nbad \377\n' >bad.txt
    printf 'abc' >odd.bin
    run "$program" data build empty.txt
    [ "$status" -eq 2 ]
    [[ $output == *'"empty.txt" is empty'* ]]
    run "$program" data build bad.txt --tokenizer word --vocab-size 10
    [ "$status" -eq 2 ]
    [[ $output == *'bad.txt:2:5: byte 0xff at offset 9 is not UTF-8'* ]]
    [ ! -e bad.txt.tokens ]
    run "$program" data build a.txt --tokenizer word
    [ "$status" -eq 2 ]
    [[ $output == *'--vocab-size'* ]]
    run "$program" data build a.txt --tokenizer word --vocab-size 65537
    [ "$status" -eq 2 ]
    run "$program" data build nowhere.txt
    [ "$status" -eq 2 ]
    [[ $output == *'"nowhere.txt": No such file'* ]]
    run "$program" data inspect odd.bin
    [ "$status" -eq 2 ]
    [[ $output == *'3 bytes are no whole number'* ]]
    run "$program" data polish a.txt
    [ "$status" -eq 2 ]
    [[ $output == *'"polish"'* ]]
}

@test "a truncated or damaged token file is refused" {
    "$program" data build a.txt --out a.tokens
    head -c 90 a.tokens >cut.tokens
    run "$program" data inspect cut.tokens
    [ "$status" -eq 2 ]
    [[ $output == *"promises 23 tokens, the file holds 13"* ]]
    printf 'X' | dd of=a.tokens bs=1 seek=70 conv=notrunc status=none
    run "$program" data inspect a.tokens
    [ "$status" -eq 2 ]
    [[ $output == *"damaged"* ]]
}

@test "words that were made for another file are refused" {
    "$program" data build a.txt --tokenizer word --vocab-size 10 --out a.tokens
    sed -i s/cat/dog/ a.vocab
    run "$program" data inspect a.tokens
    [ "$status" -eq 2 ]
    [[ $output == *"is not the vocabulary"* ]]
}

@test "control characters of a text do not reach the terminal" {
    printf '\033[31mred\302\233 \n' >esc.txt
    "$program" data build esc.txt --tokenizer word --vocab-size 10 --out esc.tokens
    run "$program" data inspect esc.tokens
    [ "$status" -eq 0 ]
    [[ $output != *$'\033'* ]]
    [[ $output == *'\x1b[31mred'* ]]
}

@test "a folder that cannot be written is status 5 with what to do" {
    run "$program" data build a.txt --out a.txt/x.tokens
    [ "$status" -eq 5 ]
    [[ $output == *"cannot write"* ]]
}

@test "a folder that is not there is a mistake, and is named" {
    for kind in byte word; do
        run "$program" data build a.txt --tokenizer $kind --vocab-size 256 --out none/a
        [ "$status" -eq 2 ]
        [ "${lines[0]}" = 'shardlaunch: there is no folder "none" to write to' ]
    done
}
