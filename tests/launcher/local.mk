# A bare checkout without cmocka builds no check programs at all.
check_PROGRAMS += %D%/drill
%C%_drill_SOURCES = %D%/drill.c
%C%_drill_LDADD = $(sl_libs)
nodist_EXTRA_%C%_drill_SOURCES = dummy.cxx
TESTS += %D%/launch.bats
EXTRA_DIST += %D%/launch.bats
