if HAVE_CMOCKA
common_tests = \
	%D%/arena.t \
	%D%/buf.t \
	%D%/conf.t \
	%D%/db.t \
	%D%/err.t \
	%D%/fs.t \
	%D%/idset.t \
	%D%/json.t \
	%D%/log.t \
	%D%/loop.t \
	%D%/proc.t \
	%D%/rng.t \
	%D%/str.t \
	%D%/toml.t
check_PROGRAMS += $(common_tests)
TESTS += $(common_tests)
%C%_arena_t_SOURCES = %D%/test_arena.c
%C%_arena_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_arena_t_SOURCES = dummy.cxx
%C%_buf_t_SOURCES = %D%/test_buf.c
%C%_buf_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_buf_t_SOURCES = dummy.cxx
%C%_conf_t_SOURCES = %D%/test_conf.c
%C%_conf_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_conf_t_SOURCES = dummy.cxx
%C%_db_t_SOURCES = %D%/test_db.c
%C%_db_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_db_t_SOURCES = dummy.cxx
%C%_err_t_SOURCES = %D%/test_err.c
%C%_err_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_err_t_SOURCES = dummy.cxx
%C%_fs_t_SOURCES = %D%/test_fs.c
%C%_fs_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_fs_t_SOURCES = dummy.cxx
%C%_idset_t_SOURCES = %D%/test_idset.c
%C%_idset_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_idset_t_SOURCES = dummy.cxx
%C%_json_t_SOURCES = %D%/test_json.c
%C%_json_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_json_t_SOURCES = dummy.cxx
%C%_log_t_SOURCES = %D%/test_log.c
%C%_log_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_log_t_SOURCES = dummy.cxx
%C%_loop_t_SOURCES = %D%/test_loop.c
%C%_loop_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_loop_t_SOURCES = dummy.cxx
%C%_proc_t_SOURCES = %D%/test_proc.c
%C%_proc_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_proc_t_SOURCES = dummy.cxx
%C%_rng_t_SOURCES = %D%/test_rng.c
%C%_rng_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_rng_t_SOURCES = dummy.cxx
%C%_str_t_SOURCES = %D%/test_str.c
%C%_str_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_str_t_SOURCES = dummy.cxx
%C%_toml_t_SOURCES = %D%/test_toml.c
%C%_toml_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_toml_t_SOURCES = dummy.cxx
check_PROGRAMS += %D%/every_alloc.t
TESTS += %D%/every_alloc.t
%C%_every_alloc_t_SOURCES = %D%/test_every_alloc.c tests/lib/every_alloc.c tests/lib/every_alloc.h
%C%_every_alloc_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_every_alloc_t_SOURCES = dummy.cxx
endif
