# Unit tests are cmocka programs that print TAP; tests of programs are bats files.
TEST_EXTENSIONS = .t .bats .sh
tap_driver = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
T_LOG_DRIVER = $(tap_driver)
SH_LOG_DRIVER = $(tap_driver)
BATS_LOG_DRIVER = $(tap_driver)
SH_LOG_COMPILER = $(SHELL)
BATS_LOG_COMPILER = bats --tap
AM_TESTS_ENVIRONMENT = srcdir='$(abs_top_srcdir)'; export srcdir; \
	builddir='$(abs_top_builddir)'; export builddir; \
	CMOCKA_MESSAGE_OUTPUT=TAP; export CMOCKA_MESSAGE_OUTPUT; \
	LSAN_OPTIONS=suppressions=$$srcdir/tests/lib/lsan.supp:print_suppressions=0; export LSAN_OPTIONS; \
	TSAN_OPTIONS=suppressions=$$srcdir/tests/lib/tsan.supp:halt_on_error=1:second_deadlock_stack=1; \
	export TSAN_OPTIONS;

test_cflags = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
test_libs = $(sl_libs) $(CMOCKA_LIBS) -lm

TESTS += %D%/layers.sh
EXTRA_DIST += %D%/layers.sh %D%/lib/common.bash %D%/lib/tsan.supp %D%/lib/clock_shift.c

include %D%/unit/common/local.mk
include %D%/unit/store/local.mk
include %D%/unit/kernels/local.mk
include %D%/unit/executor/local.mk
include %D%/unit/launcher/local.mk
include %D%/unit/web/local.mk
include %D%/unit/data/local.mk
include %D%/fuzz/local.mk
include %D%/cli/local.mk
include %D%/launcher/local.mk
include %D%/executor/local.mk
include %D%/web/local.mk
include %D%/run/local.mk
include %D%/slurm/local.mk
include %D%/chaos/local.mk
include %D%/bench/local.mk
include %D%/golden/local.mk
