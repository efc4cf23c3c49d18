# tests of cli
TESTS += %D%/data.bats
EXTRA_DIST += %D%/data.bats
