if HAVE_CMOCKA
kernels_tests = \
	%D%/adamw.t \
	%D%/attention.t \
	%D%/dropout.t \
	%D%/embed.t \
	%D%/gelu.t \
	%D%/head.t \
	%D%/layernorm.t \
	%D%/linear.t \
	%D%/ranges.t
check_PROGRAMS += $(kernels_tests)
TESTS += $(kernels_tests)
%C%_adamw_t_SOURCES = %D%/test_adamw.c %D%/kt.h
%C%_adamw_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_adamw_t_SOURCES = dummy.cxx
%C%_attention_t_SOURCES = %D%/test_attention.c %D%/kt.h
%C%_attention_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_attention_t_SOURCES = dummy.cxx
%C%_dropout_t_SOURCES = %D%/test_dropout.c %D%/kt.h
%C%_dropout_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_dropout_t_SOURCES = dummy.cxx
%C%_embed_t_SOURCES = %D%/test_embed.c %D%/kt.h
%C%_embed_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_embed_t_SOURCES = dummy.cxx
%C%_gelu_t_SOURCES = %D%/test_gelu.c %D%/kt.h
%C%_gelu_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_gelu_t_SOURCES = dummy.cxx
%C%_head_t_SOURCES = %D%/test_head.c %D%/kt.h
%C%_head_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_head_t_SOURCES = dummy.cxx
%C%_layernorm_t_SOURCES = %D%/test_layernorm.c %D%/kt.h
%C%_layernorm_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_layernorm_t_SOURCES = dummy.cxx
%C%_linear_t_SOURCES = %D%/test_linear.c %D%/kt.h
%C%_linear_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_linear_t_SOURCES = dummy.cxx
%C%_ranges_t_SOURCES = %D%/test_ranges.c %D%/kt.h
%C%_ranges_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_ranges_t_SOURCES = dummy.cxx
endif
