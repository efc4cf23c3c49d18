# tests of unit/executor
include %D%/ranks.mk
include %D%/graph.mk
if HAVE_CMOCKA
check_PROGRAMS += %D%/job.t
TESTS += %D%/job.t
%C%_job_t_SOURCES = %D%/test_job.c
%C%_job_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_job_t_SOURCES = dummy.cxx
endif
