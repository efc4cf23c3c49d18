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

web_static = %D%/static/index.html %D%/static/style.css %D%/static/app.js %D%/static/api.js \
	%D%/static/chart.js %D%/static/dom.js %D%/static/job.js %D%/static/log.js \
	%D%/static/series.js THIRD_PARTY

# From Debian's libjs-dygraphs (configure says where); a release has it in its archive.
web_dygraphs = %D%/dygraphs/dygraph.min.js
$(web_dygraphs):
	$(AM_V_GEN)$(MKDIR_P) %D%/dygraphs && \
	$(SED) 's|^//# sourceMappingURL=.*||' $(DYGRAPHS_DIR)/dygraph.min.js >$@.tmp && mv $@.tmp $@

%D%/static.c: $(web_static) $(web_dygraphs) script/embed
	$(AM_V_GEN)$(MKDIR_P) %D% && top=`pwd` && \
	if test -f $(web_dygraphs); then d=$$top; else d=.; fi && cd $(srcdir) && \
	$(SHELL) script/embed sl_static $(web_static) $$d/$(web_dygraphs) >$$top/$@.tmp && \
	mv $$top/$@.tmp $$top/$@
CLEANFILES += %D%/static.c
MAINTAINERCLEANFILES = $(web_dygraphs)
EXTRA_DIST += $(web_static) $(web_dygraphs) doc/design/page.md script/screenshots \
	doc/img/page.png doc/img/page-dark.png doc/img/page-failed.png doc/img/page-narrow.png
dist_doc_DATA = THIRD_PARTY
