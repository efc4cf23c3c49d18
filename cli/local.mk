# Highest layer first, as the linker wants it.
sl_libs = libweb.a liblauncher.a libexecutor.a libkernels.a libstore.a libcommon.a \
	$(DEPS_LIBS) $(DNNL_LIBS) -lpthread

# All but main.c: man/pages reads the same tables.
cli_sources = \
	%D%/alloc.c %D%/alloc.h \
	%D%/check.c \
	%D%/data.c \
	%D%/commands.c %D%/commands.h \
	%D%/export.c \
	%D%/list.c \
	%D%/logs.c \
	%D%/options.c %D%/options.h \
	%D%/plan.c \
	%D%/page.c %D%/page.h \
	%D%/rank.c \
	%D%/requeue.c %D%/requeue.h \
	%D%/run.c \
	%D%/say.c \
	%D%/serve.c \
	%D%/show.c \
	%D%/state.c %D%/state.h \
	%D%/submit.c \
	%D%/version.c

bin_PROGRAMS += shardlaunch
shardlaunch_SOURCES = %D%/main.c %D%/openmp.c $(cli_sources)
shardlaunch_LDADD = $(sl_libs)
# common/ holds one C++ file (the TOML face): link as C++.
nodist_EXTRA_shardlaunch_SOURCES = dummy.cxx
