#!/usr/bin/env bats
# The launcher's promises, with a rank that fails on demand (drill.c). Processes are found below the
# one that a test has started, and killed by id.

load ../lib/procs.bash

setup() {
    drill=$builddir/tests/launcher/drill
    T=$(mktemp -d)
    mkdir "$T/run"
    started=
}

teardown() {
    for p in $started; do kill -9 "$p" 2>/dev/null || :; done
    end_bearers
    rm -rf "$T"
}

launch() { # FAULT ARGUMENTS...: in the foreground, for `run`
    env TMPDIR="$T" DRILL_FAULT="$1" "$drill" "${@:2}" "$T/run" 2>&1
}

start() { # the same in the background; $keeper
    env TMPDIR="$T" DRILL_FAULT="$1" "$drill" "${@:2}" "$T/run" >"$T/out" 2>&1 3>&- &
    keeper=$!
    started="$started $keeper"
}

up() { # all N ranks have printed their first line
    [ "$(cat "$T"/run/attempt-1/rank-*.log 2>/dev/null | grep -c ' is up$')" -eq "$1" ]
}

@test "four ranks meet, print, finish and leave nothing" {
    run launch "" -n 4 -s 3
    [ "$status" -eq 0 ]
    for r in 0 1 2 3; do
        [ "$(cat "$T/run/attempt-1/rank-$r.log")" = "rank $r of 4 is up" ]
    done
    [[ "$output" == *"3 steps, loss 0.3333"* ]]
    nothing_left
}

@test "sixty-four ranks start and finish" {
    run launch "" -n 64 -s 2
    [ "$status" -eq 0 ]
    [ "$(cat "$T"/run/attempt-1/rank-*.log | grep -c ' of 64 is up$')" -eq 64 ]
    nothing_left
}

@test "kill -9 of each of four ranks at start-up and in the first step" {
    for r in 0 1 2 3; do
        run launch "$r:init:kill" -n 4
        [ "$status" -eq 1 ]
        [[ "$output" == *"rank $r on "*" was killed by signal 9 (Killed) before the first step"* ]]
        run launch "$r:1:kill" -n 4
        [ "$status" -eq 1 ]
        [[ "$output" == *"rank $r on "*" was killed by signal 9 (Killed) in step 1"* ]]
        [[ "$output" == *"  | rank $r of 4 is up"* ]]
        nothing_left
    done
}

@test "kill -9 of each of four ranks mid-run, from outside" {
    for r in 0 1 2 3; do
        rm -rf "$T/run/attempt-1"
        start "" -n 4 -s 100000 -m 2
        until_true up 4
        kill -9 "$(rank_pid "$keeper" $r)"
        await "$keeper"
        [ "$status" -eq 1 ]
        grep -q "rank $r on .* was killed by signal 9" "$T/out"
        nothing_left
    done
}

@test "a rank's threads spin for microseconds, unless the user says how they wait" {
    local spin wait
    for wait in "" GOMP_SPINCOUNT=77 OMP_WAIT_POLICY=active; do
        spin=2000
        [ "$wait" != GOMP_SPINCOUNT=77 ] || spin=77
        [ "$wait" != OMP_WAIT_POLICY=active ] || spin=
        rm -rf "$T/run/attempt-1"
        env -u GOMP_SPINCOUNT -u OMP_WAIT_POLICY $wait TMPDIR="$T" "$drill" -n 1 -s 100000 -m 2 "$T/run" >"$T/out" 2>&1 3>&- &
        keeper=$!
        started="$started $keeper"
        until_true up 1
        [ "$(tr '\0' '\n' <"/proc/$(rank_pid "$keeper" 0)/environ" | sed -n 's/^GOMP_SPINCOUNT=//p')" = "$spin" ]
        kill -INT "$keeper"
        await "$keeper"
        nothing_left
    done
}

@test "a rank that falls is named with its signal and last words, not those it takes along" {
    run launch 2:2:segv -n 4 -s 50 -m 5
    [ "$status" -eq 1 ]
    [[ "$output" == *"rank 2 on "*" was killed by signal 11 (Segmentation fault)"* ]]
    [[ "$output" == *"  | about to fall"* ]]
    [ "$(grep -c ' was killed by ' <<<"$output")" -eq 1 ]
}

@test "a rank's exit status is the job's where it says who must act" {
    run launch 1:1:exit2 -n 2
    [ "$status" -eq 2 ]
    run launch 1:1:exit7 -n 2
    [ "$status" -eq 1 ]
    [[ "$output" == *"rank 1 on "*" exited with status 7 in step 1"* ]]
    run launch 1:1:exit75 -n 2
    [ "$status" -eq 1 ]
}

@test "a rank that exits with 0 early is a failure" {
    run launch 1:2:exit0 -n 4 -s 50 -m 5
    [ "$status" -eq 1 ]
    [[ "$output" == *"rank 1 on "*" exited with status 0 before the job was done"* ]]
    nothing_left
}

@test "a rank that blames a peer is reported when no cause shows" {
    run launch 3:2:exit76 -n 4 -s 50 -m 5
    [ "$status" -eq 1 ]
    [[ "$output" == *"rank 3 on "*" left because a peer failed, but no peer has"* ]]
}

@test "a rank that hangs is named, with its stack, and the status is 6" {
    for when in init 2; do
        run launch 1:$when:freeze -n 3 -h 1 -s 50 -m 2
        [ "$status" -eq 6 ]
        [[ "$output" == *"hang: nothing moved for "[12]" s; rank 1 is behind"* ]]
        [[ "$output" == *"it is stopped by a signal (state T): kill -CONT "* ]]
        [[ "$output" == *"T (stopped)"* ]]
        nothing_left
    done
}

@test "before the first step is done the limit is twice as long" {
    run launch 1:init:freeze -n 2 -h 0.5
    [[ "$output" == *"hang: nothing moved for 1 s; "* ]]
    run launch 1:2:freeze -n 2 -h 0.5
    [[ "$output" == *"hang: nothing moved for 0.5 s; "* ]]
}

@test "hangs are told apart: spinning, sleeping, a skipped collective" {
    run launch 1:2:spin -n 3 -h 1 -s 50 -m 2
    [ "$status" -eq 6 ]
    [[ "$output" == *"rank 1 is behind: computing for "*" in step 2, "*"; it runs, "*" % of a core, outside every collective (state R)"* ]]
    [[ "$output" == *"rank 0 (pid "*"): waiting for "*" in step 2, in collective "*" (norm_merge): it waits for its peers"* ]]
    [[ "$output" == *" spin"* ]] # its stack
    run launch 1:2:sleep -n 3 -h 1 -s 50 -m 2
    [ "$status" -eq 6 ]
    [[ "$output" == *"; it sleeps in "*" (state S), outside every collective"* ]]
    run launch 1:2:skip -n 3 -h 20 -s 50 -m 2
    [ "$status" -eq 6 ]
    [[ "$output" == *"hang: rank 1 has come to another collective (step_end of step 2"*") than rank "[02]" (norm_merge of step 2"*"): one of them has skipped one"* ]]
    nothing_left
}

@test "kill -9 of the agent leaves no process, no folder, no setsid grandchild, and gives 5" {
    start 1:1:grandchild -n 4 -s 100000 -m 2
    until_true up 4
    until_true eval 'bearers | xargs -I{} cat /proc/{}/comm 2>/dev/null | grep -qx sleep'
    kill -9 "$(agent_of "$keeper")"
    await "$keeper"
    [ "$status" -eq 5 ]
    grep -q 'the agent (pid [0-9]*) was killed by signal 9' "$T/out"
    nothing_left
}

@test "an agent that is stopped is ended by its keeper" {
    start "" -n 2 -w 3 -s 100000 -m 2
    until_true up 2
    kill -STOP "$(agent_of "$keeper")"
    await "$keeper"
    [ "$status" -eq 5 ]
    grep -q 'gave no sign' "$T/out"
    nothing_left
}

@test "kill -9 of the keeper: the agent ends all and cleans up" {
    start 0:1:grandchild -n 4 -s 100000 -m 2
    until_true up 4
    kill -9 "$keeper"
    await "$keeper"
    nothing_left
    grep -q 'the keeper (pid [0-9]*) is gone' "$T/out"
}

@test "keeper and agent killed together: the next run sweeps what they left" {
    start 1:1:grandchild -n 2 -s 100000 -m 2
    until_true up 2
    until_true eval 'bearers | xargs -I{} cat /proc/{}/comm 2>/dev/null | grep -qx sleep'
    agent=$(agent_of "$keeper")
    kill -9 "$keeper" "$agent"
    await "$keeper"
    touch -d '1 minute ago' "$T"/shardlaunch-*
    run launch "" -n 2
    [ "$status" -eq 0 ]
    nothing_left
}

@test "a setsid grandchild is ended with a run that is done" {
    run launch 1:1:grandchild -n 2
    [ "$status" -eq 0 ]
    nothing_left
}

@test "two jobs at once do not meet" {
    mkdir "$T/other"
    start "" -n 4 -s 100 -m 5
    env TMPDIR="$T" "$drill" -n 3 -s 50 -m 5 "$T/other" 3>&-
    await "$keeper"
    [ "$status" -eq 0 ]
    grep -q '^100 steps' "$T/out"
    nothing_left
}

@test "Ctrl-C once stops all ranks after one agreed step" {
    start "" -n 4 -s 100000 -m 5
    until_true up 4
    kill -INT "$keeper"
    await "$keeper"
    [ "$status" -eq 130 ]
    grep -q 'signal 2 (Interrupt): stopping after this step' "$T/out"
    grep -q 'signal 2 (Interrupt): stopped after step [0-9]' "$T/out"
    nothing_left
}

@test "SIGTERM stops with 143" {
    start "" -n 2 -s 100000 -m 5
    until_true up 2
    kill -TERM "$keeper"
    await "$keeper"
    [ "$status" -eq 143 ]
}

@test "Ctrl-C twice ends a run that does not come to a step's end" {
    start "" -n 2 -s 3 -m 100000
    until_true up 2
    kill -INT "$keeper"
    until_true grep -q 'stopping after this step' "$T/out"
    sleep 0.4
    kill -INT "$keeper"
    await "$keeper"
    [ "$status" -eq 130 ]
    grep -q 'ended at once by signal 2' "$T/out"
    nothing_left
}

@test "a run that does not stop within grace is ended" {
    start "" -n 2 -s 3 -m 100000 -g 0.5
    until_true up 2
    kill -TERM "$keeper"
    await "$keeper"
    [ "$status" -eq 143 ]
    grep -q "no step's end within 0.5 s" "$T/out"
}

@test "time_limit stops at a step's end and says why" {
    run launch "" -n 2 -s 100000 -m 5 -t 0.3
    [ "$status" -eq 1 ]
    [[ "$output" == *"time_limit of 0.3 s reached: stopped after step "*"without a checkpoint"* ]]
}

@test "a stop with a checkpoint is resumable: 75; so is a time limit" {
    start "" -n 2 -s 100000 -m 5 -c
    until_true up 2
    kill -USR2 "$keeper"
    await "$keeper"
    [ "$status" -eq 75 ]
    grep -q 'User defined signal 2: stopped behind step [0-9]*, with a checkpoint' "$T/out"
    run launch "" -n 2 -s 100000 -m 5 -t 0.3 -c
    [ "$status" -eq 75 ]
    [[ "$output" == *"time_limit reached: stopped behind step "*", with a checkpoint"* ]]
    nothing_left
}

@test "a rank that dies is followed by a second attempt, which gets to the end" {
    db=$T/state/s.db
    DRILL_ATTEMPTS=1 run launch 1:2:kill -n 4 -s 5 -m 2 -r 3 -d "$db"
    [ "$status" -eq 0 ]
    [[ "$output" == *"rank 1 on "*" was killed by signal 9"*"restart 1 of 3 now"*"attempt 2 begins at the first step: there is no checkpoint"*"5 steps, loss 0.2000"* ]]
    [ "$(cat "$T"/run/attempt-2/rank-*.log | grep -c ' of 4 is up$')" -eq 4 ]
    [[ "$("$drill" state "$db" 1)" == "done 0 "* ]]
    [ "$(sqlite3 "$db" "SELECT group_concat(attempt||state||coalesce(resumed_step,'-')) FROM attempt")" = 1failed0,2done0 ]
    [ "$(sqlite3 "$db" "SELECT max(step) FROM sample WHERE attempt = 1")" = 1 ]
    [ "$(sqlite3 "$db" "SELECT count(*) FROM sample WHERE attempt = 2")" = 20 ]
    nothing_left
}

@test "restarts before PMIx, during wire-up and after a hang" {
    DRILL_ATTEMPTS=1 run launch 1:init:kill -n 4 -s 3 -r 1
    [ "$status" -eq 0 ]
    DRILL_ATTEMPTS=1 run launch 1:init:freeze -n 3 -s 3 -r 1 -h 2
    [ "$status" -eq 0 ]
    [[ "$output" == *"hang: "*"restart 1 of 1 now"* ]]
    nothing_left
}

@test "the same failure at the same step twice is the last one" {
    run launch 1:3:segv -n 3 -s 5 -r 100
    [ "$status" -eq 1 ]
    [[ "$output" == *"restart 1 of 100 now"*"signal 11"*"the same failure at the same step twice: another attempt would end like it"* ]]
    [ -d "$T/run/attempt-2" ]
    [ ! -d "$T/run/attempt-3" ]
    nothing_left
}

@test "what a person must mend is not tried again, and restarts are counted" {
    run launch 1:1:exit2 -n 2 -r 5
    [ "$status" -eq 2 ]
    [ ! -d "$T/run/attempt-2" ]
    run launch 1:1:exit77 -n 2 -r 5
    [ "$status" -eq 1 ]
    [[ "$output" == *"stopped: loss or gradient is not finite"* ]]
    [ ! -d "$T/run/attempt-2" ]
    nothing_left
}

@test "attempts that get no further wait longer; Ctrl-C ends the wait" {
    start 1:3:differ -n 2 -s 5 -r 9 -d "$T/state/s.db"
    until_true grep -q 'restart 4 of 9 in 4 s' "$T/out"
    kill -INT "$keeper"
    await "$keeper"
    [ "$status" -eq 130 ]
    grep -q 'restart 1 of 9 now' "$T/out"
    grep -q 'restart 2 of 9 in 1 s' "$T/out"
    grep -q 'restart 3 of 9 in 2 s' "$T/out"
    grep -q 'Interrupt: stopped before attempt 5, without a checkpoint' "$T/out"
    [[ "$("$drill" state "$T/state/s.db" 1)" == "stopped 130 Interrupt: stopped before attempt 5"* ]]
    nothing_left
}

@test "lines are whole in the log and, prefixed, on the terminal" {
    run launch 1:2:torn -n 2 -s 3 -m 5 -l
    [ "$status" -eq 0 ]
    log=$T/run/attempt-1/rank-1.log
    [ "$(grep -acE '^half-1-[0-9]+-end$' "$log")" -eq 200 ]
    [ "$(grep -acE '^err-1-[0-9]+$' "$log")" -eq 200 ]
    # 20,000 bytes with zeros and no newline: three pieces of at most 8,192 bytes, none lost
    [ "$(grep -ac xxxx "$log")" -eq 3 ]
    [ "$(tr -cd 'x' <"$log" | wc -c)" -eq 19995 ]
    [ "$(grep -acE '^\[rank 1\] half-1-[0-9]+-end$' <<<"$output")" -eq 200 ]
    [ "$(grep -acE '^\[rank 1\] err-1-[0-9]+$' <<<"$output")" -eq 200 ]
}

@test "a reader that pauses does not stop the run, and is told what it missed" {
    mkfifo "$T/fifo"
    exec 8<>"$T/fifo" # holds the pipe open, and reads nothing yet
    env TMPDIR="$T" DRILL_FAULT=0:1:flood "$drill" -n 2 -s 100 -m 2 -l -w 2 "$T/run" \
        2>"$T/fifo" 3>&- 8>&- &
    keeper=$!
    started="$started $keeper"
    flooded() { [ "$(cat "$T"/run/attempt-1/rank-0.log 2>/dev/null | wc -l)" -eq 30001 ]; }
    until_true flooded
    timeout 10 cat <&8 >"$T/out" 3>&- &
    cat=$!
    started="$started $cat"
    await "$keeper"
    [ "$status" -eq 0 ]
    until_true grep -q 'lines not shown: the reader was slow' "$T/out"
    kill "$cat"
    exec 8>&-
    nothing_left
}

@test "nobody reads stderr: the run goes on, and a killed agent is still 5" {
    mkfifo "$T/fifo"
    exec 8<>"$T/fifo"
    env TMPDIR="$T" "$drill" -n 2 -s 100 -m 5 "$T/run" 2>"$T/fifo" 3>&- 8>&- &
    keeper=$!
    started="$started $keeper"
    opened() { [ "$(readlink "/proc/$keeper/fd/2")" = "$T/fifo" ]; }
    until_true opened # else its open would wait for a reader for ever
    exec 8>&-
    await "$keeper"
    [ "$status" -eq 0 ]
    exec 8<>"$T/fifo"
    rm -rf "$T/run/attempt-1"
    env TMPDIR="$T" "$drill" -n 2 -s 100000 -m 5 "$T/run" 2>"$T/fifo" 3>&- 8>&- &
    keeper=$!
    started="$started $keeper"
    until_true up 2
    exec 8>&-
    kill -9 "$(agent_of "$keeper")"
    await "$keeper"
    [ "$status" -eq 5 ]
    nothing_left
}

@test "on a terminal there is one live line, on a pipe none" {
    run launch "" -n 2 -s 20 -m 20
    [ "$status" -eq 0 ]
    [[ "$output" != *$'\r'* ]]
    env TMPDIR="$T" script -qec "$drill -n 2 -s 30 -m 20 $T/run" "$T/typescript" >/dev/null 3>&-
    grep -q $'\r\033\[K' "$T/typescript"
    grep -q 'step [0-9]*/30' "$T/typescript"
}

@test "too few descriptors are refused before anything starts" {
    run bash -c "ulimit -n 100; TMPDIR=$T '$drill' -n 64 '$T/run'"
    [[ "$output" == *"64 ranks need 512 open files, the limit is 100"* ]]
    [ "$status" -eq 94 ]
    nothing_left
}

@test "the store hears how it ended, also when the agent is killed" {
    db=$T/state/s.db
    run launch "" -n 2 -d "$db"
    [ "$status" -eq 0 ]
    run launch 1:2:kill -n 2 -d "$db"
    [ "$status" -eq 1 ]
    rm -rf "$T/run/attempt-1"
    start "" -n 2 -s 100000 -m 5 -d "$db"
    until_true up 2
    kill -9 "$(agent_of "$keeper")"
    await "$keeper"
    [ "$status" -eq 5 ]
    [[ "$("$drill" state "$db" 1)" == "done 0 "* ]]
    [[ "$("$drill" state "$db" 2)" == "failed 1 rank 1 on "*"signal 9"* ]]
    [[ "$("$drill" state "$db" 3)" == "failed 5 the agent "*"signal 9"* ]]
    nothing_left
}
