noinst_LIBRARIES += libweb.a
libweb_a_SOURCES = common/err.h
