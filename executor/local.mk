noinst_LIBRARIES += libexecutor.a
libexecutor_a_SOURCES = common/err.h
