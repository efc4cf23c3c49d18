#!/usr/bin/env bats
# The page in Debian's Chromium: what a person sees of a run, of a failure, and of hostile texts.

load server
load ../lib/procs.bash

setup() {
    T=$(mktemp -d)
    export SHARDLAUNCH_DB=$T/state/t.db
    started=
    command -v chromium >/dev/null || skip "chromium is not installed"
    command -v python3 >/dev/null || skip "python3 is not installed"
}

teardown() {
    end_all
    end_bearers
    rm -rf "$T"
}

browse() { # URL ACTION...: what was seen is in $T/seen
    timeout 300 python3 "$srcdir/tests/web/browse.py" "$@" >"$T/seen" 3>&- 7>&- 8<&-
    cat "$T/seen"
    [ "$(jq .until "$T/seen")" = true ]
    [ "$(jq .dialogs "$T/seen")" = 0 ]
}

no_errors() { [ "$(jq -c .errors "$T/seen")" = '[]' ]; }

value() { jq -r ".values[$1]" "$T/seen"; }

text() { echo "document.querySelector('$1').textContent"; }

@test "hostile texts in every field stay text, and nothing is fetched from elsewhere" {
    seed 3 3000
    serve
    # all charts are there; a narrow window needs no sideways scrolling
    browse "$url?token=$token#job=1" --size 390x800 \
        --until "document.querySelectorAll('#split .key').length === 3 && $(text '#log')" \
        --eval "$(text '#name')" --eval "$(text '#state')" \
        --eval "[$(text '#ranks tbody tr td'), $(text '#ranks tbody tr td:nth-child(4)'), $(text '#speed-unit')].join()" \
        --eval "$(text '#events')" --eval "$(text '#facts')" --eval "$(text '#log')" \
        --eval "$(text '#failure-reason')" \
        --eval "document.querySelectorAll('main script, main img, main b:not(.value):not(nav b), main u, main i i').length" \
        --eval "document.querySelectorAll('script').length" \
        --eval "document.querySelectorAll('.plot canvas').length" \
        --eval "document.documentElement.scrollWidth <= innerWidth" \
        --eval "[...document.querySelectorAll('.frame')].every((f) => f.getAttribute('aria-label').includes('now step 60:'))"
    no_errors
    [ "$(value 0)" = "<script>alert('name')</script>" ]
    [ "$(value 1)" = failed ]
    [ "$(value 2)" = "<img src=x onerror=alert('host')>,<b>cpu</b>,<i>u</i>/s" ]
    [[ "$(value 3)" == *"<script>alert('event')</script>"*"<b>kind</b>"*"<u>died</u>"* ]]
    [[ "$(value 4)" == *"<script>alert('metric')</script>"* ]]
    [[ "$(value 5)" == *"<script>alert('log')</script>"* ]]
    [ "$(value 6)" = "rank 1 died <b>of</b> signal 11" ]
    [ "$(jq -c '.values[7:]' "$T/seen")" = '[0,2,10,true,true]' ]
    ! jq -r '.requests[]' "$T/seen" | grep -v "^$url"
}

@test "memory, ranks and the card of a failure say what happened; the log can be searched" {
    seed 3 300
    printf 'early needle\n' >"$T/long"
    for i in $(seq 3000); do echo "some line $i of a long log"; done >>"$T/long"
    cp "$T/long" "$T/state/runs/1/attempt-1/rank-2.log"
    serve
    browse "$url?token=$token#job=1" \
        --until "!document.querySelector('#failure').hidden && document.querySelectorAll('#memory .bar').length === 3" \
        --eval "$(text '#failure-title')" --eval "$(text '#failure-lines')" \
        --eval "document.querySelectorAll('#memory .mark.plan:not([hidden])').length" \
        --eval "$(text '#ranks tbody tr:nth-child(2) td:last-child')" \
        --eval "document.querySelector('#log-rank').value = '2', document.querySelector('#log-rank').dispatchEvent(new Event('change'))" \
        --until "$(text '#log').includes('line 3000')" \
        --eval "$(text '#log').includes('early needle')" \
        --eval "document.querySelector('#log-search').focus()" --type 'line 2999\n' \
        --until "$(text '#log-found') === '1 of 1'" \
        --eval "document.querySelector('#log-search').value = ''" --type 'NEEDLE\n' \
        --until "$(text '#log-found') === '1 of 1'" --eval "$(text 'mark.now')" \
        --eval "document.querySelector('#log-earlier').hidden" \
        --eval "location.hash = '#job=2'" --until "$(text '#name') === 'wikitext-lm'" \
        --eval "document.querySelector('#failure').hidden" \
        --eval "document.querySelector('#last').value = '100', document.querySelector('#last').dispatchEvent(new Event('change'))" \
        --until "$(text '#range-now') === 'steps 201 to 300'" \
        --until "performance.getEntriesByType('resource').some((e) => e.name.endsWith('metric=loss&points=600&from=201&to=300'))"
    no_errors
    [ "$(value 0)" = "Rank 1 failed first: killed by SIGSEGV" ]
    [[ "$(value 1)" == *"rank 1: line 40"* ]]
    [ "$(value 2)" = 3 ]
    [ "$(value 3)" = SIGSEGV ]
    [ "$(value 5)" = false ]
    [ "$(value 8)" = needle ]
    [ "$(value 9)" = true ]
    [ "$(value 11)" = true ]
}

@test "a server that goes and comes back under an open page: it says so, and misses nothing" {
    seed 2 200
    serve
    port=$(echo "$url" | sed 's/.*:\([0-9]*\).*/\1/')
    back="exec '$builddir/shardlaunch' serve --no-open --port $port >/dev/null 2>&1 & echo \$! >'$T/back'"
    rm "$T/serve.out"
    mkfifo "$T/go" "$T/gone"
    # the browser asks us to write: only this shell holds the seeder's pipes
    (
        read -r _ <"$T/go"
        tell "while nobody served"
        advance
        echo told >"$T/gone"
    ) 3>&- &
    started="$started $!"
    browse "$url?token=$token#job=2" \
        --until "$(text '#link') === 'live' && document.querySelectorAll('#split .key').length === 3" \
        --sh "kill $server" --until "$(text '#link') === 'reconnecting'" --eval "$(text '#name')" \
        --sh "echo go >'$T/go'; read -r _ <'$T/gone'" --sh "$back" \
        --until "$(text '#link') === 'live'" --until "$(text '#events').includes('while nobody served')" \
        --until "$(text '#facts').includes('201 of 400')"
    started="$started $(cat "$T/back")"
    [ "$(value 0)" = 0 ]
    [ "$(value 1)" = wikitext-lm ] # what was there stays
}

@test "a run, watched from its page to its end" {
    for i in $(seq 400); do echo "line $i of a text that says little, $((i * i)) times"; done >"$T/text"
    cat >"$T/job.toml" <<'TOML'
name = "watched"
[resources]
ranks_per_node = 2
memory_limit = "64MiB"
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
steps = 3000
batch = 8
lr = 1e-3
eval_every = 500
TOML
    env TMPDIR="$T" "$builddir/shardlaunch" "$T/job.toml" --port 0 >"$T/out" 2>&1 3>&- &
    keeper=$!
    started="$started $keeper"
    for i in $(seq 200); do grep -q '^page: ' "$T/out" && break; sleep 0.05; done
    link=$(sed -n 's/^page: \(http[^ ]*\).*/\1/p' "$T/out")
    # a slow machine may need longer to start a browser than the run takes: it waits for it
    for i in $(seq 200); do
        ranks=$("$builddir/shardlaunch" show 1 --json | jq -r '.ranks[] | select(.step > 0) | .pid' | xargs)
        [ "$(wc -w <<<"$ranks")" -eq 2 ] && break
        sleep 0.05
    done
    kill -STOP $ranks
    browse "$link" \
        --until "$(text '#state') === 'running' && $(text '#facts').includes('of 3,000')" \
        --sh "kill -CONT $ranks" \
        --until "$(text '#state') === 'done'" --until "$(text '#link').startsWith('ended')" \
        --until "[...document.querySelectorAll('.frame')].every((f) => /now steps? (\\S+ to )?3,000:/.test(f.getAttribute('aria-label')))" \
        --eval "$(text '#facts')" --eval "$(text '#memory-note')" \
        --eval "document.querySelectorAll('#events li').length >= 3" \
        --eval "document.querySelectorAll('.frame.empty').length"
    wait "$keeper"
    [ "$(value 0)" = 0 ]
    [[ "$(value 1)" == *"3,000 of 3,000"*"valid.loss"* ]]
    [[ "$(value 2)" == "planned "*", limit 64.0 MiB" ]]
    [ "$(value 3)" = true ]
    [ "$(value 4)" = 0 ]
}
