#!/usr/bin/env bats
# Visitors who take every connection and say little: the page is back as soon as they are gone.

load server

setup() {
    T=$(mktemp -d)
    export SHARDLAUNCH_DB=$T/state/t.db
    started=
}

teardown() {
    end_all
    rm -rf "$T"
}

# crowd WORDS: 600 connections, which each say WORDS, then close at once when this ends
crowd() {
    local i fd
    for ((i = 0; i < 600; i++)); do
        exec {fd}<>"/dev/tcp/127.0.0.1/$port" || return 1
        printf "$1" >&$fd || return 1
    done
}

@test "600 connections that say half a request, a whole one or nothing leave a server that answers" {
    [ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -ge 1000 ] || skip "the limit of open files is below 1000"
    serve
    local words
    port=${url##*:}
    port=${port%/}
    for words in 'GET / HTTP/1.1\r\nX' 'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n' ''; do
        (ulimit -n 1000 && crowd "$words")
        [ "$(curl -sS --max-time 20 "${url}healthz")" = ok ]
    done
}
