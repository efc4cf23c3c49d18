# a job of ranks, as threads or processes of a test
check_LIBRARIES += %D%/libteam.a
%C%_libteam_a_SOURCES = %D%/team.c %D%/team.h
if HAVE_CMOCKA
check_PROGRAMS += %D%/bits.t
TESTS += %D%/bits.t
%C%_bits_t_SOURCES = %D%/test_bits.c
%C%_bits_t_LDADD = %D%/libteam.a $(test_libs)
nodist_EXTRA_%C%_bits_t_SOURCES = dummy.cxx
check_PROGRAMS += %D%/faults.t
TESTS += %D%/faults.t
%C%_faults_t_SOURCES = %D%/test_faults.c
%C%_faults_t_LDADD = %D%/libteam.a $(test_libs)
nodist_EXTRA_%C%_faults_t_SOURCES = dummy.cxx
check_PROGRAMS += %D%/traffic.t
TESTS += %D%/traffic.t
%C%_traffic_t_SOURCES = %D%/test_traffic.c
%C%_traffic_t_LDADD = %D%/libteam.a $(test_libs)
nodist_EXTRA_%C%_traffic_t_SOURCES = dummy.cxx
check_PROGRAMS += %D%/bf16.t
TESTS += %D%/bf16.t
%C%_bf16_t_SOURCES = %D%/test_bf16.c
%C%_bf16_t_LDADD = %D%/libteam.a $(test_libs)
nodist_EXTRA_%C%_bf16_t_SOURCES = dummy.cxx
check_PROGRAMS += %D%/lifetimes.t
TESTS += %D%/lifetimes.t
%C%_lifetimes_t_SOURCES = %D%/test_lifetimes.c
%C%_lifetimes_t_LDADD = %D%/libteam.a $(test_libs)
nodist_EXTRA_%C%_lifetimes_t_SOURCES = dummy.cxx
check_PROGRAMS += %D%/gradients.t
TESTS += %D%/gradients.t
%C%_gradients_t_SOURCES = %D%/test_gradients.c
%C%_gradients_t_LDADD = %D%/libteam.a $(test_libs)
nodist_EXTRA_%C%_gradients_t_SOURCES = dummy.cxx
endif
