#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Started by srun, sbatch, salloc and mpirun on a real Slurm of two nodes. The launcher is tried with its
# drill (tests/launcher), whose ranks fail on demand, and with the program itself.

load ../lib/common.bash
load ../lib/procs.bash
load cluster.bash

setup_file() { cluster_up; }
teardown_file() { cluster_down; }

setup() {
    need_cluster
    drill=$builddir/tests/launcher/drill
    T=$(mktemp -d)
    chmod 755 "$T"
    mkdir "$T/run"
    started=
}

teardown() {
    for p in ${started:-}; do kill -9 "$p" 2>/dev/null || :; done
    [ -z "${T:-}" ] || { end_bearers; rm -rf "$T"; }
}

per_node="srun --mpi=pmix -N2 --ntasks-per-node=1"
per_rank="srun --mpi=pmix -N2 --ntasks-per-node=2"

launch() { # FAULT SRUN ARGUMENTS...: in the foreground, for `run`
    # shellcheck disable=SC2086
    TMPDIR="$T" DRILL_FAULT="$1" slurm $2 "$drill" "${@:3}" "$T/run" 2>&1
}

start() { # the same in the background; $job is the process
    # shellcheck disable=SC2086
    TMPDIR="$T" DRILL_FAULT="$1" slurm $2 "$drill" "${@:3}" "$T/run" >"$T/out" 2>&1 3>&- &
    job=$!
    started="$started $job"
}

up() { # all N ranks have printed their first line
    [ "$(cat "$T"/run/attempt-1/rank-*.log 2>/dev/null | grep -c ' is up$')" -eq "$1" ]
}

named() { # NAME HOST: pids of this test's processes of that name on that node
    local p
    for p in $(bearers); do
        [ "$(cat "/proc/$p/comm" 2>/dev/null)" = "$1" ] || continue
        [ "$(nsenter --uts="/proc/$p/ns/uts" hostname 2>/dev/null)" = "$2" ] && echo "$p"
    done
}

rank_of() { # RANK: its pid, as this machine sees it
    local p
    for p in $(bearers); do
        if grep -qzx "PMIX_RANK=$1" "/proc/$p/environ" 2>/dev/null \
            && tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null | grep -q '^shardlaunch rank '; then
            echo "$p"
        fi
    done
}

@test "both shapes: four ranks on two nodes meet, print, finish and leave nothing" {
    for shape in "$per_node" "$per_rank"; do
        run launch "" "$shape" -n 2 -s 3
        [ "$status" -eq 0 ]
        for r in 0 1 2 3; do
            [ "$(cat "$T/run/attempt-1/rank-$r.log")" = "rank $r of 4 is up" ]
        done
        [[ "$output" == *"3 steps, loss 0.3333"* ]]
        nothing_left
    done
}

@test "kill -9 of a rank of either node at start-up and amid: it is named, all others end" {
    for shape in "$per_node" "$per_rank"; do
        for r in 0 3; do
            run launch "$r:init:kill" "$shape" -n 2
            [ "$status" -eq 1 ]
            [[ "$output" == *"rank $r on n$((r / 2 + 1)) "*" was killed by signal 9 (Killed) before the first step"* ]]
            run launch "$r:2:kill" "$shape" -n 2 -s 100 -m 5
            [ "$status" -eq 1 ]
            [[ "$output" == *"rank $r on n$((r / 2 + 1)) "*" was killed by signal 9 (Killed) in step 2"* ]]
            [[ "$output" == *"  | rank $r of 4 is up"* ]]
            nothing_left
        done
    done
}

@test "kill -9 of a rank from outside, and of one that has left a setsid grandchild" {
    start "" "$per_node" -n 2 -s 100000 -m 2
    until_true up 4
    kill -9 "$(rank_of 2)"
    await "$job"
    [ "$status" -eq 1 ]
    grep -q "rank 2 on n2 .* was killed by signal 9" "$T/out"
    nothing_left
    run launch "3:2:grandchild" "$per_rank" -n 2 -s 5 -m 5
    [ "$status" -eq 0 ]
    nothing_left
}

@test "a rank of the other node that hangs is named, with verdict and stack, and the status is 6" {
    for shape in "$per_node" "$per_rank"; do
        run launch 3:2:freeze "$shape" -n 2 -h 1 -s 50 -m 2
        [ "$status" -eq 6 ]
        [[ "$output" == *"hang: nothing moved for "[12]" s; rank 3 is behind: computing for "*"on n2, pid "*"it is stopped by a signal"* ]]
        [[ "$output" == *"rank 0 (pid "*"): waiting "*"it waits for its peers"* ]]
        [[ "$output" == *"T (stopped)"* ]]
        nothing_left
    done
}

@test "failure.max_restarts: the next attempt begins on all nodes" {
    for shape in "$per_node" "$per_rank"; do
        DRILL_ATTEMPTS=1 run launch 2:3:kill "$shape" -n 2 -s 20 -m 5 -r 2
        [ "$status" -eq 0 ]
        [[ "$output" == *"rank 2 on n2 "*"restart 1 of 2 now"*"20 steps, "* ]]
        nothing_left
    done
}

@test "kill -9 of an agent or of the chief ends all with 5" {
    for node in n2 n1; do
        start "" "$per_rank" -n 2 -s 100000 -m 2
        until_true up 4
        kill -9 "$(named sl-agent $node | head -n 1)"
        await "$job"
        [ "$status" -eq 5 ]
        nothing_left
        rm -rf "$T/run/attempt-1"
    done
}

@test "USR2 by scancel stops at an agreed step: 75 with a checkpoint, 128 + N without" {
    start "" "$per_node" -n 2 -s 100000 -m 2 -c
    until_true up 4
    slurm scancel --signal=USR2 "$(the_job)"
    await "$job"
    [ "$status" -eq 75 ]
    grep -q "signal 12 (User defined signal 2): stopping after this step" "$T/out"
    nothing_left
    rm -rf "$T/run/attempt-1"
    start "" "$per_rank" -n 2 -s 100000 -m 2
    until_true up 4
    slurm scancel --signal=USR2 "$(the_job)"
    await "$job"
    [ "$status" -eq 140 ]
    nothing_left
}

@test "a plain scancel stops gracefully, too" {
    start "" "$per_node" -n 2 -s 100000 -m 2 -c
    until_true up 4
    slurm scancel "$(the_job)"
    await "$job"
    grep -q "signal 15 (Terminated): stopping after this step" "$T/out"
    grep -q "Terminated: stopped behind step .*, with a checkpoint" "$T/out"
    nothing_left
}

@test "inside sbatch and salloc, and two jobs at once on the same nodes" {
    for k in 1 2; do
        mkdir -p "$T/run$k"
        cat >"$T/batch$k" <<END
#!/bin/bash
srun --mpi=pmix $drill -n 2 -s 40 -m 5 $T/run$k
echo "srun: \$?"
END
        TMPDIR=$T slurm sbatch -N2 --ntasks-per-node=1 -c1 --mem=0 --oversubscribe -o "$T/batch$k.out" "$T/batch$k"
    done
    both() { [ "$(cat "$T"/batch?.out 2>/dev/null | grep -c '^srun: 0$')" -eq 2 ]; }
    : >"$T/out"
    until_true both
    TMPDIR=$T run slurm salloc -N2 --ntasks-per-node=2 srun --mpi=pmix "$drill" -n 2 -s 2 "$T/run"
    [ "$status" -eq 0 ]
    [[ "$output" == *"2 steps, loss 0.5000"* ]]
    nothing_left
}

@test "mpirun -n 2 on one machine" {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    TMPDIR=$T run timeout 60 mpirun --allow-run-as-root --oversubscribe -n 2 "$drill" -n 1 -s 3 "$T/run"
    [ "$status" -eq 0 ]
    [ "$(cat "$T"/run/attempt-1/rank-1.log)" = "rank 1 of 2 is up" ]
    nothing_left
}

@test "contradictions are refused with the line to write" {
    run launch "" "srun -N2 --ntasks-per-node=1" -n 2
    [ "$status" -eq 2 ]
    [[ "$output" == *"srun started 2 tasks without PMIx"*"srun --mpi=pmix drill"* ]]
    run launch "" "srun --mpi=pmix -N2 -n3" -n 2
    [ "$status" -eq 2 ]
    [[ "$output" == *"the nodes have different numbers of tasks: n1 2, n2 1"*"srun --mpi=pmix -N2 --ntasks-per-node=1 drill"* ]]
    run launch "" "$per_rank" -n 4
    [ "$status" -eq 2 ]
    [[ "$output" == *"ranks_per_node is 4, and each node has 2 tasks"*"srun --mpi=pmix -N2 --ntasks-per-node=4 drill"* ]]
    run launch "" "srun --mpi=pmix -N1 -n1 env SLURM_NTASKS_PER_NODE=2" -n 2
    [ "$status" -eq 2 ]
    [[ "$output" == *"--ntasks=1 and --ntasks-per-node=2 contradict each other"* ]]
    run launch "" "srun --mpi=pmix -N2 --ntasks-per-node=1 env SLURM_CPUS_PER_TASK=4096" -n 2
    [ "$status" -eq 2 ]
    [[ "$output" == *"4096 cpus per task were asked for"*"--cpus-per-task=4096"* ]]
    nothing_left
}

program() { # the program's store and job, of 4 steps
    export XDG_STATE_HOME="$T/state" DB="$T/state/shardlaunch/shardlaunch.db"
    sl_text "$T/text" 60000
    sl_job "$T/job.toml" "$T/text"
    sed -i 's/^steps = .*/steps = 4/' "$T/job.toml"
}

train() { # SRUN ARGUMENTS...
    # shellcheck disable=SC2086
    TMPDIR="$T" slurm $1 "$SL" "$T/job.toml" --no-web "${@:2}" 2>&1
}

losses_equal() { # JOB JOB WITHIN: of rank 0 in 4 steps; 0: to the bit
    [ "$(sql "SELECT count(*) FROM rank_throughput a JOIN rank_throughput b USING (rank, step) WHERE a.job = $1 AND b.job = $2 AND rank = 0 AND abs(a.loss - b.loss) <= $3")" -eq 4 ]
}

@test "the program: every strategy trains on two nodes like on one machine, and both shapes to the bit alike" {
    program
    TMPDIR=$T run "$SL" "$T/job.toml" --no-web --ranks 4
    [ "$status" -eq 0 ]
    job=1 # the last one
    for strategy in ddp zero1 zero2 zero3; do
        run train "$per_node" --set resources.ranks_per_node=2 --strategy $strategy
        [ "$status" -eq 0 ]
        run train "$per_rank" --strategy $strategy
        [ "$status" -eq 0 ]
        losses_equal 1 $((job + 1)) 1e-5
        losses_equal 2 $((job + 1)) 0
        losses_equal 2 $((job + 2)) 0
        job=$((job + 2))
    done
    [ "$(sql "SELECT group_concat(DISTINCT host) FROM rank WHERE job = 2")" = n1,n2 ]
    [ "$(sql "SELECT count(*) FROM rank_memory WHERE job = 2 AND rank = 3")" -gt 0 ]
    nothing_left
}

@test "the program on one node: one task per rank trains to the bit like one process with ranks" {
    program
    TMPDIR=$T run "$SL" "$T/job.toml" --no-web --ranks 2
    [ "$status" -eq 0 ]
    run train "srun --mpi=pmix -N1 --ntasks-per-node=2"
    [ "$status" -eq 0 ]
    losses_equal 1 2 0
    nothing_left
}

@test "the program: USR2 writes a checkpoint (75), and retry on two nodes goes on to the bit" {
    program
    run train "$per_rank" --set train.steps=400 --quiet
    [ "$status" -eq 0 ]
    # shellcheck disable=SC2086
    TMPDIR=$T slurm $per_node "$SL" "$T/job.toml" --no-web --set resources.ranks_per_node=2 --set train.steps=400 \
        --progress 0.02 >"$T/out" 2>&1 3>&- &
    job=$!
    started="$started $job"
    until_true grep -q '^step ' "$T/out"
    slurm scancel --signal=USR2 "$(the_job)"
    await "$job"
    [ "$status" -eq 75 ]
    at=$(sql "SELECT max(step) FROM rank_throughput WHERE job = 2")
    [ "$at" -lt 400 ]
    # shellcheck disable=SC2086
    TMPDIR=$T run slurm $per_rank "$SL" retry 2 --no-web
    [ "$status" -eq 0 ]
    [[ "$output" == *"job 2 goes on behind step $at"* ]]
    [ "$(sql "SELECT count(*) FROM rank_throughput a JOIN rank_throughput b USING (rank, step) WHERE a.job = 1 AND b.job = 2 AND rank = 0 AND a.loss = b.loss AND (b.step > $at) = (b.attempt > 1)")" -eq 400 ]
    nothing_left
}

@test "the program: kill -9 of a rank of the other node ends the job, which says who it was" {
    program
    # shellcheck disable=SC2086
    TMPDIR=$T slurm $per_node "$SL" "$T/job.toml" --no-web --set resources.ranks_per_node=2 --set train.steps=100000 \
        --progress 0.02 >"$T/out" 2>&1 3>&- &
    job=$!
    started="$started $job"
    until_true grep -q '^step ' "$T/out"
    kill -9 "$(rank_of 3)"
    await "$job"
    [ "$status" -eq 1 ]
    grep -q "rank 3 on n2 .* was killed by signal 9" "$T/out"
    [[ "$(sql "SELECT reason FROM job WHERE id = 1")" == "rank 3 on n2 "*" was killed by signal 9"* ]]
    nothing_left
}

@test "the program: a database on a node's own disk, tokens and checkpoints on a shared one" {
    program
    export SHARDLAUNCH_DB="$SLURM_ROOT/local/s.db" # not this test's machine's: seen by its node alone
    run train "$per_node" --set resources.ranks_per_node=2
    [ "$status" -eq 2 ]
    [[ "$output" == *"n2: the token file "*" of n1 cannot be read here"*"SHARDLAUNCH_CACHE"* ]]
    SHARDLAUNCH_CACHE="$T/cache" run train "$per_node" --set resources.ranks_per_node=2 \
        --set "checkpoint.dir=\"$T/ckpt\"" --set checkpoint.every=2
    [ "$status" -eq 0 ]
    [ -d "$T/cache/tokens" ]
    [ "$(find "$T/ckpt" -type f | wc -l)" -gt 4 ]
    [ ! -e "$SHARDLAUNCH_DB" ]
    nothing_left
}

@test "the program: what does not fit or is wrong is said once, and every task ends with its status" {
    program
    run train "$per_node" --set resources.memory_limit=1KiB
    [ "$status" -eq 3 ]
    run train "$per_rank" --set resources.nodes=3
    [ "$status" -eq 2 ]
    [[ "$output" == *"resources.nodes is 3, and 4 tasks were started on 2 nodes (n[1-2])"*"-N3"* ]]
    [ "$(grep -c 'resources.nodes is 3' <<<"$output")" -eq 1 ]
    nothing_left
}

losses_of() { # JOB: of rank 0, by step, the last attempt that did it
    sql "SELECT step, loss FROM rank_throughput t WHERE job = $1 AND rank = 0 AND attempt = (SELECT max(attempt) FROM rank_throughput WHERE job = $1 AND rank = 0 AND step = t.step) ORDER BY step"
}

ended() { # JOB...: all are done
    local j
    for j; do [ "$(sql "SELECT state FROM job WHERE id = $j" 2>/dev/null)" = done ] || return 1; done
}

stepped() { [ "$(sql "SELECT count(*) FROM rank_throughput WHERE job = $1" 2>/dev/null)" -gt 0 ]; }

@test "the program: a requeue is the same job and goes on to the bit, by submit and by a script of one's own" {
    program
    sed -i 's/^steps = .*/steps = 1200/; s/^ranks_per_node = .*/nodes = 2\nranks_per_node = 1/' "$T/job.toml"
    : >"$T/out"
    run train "$per_node" --quiet
    [ "$status" -eq 0 ]
    TMPDIR=$T run --separate-stderr slurm "$SL" submit --slurm "$T/job.toml" --sbatch --mem=0 --sbatch --oversubscribe
    [ "$status" -eq 0 ]
    [ "$output" = 2 ]
    [[ "$stderr" == *"submitted to Slurm as job "* ]]
    until_true stepped 2
    slurm scancel --signal=USR2 "$(the_job)"
    gone() { [ -z "$(slurm squeue -h -t R -o %i)" ]; }
    until_true gone
    cat >"$T/mine" <<END
#!/bin/bash
srun --mpi=pmix $SL $T/job.toml --no-web
status=\$?
[ \$status != 75 ] || scontrol requeue \$SLURM_JOB_ID
exit \$status
END
    TMPDIR=$T slurm sbatch -N2 --ntasks-per-node=1 --requeue --open-mode=append -o "$T/mine.out" "$T/mine"
    until_true stepped 3
    slurm scancel --signal=USR2 "$(slurm squeue -h -t R -o %i | head -n 1)"
    until_true ended 2
    until_true ended 3
    for j in 2 3; do
        [ "$(sql "SELECT attempts FROM job WHERE id = $j")" -eq 2 ]
        [ "$(losses_of 1)" = "$(losses_of $j)" ]
    done
    grep -q "goes on behind step" "$T/mine.out"
    [ "$(sql "SELECT count(*) FROM job")" -eq 3 ]
    nothing_left
}

@test "run --alloc asks for the nodes itself; inside an allocation it takes those" {
    program
    TMPDIR=$T run slurm "$SL" run "$T/job.toml" --alloc --no-web --set resources.nodes=2 --set resources.threads=1
    [ "$status" -eq 0 ]
    [[ "$output" == *"Granted job allocation"* ]]
    TMPDIR=$T run slurm salloc -N2 "$SL" "$T/job.toml" --set resources.nodes=2 --no-web --alloc
    [ "$status" -eq 0 ]
    for j in 1 2; do
        [ "$(sql "SELECT group_concat(DISTINCT host) FROM rank WHERE job = $j")" = n1,n2 ]
    done
    run train "$per_node" --alloc
    [ "$status" -eq 2 ]
    PATH=/nowhere run "$SL" "$T/job.toml" --alloc
    [ "$status" -eq 5 ]
    [[ "$output" == *"cannot start salloc"* ]]
    nothing_left
}

@test "submit --dry-run shows the script; without Slurm, submit says so and the job has failed" {
    program
    run "$SL" submit --slurm --dry-run "$T/job.toml" --set resources.nodes=3 --set resources.threads=2 --time 90m --sbatch --partition=x
    [ "$status" -eq 0 ]
    for line in '#SBATCH --nodes=3' '#SBATCH --ntasks-per-node=1' '#SBATCH --cpus-per-task=2' '#SBATCH --time=90' \
        '#SBATCH --signal=USR2@120' '#SBATCH --requeue' '#SBATCH --open-mode=append' '#SBATCH --partition=x'; do
        grep -qxF -- "$line" <<<"$output"
    done
    [[ "$output" == *"srun --mpi=pmix --cpus-per-task=2 '"*"/shardlaunch' retry ID "* ]]
    [ ! -e "$DB" ]
    PATH=/nowhere run "$SL" submit --slurm "$T/job.toml"
    [ "$status" -eq 5 ]
    [[ "$output" == *"cannot start sbatch"* ]]
    [ "$(sql "SELECT state FROM job")" = failed ]
}
