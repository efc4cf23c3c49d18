#!/usr/bin/env bats
# shardlaunch run: a small model on made-up text, from the job file to the exit status.

load ../lib/procs.bash

setup() {
    sl=$builddir/shardlaunch
    T=$(mktemp -d)
    job=$T/job.toml
    export SHARDLAUNCH_STATE=$T/state
    unset SHARDLAUNCH_DB
    for i in $(seq 400); do echo "line $i of a text that says little, $((i * i)) times"; done >"$T/text"
    cat >"$job" <<'TOML'
name = "small"
[resources]
ranks_per_node = 2
[model]
kind = "gpt"
layers = 1
heads = 2
width = 32
context = 32
[data]
train = "text"
valid_fraction = 0.1
tokenizer = "byte"
[train]
strategy = "zero2"
steps = 5
batch = 8
lr = 1e-3
seed = 1
TOML
}

teardown() {
    end_bearers
    rm -rf "$T"
}

launch() { env TMPDIR="$T" "$sl" "$@" 2>&1 3>&-; }

start() { # in the background; $keeper
    env TMPDIR="$T" "$sl" "$job" --progress 0.05 "$@" >"$T/out" 2>&1 3>&- &
    keeper=$!
}

has_rank() { # RANK: it has been started; its pid into $pid
    pid=$(rank_pid "$keeper" "$1")
    [ -n "$pid" ]
}

stepped() { grep -q '^step ' "$T/out"; }

@test "a job file is trained and says where everything is" {
    run launch "$job"
    [ "$status" -eq 0 ]
    [[ "$output" == *'job 1 "small": zero2 on 2 ranks of '*' 5 steps'* ]]
    [[ "$output" == *"5 steps, loss "*", valid.loss "*" tokens/s"* ]]
    [[ "$output" == *"peak memory by rank  0: "*", 1: "* ]]
    [[ "$output" == *"job 1 done: logs in $T/state/runs/1/attempt-1, numbers in $T/state/"* ]]
    [ -f "$T/state/runs/1/job.toml" ]
    [ -f "$T/state/runs/1/attempt-1/rank-1.log" ]
    nothing_left
    run "$sl" check "$T/state/runs/1/job.toml"
    [ "$status" -eq 0 ]
}

@test "options stand for keys of the job file" {
    run launch run "$job" --ranks 3 --strategy zero3 --name 'a "b" \c' --set train.batch=6 --quiet
    [ "$status" -eq 0 ]
    grep -q '^ranks_per_node = 3' "$T/state/runs/1/job.toml"
    grep -q 'strategy = "zero3"' "$T/state/runs/1/job.toml"
    grep -qF 'a \"b\" \\c' "$T/state/runs/1/job.toml"
}

@test "quiet says nothing when all is well" {
    run launch "$job" --quiet --ranks 1
    [ "$status" -eq 0 ]
    [ -z "$output" ]
}

@test "what does not fit is refused with 3 and a way out, and nothing is started" {
    run launch "$job" --set 'resources.memory_limit="64KiB"'
    [ "$status" -eq 3 ]
    [[ "$output" == *"hint: "* ]]
    [ ! -e "$T/state/runs/1" ]
}

@test "data that is not there, or too short, is refused with 2 before a rank starts" {
    run launch "$job" --set data.train=nowhere
    [ "$status" -eq 2 ]
    [[ "$output" == *"nowhere"* ]]
    : >"$T/text"
    run launch "$job"
    [ "$status" -eq 2 ]
    [[ "$output" == *"text"* ]]
    [ ! -e "$T/state/runs/1" ]
}

@test "ranks that do not divide the batch are refused with 2" {
    run launch "$job" --ranks 3
    [ "$status" -eq 2 ]
}

@test "one of several tasks without PMIx is refused with the line to write: each would train the whole job" {
    run env SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 "$sl" "$job" --no-web
    [ "$status" -eq 2 ]
    [[ "$output" == *"srun started 2 tasks without PMIx"*"srun --mpi=pmix shardlaunch $job"* ]]
    for v in OMPI_COMM_WORLD_SIZE PMI_SIZE; do
        run env $v=2 "$sl" "$job" --no-web
        [ "$status" -eq 2 ]
        [[ "$output" == *"mpiexec started 2 tasks without PMIx"* ]]
    done
    [ ! -e "$T/state/runs/1" ]
}

@test "a job for several nodes on one machine is refused with the line to write" {
    run "$sl" "$job" --no-web --set resources.nodes=2
    [ "$status" -eq 2 ]
    [[ "$output" == *"resources.nodes is 2, and this is one task"*"srun --mpi=pmix -N2 --ntasks-per-node=1 shardlaunch $job"* ]]
}

@test "a word that is no descriptor does not make a rank" {
    run "$sl" rank x
    [ "$status" -eq 2 ]
    run "$sl" rank 0
    [ "$status" -eq 2 ]
}

@test "kill -9 of each of four ranks at start-up" {
    for r in 0 1 2 3; do
        start --ranks 4 --set train.steps=100000
        until_true has_rank $r
        kill -9 "$pid"
        await "$keeper"
        [ "$status" -eq 1 ]
        grep -q "rank $r on .* (pid $pid) was killed by signal 9" "$T/out"
        nothing_left
    done
}

@test "kill -9 of each of four ranks mid-run" {
    for r in 0 1 2 3; do
        start --ranks 4 --set train.steps=100000
        until_true stepped
        kill -9 "$(rank_pid "$keeper" $r)"
        await "$keeper"
        [ "$status" -eq 1 ]
        grep -q "rank $r on .* was killed by signal 9 (Killed) in step [1-9]" "$T/out"
        nothing_left
    done
}

@test "kill -9 of the agent mid-run" {
    start --ranks 4 --set train.steps=100000
    until_true stepped
    kill -9 "$(agent_of "$keeper")"
    await "$keeper"
    [ "$status" -eq 5 ]
    nothing_left
}

@test "a frozen rank is named and the status is 6" {
    start --set train.steps=100000 --set failure.hang_timeout=1
    until_true stepped
    kill -STOP "$(rank_pid "$keeper" 1)"
    await "$keeper"
    [ "$status" -eq 6 ]
    grep -q "rank 1 is behind" "$T/out"
    nothing_left
}

@test "Ctrl-C once stops at a step's end, with a checkpoint and 75" {
    start --set train.steps=100000
    until_true stepped
    kill -INT "$keeper"
    await "$keeper"
    [ "$status" -eq 75 ]
    grep -q 'Interrupt: stopped behind step [1-9][0-9]*, with a checkpoint' "$T/out"
    nothing_left
}

@test "two jobs at once train the same as one alone" {
    start --set train.steps=40
    run launch "$job" --set train.steps=40
    await "$keeper"
    [ "$status" -eq 0 ]
    one=$(grep -o '40 steps, loss [0-9.]*, valid.loss [0-9.]*' "$T/out")
    two=$(grep -o '40 steps, loss [0-9.]*, valid.loss [0-9.]*' <<<"$output")
    [ -n "$one" ]
    [ "$one" = "$two" ]
    [ -d "$T/state/runs/1" ]
    [ -d "$T/state/runs/2" ]
    nothing_left
}
