# tests of bench
check_PROGRAMS += %D%/kernels_bench
%C%_kernels_bench_SOURCES = %D%/kernels_bench.c
%C%_kernels_bench_LDADD = $(sl_libs)
nodist_EXTRA_%C%_kernels_bench_SOURCES = dummy.cxx
