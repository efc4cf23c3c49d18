#!/usr/bin/env bats
# shardlaunch retry: an ended job is taken up again under its id.

load ../lib/common.bash
load ../lib/procs.bash

setup() {
    sl_setup
    T=$BATS_TEST_TMPDIR/t # in the environment of what a test starts, and of nothing else
    mkdir "$T"
    export SHARDLAUNCH_DB="$BATS_TEST_TMPDIR/s.db"
    DB=$SHARDLAUNCH_DB
    job=$BATS_TEST_TMPDIR/job.toml
    sl_text "$BATS_TEST_TMPDIR/text" 60000
    sl_job "$job" "$BATS_TEST_TMPDIR/text"
}

teardown() { end_bearers; }

sl_run() { env TMPDIR="$T" "$SL" "$@" --no-web 2>&1 3>&-; }

losses() { # JOB FROM: by step, of rank 0, the last attempt that did it
    sql "SELECT step, loss FROM rank_throughput t WHERE job = $1 AND rank = 0 AND step > $2 AND attempt =
         (SELECT max(attempt) FROM rank_throughput WHERE job = $1 AND rank = 0 AND step = t.step) ORDER BY step"
}

stop_amid() { # ARGUMENTS...: run it, and SIGTERM once a step is done; it ends with 75
    env TMPDIR="$T" "$SL" run "$job" --no-web --progress 0.02 "$@" >"$T/out" 2>&1 3>&- &
    keeper=$!
    until_true grep -q '^step ' "$T/out"
    kill -TERM "$keeper"
    await "$keeper"
    [ "$status" -eq 75 ]
}

@test "a stopped job goes on under its id, and ends as if it had never stopped, to the bit" {
    run sl_run run "$job" --ranks 2 --set train.steps=1500 --quiet
    [ "$status" -eq 0 ]
    stop_amid --ranks 2 --set train.steps=1500
    at=$(sql "SELECT max(step) FROM rank_throughput WHERE job = 2")
    [ "$at" -lt 1500 ]
    run sl_run retry 2
    [ "$status" -eq 0 ]
    [[ "$output" == *"job 2 goes on behind step $at, from "*"/runs/2/checkpoints/step-"*"1500 steps, loss "* ]]
    [ "$(losses 1 0)" = "$(losses 2 0)" ]
    [ "$(losses 2 0 | wc -l)" -eq 1500 ]
    run "$SL" show 2 --json
    [ "$(jq -c '[.state, (.attempt_list[] | .state, .exit_status, .resumed_step)]' <<<"$output")" = '["done","stopped",75,0,"done",0,'"$at]" ]
    run "$SL" show 2
    [[ "$output" == *"resumed behind step $at from "*"/runs/2/checkpoints/step-"* ]]
}

@test "with other ranks and another strategy it goes on, too, and show says so" {
    stop_amid --ranks 2 --set train.steps=3000
    run sl_run retry 1 --ranks 3 --strategy zero3 --set train.steps=3000
    [ "$status" -eq 0 ]
    [[ "$output" == *"zero3 on 3 ranks"*"goes on behind step "* ]]
    [ "$(sql "SELECT count(*) FROM rank WHERE attempt = 2")" -eq 3 ]
    run "$SL" show 1 --json
    [ "$(jq -c '[.world_size, .strategy]' <<<"$output")" = '[3,"zero3"]' ]
}

@test "a job that is done, still runs, or does not exist is not taken up" {
    run sl_run run "$job" --quiet
    run sl_run retry 1
    [ "$status" -eq 2 ]
    [[ "$output" == *"job 1 is done"* ]]
    [ "$(sql "SELECT state || attempts FROM jobs")" = done1 ]
    run sl_run retry 7
    [ "$status" -eq 4 ]
    env TMPDIR="$T" "$SL" run "$job" --no-web --progress 0.02 --set train.steps=1000000 >"$T/out" 2>&1 3>&- &
    keeper=$!
    until_true grep -q '^step ' "$T/out"
    run sl_run retry 2
    [ "$status" -eq 2 ]
    [[ "$output" == *"job 2 is "*"ning"* ]]
    kill -TERM "$keeper"
    await "$keeper"
    [ "$status" -eq 75 ]
}
