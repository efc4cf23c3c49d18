TESTS += %D%/slurm.bats
EXTRA_DIST += %D%/node_failure.bats %D%/slurm.bats %D%/cluster.bash tests/lib/slurm-up.sh tests/lib/slurm-down.sh
