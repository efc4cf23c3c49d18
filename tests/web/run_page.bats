#!/usr/bin/env bats
# The page of a run: served by the run itself, live, gone with it; several runs do not collide.

load ../lib/procs.bash

setup() {
    sl=$builddir/shardlaunch
    T=$(mktemp -d)
    export SHARDLAUNCH_STATE=$T/state
    unset SHARDLAUNCH_DB
    for i in $(seq 400); do echo "line $i of a text that says little, $((i * i)) times"; done >"$T/text"
    cat >"$T/job.toml" <<'TOML'
name = "watched"
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
steps = 100000
batch = 8
lr = 1e-3
seed = 1
TOML
}

teardown() {
    end_bearers
    rm -rf "$T"
}

start() { # NAME ARGUMENTS...: a run in the background whose output is $T/NAME; $keeper, $url, $token
    env TMPDIR="$T" "$sl" "$T/job.toml" --port 0 "${@:2}" >"$T/$1" 2>&1 3>&- &
    keeper=$!
    for i in $(seq 200); do grep -q '^page: ' "$T/$1" && break; sleep 0.05; done
    url=$(sed -n 's/^page: \(http[^?]*\).*/\1/p' "$T/$1")
    token=$(sed -n 's/^page: .*token=\([0-9a-f]*\).*/\1/p' "$T/$1")
    [ ${#token} -eq 64 ]
}

get() { curl -sS --max-time 10 -H "Authorization: Bearer $token" "$url$1"; }

runs_at() { [ "$(get api/jobs/"$1" | jq -r 'select(.state == "running") | .step > 2')" = true ]; }

wait_for() {
    for i in $(seq 300); do "$@" && return; sleep 0.05; done
    echo "gave up waiting for $*"
    cat "$T"/out* || :
    return 1
}

@test "a run's page is live, and ends with the run" {
    start out
    wait_for runs_at 1
    # a reader that comes and goes leaves the log that the run still writes: recorder and page are in
    # one process, whose locks must survive the page's own opening and closing
    sqlite3 "$T/state/shardlaunch.db" 'SELECT count(*) FROM jobs'
    [ -e "$T/state/shardlaunch.db-wal" ]
    before=$(get api/jobs/1 | jq .step)
    goes_on() { [ "$(get api/jobs/1 | jq .step)" -gt "$before" ]; }
    wait_for goes_on
    get api/jobs/1 >"$T/job.json"
    [ "$(jq -r .name "$T/job.json")" = watched ]
    [ "$(jq -c '[.ranks[].rank]' "$T/job.json")" = '[0,1]' ]
    [ "$(jq '[.ranks[] | .units_per_second > 0 and .pid > 0] | all' "$T/job.json")" = true ]
    # what the ranks hold is what was planned, category by category
    [ "$(jq -c '.plan.strategies[0].categories | map_values(.bytes)' "$T/job.json")" = \
        "$(jq -c '.memory[0].categories | del(.process, .total) | map_values(.bytes)
            | {parameters, gradients, optimizer, activations, communication, workspace}' "$T/job.json")" ]
    [ "$(get 'api/jobs/1/series?metric=loss' | jq '.series[0].points | length > 2')" = true ]
    kill -INT "$keeper"
    wait "$keeper" || status=$?
    [ "$status" -eq 75 ]
    ! curl -sS --max-time 5 "${url}healthz" 2>/dev/null
    # nothing of it was lost: every step of both ranks is there
    [ "$(sqlite3 "$T/state/shardlaunch.db" 'SELECT count(*) - 2 * max(step) FROM rank_throughput')" = 0 ]
    [ "$("$sl" show 1 --json | jq -c '[.events[].kind | select(. == "starting" or . == "running")]')" = \
        '["starting","running"]' ]
}

@test "two runs at once have two pages on one store" {
    start out1
    first=$keeper url1=$url
    start out2
    [ "$url" != "$url1" ]
    wait_for runs_at 1
    wait_for runs_at 2
    [ "$(get 'api/jobs?live=1' | jq -c '[.jobs[].id]')" = '[2,1]' ]
    kill -INT "$first" "$keeper"
    wait "$first" || :
    wait "$keeper" || :
}

@test "--no-web serves nothing" {
    run env TMPDIR="$T" "$sl" "$T/job.toml" --no-web --set train.steps=3
    [ "$status" -eq 0 ]
    [[ $output != *"page: "* ]]
    [ ! -e "$T/state/token" ]
}
