# tests of whole runs: plan against run, kills, strategies end to end, checkpoints, faults of the machine
TESTS += %D%/plan_is_run.bats %D%/strategies_fuzz.bats
EXTRA_DIST += %D%/plan_is_run.bats %D%/strategies_fuzz.bats
TESTS += %D%/checkpoint.bats
EXTRA_DIST += %D%/checkpoint.bats
TESTS += %D%/faults.bats
EXTRA_DIST += %D%/faults.bats doc/faults.md
TESTS += %D%/netfs.bats
EXTRA_DIST += %D%/netfs.bats
