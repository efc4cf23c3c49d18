noinst_LIBRARIES += libexecutor.a
libexecutor_a_SOURCES = \
	%D%/job.h \
	%D%/report.h \
	%D%/graph/graph.h \
	%D%/ctl.c %D%/ctl.h \
	%D%/rank.h
include %D%/data/local.mk
