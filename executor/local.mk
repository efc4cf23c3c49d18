noinst_LIBRARIES += libexecutor.a
libexecutor_a_SOURCES = \
	%D%/job.c %D%/job.h \
	%D%/job_keys.c %D%/job_keys.h \
	%D%/report.h \
	%D%/graph/graph.h \
	%D%/ctl.c %D%/ctl.h \
	%D%/rank.h
include %D%/data/local.mk
