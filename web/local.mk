noinst_LIBRARIES += libweb.a
libweb_a_SOURCES = \
	%D%/api.c %D%/api.h \
	%D%/metrics.c %D%/metrics.h \
	%D%/pages.c %D%/pages.h \
	%D%/server.c %D%/server.h \
	%D%/stream.c %D%/stream.h \
	%D%/tail.c %D%/tail.h \
	%D%/token.c %D%/token.h \
	%D%/view.c %D%/view.h
nodist_libweb_a_SOURCES = %D%/static.c

web_static = %D%/static/app.js %D%/static/chart.js %D%/static/index.html %D%/static/style.css
%D%/static.c: $(web_static) script/embed
	$(AM_V_GEN)$(MKDIR_P) %D% && cd $(srcdir) && \
	$(SHELL) script/embed sl_static $(web_static) >$(abs_builddir)/$@.tmp && \
	mv $(abs_builddir)/$@.tmp $(abs_builddir)/$@
CLEANFILES += %D%/static.c
EXTRA_DIST += $(web_static)
