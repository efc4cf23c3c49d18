#!/usr/bin/env bats
# shardlaunch check: right and wrong job files, as a person and as a script meet them

setup() {
    dir=$(mktemp -d)
    sl="$builddir/shardlaunch"
    cd "$dir" || exit 1
    cat >job.toml <<'END'
name = "kjv"
[resources]
ranks_per_node = 2
[model]
layers = 2
heads = 4
width = 64
context = 32
[data]
train = "kjv.txt"
[train]
steps = 20
batch = 8
lr = 3e-4
END
}

teardown() {
    rm -rf "$dir"
}

# Run with stdout and stderr apart: $output is stdout, the file `said` is stderr.
apart() {
    run bash -c '"$@" 2>said' -- "$@"
}

@test "a right file: one line on stdout, nothing on stderr, status 0" {
    apart "$sl" check job.toml
    [ "$status" -eq 0 ]
    [ "$output" = 'job.toml: ok: "kjv", gpt of 2 layers and width 64, zero2 on 2 ranks, fp32, 20 steps of 8 samples' ]
    [ ! -s said ]
}

@test "a wrong value: its place and what is allowed, on stderr, status 2" {
    sed -i 's/^lr = .*/lr = -1/' job.toml
    apart "$sl" check job.toml
    [ "$status" -eq 2 ]
    [ -z "$output" ]
    [ "$(cat said)" = 'shardlaunch: job.toml:14:6: train.lr is -1; use a number above 0 and at most 1000' ]
}

@test "a misspelt key: the nearest one in a hint" {
    sed -i 's/^heads = /haeds = /' job.toml
    apart "$sl" check job.toml
    [ "$status" -eq 2 ]
    [ "$(head -n1 said)" = 'shardlaunch: job.toml:6:1: unknown key "model.haeds"' ]
    grep -q '^hint: Did you mean "heads"?' said
}

@test "--set overrides, in both forms, and its mistakes name it" {
    apart "$sl" check --set train.strategy=fsdp -s train.steps=3 job.toml --set=name=other
    [ "$status" -eq 0 ]
    [[ $output == *'"other"'*'zero3 on 2 ranks'*'3 steps'* ]]
    apart "$sl" check job.toml --set train.lr=fast
    [ "$status" -eq 2 ]
    [[ $(cat said) == 'shardlaunch: --set train.lr=fast: train.lr is "fast"; use'* ]]
}

@test "--json is JSON on stdout for right and wrong files" {
    apart "$sl" check --json job.toml
    [ "$status" -eq 0 ]
    [ "$output" = '{"file":"job.toml","ok":true,"name":"kjv","ranks":2,"strategy":"zero2","precision":"fp32"}' ]
    printf 'x = 1\n' >bad.toml
    apart "$sl" check --json bad.toml
    [ "$status" -eq 2 ]
    [[ $output == '{"file":"bad.toml","ok":false,"error":"bad.toml:1:1: unknown key \"x\"","hint":'*'}' ]]
}

@test "no file, a folder, a binary file and control characters" {
    apart "$sl" check none.toml
    [ "$status" -eq 2 ]
    [ "$(cat said)" = 'shardlaunch: open "none.toml": No such file or directory' ]
    apart "$sl" check .
    [ "$status" -eq 2 ]
    head -c 3000 "$sl" >bin.toml
    apart "$sl" check bin.toml
    [ "$status" -eq 2 ]
    printf '"\\u001b[2Jx" = 1\n' >esc.toml
    apart "$sl" check esc.toml
    [ "$status" -eq 2 ]
    [ -z "$(tr -cd '\033' <said)" ]
    grep -qF '\x1B[2Jx' said
}

@test "names and paths that only a rank would find too long are refused here" {
    local long
    long=$(printf '%0120d' 0)
    grep -v '^name' job.toml >"$long.toml"
    apart "$sl" check "$long.toml"
    [ "$status" -eq 2 ]
    grep -q "$long.toml:1:1: name is missing, and the file's has 120 bytes, more than 100" said
    apart "$sl" check "$long.toml" --set 'name="short"'
    [ "$status" -eq 0 ]
    mkdir -p "$long/$long"
    cp job.toml "$long/$long"
    apart "$sl" check "$long/$long/job.toml" --set "data.train=\"$(printf '%0990d' 0)\"" # 990 and the folder's
    [ "$status" -eq 2 ]
    grep -q 'bytes with its folder, more than 1000' said
}

@test "data files are not opened" {
    [ ! -e kjv.txt ]
    apart "$sl" check job.toml
    [ "$status" -eq 0 ]
}

@test "a full disk under stdout is a failure, not silence" {
    [ -w /dev/full ] || skip "no /dev/full"
    run bash -c '"$1" check job.toml >/dev/full' -- "$sl"
    [ "$status" -eq 5 ]
    [[ $output == *"write to standard output: No space left on device"* ]]
}
