/* test_faults.c - what the ranks do when one of them is gone, late, told to stop, or diverges */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/executor/team.h"

static struct team_result x;

/* Seconds in which a rank that works comes to the next collective, also on a busy machine. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const double patience = 6;
#else
static const double patience = 0.5;
#endif

static void a_killed_rank_is_named_and_the_others_leave(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++)
        for (int step = 1; step <= 5; step += 4) {
            struct team t = team_tiny(SL_ZERO3, 4);
            char want[32];

            t.processes = 1;
            t.die_rank = k;
            t.fault_step = step;
            assert_int_equal(team_run(&t, &x), -1);
            assert_int_equal(x.first_dead, k);
            snprintf(want, sizeof want, "rank %d failed first", k);
            for (int r = 0; r < 4; r++) {
                if (r == k)
                    continue;
                assert_int_equal(x.r[r].code, SL_PEER); /* woken, not timed out */
                assert_string_equal(x.r[r].msg, want);
                assert_true(x.r[r].trained.step < step);
            }
        }
}

static void a_late_rank_is_named_at_the_deadline(void **state)
{
    int timed_out = 0;

    (void)state;
    for (int s = 0; s < SL_STRATEGIES; s++) {
        struct team t = team_tiny((enum sl_strategy)s, 3);

        t.stall_rank = 2;
        t.fault_step = 3;
        t.deadline = patience;
        assert_int_equal(team_run(&t, &x), -1);
        for (int r = 0; r < 2; r++) {
            assert_true(x.r[r].code == SL_BUSY || x.r[r].code == SL_PEER);
            if (x.r[r].code == SL_BUSY) {
                timed_out++;
                assert_non_null(strstr(x.r[r].msg, "of step 3, not arrived: rank 2 (computing"));
            } else
                assert_string_equal(x.r[r].msg, "rank 2 failed first");
        }
    }
    assert_true(timed_out >= SL_STRATEGIES);
}

static void a_stop_is_agreed_on_by_all_ranks(void **state)
{
    (void)state;
    for (int s = 0; s < SL_STRATEGIES; s++) {
        struct team t = team_tiny((enum sl_strategy)s, 3);

        t.stop_step = 5;
        assert_int_equal(team_run(&t, &x), 0);
        for (int r = 0; r < 3; r++) {
            assert_int_equal(x.r[r].trained.step, 5);
            assert_int_equal(x.r[r].trained.stopped, 1);
        }
    }
}

static void a_stop_in_the_last_step_is_an_end(void **state)
{
    struct team t = team_tiny(SL_ZERO1, 2);

    (void)state;
    t.stop_step = 20;
    assert_int_equal(team_run(&t, &x), 0);
    assert_int_equal(x.r[1].trained.step, 20);
    assert_int_equal(x.r[1].trained.stopped, 0);
}

/* A rate that no float survives: every rank leaves in the same step, one of them as the culprit. */
static void divergence_ends_all_ranks_in_one_step(void **state)
{
    (void)state;
    for (int s = 0; s < SL_STRATEGIES; s++) {
        struct team t = team_tiny((enum sl_strategy)s, 3);
        int culprits = 0;

        t.job.train.lr = t.job.train.min_lr = 1e38;
        t.job.train.schedule = SL_CONSTANT;
        assert_int_equal(team_run(&t, &x), -1);
        for (int r = 0; r < 3; r++) {
            assert_int_equal(x.r[r].trained.diverged, 1);
            assert_int_equal(x.r[r].trained.step, x.r[0].trained.step);
            assert_true(x.r[r].code == SL_USAGE || x.r[r].code == SL_PEER);
            assert_non_null(strstr(x.r[r].msg, "gradient norm"));
            assert_non_null(strstr(x.r[r].msg, "first in the gradient of \"wte.weight\""));
            culprits += x.r[r].code == SL_USAGE;
        }
        assert_int_equal(culprits, 1);
    }
}

/*
 * One rank's NaN in step 3: all ranks leave the step out, nothing of the state changes, and the run
 * goes on with finite losses.
 */
static void a_bad_step_is_skipped_by_all_ranks_and_changes_nothing(void **state)
{
    (void)state;
    for (int s = 0; s < SL_STRATEGIES; s++)
        for (int bf16 = 0; bf16 < 2; bf16++) {
            struct team t = team_tiny((enum sl_strategy)s, 3);

            t.job.failure.on_nan = SL_NAN_SKIP;
            t.job.train.precision = bf16 ? SL_BF16_MIXED : SL_FP32;
            t.job.train.steps = 6;
            t.bad_rank = 1;
            t.bad_from = t.bad_to = 3;
            assert_int_equal(team_run(&t, &x), 0);
            assert_true(isnan(x.norm[3]));
            for (int step = 1; step <= 6; step++)
                assert_true(step == 3 || (isfinite(x.loss[step]) && isfinite(x.norm[step])));
            for (int r = 0; r < 3; r++) {
                assert_int_equal(x.r[r].bad_changed, 0);
                assert_int_equal(x.r[r].trained.skipped, 1);
            }
            assert_true(x.r[0].skipped == 1); /* the metric */
            assert_int_equal(x.r[0].events + x.r[1].events + x.r[2].events, 1);
        }
}

static void a_skipped_step_is_told_with_step_rank_and_tensor(void **state)
{
    struct team t = team_tiny(SL_ZERO2, 1);

    (void)state;
    t.job.failure.on_nan = SL_NAN_SKIP;
    t.bad_from = t.bad_to = 4;
    assert_int_equal(team_run(&t, &x), 0);
    assert_non_null(strstr(x.r[0].event, "nan: step 4 is skipped: "));
    assert_non_null(strstr(x.r[0].event, "on rank 0, first in the gradient of \"wte.weight\""
                                         "; it began in attention_bwd of \"h.1\" on rank 0"));
}

/* Where it began is found by doing the step again, on all ranks: in each strategy the same place. */
static void where_it_began_is_found_on_the_right_rank(void **state)
{
    (void)state;
    for (int s = 0; s < SL_STRATEGIES; s++) {
        struct team t = team_tiny((enum sl_strategy)s, 3);

        t.bad_rank = 2;
        t.bad_from = t.bad_to = 2;
        assert_int_equal(team_run(&t, &x), -1);
        for (int r = 0; r < 3; r++) {
            assert_int_equal(x.r[r].code, r == 2 ? SL_USAGE : SL_PEER);
            assert_non_null(
                strstr(x.r[r].msg, "; it began in attention_bwd of \"h.1\" on rank 2"));
        }
    }
}

/*
 * Steps 1 and 2 are left out: step 3 is Adam's first (t = 1). From m = v = 0 it moves every element
 * with a gradient by the rate, whatever the gradient is; with t = 3 it would be by 0.37 / 0.65 of it.
 */
static void adams_t_counts_only_steps_that_were_made(void **state)
{
    struct team t = team_tiny(SL_ZERO1, 2);

    (void)state;
    t.job.failure.on_nan = SL_NAN_SKIP;
    t.job.train.weight_decay = 0;
    t.job.train.steps = 3;
    t.bad_from = 1;
    t.bad_to = 2;
    assert_int_equal(team_run(&t, &x), 0);
    for (int r = 0; r < 2; r++)
        assert_true(fabs(x.r[r].first_update / x.lr[3] - 1) < 1e-3);
}

static void ten_bad_steps_in_a_row_end_the_job(void **state)
{
    struct team t = team_tiny(SL_ZERO3, 2);
    int culprits = 0;

    (void)state;
    t.job.failure.on_nan = SL_NAN_SKIP;
    t.bad_from = 3;
    t.bad_to = 30;
    assert_int_equal(team_run(&t, &x), -1);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(x.r[r].trained.step, 11); /* 3 .. 11 were skipped, 12 is the tenth */
        assert_int_equal(x.r[r].trained.diverged, 1);
        assert_non_null(strstr(x.r[r].msg, "step 12: the last of 10 such steps in a row: "));
        culprits += x.r[r].code == SL_USAGE;
    }
    assert_int_equal(culprits, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_rank_is_named_and_the_others_leave),
        cmocka_unit_test(a_late_rank_is_named_at_the_deadline),
        cmocka_unit_test(a_stop_is_agreed_on_by_all_ranks),
        cmocka_unit_test(a_stop_in_the_last_step_is_an_end),
        cmocka_unit_test(divergence_ends_all_ranks_in_one_step),
        cmocka_unit_test(a_bad_step_is_skipped_by_all_ranks_and_changes_nothing),
        cmocka_unit_test(a_skipped_step_is_told_with_step_rank_and_tensor),
        cmocka_unit_test(where_it_began_is_found_on_the_right_rank),
        cmocka_unit_test(adams_t_counts_only_steps_that_were_made),
        cmocka_unit_test(ten_bad_steps_in_a_row_end_the_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
