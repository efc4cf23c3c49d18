# tests of unit/executor
if HAVE_CMOCKA
check_PROGRAMS += %D%/bits.t
TESTS += %D%/bits.t
%C%_bits_t_SOURCES = %D%/test_bits.c %D%/team.c %D%/team.h
%C%_bits_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_bits_t_SOURCES = dummy.cxx
check_PROGRAMS += %D%/job.t
TESTS += %D%/job.t
%C%_job_t_SOURCES = %D%/test_job.c
%C%_job_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_job_t_SOURCES = dummy.cxx
endif
