/* test_bits.c - what a strategy, a world size and accumulation may and may not change */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/executor/team.h"

enum { MAX_N = 4, STEPS = 20 };

static struct team_result plain[MAX_N + 1][SL_STRATEGIES], accum[MAX_N + 1][SL_STRATEGIES];
static struct team_result x, y;

static void run(const struct team *t, struct team_result *ret)
{
    int rc = team_run(t, ret);

    for (int k = 0; rc && k < t->ranks; k++)
        fprintf(stderr, "# rank %d: %d %s\n", k, ret->r[k].code, ret->r[k].msg);
    assert_int_equal(rc, 0);
}

static int setup(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX_N; n++)
        for (int s = 0; s < SL_STRATEGIES; s++) {
            struct team t = team_tiny((enum sl_strategy)s, n);

            run(&t, &plain[n][s]);
            t.job.train.micro_batch = 48 / n / 4;
            run(&t, &accum[n][s]);
        }
    return 0;
}

static void strategies_agree_to_the_bit(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX_N; n++)
        for (int s = 0; s < SL_STRATEGIES; s++) {
            assert_true(team_same(&plain[n][SL_DDP], &plain[n][s], STEPS));
            assert_true(plain[n][s].copies_agree);
        }
}

/* Warm-up starts low, so the loss of the last step says whether anything was learnt at all. */
static void the_model_learns_and_clipping_acts(void **state)
{
    const struct team_result *r = &plain[1][SL_DDP];

    (void)state;
    assert_true(fabs(r->loss[1] - log(211)) < 0.1); /* near uniform at first */
    assert_true(r->loss[STEPS] < r->loss[1] - 0.2);
    assert_true(r->norm[1] > 0.5); /* above grad_clip, or the test above shows less than it says */
}

static void accumulation_has_two_classes(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX_N; n++) {
        assert_true(team_same(&accum[n][SL_DDP], &accum[n][SL_DP], STEPS));
        assert_true(team_same(&accum[n][SL_DDP], &accum[n][SL_ZERO1], STEPS));
        assert_true(team_same(&accum[n][SL_ZERO2], &accum[n][SL_ZERO3], STEPS));
        assert_true(team_gap(&accum[n][SL_DDP], &accum[n][SL_ZERO2], STEPS) < 1e-5);
        assert_true(team_gap(&accum[n][SL_DDP], &plain[n][SL_DDP], STEPS) < 1e-4);
    }
}

static void world_sizes_agree_within_rounding(void **state)
{
    (void)state;
    for (int n = 2; n <= MAX_N; n++) {
        assert_true(team_gap(&plain[1][SL_DDP], &plain[n][SL_DDP], STEPS) < 1e-4);
        for (int s = 7; s <= STEPS; s++)
            if (!isnan(plain[1][SL_DDP].valid[s]))
                assert_true(fabs(plain[n][SL_DDP].valid[s] / plain[1][SL_DDP].valid[s] - 1) < 1e-4);
    }
}

/* One rank with eight micro-steps takes the same batch as eight ranks with one. */
static void one_by_eight_is_eight_by_one(void **state)
{
    struct team t = team_tiny(SL_ZERO2, 1);

    (void)state;
    t.job.train.micro_batch = 6;
    run(&t, &x);
    t.ranks = 8;
    run(&t, &y);
    assert_true(team_gap(&x, &y, STEPS) < 1e-5);
}

static void other_world_sizes_work(void **state)
{
    static const int sizes[] = {5, 7, 16};

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct team t = team_tiny(SL_DDP, sizes[i]);

        t.job.train.steps = 6;
        t.job.train.batch = 5 * 7 * 16;
        t.poison = 1;
        run(&t, &x);
        for (int s = 0; s < SL_STRATEGIES; s++) {
            t.job.train.strategy = (enum sl_strategy)s;
            run(&t, &y);
            assert_true(team_same(&x, &y, 6));
        }
    }
}

/* Layer norms of 39 elements among 48 ranks: most own padding only. */
static void a_tensor_smaller_than_the_ranks_works(void **state)
{
    struct team t = team_tiny(SL_DDP, 48);

    (void)state;
    t.job.train.steps = 4;
    run(&t, &x);
    t.job.train.strategy = SL_ZERO3;
    run(&t, &y);
    assert_true(team_same(&x, &y, 4));
    assert_true(team_gap(&x, &plain[1][SL_DDP], 4) < 1e-4);
}

static void recompute_and_prefetch_change_no_bit(void **state)
{
    (void)state;
    for (int n = 1; n <= 3; n++)
        for (int s = 0; s < SL_STRATEGIES; s++) {
            struct team t = team_tiny((enum sl_strategy)s, n);

            t.job.train.recompute = SL_RECOMPUTE_UNIT;
            run(&t, &x);
            assert_true(team_same(&x, &plain[n][s], STEPS));
            t.flags = SL_PROGRAM_PREFETCH;
            run(&t, &x);
            assert_true(team_same(&x, &plain[n][s], STEPS));
        }
}

/* Poison: NaN over every buffer at its end of life. No sharing: nobody reuses anybody's bytes. */
static void the_plan_lends_no_byte_too_early(void **state)
{
    (void)state;
    for (int n = 1; n <= 3; n++)
        for (int s = 0; s < SL_STRATEGIES; s++) {
            struct team t = team_tiny((enum sl_strategy)s, n);

            t.poison = 1;
            run(&t, &x);
            assert_true(team_same(&x, &plain[n][s], STEPS));
            t.job.train.micro_batch = 48 / n / 4;
            run(&t, &x);
            assert_true(team_same(&x, &accum[n][s], STEPS));
            t.job.train.micro_batch = 0;
            t.poison = 0;
            t.flags = SL_PROGRAM_NO_SHARING;
            run(&t, &x);
            assert_true(team_same(&x, &plain[n][s], STEPS));
        }
}

static void evaluation_does_not_disturb_training(void **state)
{
    struct team t = team_tiny(SL_ZERO3, 3);

    (void)state;
    t.job.train.eval_every = 1;
    run(&t, &x);
    assert_memory_equal(x.loss, plain[3][SL_ZERO3].loss, sizeof x.loss);
    assert_int_equal(x.hash, plain[3][SL_ZERO3].hash);
    t.valid_samples = 0;
    run(&t, &x);
    assert_true(isnan(x.valid[STEPS]));
    assert_int_equal(x.hash, plain[3][SL_ZERO3].hash);
}

/* 29 samples on 3 ranks of 16 a round: every one counts once, none of the padding does. */
static void evaluation_takes_each_sample_once(void **state)
{
    struct team t = team_tiny(SL_ZERO1, 1);
    double all, sum = 0;

    (void)state;
    t.job.train.steps = 1;
    t.job.train.lr = t.job.train.min_lr = 0; /* parameters stay as they were made */
    run(&t, &x);
    all = x.valid[1];
    for (int k = 1; k <= 29; k++) { /* k samples' mean, k = 1..29, tells each sample's own */
        double before = sum;

        t.job.train.eval_samples = k;
        t.ranks = 1 + k % 3;
        run(&t, &y);
        sum = y.valid[1] * k;
        assert_true(sum - before > 4 && sum - before < 7); /* one sample's loss, near ln 211 */
    }
    assert_true(fabs(sum / 29 / all - 1) < 1e-6);
}

static void two_processes_are_two_threads(void **state)
{
    struct team t = team_tiny(SL_ZERO3, 2);

    (void)state;
    t.processes = 1;
    run(&t, &x);
    assert_true(team_same(&x, &plain[2][SL_ZERO3], STEPS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_processes_are_two_threads),
        cmocka_unit_test(strategies_agree_to_the_bit),
        cmocka_unit_test(the_model_learns_and_clipping_acts),
        cmocka_unit_test(accumulation_has_two_classes),
        cmocka_unit_test(world_sizes_agree_within_rounding),
        cmocka_unit_test(one_by_eight_is_eight_by_one),
        cmocka_unit_test(other_world_sizes_work),
        cmocka_unit_test(a_tensor_smaller_than_the_ranks_works),
        cmocka_unit_test(recompute_and_prefetch_change_no_bit),
        cmocka_unit_test(the_plan_lends_no_byte_too_early),
        cmocka_unit_test(evaluation_does_not_disturb_training),
        cmocka_unit_test(evaluation_takes_each_sample_once),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
