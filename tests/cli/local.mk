# tests of cli
TESTS += %D%/data.bats %D%/scripts.bats %D%/surroundings.bats %D%/texts.bats
EXTRA_DIST += %D%/data.bats %D%/scripts.bats %D%/surroundings.bats %D%/texts.bats
TESTS += %D%/run.bats
EXTRA_DIST += %D%/run.bats tests/lib/procs.bash tests/lib/lsan.supp
TESTS += %D%/check.bats %D%/usage.bats
EXTRA_DIST += %D%/check.bats %D%/usage.bats
TESTS += %D%/plan.bats %D%/retry.bats
EXTRA_DIST += %D%/plan.bats %D%/retry.bats
TESTS += %D%/jobs.bats
EXTRA_DIST += %D%/jobs.bats doc/json.md doc/design/store.md
TESTS += %D%/man.bats
EXTRA_DIST += %D%/man.bats
