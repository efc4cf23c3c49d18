# A bare checkout without cmocka builds no check programs at all; the seed needs none.
check_PROGRAMS += %D%/seed
%C%_seed_SOURCES = %D%/seed.c
%C%_seed_LDADD = $(sl_libs) -lm
nodist_EXTRA_%C%_seed_SOURCES = dummy.cxx
TESTS += %D%/page.bats %D%/crowd.bats %D%/run_page.bats %D%/browser.bats
EXTRA_DIST += %D%/page.bats %D%/crowd.bats %D%/run_page.bats %D%/browser.bats %D%/server.bash %D%/browse.py
