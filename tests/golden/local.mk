check_LIBRARIES += %D%/libgolden.a
%C%_libgolden_a_SOURCES = %D%/golden.c %D%/golden.h
EXTRA_DIST += %D%/README.md %D%/gpt.py %D%/export.py %D%/tied.bin %D%/tied.txt %D%/untied.bin %D%/untied.txt

# our GPT against PyTorch's
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/executor/golden.t
TESTS += tests/unit/executor/golden.t
tests_unit_executor_golden_t_SOURCES = tests/unit/executor/test_golden.c
tests_unit_executor_golden_t_LDADD = tests/golden/libgolden.a $(test_libs)
nodist_EXTRA_tests_unit_executor_golden_t_SOURCES = dummy.cxx
endif
