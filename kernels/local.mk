# Front functions and everything that is compiled once.
noinst_LIBRARIES += libkernels.a
libkernels_a_SOURCES = \
	%D%/bf16.h \
	%D%/check.h \
	%D%/dev.c %D%/dev.h \
	%D%/dtype.h \
	%D%/gemm.c %D%/gemm.h \
	%D%/par.c %D%/par.h \
	%D%/adamw/adamw.c %D%/adamw/adamw.h \
	%D%/add/add.c %D%/add/add.h \
	%D%/attention/attention.c %D%/attention/attention.h \
	%D%/attention/attention_tile.h \
	%D%/convert/convert.c %D%/convert/convert.h \
	%D%/copy/copy.c %D%/copy/copy.h \
	%D%/dropout/dropout.c %D%/dropout/dropout.h \
	%D%/embed/embed.c %D%/embed/embed.h \
	%D%/gelu/gelu.c %D%/gelu/gelu.h \
	%D%/head/head.c %D%/head/head.h %D%/head/head_tile.h \
	%D%/layernorm/layernorm.c %D%/layernorm/layernorm.h \
	%D%/linear/linear.c %D%/linear/linear.h \
	%D%/normal/normal.c %D%/normal/normal.h \
	%D%/position/position.c %D%/position/position.h \
	%D%/reduce/reduce.c %D%/reduce/reduce.h \
	%D%/sumsq/sumsq.c %D%/sumsq/sumsq.h \
	%D%/zero/zero.c %D%/zero/zero.h
libkernels_a_CPPFLAGS = $(AM_CPPFLAGS) $(KERNELS_CPPFLAGS)
libkernels_a_LIBADD = $(kernels_objects)
libkernels_a_DEPENDENCIES = $(kernels_objects)

# The loops, once per instruction set (m4/sl_isa.m4 says which the compiler has).
kernels_cpu = \
	%D%/cpu.h %D%/vec.h \
	%D%/table_cpu.c \
	%D%/adamw/adamw_cpu.c %D%/adamw/adamw_math.h \
	%D%/add/add_cpu.c \
	%D%/attention/attention_cpu.c \
	%D%/convert/convert_cpu.c \
	%D%/copy/copy_cpu.c \
	%D%/dropout/dropout_cpu.c %D%/dropout/dropout_math.h \
	%D%/embed/embed_cpu.c \
	%D%/gelu/gelu_cpu.c \
	%D%/head/head_cpu.c \
	%D%/layernorm/layernorm_cpu.c \
	%D%/linear/linear_cpu.c \
	%D%/normal/normal_cpu.c \
	%D%/position/position_cpu.c \
	%D%/reduce/reduce_cpu.c \
	%D%/sumsq/sumsq_cpu.c \
	%D%/zero/zero_cpu.c
kernels_cflags = $(AM_CFLAGS) -ftree-vectorize $(VECT_CFLAGS) -fno-math-errno \
	-fno-trapping-math

EXTRA_LIBRARIES += libkernels_base.a libkernels_v3.a libkernels_v4.a
libkernels_base_a_SOURCES = $(kernels_cpu)
libkernels_base_a_CPPFLAGS = $(AM_CPPFLAGS) -DSL_ISA=base
libkernels_base_a_CFLAGS = $(kernels_cflags)
libkernels_v3_a_SOURCES = $(kernels_cpu)
libkernels_v3_a_CPPFLAGS = $(AM_CPPFLAGS) -DSL_ISA=v3
libkernels_v3_a_CFLAGS = $(kernels_cflags) $(ISA_V3_CFLAGS)
libkernels_v4_a_SOURCES = $(kernels_cpu)
libkernels_v4_a_CPPFLAGS = $(AM_CPPFLAGS) -DSL_ISA=v4
libkernels_v4_a_CFLAGS = $(kernels_cflags) $(ISA_V4_CFLAGS)
kernels_objects = $(libkernels_base_a_OBJECTS)
if HAVE_ISA_V3
kernels_objects += $(libkernels_v3_a_OBJECTS)
endif
if HAVE_ISA_V4
kernels_objects += $(libkernels_v4_a_OBJECTS)
endif
