# tests of whole runs: plan against run, kills, strategies end to end, checkpoints
TESTS += %D%/plan_is_run.bats %D%/strategies_fuzz.bats
EXTRA_DIST += %D%/plan_is_run.bats %D%/strategies_fuzz.bats
TESTS += %D%/checkpoint.bats
EXTRA_DIST += %D%/checkpoint.bats
