#!/usr/bin/env bats
# Kill -9 at random moments, inside saves too, until the job is done: nothing may be lost.
#
# One job is trained while a rank, all ranks, the agent, the keeper, or both of these are killed. Ranks'
# deaths are survived by failure.max_restarts, the others by `retry`. At the end every row of every
# attempt must be, to the bit, that of a run that nobody disturbed. The table is a comment of the TAP.
#
# SL_CHAOS: kills (12; 100 with SL_FULL=1). SL_SEED: of the moments (1).

load ../lib/common.bash
load ../lib/procs.bash

RANKS=3
KILLS=${SL_CHAOS:-$([ "${SL_FULL:-0}" = 1 ] && echo 100 || echo 12)}
RANDOM=${SL_SEED:-1}
WHAT=(rank rank ranks agent rank keeper both)
WHEN=(train train save train start save)

setup() {
    sl_setup
    T=$BATS_TEST_TMPDIR/t # in the environment of what a test starts, and of nothing else
    mkdir "$T"
    export SHARDLAUNCH_DB="$BATS_TEST_TMPDIR/s.db"
    DB=$SHARDLAUNCH_DB
    job=$BATS_TEST_TMPDIR/job.toml
    saves=$BATS_TEST_TMPDIR/runs/1/checkpoints
    sl_text "$BATS_TEST_TMPDIR/text" 200000
    sl_job "$job" "$BATS_TEST_TMPDIR/text"
    sed -i "s/^ranks_per_node = .*/ranks_per_node = $RANKS/; s/^context = .*/context = 32/; s/^batch = .*/batch = 48/" "$job"
    cat >>"$job" <<-TOML
	[checkpoint]
	every = 20
	keep = 2
	[failure]
	max_restarts = 1000
	grace = 60
	TOML
    faults=$BATS_TEST_TMPDIR/faults
    : >"$faults"
}

teardown() { end_bearers; }

now() { echo "$EPOCHREALTIME"; }

nap_up_to() { # MILLISECONDS: a random part of it
    sleep "$(printf '0.%03d' $((RANDOM % $1)))"
}

attempts() { sql "SELECT attempts FROM jobs WHERE id = 1" 2>/dev/null; }

# The attempt that is to be killed has done a step.
trains() { [ "$(sql "SELECT count(*) FROM (SELECT 1 FROM sample WHERE job = 1 AND attempt = $1 LIMIT 1)" 2>/dev/null)" = 1 ]; }

saving() {
    local i
    for i in $(seq 3000); do
        if compgen -G "$saves/.part-*" >/dev/null; then return 0; fi
    done
    return 1
}

begin() { # run ..., or retry ...
    env TMPDIR="$T" "$SL" "$@" --no-web >>"$T/out" 2>&1 3>&- &
    keeper=$!
}

pids_of() { # WHAT: their pids now
    local agent r
    agent=$(agent_of "$keeper")
    case $1 in
    rank) rank_pid "$keeper" $((RANDOM % RANKS)) ;;
    ranks) for ((r = 0; r < RANKS; r++)); do rank_pid "$keeper" $r; done ;;
    agent) echo "$agent" ;;
    keeper) echo "$keeper" ;;
    both) echo "$keeper $agent" ;;
    esac
}

# A moment of the wanted kind has come, in an attempt later than the one killed last.
moment() { # WHEN LAST_ATTEMPT
    later() { local n; n=$(attempts); [ "${n:-0}" -gt "$1" ]; }
    until_true later "$2" || return 1
    attempt=$(attempts)
    [ "$1" = start ] && { nap_up_to 80; return 0; }
    until_true trains "$attempt" || return 1
    if [ "$1" = save ]; then saving || return 1; else nap_up_to 500; fi
}

state() { sql "SELECT state FROM jobs WHERE id = 1"; }
ended() { "$SL" list >/dev/null 2>&1; case $(state) in failed | lost | stopped | done) return 0 ;; esac; return 1; }
gone() { ! kill -0 "$1" 2>/dev/null; }

take_up() { # the job has ended, and nothing of it lives
    wait "$keeper" || :
    until_true ended
    until_true gone "$agent"
    begin retry 1
}

@test "$KILLS kills at random moments lose nothing" {
    local i what when pids p hit
    begin run "$job" --set train.steps=1000000
    attempt=0
    for ((i = 0; i < KILLS; i++)); do
        what=${WHAT[$((i % ${#WHAT[@]}))]}
        when=${WHEN[$((i % ${#WHEN[@]}))]}
        moment "$when" "$attempt"
        agent=$(agent_of "$keeper")
        pids=$(pids_of "$what")
        echo "$what $when $attempt $(now)" >>"$faults"
        hit=0 # the first death may be answered before the second kill
        for p in $pids; do kill -9 "$p" 2>/dev/null && hit=1 || :; done
        [ $hit -eq 1 ]
        case $what in
        rank | ranks) kill -0 "$keeper" || take_up ;; # the same failure at the same step twice may end it
        *) take_up ;;
        esac
    done
    moment train "$attempt"
    kill -TERM "$keeper"
    await "$keeper"
    [ "$status" -eq 75 ]
    last=$(sql "SELECT max(step) FROM sample WHERE job = 1")
    until_true ended
    begin retry 1 --set train.steps=$((last + 60))
    await "$keeper"
    [ "$status" -eq 0 ]
    no_process_left # a folder of a run whose keeper and agent died is the next run's to sweep, after 10 s
    check
    table
}

no_process_left() {
    nobody() { [ -z "$(bearers)" ]; }
    until_true nobody
}

none() { # SQL: no row; shows them else
    sql "$1" >"$T/rows"
    [ ! -s "$T/rows" ] || { cat "$T/rows"; sql "SELECT attempt, kind, message FROM event WHERE kind = 'recorder'"; return 1; }
}

check() {
    local steps=$((last + 60))
    [ "$(sqlite3 "$DB" 'PRAGMA integrity_check')" = ok ]
    [ "$(state)" = done ]
    ! compgen -G "$saves/.part-*"
    # an undisturbed run of as many steps
    "$SL" run "$job" --no-web --quiet --set train.steps=$steps --set checkpoint.every=0 3>&-
    # every row that was ever written is that of the undisturbed run
    none "SELECT a.attempt, a.rank, a.step, a.loss, b.loss FROM sample a JOIN sample b ON b.job = 2
          AND b.attempt = 1 AND b.rank = a.rank AND b.step = a.step WHERE a.job = 1 AND a.loss IS NOT b.loss"
    # what one attempt has written has no hole: only its last moment can be missing. A rank never waits
    # for the agent to read a sample; on a machine so full that one is dropped, that is one in hundreds.
    holes=$(sql "SELECT coalesce(sum(hi - coalesce(r, lo - 1) - n), 0) FROM (SELECT attempt, min(step) lo, max(step) hi,
            count(*) n, (SELECT resumed_step FROM attempt t WHERE t.job = s.job AND t.attempt = s.attempt) r
            FROM sample s WHERE rank = 0 GROUP BY job, attempt)")
    [ $((holes * 100)) -le "$steps" ]
    [ "$(sql "SELECT max(step) FROM sample WHERE job = 2")" = $steps ]
    # each attempt went on where a checkpoint of an earlier one was, or at the start
    none "SELECT attempt, resumed_step FROM attempt WHERE job = 1 AND resumed_step % 20
          AND attempt < (SELECT max(attempt) FROM attempt WHERE job = 1)"
    # a step that is missing altogether lies in the second before a kill of the agent
    missing=$(sql "WITH RECURSIVE n(s) AS (SELECT 1 UNION ALL SELECT s + 1 FROM n WHERE s < $steps)
              SELECT count(*) FROM n WHERE s NOT IN (SELECT step FROM sample WHERE job = 1 AND rank = 0)")
}

ms() { awk -v a="$1" -v b="$2" 'BEGIN { if (a != "" && b != "") printf "%.0f", 1000 * (b - a) }'; }
spread() { sort -n | awk '{ v[NR] = $1 } END { if (NR) printf "median %d ms, worst %d ms", v[int((NR + 1) / 2)], v[NR]; else printf "-" }'; }

table() {
    local what when attempt at
    while read -r what when attempt at; do
        if [[ $what != rank* ]]; then
            ms "$(sql "SELECT max(time) FROM sample WHERE job = 1 AND attempt = $attempt")" "$at" >>"$T/unwritten"
            echo >>"$T/unwritten"
            continue
        fi
        ms "$at" "$(sql "SELECT min(time) FROM event WHERE job = 1 AND attempt = $attempt AND kind = 'restart'")" >>"$T/named"
        echo >>"$T/named"
        ms "$at" "$(sql "SELECT min(time) FROM sample WHERE job = 1 AND attempt = $((attempt + 1))")" >>"$T/trains"
        echo >>"$T/trains"
    done <"$faults"
    {
        echo "kill -9 of          injected  survived  inside a save"
        awk '{ n[$1]++; s[$1] += $2 == "save" }
             END { for (k in n) printf "%-18s  %8d  %8d  %13d\n", k, n[k], n[k], s[k] }' "$faults" | sort
        echo "steps $((last + 60)), attempts $(attempts); data lost: 0"
        [ "$holes" -eq 0 ] || echo "samples dropped by busy ranks: $holes"
        echo "rows of $missing steps had not been written when the agent died; last row before that: $(grep . "$T/unwritten" | spread)"
        echo "a rank's death to its name: $(grep . "$T/named" | spread); to the first step done again: $(grep . "$T/trains" | spread)"
    } | sed 's/^/# /' >&3
}
