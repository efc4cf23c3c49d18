# cluster.bash - a Slurm of two nodes for one bats file; without one, its tests are skipped with the reason

cluster_up() { # in setup_file
    local env rc=0
    SLURM_ROOT=$(mktemp -d "${TMPDIR:-/tmp}/sl-slurm.XXXXXX")
    chmod 755 "$SLURM_ROOT"
    export SLURM_ROOT
    env=$("$BATS_TEST_DIRNAME/../lib/slurm-up.sh" 2>"$SLURM_ROOT/why" 3>&-) || rc=$?
    if [ $rc = 77 ]; then
        NO_CLUSTER=$(tail -n 1 "$SLURM_ROOT/why")
        export NO_CLUSTER
        return 0
    fi
    if [ $rc != 0 ]; then
        cat "$SLURM_ROOT/why"
        rm -rf "$SLURM_ROOT"
        return 1
    fi
    eval "$env"
}

cluster_down() { # in teardown_file
    "$BATS_TEST_DIRNAME/../lib/slurm-down.sh" 2>/dev/null
    rm -rf "$SLURM_ROOT"
}

need_cluster() { # in setup
    [ -z "${NO_CLUSTER:-}" ] || skip "$NO_CLUSTER"
}

# Slurm's commands, all with an end: a client whose controller is gone asks on for minutes.
slurm() { timeout 60 "$SLURM_RUN" "$@"; }

the_job() { slurm squeue -h -o %i | head -n 1; }
