#!/usr/bin/env bats
# The page and the API over HTTP: who may ask, what is answered, what a browser makes of it.

load server

setup() {
    T=$(mktemp -d)
    scripts='app.js api.js chart.js dom.js job.js log.js series.js'
    export SHARDLAUNCH_DB=$T/state/t.db
    started=
}

teardown() {
    end_all
    rm -rf "$T"
}

@test "without the token only /healthz answers; with it everything does" {
    seed 2 20
    serve
    [ "$(curl -sS "${url}healthz")" = ok ]
    [ "$(status -I "${url}healthz")" = 200 ]
    for path in '' app.js style.css api/jobs api/jobs/1 api/events metrics nothing; do
        [ "$(status "$url$path")" = 401 ]
        [ "$(status -H 'Authorization: Bearer 00' "$url$path")" = 401 ]
        [ "$(status "$url$path?token=$(printf '%064d' 0)")" = 401 ]
    done
    [ "$(status "${url}api/jobs?token=$token")" = 401 ] # only the printed link takes it there
    for path in '' $scripts style.css THIRD_PARTY api/jobs api/jobs/1 metrics; do
        [ "$(status -H "Authorization: Bearer $token" "$url$path")" = 200 ]
    done
    [ "$(status -H "Authorization: Bearer $token" "${url}nothing")" = 404 ]
    [ "$(stat -c %a "$T/state/token")" = 600 ]
}

@test "the printed link becomes a cookie that scripts and other sites do not get" {
    seed 1 3
    serve
    run curl -sS -D - -o /dev/null -c "$T/jar" "$url?token=$token"
    [[ $output == *"303 See Other"* ]]
    [[ $output == *"Location: /"* ]]
    [[ $output == *"HttpOnly"* && $output == *"SameSite=Lax"* ]]
    [ "$(curl -sS -b "$T/jar" "${url}api/jobs/1" | jq -r .id)" = 1 ]
    # of another server on this host name the cookie has another name
    sed "s/$token/$(printf '%064d' 7)/" "$T/jar" >"$T/wrong"
    [ "$(status -b "$T/wrong" "${url}api/jobs/1")" = 401 ]
}

@test "a request for another host name is refused" {
    seed 1 3
    serve
    port=${url##*:}
    port=${port%/}
    for host in localhost "localhost:$port" 127.0.0.1:9 '[::1]:80' LOCALHOST; do
        [ "$(status -H "Authorization: Bearer $token" -H "Host: $host" "${url}api/jobs")" = 200 ]
    done
    for host in evil.example "evil.example:$port" 127.0.0.1.evil.example localhost.evil.example 10.0.0.1 \
        localhost:80x ''; do
        [ "$(status -H "Authorization: Bearer $token" -H "Host: $host" "${url}api/jobs")" != 200 ]
    done
}

@test "other methods, long paths, many arguments and bodies are refused" {
    seed 1 3
    serve
    auth="Authorization: Bearer $token"
    for method in POST PUT DELETE OPTIONS; do
        [ "$(status -X $method -H "$auth" "${url}api/jobs")" = 405 ]
    done
    [ "$(status -I -H "$auth" "$url")" = 200 ]
    long=$(printf '%0600d' 0)
    [ "$(status -H "$auth" "$url$long")" = 414 ]
    [ "$(status -H "$auth" "${url}api/jobs?limit=$long")" = 414 ]
    [ "$(status -H "$auth" "${url}api/jobs?$(printf 'a%d=1&' $(seq 20))")" = 414 ]
    huge=$(printf '%060000d' 0)
    [ "$(status -H "$auth" -H "X-Long: $huge" "${url}api/jobs" || :)" != 200 ]
    [ "$(status -X POST --data-binary "$huge" -H "$auth" "${url}api/jobs" || :)" != 200 ]
    [ "$(status -H "$auth" "${url}api/jobs")" = 200 ] # and it lives on
}

@test "every answer forbids inline scripts, frames and sniffing" {
    seed 1 3
    serve
    for path in '' api/jobs metrics nothing app.js; do
        run get "$path" -D - -o /dev/null
        [[ $output == *"Content-Security-Policy: default-src 'none'; script-src 'self';"* ]]
        [[ $output != *unsafe* ]]
        [[ $output == *"X-Content-Type-Options: nosniff"* ]]
        [[ $output == *"X-Frame-Options: DENY"* ]]
        [[ $output == *"Cache-Control: no-store"* ]]
    done
}

@test "the page loads nothing from elsewhere, holds no inline script and writes no HTML" {
    seed 1 3
    serve
    for path in '' $scripts style.css; do get "$path"; done >"$T/all"
    ! grep -nE 'innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|srcdoc' "$T/all"
    ! grep -nE '(src|href)="?(https?:)?//' "$T/all"
    ! get '' | grep -nE '<script[^>]*>[^<]|<script>| on[a-z]+=|style='
    [ "$(get '' | grep -c '<script src=')" -eq 2 ]
    # dygraphs is as its makers made it, with its notice; the rest of it is in THIRD_PARTY
    get dygraph.min.js | head -n 1 | grep -q '@license.*dygraphs.*MIT'
    ! get dygraph.min.js | grep -q sourceMappingURL
    get THIRD_PARTY | grep -q 'Dan Vanderkam'
    get THIRD_PARTY | grep -q 'Permission is hereby granted'
}

@test "names, events and logs with tags arrive as text" {
    seed 2 20
    serve
    [ "$(get api/jobs/1 | jq -r .name)" = "<script>alert('name')</script>" ]
    [ "$(get api/jobs/1 | jq -r '.events[] | select(.kind == "note") | .message')" = \
        "<script>alert('event')</script>" ]
    get 'api/jobs/1/logs?rank=1' | jq -r .text | grep -qF "<script>alert('log')</script> &"
    for path in api/jobs api/jobs/1 api/jobs/1/logs; do
        ! get $path | grep -q '<'
        get $path | grep -q u003c
    done
}

@test "the event stream tells what is new and resumes behind Last-Event-ID" {
    seed 1 3
    serve
    get api/events --max-time 60 -N >"$T/stream" 2>/dev/null 3>&- &
    started="$started $!"
    for i in $(seq 100); do [ -s "$T/stream" ] && break; sleep 0.05; done
    grep -q '^retry: ' "$T/stream"
    tell "first of all"
    for i in $(seq 100); do grep -q 'first of all' "$T/stream" && break; sleep 0.05; done
    id=$(grep -B2 'first of all' "$T/stream" | sed -n 's/^id: //p')
    [ "$id" -gt 0 ]
    ! grep -q 'all ranks are up' "$T/stream" # was before this client came
    advance
    for i in $(seq 100); do [ "$(grep -c '^event: change' "$T/stream")" -ge 2 ] && break; sleep 0.05; done
    [ "$(grep -c '^event: change' "$T/stream")" -ge 2 ]

    # gone for a while: what was missed comes first, once, in order
    tell "second"
    tell "third <b>"
    get api/events --max-time 2 -N -H "Last-Event-ID: $id" >"$T/again" || :
    [ "$(grep '^id: ' "$T/again" | tr '\n' ' ')" = "id: $((id + 1)) id: $((id + 2)) " ]
    grep -q '^data: .*"message":"second"' "$T/again"
    grep -q '^data: .*"message":"third \\u003cb\\u003e"' "$T/again"
    [ "$(status -H "Authorization: Bearer $token" -H 'Last-Event-ID: x' "${url}api/events")" = 400 ]
}

@test "many streams at once: a bound, and a stop that does not hang" {
    seed 1 3
    serve
    for i in $(seq 50); do
        get api/events --max-time 30 -N >"$T/s$i" 2>/dev/null 3>&- &
        started="$started $!"
    done
    for i in $(seq 200); do
        [ "$(grep -l '^retry' "$T"/s* | wc -l)" -ge 48 ] && break
        sleep 0.05
    done
    [ "$(grep -l '^retry' "$T"/s* | wc -l)" -eq 48 ]
    [ "$(status -H "Authorization: Bearer $token" "${url}api/events")" = 503 ]
    tell "to everybody"
    for i in $(seq 200); do
        [ "$(grep -l 'to everybody' "$T"/s* | wc -l)" -eq 48 ] && break
        sleep 0.05
    done
    [ "$(grep -l 'to everybody' "$T"/s* | wc -l)" -eq 48 ]
    kill -INT "$server"
    wait "$server"
}

@test "a job whose process dies is lost on the page" {
    seed 1 3
    serve
    [ "$(get api/jobs/2 | jq -r .state)" = running ]
    kill -9 "$seeder"
    for i in $(seq 100); do [ "$(get api/jobs/2 | jq -r .state)" = lost ] && break; sleep 0.05; done
    [ "$(get api/jobs/2 | jq -r .state)" = lost ]
}

@test "ports: one that is taken is refused, without --port the next free one is found" {
    seed 1 3
    serve
    port=$(echo "$url" | sed 's/.*:\([0-9]*\).*/\1/')
    run "$builddir/shardlaunch" serve --no-open --port "$port"
    [ "$status" -eq 5 ]
    [[ $output == *"cannot listen on 127.0.0.1, port $port"* ]]
    # nothing of it listens beyond loopback
    ! grep -qi "00000000:$(printf '%04X' "$port") .* 0A " /proc/net/tcp
}

@test "8 ranks and 100,000 steps: the page reads few rows and sends few bytes" {
    seed 8 100000
    serve
    base=api/jobs/2/series
    for query in 'metric=loss&points=600' 'metric=valid.loss&points=600' \
        'metric=units_per_second&over=ranks&points=600' 'metric=step_ms&over=ranks&points=600' \
        'metric=comm_ms&over=ranks&points=600' 'metric=data_ms&over=ranks&points=600' \
        'metric=units_per_second&points=300'; do
        get "$base?$query" >"$T/answer"
        cat "$T/answer" >>"$T/all"
        jq '[.series[].rows] | add' "$T/answer" >>"$T/rows"
    done
    # 1,563 roll-ups of 64 steps a rank for the four over all ranks and the one of each rank, as many
    # for the loss, and what little validation there is
    [ "$(jq -s add "$T/rows")" -le $((1563 * (5 * 8 + 1) + 100)) ]
    [ "$(wc -c <"$T/all")" -lt 400000 ]
    [ "$(get api/jobs/2 | wc -c)" -lt 20000 ]
    # a live page asks for the end only
    last=$(get "$base?metric=step_ms&over=ranks&points=600" | jq -c '.series[0] | [.width, .points[-1][0]]')
    get "$base?metric=step_ms&over=ranks&width=$(jq '.[0]' <<<"$last")&from=$(jq '.[1]' <<<"$last")" >"$T/answer"
    [ "$(jq -c '.series[0] | [.width, .points[0][0]]' "$T/answer")" = "$last" ]
    [ "$(jq '.series[0].rows' "$T/answer")" -le 24 ]
}
