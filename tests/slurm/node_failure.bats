#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# A node dies under a running job: Slurm notices after SlurmdTimeout and starts the job on others. Half a
# minute of waiting, so it is run by hand and by script/test --full:
#   builddir=$PWD/build bats tests/slurm/node_failure.bats

load ../lib/common.bash
load ../lib/procs.bash
load cluster.bash

setup_file() { NODES=3 cluster_up; }
teardown_file() { cluster_down; }

setup() {
    need_cluster
    T=$(mktemp -d)
    chmod 755 "$T"
}

teardown() {
    [ -z "${T:-}" ] || { end_bearers; rm -rf "$T"; }
}

@test "the chief's node dies: the job goes on from its last checkpoint, on the other two, as the same job" {
    export XDG_STATE_HOME="$T/state" DB="$T/state/shardlaunch/shardlaunch.db"
    sl_text "$T/text" 60000
    sl_job "$T/job.toml" "$T/text"
    sed -i 's/^steps = .*/steps = 3000/; s/^ranks_per_node = .*/nodes = 2\nranks_per_node = 1/' "$T/job.toml"
    : >"$T/out"
    TMPDIR=$T run --separate-stderr slurm "$SL" submit --slurm "$T/job.toml" --set checkpoint.every=100
    [ "$output" = 1 ]
    saved() { [ "$(sql "SELECT count(*) FROM event WHERE kind = 'checkpoint'" 2>/dev/null)" -gt 0 ]; }
    until_true saved
    kill -9 "$(awk '$1 == "n1" { print $2 }' "$SLURM_ROOT/pids")"
    second() { [ "$(sql "SELECT attempts FROM job")" -eq 2 ]; }
    for i in 1 2 3 4; do until_true second && break; done
    finished() { [ "$(sql "SELECT state FROM job")" = done ]; }
    for i in 1 2 3; do until_true finished && break; done
    [ "$(sql "SELECT state || ' ' || attempts FROM job")" = "done 2" ]
    [ "$(sql "SELECT group_concat(DISTINCT host) FROM rank WHERE attempt = 2")" = n2,n3 ]
    [ "$(sql "SELECT min(step) FROM rank_throughput WHERE attempt = 2")" -gt 100 ]
}
