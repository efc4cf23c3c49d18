# The passes over graphs, the program and its plan.
if HAVE_CMOCKA
graph_tests = \
	%D%/graph.t \
	%D%/shard.t \
	%D%/memplan.t \
	%D%/plan.t
check_PROGRAMS += $(graph_tests)
TESTS += $(graph_tests)
%C%_graph_t_SOURCES = %D%/test_graph.c %D%/tiny.h
%C%_graph_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_graph_t_SOURCES = dummy.cxx
%C%_shard_t_SOURCES = %D%/test_shard.c %D%/tiny.h
%C%_shard_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_shard_t_SOURCES = dummy.cxx
%C%_memplan_t_SOURCES = %D%/test_memplan.c %D%/tiny.h
%C%_memplan_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_memplan_t_SOURCES = dummy.cxx
%C%_plan_t_SOURCES = %D%/test_plan.c %D%/tiny.h
%C%_plan_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_plan_t_SOURCES = dummy.cxx
endif
