# tests of whole runs: plan against run, kills, strategies end to end
TESTS += %D%/plan_is_run.bats %D%/strategies_fuzz.bats
EXTRA_DIST += %D%/plan_is_run.bats %D%/strategies_fuzz.bats
