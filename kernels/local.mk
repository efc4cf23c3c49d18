noinst_LIBRARIES += libkernels.a
libkernels_a_SOURCES = common/err.h
