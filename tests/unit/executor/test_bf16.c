/* test_bf16.c - bf16 storage with fp32 master weights */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/executor/team.h"

enum { STEPS = 20 };

static struct team_result f32, ref, x;

static struct team bf16(int s, int n)
{
    struct team t = team_tiny((enum sl_strategy)s, n);

    t.job.train.precision = SL_BF16_MIXED;
    t.poison = 1;
    return t;
}

/*
 * With one micro-step a gradient is rounded to bf16 once on each rank and once after the sum, in
 * every strategy alike.
 */
static void strategies_agree_to_the_bit(void **state)
{
    (void)state;
    for (int n = 1; n <= 4; n++) {
        struct team t = bf16(SL_DDP, n);

        assert_int_equal(team_run(&t, &ref), 0);
        for (int s = 0; s < SL_STRATEGIES; s++) {
            t = bf16(s, n);
            assert_int_equal(team_run(&t, &x), 0);
            assert_true(team_same(&ref, &x, STEPS));
            assert_true(x.copies_agree);
        }
    }
}

static void accumulation_has_the_same_two_classes(void **state)
{
    static struct team_result r[SL_STRATEGIES];

    (void)state;
    for (int s = 0; s < SL_STRATEGIES; s++) {
        struct team t = bf16(s, 2);

        t.job.train.micro_batch = 6;
        assert_int_equal(team_run(&t, &r[s]), 0);
    }
    assert_true(team_same(&r[SL_DDP], &r[SL_DP], STEPS));
    assert_true(team_same(&r[SL_DDP], &r[SL_ZERO1], STEPS));
    assert_true(team_same(&r[SL_ZERO2], &r[SL_ZERO3], STEPS));
    assert_true(team_gap(&r[SL_DDP], &r[SL_ZERO2], STEPS) < 0.05);
}

static void recompute_and_prefetch_change_no_bit(void **state)
{
    (void)state;
    for (int s = 0; s < SL_STRATEGIES; s++) {
        struct team t = bf16(s, 3);

        assert_int_equal(team_run(&t, &ref), 0);
        t.job.train.recompute = SL_RECOMPUTE_UNIT;
        t.flags = SL_PROGRAM_PREFETCH;
        assert_int_equal(team_run(&t, &x), 0);
        assert_true(team_same(&ref, &x, STEPS));
    }
}

/* bf16 has 8 bits: 2^-9 a rounding. Rounded weights move less than a step only in fp32 masters. */
static void it_trains_as_fp32_does(void **state)
{
    struct team t = team_tiny(SL_ZERO3, 2);

    (void)state;
    assert_int_equal(team_run(&t, &f32), 0);
    t.job.train.precision = SL_BF16_MIXED;
    assert_int_equal(team_run(&t, &x), 0);
    assert_true(team_gap(&f32, &x, 1) < 0.02); /* same start, nearly the same gradient */
    assert_true(fabs(x.loss[STEPS] / f32.loss[STEPS] - 1) < 0.01);
    assert_true(fabs(x.valid[STEPS] / f32.valid[STEPS] - 1) < 0.01);
    assert_true(x.hash != f32.hash);
}

/* A rate so small that no single update changes a bf16 weight: only a master copy can add them up.
 */
static void small_updates_are_not_lost(void **state)
{
    struct team t = bf16(SL_ZERO2, 2);

    (void)state;
    t.job.train.lr = t.job.train.min_lr = 1e-5;
    t.job.train.warmup = 0;
    t.job.train.schedule = SL_CONSTANT;
    t.job.train.weight_decay = 0;
    t.job.model.dropout = 0;
    t.job.train.steps = 32;
    assert_int_equal(team_run(&t, &x), 0);
    t.job.train.precision = SL_FP32;
    assert_int_equal(team_run(&t, &f32), 0);
    assert_true(fabs((x.valid[32] - f32.valid[32]) / (f32.valid[7] - f32.valid[32])) < 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strategies_agree_to_the_bit),
        cmocka_unit_test(accumulation_has_the_same_two_classes),
        cmocka_unit_test(recompute_and_prefetch_change_no_bit),
        cmocka_unit_test(it_trains_as_fp32_does),
        cmocka_unit_test(small_updates_are_not_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
