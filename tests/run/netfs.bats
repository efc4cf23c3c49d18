#!/usr/bin/env bats
# A state folder on a network file system: runs keep their rows on this machine and publish them.

load ../lib/procs.bash

setup() {
    bats_require_minimum_version 1.5.0
    T=$(mktemp -d)
    sl=(env TMPDIR="$T" "$builddir/shardlaunch")
    cd "$T"
    export SHARDLAUNCH_STATE=$T/state SHARDLAUNCH_NETWORK_FS=$T/state SHARDLAUNCH_PUBLISH=1
    unset SHARDLAUNCH_DB
    small_job job.toml
}

teardown() {
    end_bearers
    cd /
    rm -rf "$T"
}

launch() { "${sl[@]}" run --no-web "$@" 2>&1 3>&-; }
background() { "${sl[@]}" run --no-web "$@" >"$T/out" 2>&1 3>&- & }
pub() { sqlite3 -readonly "file:$T/state/runs/$1/published.db?immutable=1" "$2"; }
published() { [ "$(pub "$1" "$2" 2>/dev/null)" = "$3" ]; }

@test "a run works, and list, show and logs show it with a notice" {
    run launch job.toml
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" == *'state" is on a network file system: job 1 keeps its rows on this machine'* ]]
    [[ "$output" == *"numbers in $T/state/runs/1/published.db"* ]]
    [ ! -e state/shardlaunch.db ]
    [ "$(ls -A state/runs/1)" = "$(printf '%s\n' attempt-1 job.toml published.db)" ]
    [ "$(stat -c %a state/runs/1/published.db)" = 600 ]
    [ "$(pub 1 "PRAGMA integrity_check")" = ok ]
    [ "$(pub 1 "SELECT id, state, attempts FROM jobs")" = "1|done|1" ]
    [ "$(pub 1 "SELECT rank, count(*) FROM rank_throughput GROUP BY rank")" = "$(printf '0|5\n1|5')" ]
    run --separate-stderr "${sl[@]}" list
    [ "$status" -eq 0 ]
    [[ "$output" == *" done "*" small "*" 5/5"* ]]
    [[ "$stderr" == *"is on a network file system: shown is what jobs have published"* ]]
    run --separate-stderr "${sl[@]}" show --json 1
    [ "$status" -eq 0 ]
    [[ "$output" == *'"state": "done"'* || "$output" == *'"state":"done"'* ]]
    [[ "$stderr" == *"shown is what the job has published"* ]]
    run "${sl[@]}" logs -f 1
    [ "$status" -eq 0 ]
    [[ "$output" == *"the ranks of job 1 printed nothing"* ]]
    run "${sl[@]}" show 2
    [ "$status" -eq 4 ]
    nothing_left
}

@test "two runs at once have two ids and are listed whole; a damaged one is named" {
    background job.toml
    local first=$!
    run launch job.toml
    [ "$status" -eq 0 ]
    await "$first"
    [ "$status" -eq 0 ]
    [ "$(pub 1 "SELECT id, state FROM jobs")" = "1|done" ]
    [ "$(pub 2 "SELECT id, state FROM jobs")" = "2|done" ]
    run --separate-stderr "${sl[@]}" list
    [ "$(grep -c ' done .* 5/5' <<<"$output")" = 2 ]
    echo "this is no database, and longer than a header, so that nobody can think it were" >state/runs/1/published.db
    run --separate-stderr "${sl[@]}" list
    [ "$status" -eq 0 ]
    [ "$(grep -c ' done .* 5/5' <<<"$output")" = 1 ]
    [[ "$stderr" == *"1 job cannot be shown: "*"runs/1/published.db"* ]]
    nothing_left
}

@test "rows are published while it runs; kill -9 of all: the job is lost, and retry takes it up" {
    background job.toml --set train.steps=1000000
    local keeper=$!
    until_true published 1 "SELECT state FROM jobs" running
    until_true published 1 "SELECT count(*) > 20 FROM rank_throughput" 1
    run --separate-stderr "${sl[@]}" list
    [[ "$output" == *" running "* ]]
    run "${sl[@]}" retry 1
    [ "$status" -eq 2 ]
    [[ "$output" == *"job 1 is held by process $keeper on "*"hint: "*"runs/1/holder"* ]]
    kill -9 "$keeper" "$(agent_of "$keeper")"
    wait "$keeper" || :
    end_bearers
    until_true eval '[ -z "$(bearers)" ]' # the killed ones, too
    run --separate-stderr "${sl[@]}" list
    [[ "$output" == *" lost "* ]]
    [ "$(pub 1 "SELECT count(*) > 20 FROM rank_throughput")" = 1 ]
    local folder
    for folder in shardlaunch-*; do touch -d '1 minute ago' "$folder"; done # old enough to be swept
    run "${sl[@]}" retry --no-web --set train.steps=3 1
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(pub 1 "SELECT state, attempts FROM jobs")" = "done|2" ]
    [ "$(pub 1 "SELECT attempt, state FROM attempt")" = "$(printf '1|lost\n2|done')" ]
    [ "$(pub 1 "SELECT count(*) > 20 FROM rank_throughput WHERE attempt = 1")" = 1 ]
    [ ! -e state/runs/1/holder ]
    nothing_left
}

@test "the keeper alone is killed: the agent publishes the end, and retry takes the job up" {
    background job.toml --set train.steps=1000000
    local keeper=$!
    until_true published 1 "SELECT count(*) > 5 FROM rank_throughput" 1
    kill -9 "$keeper"
    wait "$keeper" || :
    until_true published 1 "SELECT state FROM jobs" failed
    run "${sl[@]}" retry --no-web --set train.steps=3 1
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(pub 1 "SELECT state, attempts FROM jobs")" = "done|2" ]
}

@test "a run that is stopped with a checkpoint goes on from it by retry" {
    background job.toml --set train.steps=1000000
    local keeper=$!
    until_true published 1 "SELECT count(*) > 5 FROM rank_throughput" 1
    kill -TERM "$keeper"
    await "$keeper"
    [ "$status" -eq 75 ]
    [ "$(pub 1 "SELECT state, exit_status FROM jobs")" = "stopped|75" ]
    local at
    at=$(pub 1 "SELECT max(step) FROM rank_throughput")
    run "${sl[@]}" retry --no-web --set train.steps=$((at + 3)) 1
    echo "$output"
    [ "$status" -eq 0 ] || [[ "$output" == *"train.steps"* ]]
    [[ "$output" == *"job 1 goes on behind step $at"* ]]
    nothing_left
}

@test "the page of serve shows all jobs, and one that comes later" {
    launch job.toml >/dev/null
    mkfifo link
    "${sl[@]}" serve --no-open --port 0 >link 2>"$T/out" 3>&- &
    local server=$! link port token
    read -r link <link
    port=${link#*127.0.0.1:}
    port=${port%%/*}
    token=${link#*token=}
    api() { curl -sf -H "Authorization: Bearer $token" "http://127.0.0.1:$port/api/$1"; }
    api jobs | grep -q '"state": *"done"'
    api jobs/1 | grep -q '"attempts"'
    grep -q "is on a network file system" "$T/out"
    launch job.toml >/dev/null
    until_true eval 'api jobs/2 | grep -q "\"state\": *\"done\""'
    kill -TERM "$server"
    wait "$server" || :
    nothing_left
}
