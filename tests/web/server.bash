# A seeded database, and `serve` on it; both end with the test.

# seed RANKS STEPS: "tell TEXT" then writes an event, "advance" one more step
seed() {
    mkfifo "$T/in" "$T/answers"
    "$builddir/tests/web/seed" "$T/state/t.db" "$1" "$2" <"$T/in" >"$T/answers" 3>&- &
    seeder=$!
    started="$started $seeder"
    exec 7>"$T/in" 8<"$T/answers"
    local line
    read -r -t 300 line <&8 && [ "$line" = ready ]
}

tell() {
    local line
    echo "event $1" >&7
    read -r -t 60 line <&8 && [ "$line" = ok ]
}

advance() {
    local line
    echo step >&7
    read -r -t 60 line <&8 && [ "$line" = ok ]
}

# serve: $url (ends in /), $token
serve() {
    "$builddir/shardlaunch" serve --no-open --port 0 "$@" >"$T/serve.out" 2>"$T/serve.err" 3>&- 7>&- 8<&- &
    server=$!
    started="$started $server"
    local i
    for i in $(seq 200); do
        [ -s "$T/serve.out" ] && break
        kill -0 "$server" || { cat "$T/serve.err"; return 1; }
        sleep 0.05
    done
    url=$(sed 's/?.*//' "$T/serve.out")
    token=$(sed 's/.*token=//' "$T/serve.out")
    [ -n "$url" ] && [ ${#token} -eq 64 ]
}

# get PATH [CURL-ARGUMENT...]: as somebody who has the token
get() {
    curl -sS --max-time 20 -H "Authorization: Bearer $token" "${@:2}" "$url${1#/}"
}

status() { # of any request: CURL-ARGUMENT...
    curl -sS --max-time 20 -o /dev/null -w '%{http_code}' "$@"
}

end_all() {
    local p
    exec 7>&- 8<&-
    for p in $started; do kill "$p" 2>/dev/null || :; done
    for p in $started; do wait "$p" 2>/dev/null || :; done
}
