if HAVE_CMOCKA
check_PROGRAMS += %D%/api.t
TESTS += %D%/api.t
%C%_api_t_SOURCES = %D%/test_api.c tests/unit/store/fixture.h
%C%_api_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_api_t_SOURCES = dummy.cxx
check_PROGRAMS += %D%/token.t
TESTS += %D%/token.t
%C%_token_t_SOURCES = %D%/test_token.c tests/unit/store/fixture.h
%C%_token_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_token_t_SOURCES = dummy.cxx
check_PROGRAMS += %D%/every_alloc.t
TESTS += %D%/every_alloc.t
%C%_every_alloc_t_SOURCES = %D%/test_every_alloc.c tests/lib/every_alloc.c tests/lib/every_alloc.h tests/unit/store/fixture.h
%C%_every_alloc_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_every_alloc_t_SOURCES = dummy.cxx
endif
