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
	%D%/normal.t \
	%D%/ranges.t \
	%D%/vec.t
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
%C%_normal_t_SOURCES = %D%/test_normal.c %D%/kt.h
%C%_normal_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_normal_t_SOURCES = dummy.cxx
%C%_ranges_t_SOURCES = %D%/test_ranges.c %D%/kt.h
%C%_ranges_t_LDADD = $(test_libs)
nodist_EXTRA_%C%_ranges_t_SOURCES = dummy.cxx
%C%_vec_t_SOURCES = %D%/test_vec.c %D%/kt.h %D%/vec_isa.h
%C%_vec_t_CPPFLAGS = $(AM_CPPFLAGS) $(KERNELS_CPPFLAGS)
%C%_vec_t_LDADD = $(vec_objects) $(test_libs)
%C%_vec_t_DEPENDENCIES = $(vec_objects) libkernels.a libcommon.a
nodist_EXTRA_%C%_vec_t_SOURCES = dummy.cxx

# vec.h once per instruction set, as the kernels are.
EXTRA_LIBRARIES += %D%/libvec_base.a %D%/libvec_v3.a %D%/libvec_v4.a
%C%_libvec_base_a_SOURCES = %D%/vec_isa.c %D%/vec_isa.h
%C%_libvec_base_a_CPPFLAGS = $(AM_CPPFLAGS) -DSL_ISA=base
%C%_libvec_base_a_CFLAGS = $(kernels_cflags)
%C%_libvec_v3_a_SOURCES = %D%/vec_isa.c %D%/vec_isa.h
%C%_libvec_v3_a_CPPFLAGS = $(AM_CPPFLAGS) -DSL_ISA=v3
%C%_libvec_v3_a_CFLAGS = $(kernels_cflags) $(ISA_V3_CFLAGS)
%C%_libvec_v4_a_SOURCES = %D%/vec_isa.c %D%/vec_isa.h
%C%_libvec_v4_a_CPPFLAGS = $(AM_CPPFLAGS) -DSL_ISA=v4
%C%_libvec_v4_a_CFLAGS = $(kernels_cflags) $(ISA_V4_CFLAGS)
vec_objects = $(%C%_libvec_base_a_OBJECTS)
if HAVE_ISA_V3
vec_objects += $(%C%_libvec_v3_a_OBJECTS)
endif
if HAVE_ISA_V4
vec_objects += $(%C%_libvec_v4_a_OBJECTS)
endif
endif
