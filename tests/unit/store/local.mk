if HAVE_CMOCKA
check_PROGRAMS += %D%/jobs.t
TESTS += %D%/jobs.t
%C%_jobs_t_SOURCES = %D%/test_jobs.c %D%/fixture.h
%C%_jobs_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_jobs_t_SOURCES = dummy.cxx
check_PROGRAMS += %D%/series.t
TESTS += %D%/series.t
%C%_series_t_SOURCES = %D%/test_series.c %D%/fixture.h
%C%_series_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_series_t_SOURCES = dummy.cxx
check_PROGRAMS += %D%/recorder.t
TESTS += %D%/recorder.t
%C%_recorder_t_SOURCES = %D%/test_recorder.c %D%/fixture.h
%C%_recorder_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_recorder_t_SOURCES = dummy.cxx
check_PROGRAMS += %D%/every_alloc.t
TESTS += %D%/every_alloc.t
%C%_every_alloc_t_SOURCES = %D%/test_every_alloc.c tests/lib/every_alloc.c tests/lib/every_alloc.h %D%/fixture.h
%C%_every_alloc_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_every_alloc_t_SOURCES = dummy.cxx
endif
