# tests of cli
TESTS += %D%/data.bats
EXTRA_DIST += %D%/data.bats
TESTS += %D%/run.bats
EXTRA_DIST += %D%/run.bats tests/lib/procs.bash
