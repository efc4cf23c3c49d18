# Benchmarks: programs built by `make check`, scripts run by hand; none is a test.
check_PROGRAMS += %D%/sgemm
%C%_sgemm_SOURCES = %D%/sgemm.c
%C%_sgemm_LDADD = $(DNNL_LIBS)
EXTRA_DIST += %D%/bench.bash %D%/tokens.sh %D%/memory.sh %D%/ratios.sh %D%/ceiling.sh %D%/pytorch.sh %D%/pytorch.py %D%/cpu.sh
check_PROGRAMS += %D%/kernels_bench
%C%_kernels_bench_SOURCES = %D%/kernels_bench.c
%C%_kernels_bench_LDADD = $(sl_libs)
nodist_EXTRA_%C%_kernels_bench_SOURCES = dummy.cxx
check_PROGRAMS += %D%/step_bench
%C%_step_bench_SOURCES = %D%/step_bench.c
%C%_step_bench_LDADD = $(sl_libs)
nodist_EXTRA_%C%_step_bench_SOURCES = dummy.cxx
check_PROGRAMS += %D%/tcp_allreduce
%C%_tcp_allreduce_SOURCES = %D%/tcp_allreduce.c
%C%_tcp_allreduce_LDADD = $(sl_libs)
nodist_EXTRA_%C%_tcp_allreduce_SOURCES = dummy.cxx
