# faults on purpose: short by default, all of them with SL_FULL=1
TESTS += %D%/kills.bats
EXTRA_DIST += %D%/kills.bats
