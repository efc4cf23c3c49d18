#!/usr/bin/env bats
# plan: what it prints, for whom, and with which status; no data is ever opened

setup() {
    sl="$builddir/shardlaunch"
    dir=$(mktemp -d "${TMPDIR:-/tmp}/sl-plan.XXXXXX")
    cat >"$dir/job.toml" <<END
[resources]
ranks_per_node = 4
[model]
kind = "gpt"
layers = 2
heads = 2
width = 64
context = 32
[data]
train = "no-such-file"
valid_fraction = 0.1
tokenizer = "word"
vocab_size = 500
[train]
strategy = "ddp"
steps = 10
batch = 24
lr = 1e-3
END
}

teardown() {
    rm -rf "$dir"
}

@test "plan needs no data and names every category" {
    run "$sl" plan "$dir/job.toml"
    [ "$status" -eq 0 ]
    for word in parameters gradients optimizer activations communication workspace ddp total; do
        [[ "$output" == *"$word"* ]]
    done
}

@test "plan --all compares the five strategies" {
    run "$sl" plan "$dir/job.toml" --all --json
    [ "$status" -eq 0 ]
    for s in dp ddp zero1 zero2 zero3; do
        [[ "$output" == *"\"strategy\":\"$s\""* ]]
    done
    [[ "$output" == *'"per_rank":'* ]] # dp: rank 0 differs
}

@test "plan --ranks and --strategy override the job, and other names of a strategy are known" {
    run "$sl" plan "$dir/job.toml" --ranks 8 --strategy fsdp --json
    [ "$status" -eq 0 ]
    [[ "$output" == '{"ranks":8,"strategies":[{"strategy":"zero3",'* ]]
    run "$sl" plan "$dir/job.toml" --ranks 5
    [ "$status" -eq 2 ]
    [[ "$output" == *"5 ranks"* ]]
}

@test "plan --set changes the model" {
    a=$("$sl" plan "$dir/job.toml" --json)
    b=$("$sl" plan "$dir/job.toml" --json --set model.layers=4)
    [ "$a" != "$b" ]
}

@test "a limit that is too low gives status 3 and a change that makes it fit" {
    run "$sl" plan "$dir/job.toml" --limit 1KiB
    [ "$status" -eq 3 ]
    [[ "$output" == *"does not fit"* ]]
    need=$("$sl" plan "$dir/job.toml" --json --strategy zero1 |
        sed 's/.*"total_bytes":\([0-9]*\),"cat.*/\1/')
    run "$sl" plan "$dir/job.toml" --limit "$need"
    [ "$status" -eq 3 ]
    [[ "$output" == *'hint: '*'train.strategy = "zero1"'* ]]
    run "$sl" plan "$dir/job.toml" --limit "$need" --strategy zero1
    [ "$status" -eq 0 ]
}

@test "resources.memory_limit is the limit when no other is given" {
    run "$sl" plan "$dir/job.toml" --set resources.memory_limit=1MiB
    [ "$status" -eq 3 ]
    run "$sl" plan "$dir/job.toml" --set resources.memory_limit=1MiB --limit 1GiB
    [ "$status" -eq 0 ]
}
