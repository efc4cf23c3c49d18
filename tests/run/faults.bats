#!/usr/bin/env bats
# What a run does where the machine is short of something or behaves badly; doc/faults.md has the table.
# Mounts are made in a mount namespace of the test's own.

load ../lib/procs.bash

setup() {
    sl=$builddir/shardlaunch
    T=$(mktemp -d)
    chmod 755 "$T"
    cd "$T"
    job=$T/job.toml
    export SHARDLAUNCH_STATE=$T/state
    unset SHARDLAUNCH_DB SHARDLAUNCH_NETWORK_FS
    small_job "$job"
}

teardown() {
    end_bearers
    cd /
    rm -rf "$T"
}

launch() { env TMPDIR="$T" "$sl" run --no-web "$@" 2>&1 3>&-; }

needs_mounts() {
    [ "$(id -u)" = 0 ] || skip "mounting needs root"
    unshare -m true 2>/dev/null || skip "no mount namespaces here"
}

# mounted FOLDER OPTIONS WORD...: the words of a shell with that tmpfs, in a namespace of its own
mounted() {
    local dir=$1 options=$2
    shift 2
    mkdir -p "$dir"
    env TMPDIR="$T" unshare -m sh -c 'mount -t tmpfs -o "$1" none "$2" && shift 2 && eval "$*"' - "$options" "$dir" "$@" 2>&1 3>&-
}

row() { sqlite3 -readonly "$T/state/shardlaunch.db" "$1"; }

@test "a disk that fills up under store and logs: the run ends well, says so once, and is done" {
    needs_mounts
    run mounted "$T/state" size=1m "\"$sl\" run --no-web job.toml --set train.steps=2500; echo status \$?; \"$sl\" list"
    echo "$output"
    [[ "$output" == *"status 0"* ]]
    [ "$(grep -cE 'cannot record this run: database ".*": (database or disk is full|disk I/O error)' <<<"$output")" = 1 ]
    [[ "$output" == *"records of job 1 could not be written"* ]]
    [[ "$output" == *" done "*"/2500"* ]]
    nothing_left
}

@test "a disk that is full from the start: status 5, and what to do" {
    needs_mounts
    run mounted "$T/state" size=60k "\"$sl\" run --no-web job.toml"
    [ "$status" -eq 5 ]
    [[ "$output" == *"full"*"hint: make room on its disk"* ]]
    nothing_left
}

@test "a state folder that cannot be written: status 5, and where else to" {
    needs_mounts
    run mounted "$T/state" ro "\"$sl\" run --no-web job.toml"
    [ "$status" -eq 5 ]
    [[ "$output" == *'cannot make database "'*'": Read-only file system'*"hint: "*"--db"* ]]
    nothing_left
}

@test "a state folder on a network file system: tests/run/netfs.bats; a database on this machine serves too" {
    export SHARDLAUNCH_NETWORK_FS=/none:$T/state/
    run launch --db "$T/local/a.db" job.toml
    [ "$status" -eq 0 ]
    [[ "$output" != *"network file system"* ]]
    export SHARDLAUNCH_NETWORK_FS=$T
    run launch job.toml # TMPDIR is there too: nothing is left that serves
    [ "$status" -eq 5 ]
    [[ "$output" == *'the folder of the database, "'*'", is on a network file system'*"hint: "*"TMPDIR, --db or SHARDLAUNCH_DB"* ]]
    unset SHARDLAUNCH_NETWORK_FS
    run launch job.toml
    [ "$status" -eq 0 ]
    nothing_left
}

@test "no /dev/shm: nothing needs it" {
    needs_mounts
    run mounted /dev/shm ro,size=4k "touch /dev/shm/x 2>/dev/null && exit 99; \"$sl\" run --no-web job.toml"
    [ "$status" -eq 0 ]
    nothing_left
}

@test "64 open files: status 5 with the number that is needed, no half of a run" {
    run bash -c "ulimit -n 64; TMPDIR=$T '$sl' run --no-web job.toml 2>&1 3>&-"
    [ "$status" -eq 5 ]
    [[ "$output" =~ "2 ranks need "[0-9]+" open files, the limit is 64" ]]
    [[ "$output" == *"hint: Raise it (ulimit -Hn)"* ]]
    [ "$(row "SELECT state FROM jobs")" = failed ]
    nothing_left
}

@test "no HOME: status 2 with the remedy; with a database named it runs" {
    run env -u HOME -u XDG_STATE_HOME -u SHARDLAUNCH_STATE TMPDIR="$T" "$sl" run --no-web job.toml
    [ "$status" -eq 2 ]
    [[ "$output" == *"HOME is not set"*"hint: Set SHARDLAUNCH_STATE"* ]]
    run env -u HOME -u XDG_STATE_HOME -u SHARDLAUNCH_STATE TMPDIR="$T" "$sl" run --no-web --db "$T/x/a.db" job.toml
    [ "$status" -eq 0 ]
}

@test "a TMPDIR with spaces serves; one that is not there is named" {
    mkdir "$T/a b  c"
    run env TMPDIR="$T/a b  c" "$sl" run --no-web job.toml
    [ "$status" -eq 0 ]
    [ -z "$(ls "$T/a b  c")" ]
    run env TMPDIR="$T/none" "$sl" run --no-web job.toml
    [ "$status" -eq 5 ]
    [[ "$output" == *"$T/none"*"No such file or directory"* ]]
}

@test "closed stdin, stdout and stderr change nothing" {
    local n=0 how
    for how in '<&-' '>&-' '2>&-' '<&- >&- 2>&-'; do
        n=$((n + 1))
        run bash -c "exec 3>&-; TMPDIR=$T '$sl' run --no-web job.toml $how"
        [ "$status" -eq 0 ]
        [ "$(row "SELECT state || ' ' || count(*) FROM jobs j JOIN rank_throughput r ON r.job = j.id WHERE j.id = $n")" = "done 10" ]
    done
    nothing_left
}

@test "stdout a pipe that nobody reads ends the command quietly, a full one with 5" {
    local c st
    launch -q job.toml
    for c in list 'list --json' 'show 1' 'show 1 --json' "plan $job" "plan $job --json" help version; do
        st=$({ "$sl" $c 3>&- 2>"$T/err"; echo $? >"$T/st"; } | true; cat "$T/st")
        [ "$st" = 141 ] || [ "$st" = 0 ] || { echo "$c: $st"; false; }
        [ ! -s "$T/err" ]
        st=0
        "$sl" $c >/dev/full 2>"$T/err" 3>&- || st=$?
        [ "$st" = 5 ]
        grep -q 'No space left on device' "$T/err"
    done
}

@test "two jobs at once on one store, both recorded whole" {
    launch -q job.toml >one &
    local a=$!
    launch -q job.toml --strategy zero3 >two || { cat two; false; }
    wait $a || { cat one; false; }
    [ "$(row "SELECT count(*) FROM jobs WHERE state = 'done'")" = 2 ]
    [ "$(row "SELECT group_concat(n) FROM (SELECT count(*) n FROM rank_throughput GROUP BY job)")" = 10,10 ]
    nothing_left
}

@test "64 ranks on few cores take turns and finish" {
    run launch -q job.toml --ranks 64 --set train.batch=64 --set train.steps=2
    [ "$status" -eq 0 ]
    [ "$(row "SELECT count(DISTINCT rank) || ' ' || count(*) FROM rank_throughput")" = "64 128" ]
    nothing_left
}

@test "a rank that is stopped (SIGSTOP) is named when the hang time is over, and the status is 6" {
    env TMPDIR="$T" "$sl" run --no-web job.toml --progress 0.05 --set train.steps=1000000 --set failure.hang_timeout=1 >out 2>&1 3>&- &
    local keeper=$!
    until_true grep -q '^step ' out
    kill -STOP "$(rank_pid $keeper 1)"
    await $keeper
    [ "$status" -eq 6 ]
    grep -q 'hang: nothing moved for [12] s; rank 1 is behind' out
    row "SELECT message FROM events" | grep -q 'rank 1'
    nothing_left
}

@test "a clock that is set back an hour: deadlines do not care, every step is recorded" {
    local san=
    cc -shared -fPIC -O1 -o shift.so "$srcdir/tests/lib/clock_shift.c" -ldl
    san=$(ldd "$sl" | awk '/lib[at]san/ { print $3 }') # must stay the first library
    echo 0 >clock
    env TMPDIR="$T" LD_PRELOAD="$san $T/shift.so" CLOCK_SHIFT="$T/clock" "$sl" run --no-web job.toml --progress 0.05 --set train.steps=600 \
        --set failure.hang_timeout=20 >out 2>&1 3>&- &
    local keeper=$!
    until_true grep -q '^step ' out
    echo -3600 >clock
    await $keeper
    [ "$status" -eq 0 ]
    [ "$(row "SELECT state || ' ' || (ended_at < started_at) FROM jobs")" = "done 1" ]
    [ "$(row "SELECT max(step) FROM rank_throughput")" = 600 ]
    run "$sl" show 1
    [[ "$output" == *"the clock was set back"* ]]
    nothing_left
}

@test "an ordinary user needs nothing that only root has" {
    [ "$(id -u)" = 0 ] || skip "this is one"
    mkdir own
    cp "$sl" prog
    cp text job.toml own
    chown -R 65534:65534 own
    run setpriv --reuid=65534 --regid=65534 --clear-groups env -u HOME SHARDLAUNCH_STATE="$T/own/state" TMPDIR="$T/own" "$T/prog" run --no-web own/job.toml 3>&-
    [ "$status" -eq 0 ]
    [ "$(stat -c '%u %a' own/state/shardlaunch.db)" = "65534 600" ]
    [ -z "$(ls -d own/shardlaunch-* 2>/dev/null)" ]
    run setpriv --reuid=65533 --regid=65533 --clear-groups "$T/prog" list --db "$T/own/state/shardlaunch.db"
    [ "$status" -eq 5 ]
}
