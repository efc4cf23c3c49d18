if HAVE_CMOCKA
check_PROGRAMS += %D%/err.t
TESTS += %D%/err.t
%C%_err_t_SOURCES = %D%/test_err.c
%C%_err_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_err_t_SOURCES = dummy.cxx
endif
