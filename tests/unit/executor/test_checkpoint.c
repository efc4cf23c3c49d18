/* Checkpoints: a run that goes on from one is the run that was never interrupted. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/fs.h"
#include "executor/checkpoint/checkpoint.h"
#include "executor/checkpoint/manifest.h"
#include "tests/unit/executor/saved.h"

static void same(const struct team_result *whole, const struct team_result *rest, int from,
                 const char *what)
{
    size_t bytes = sizeof(double) * (size_t)(SAVED_STEPS - from);

    if (memcmp(whole->loss + from + 1, rest->loss + from + 1, bytes)
        || memcmp(whole->norm + from + 1, rest->norm + from + 1, bytes)
        || memcmp(whole->lr + from + 1, rest->lr + from + 1, bytes)
        || memcmp(whole->valid + from + 1, rest->valid + from + 1, bytes))
        fail_msg("%s: the numbers behind step %d differ", what, from);
    if (whole->hash != rest->hash)
        fail_msg("%s: the parameters differ", what);
}

static void is_the_run_that_was_never_interrupted(enum sl_strategy strategy,
                                                  enum sl_precision precision, int ranks)
{
    struct saved s;
    static struct team_result whole, first, rest;
    char what[80];

    snprintf(what, sizeof what, "%s, %s, %d ranks", sl_strategy_name(strategy),
             sl_precision_name(precision), ranks);
    saved_open(&s, strategy, precision, ranks);
    saved_run(&s, 0, 0, &whole);
    saved_run(&s, 5, 0, &first); /* saves behind 5 and 10, and at the end */
    same(&whole, &first, 0, what);
    saved_run(&s, 0, 5, &rest);
    same(&whole, &rest, 5, what);
    saved_run(&s, 0, 10, &rest);
    same(&whole, &rest, 10, what);
    saved_close(&s);
}

/* ThreadSanitizer looks at who touches what, and takes minutes for what takes seconds. */
#ifdef __SANITIZE_THREAD__
enum { FEWEST = 2, MOST = 2, STARTS = 2 };
#else
enum { FEWEST = 1, MOST = 4, STARTS = 5 };
#endif

static void a_resumed_run_is_bit_identical(void **state)
{
    static const enum sl_strategy strategies[] = {SL_DDP, SL_ZERO2, SL_ZERO3};

    (void)state;
    for (int p = 0; p < 2; p++)
        for (int s = 0; s < 3; s++)
            for (int n = FEWEST; n <= MOST; n++)
                is_the_run_that_was_never_interrupted(strategies[s], p ? SL_BF16_MIXED : SL_FP32,
                                                      n);
    is_the_run_that_was_never_interrupted(SL_DP, SL_FP32, 3);
    is_the_run_that_was_never_interrupted(SL_DP, SL_BF16_MIXED, 2);
    is_the_run_that_was_never_interrupted(SL_ZERO1, SL_BF16_MIXED, 3);
}

/* The same sums in another order: losses within rounding, and the same data, rate and dropout. */
static void any_number_of_ranks_goes_on(void **state)
{
    static const int ranks[] = {1, 2, 3, 4, 8};
    static const enum sl_strategy strategies[] = {SL_ZERO3, SL_DDP, SL_ZERO2, SL_DP, SL_ZERO1};
    static struct team_result first, rest;

    (void)state;
    for (int a = 0; a < STARTS; a++) {
        struct saved s;

        saved_open(&s, strategies[a], SL_FP32, ranks[a]);
        saved_run(&s, 10, 0, &first);
        for (int b = 0; b < STARTS; b++) {
            s.team.job.train.strategy = strategies[(a + b) % 5];
            s.team.ranks = ranks[b];
            saved_run(&s, 0, 10, &rest);
            for (int k = 11; k <= SAVED_STEPS; k++)
                if (!(fabs(rest.loss[k] - first.loss[k]) < 1e-4) || rest.lr[k] != first.lr[k])
                    fail_msg("%d to %d ranks, step %d: loss %g, not %g", ranks[a], ranks[b], k,
                             rest.loss[k], first.loss[k]);
            assert_true(rest.copies_agree);
        }
        saved_close(&s);
    }
}

static void the_newest_are_kept(void **state)
{
    struct saved s;
    static struct team_result r;
    struct sl_err err = {0};
    char path[SL_CKPT_PATH];
    int64_t step;

    (void)state;
    saved_open(&s, SL_ZERO2, SL_FP32, 2);
    s.team.job.checkpoint.keep = 2;
    saved_run(&s, 3, 0, &r); /* 3, 6, 9, 12, 14 */
    assert_int_equal(sl_ckpt_newest(s.dir, 0, path, &step, &err), 0);
    assert_int_equal(step, SAVED_STEPS);
    assert_int_equal(sl_ckpt_newest(s.dir, SAVED_STEPS, path, &step, &err), 0);
    assert_int_equal(step, 12);
    assert_int_equal(sl_ckpt_newest(s.dir, 12, path, &step, &err), 0);
    assert_int_equal(step, 0);
    saved_close(&s);
}

/* Asked to stop in step 7: a checkpoint of step 7, from which the run goes on to the same end. */
static void a_stop_leaves_a_checkpoint(void **state)
{
    struct saved s;
    static struct team_result whole, stopped, rest;

    (void)state;
    saved_open(&s, SL_ZERO3, SL_BF16_MIXED, 3);
    saved_run(&s, 0, 0, &whole);
    s.team.stop_step = 7;
    saved_run(&s, 0, 0, &stopped);
    assert_int_equal(stopped.r[0].trained.step, 7);
    assert_true(stopped.r[0].trained.stopped);
    s.team.stop_step = 0;
    saved_run(&s, 0, 7, &rest);
    same(&whole, &rest, 7, "stopped");
    saved_close(&s);
}

/* A step that was left out counts: Adam's step behind the checkpoint is one less. */
static void a_skipped_step_is_remembered(void **state)
{
    struct saved s;
    static struct team_result whole, first, rest;

    (void)state;
    saved_open(&s, SL_ZERO2, SL_FP32, 2);
    s.team.job.failure.on_nan = SL_NAN_SKIP;
    s.team.bad_rank = 1;
    s.team.bad_from = s.team.bad_to = 3;
    saved_run(&s, 0, 0, &whole);
    assert_int_equal(whole.r[0].trained.skipped, 1);
    saved_run(&s, 5, 0, &first);
    saved_run(&s, 0, 5, &rest);
    same(&whole, &rest, 5, "skipped");
    assert_int_equal(rest.r[0].trained.skipped, 1);
    saved_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resumed_run_is_bit_identical),
        cmocka_unit_test(any_number_of_ranks_goes_on),
        cmocka_unit_test(the_newest_are_kept),
        cmocka_unit_test(a_stop_leaves_a_checkpoint),
        cmocka_unit_test(a_skipped_step_is_remembered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
