noinst_LIBRARIES += libstore.a
libstore_a_SOURCES = \
	%D%/internal.h \
	%D%/jobs.c %D%/jobs.h \
	%D%/published.c %D%/published.h \
	%D%/reader.c %D%/reader.h \
	%D%/rollup.c %D%/rollup.h \
	%D%/series.c %D%/series.h \
	%D%/store.c %D%/store.h \
	%D%/writer.c %D%/writer.h
nodist_libstore_a_SOURCES = %D%/schema.c

%D%/schema.c: %D%/schema.sql script/embed
	$(AM_V_GEN)$(MKDIR_P) %D% && \
	$(SHELL) $(srcdir)/script/embed sl_store $(srcdir)/%D%/schema.sql >$@.tmp && mv $@.tmp $@
CLEANFILES += %D%/schema.c
EXTRA_DIST += %D%/schema.sql script/embed
