#!/usr/bin/env bats
# list, show and logs: data on stdout, messages on stderr, one JSON value, status 4

load ../web/server

setup() {
    T=$(mktemp -d)
    export SHARDLAUNCH_DB=$T/state/t.db
    program=$builddir/shardlaunch
    started=
}

teardown() {
    end_all
    rm -rf "$T"
}

@test "before the first run there is nothing, and nothing is made" {
    run --separate-stderr "$program" list --json
    [ "$status" -eq 0 ]
    [ "$output" = '[]' ]
    [ "$stderr" = "shardlaunch: no run has made the database \"$T/state/t.db\" yet" ]
    for words in 'show 1' 'logs 1'; do
        run --separate-stderr "$program" $words
        [ "$status" -eq 4 ]
        [ -z "$output" ]
        [[ $stderr == *"no job 1"* ]]
    done
    [ ! -e "$T/state" ]
    run "$program" show one
    [ "$status" -eq 2 ]
}

@test "list shows the jobs, newest first, with tags and newlines as text" {
    seed 2 20
    run --separate-stderr "$program" list
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    [ "${#lines[@]}" -eq 3 ]
    [[ ${lines[1]} == *"2  running    wikitext-lm"*"20/40"* ]]
    [[ ${lines[2]} == *"1  failed     <script>"*"60/60"* ]]
    [ "$("$program" list --json | jq -c '[.[].id]')" = '[2,1]' ]
    [ "$("$program" list --json | jq -c '.[0] | [.state, .world_size, .step, .steps, .exit_status]')" = \
        '["running",2,20,40,null]' ]
}

@test "show has the live ranks with host, pid and device" {
    seed 2 20
    "$program" show 2 --json >"$T/json"
    [ "$(jq -c '[.ranks[] | [.rank, .host, .pid, .device]]' "$T/json")" = \
        '[[0,"node01",4000,"cpu"],[1,"node01",4001,"cpu"]]' ]
    [ "$(jq -c '[.memory[1].categories[].bytes] | length' "$T/json")" = 8 ]
    [ "$(jq -c '.plan.strategies[0].total_bytes' "$T/json")" = 943718400 ]
    [ "$(jq -c '[.attempt_list[].attempt]' "$T/json")" = '[1]' ]
    run --separate-stderr "$program" show 1
    [ "$status" -eq 0 ]
    [[ $output == *"reason      rank 1 died <b>of</b> signal 11"* ]]
    [[ $output == *"exit status 1"* ]]
    # one line a rank below the categories' names
    [ "$(echo "$output" | sed -n '/^memory/,+2p' | tr -s ' ')" = "\
memory activations communication gradients optimizer parameters process total workspace
 0 240 MiB 80.0 MiB 90.0 MiB 150 MiB 300 MiB 941 MiB 900 MiB 40.0 MiB
 1 233 MiB 80.0 MiB 90.0 MiB 150 MiB 300 MiB 941 MiB 900 MiB 40.0 MiB" ]
    run "$program" show 3
    [ "$status" -eq 4 ]
}

@test "a run whose process is gone becomes lost with the next command" {
    seed 1 3
    [ "$("$program" list --json | jq -r '.[0].state')" = running ]
    kill -9 "$seeder"
    for i in $(seq 100); do
        [ "$("$program" list --json | jq -r '.[0].state')" = lost ] && break
        sleep 0.05
    done
    [ "$("$program" show 2 --json | jq -r .state)" = lost ]
    [ "$(sqlite3 "$T/state/t.db" "SELECT state FROM jobs WHERE id = 2")" = lost ]
}

@test "logs prints one rank as it is, several with their rank" {
    seed 2 3
    run "$program" logs 1 --rank 1
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "rank 1: line 1" ]
    [ "${#lines[@]}" -eq 41 ]
    run "$program" logs 1
    [ "${#lines[@]}" -eq 82 ]
    [ "${lines[41]}" = "[1] rank 1: line 1" ]
    run "$program" logs 3
    [ "$status" -eq 4 ]
}

@test "logs tells silence from a rank that the job does not have" {
    seed 2 3
    : >"$T/state/runs/1/attempt-1/rank-0.log"
    run --separate-stderr "$program" logs 1 -r 0
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    [ "$stderr" = "shardlaunch: rank 0 of job 1 printed nothing" ]
    : >"$T/state/runs/1/attempt-1/rank-1.log"
    run --separate-stderr "$program" logs 1
    [ "$stderr" = "shardlaunch: the ranks of job 1 printed nothing" ]
    run --separate-stderr "$program" logs 2 -r 0
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    run "$program" logs 1 -r 2
    [ "$status" -eq 2 ]
    [ "${lines[0]}" = "shardlaunch: job 1 has no rank 2" ]
    [ "${lines[1]}" = "hint: Its ranks are 0 to 1." ]
}

@test "logs -f goes on until the job is over, whole lines only" {
    seed 2 3
    log=$T/state/runs/2/attempt-1/rank-0.log
    "$program" logs 2 -f >"$T/out" 3>&- 7>&- 8<&- &
    follower=$!
    started="$started $follower"
    for i in $(seq 100); do grep -q 'rank 1: line 40' "$T/out" && break; sleep 0.05; done
    printf 'half a ' >>"$log"
    sleep 0.5
    ! grep -q half "$T/out"
    printf 'line\nno end' >>"$log"
    for i in $(seq 100); do grep -q half "$T/out" && break; sleep 0.05; done
    grep -qx '\[0\] half a line' "$T/out"
    kill -9 "$seeder"
    for i in $(seq 200); do kill -0 "$follower" 2>/dev/null || break; sleep 0.05; done
    wait "$follower"
    [ "$(tail -n 1 "$T/out")" = '[0] no end' ]
}

@test "a newer database is refused, not touched" {
    seed 1 3
    kill -9 "$seeder"
    sqlite3 "$T/state/t.db" 'PRAGMA user_version = 77'
    run "$program" list
    [ "$status" -eq 2 ]
    [[ $output == *"version 77"* ]]
    [ "$(sqlite3 "$T/state/t.db" 'PRAGMA user_version')" = 77 ]
}
