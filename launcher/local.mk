noinst_LIBRARIES += liblauncher.a
liblauncher_a_SOURCES = \
	%D%/recorder.c %D%/recorder.h
