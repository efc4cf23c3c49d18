/* Whether a failed attempt is followed by another one, and after how long. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/restart.h"

static struct sl_supervise failure(int rank, int code, int64_t step)
{
    return (struct sl_supervise){
        .state = SL_FAILED, .retry = 1, .culprit = rank, .code = code, .step = step};
}

/* The delay before the next attempt; -1: there is none. */
static double ask(struct sl_restart *r, int rank, int code, int64_t step)
{
    struct sl_supervise s = failure(rank, code, step);
    char why[200];
    double delay = 0;

    return sl_restart_ask(r, &s, &delay, why, sizeof why) ? delay : -1;
}

static void the_first_is_at_once_and_then_it_grows_to_a_minute(void **state)
{
    static const double want[] = {0, 1, 2, 4, 8, 16, 32, 60, 60, 60};
    struct sl_restart r;

    (void)state;
    sl_restart_init(&r, 100);
    for (int i = 0; i < 10; i++) /* each time another rank, in the same step */
        assert_float_equal(ask(&r, i, 128 + SIGKILL, 5), want[i], 0);
}

static void a_run_that_moves_on_does_not_wait(void **state)
{
    struct sl_restart r;

    (void)state;
    sl_restart_init(&r, 100);
    assert_float_equal(ask(&r, 0, 137, 5), 0, 0);
    assert_float_equal(ask(&r, 1, 137, 4), 1, 0);
    assert_float_equal(ask(&r, 0, 137, 5), 2, 0);
    assert_float_equal(ask(&r, 1, 137, 6), 0, 0);
    assert_float_equal(ask(&r, 0, 137, 60), 0, 0);
}

static void restarts_are_counted(void **state)
{
    struct sl_supervise s = failure(1, 137, 9);
    struct sl_restart r;
    char why[200];
    double delay;

    (void)state;
    sl_restart_init(&r, 2);
    assert_float_equal(ask(&r, 0, 137, 1), 0, 0);
    assert_float_equal(ask(&r, 0, 137, 2), 0, 0);
    assert_int_equal(sl_restart_ask(&r, &s, &delay, why, sizeof why), 0);
    assert_string_equal(why, "all 2 restarts of failure.max_restarts are used up");
}

static void the_same_failure_twice_in_a_row_is_the_last(void **state)
{
    struct sl_supervise s = failure(2, 139, 7);
    struct sl_restart r;
    char why[200];
    double delay;

    (void)state;
    sl_restart_init(&r, 100);
    assert_true(ask(&r, 2, 139, 7) >= 0);
    assert_true(ask(&r, 1, 139, 7) >= 0); /* another rank */
    assert_true(ask(&r, 1, 137, 7) >= 0); /* another signal */
    assert_true(ask(&r, 1, 137, 8) >= 0); /* another step */
    assert_true(ask(&r, 2, 139, 7) >= 0); /* not in a row */
    assert_int_equal(sl_restart_ask(&r, &s, &delay, why, sizeof why), 0);
    assert_non_null(strstr(why, "the same failure at the same step twice"));
}

static void other_ends_are_not_followed_by_an_attempt(void **state)
{
    struct sl_supervise s = failure(0, 2, 1);
    struct sl_restart r;
    char why[200] = "x";
    double delay;

    (void)state;
    sl_restart_init(&r, 100);
    s.retry = 0; /* a job file to mend, a diverged loss, a stop that was asked for */
    assert_int_equal(sl_restart_ask(&r, &s, &delay, why, sizeof why), 0);
    assert_string_equal(why, "");
    s = (struct sl_supervise){.state = SL_DONE, .retry = 1, .culprit = -1};
    assert_int_equal(sl_restart_ask(&r, &s, &delay, why, sizeof why), 0);
    sl_restart_init(&r, 0);
    assert_true(ask(&r, 0, 137, 1) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_is_at_once_and_then_it_grows_to_a_minute),
        cmocka_unit_test(a_run_that_moves_on_does_not_wait),
        cmocka_unit_test(restarts_are_counted),
        cmocka_unit_test(the_same_failure_twice_in_a_row_is_the_last),
        cmocka_unit_test(other_ends_are_not_followed_by_an_attempt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
