noinst_LIBRARIES += libstore.a
libstore_a_SOURCES = \
	%D%/store.h \
	%D%/jobs.h
