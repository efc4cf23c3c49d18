noinst_LIBRARIES += liblauncher.a
liblauncher_a_SOURCES = common/err.h
