noinst_LIBRARIES += liblauncher.a
liblauncher_a_SOURCES = \
	%D%/agent.c %D%/agent.h \
	%D%/death.c %D%/death.h \
	%D%/keeper.c %D%/keeper.h \
	%D%/launch.c %D%/launch.h \
	%D%/lines.c %D%/lines.h \
	%D%/local.c %D%/local.h \
	%D%/logs.c %D%/logs.h \
	%D%/meter.c %D%/meter.h \
	%D%/pmix_server.c %D%/pmix_server.h \
	%D%/recorder.c %D%/recorder.h \
	%D%/scratch.c %D%/scratch.h \
	%D%/stack.c %D%/stack.h \
	%D%/supervise.c %D%/supervise.h \
	%D%/tally.c %D%/tally.h \
	%D%/term.c %D%/term.h \
	%D%/watch.c %D%/watch.h
