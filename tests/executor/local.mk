# tests of the executor as whole runs
TESTS += %D%/rank.bats
EXTRA_DIST += %D%/rank.bats
