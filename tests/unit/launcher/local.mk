if HAVE_CMOCKA
check_PROGRAMS += %D%/lines.t
TESTS += %D%/lines.t
%C%_lines_t_SOURCES = %D%/test_lines.c
%C%_lines_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_lines_t_SOURCES = dummy.cxx
check_PROGRAMS += %D%/restart.t
TESTS += %D%/restart.t
%C%_restart_t_SOURCES = %D%/test_restart.c
%C%_restart_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_restart_t_SOURCES = dummy.cxx
check_PROGRAMS += %D%/supervise.t
TESTS += %D%/supervise.t
%C%_supervise_t_SOURCES = %D%/test_supervise.c
%C%_supervise_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_supervise_t_SOURCES = dummy.cxx
check_PROGRAMS += %D%/tally.t
TESTS += %D%/tally.t
%C%_tally_t_SOURCES = %D%/test_tally.c
%C%_tally_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_tally_t_SOURCES = dummy.cxx
endif
