#include "kt.h"

#include "kernels/dropout/dropout.h"

enum { SAMPLES = 8, EACH = 10007, N = SAMPLES * EACH };

static float *ones(void)
{
    float *x = kt_floats(N);

    for (int i = 0; i < N; i++)
        x[i] = 1;
    return x;
}

static struct sl_k_dropout args(const float *x, float *y, double p)
{
    return (struct sl_k_dropout){.x = x, .y = y, .n = N, .per_sample = EACH, .seed = 5, .step = 3,
                                 .op = 2, .p = p};
}

/* The share of zeros is binomial: within 5 standard deviations; the others are 1 / (1 - p). */
static void share(struct sl_dev *dev)
{
    float *x = ones(), *y = kt_floats(N);

    for (int i = 0; i < 4; i++) {
        double p = (double[]){0, 0.1, 0.5, 0.9}[i];
        int64_t zeros = 0;
        struct sl_k_dropout a = args(x, y, p);

        assert_int_equal(sl_k_dropout(dev, &a, NULL), 0);
        for (int j = 0; j < N; j++) {
            zeros += y[j] == 0;
            assert_true(y[j] == 0 || y[j] == (float)(1 / (1 - p)));
        }
        assert_true(fabs((double)zeros - p * N) <= 5 * sqrt(p * (1 - p) * N));
    }
    free(x), free(y);
}

static void the_share_of_zeros_is_p(void **state)
{
    (void)state;
    kt_each(share, 1);
}

/* Neighbours, samples, steps, operations and seeds are independent: equal marks in about
   p^2 + (1 - p)^2 of the places. */
static void agree_half(const float *a, const float *b, int64_t n)
{
    int64_t same = 0;

    for (int64_t i = 0; i < n; i++)
        same += (a[i] == 0) == (b[i] == 0);
    assert_true(fabs((double)same - 0.5 * (double)n) <= 5 * sqrt(0.25 * (double)n));
}

static void masks_of_other_streams_are_independent(void **state)
{
    struct sl_dev *dev = kt_open(1);
    float *x = ones(), *y = kt_floats(N), *z = kt_floats(N);
    struct sl_k_dropout a = args(x, y, 0.5), b;

    (void)state;
    assert_int_equal(sl_k_dropout(dev, &a, NULL), 0);
    agree_half(y, y + 1, EACH - 1);
    agree_half(y, y + 2, EACH - 2);
    agree_half(y, y + 16, EACH - 16);
    agree_half(y, y + EACH, EACH);
    for (int i = 0; i < 5; i++) {
        b = a;
        b.y = z;
        if (i == 0)
            b.seed++;
        if (i == 1)
            b.step++;
        if (i == 2)
            b.op++;
        if (i == 3)
            b.sample0 = 1000;
        if (i == 4)
            b.seed = a.seed + ((uint64_t)1 << 40);
        assert_int_equal(sl_k_dropout(dev, &b, NULL), 0);
        agree_half(y, z, N);
    }
    sl_dev_close(dev);
    free(x), free(y), free(z);
}

/* What a rank computes for its samples is what one rank computes for all. */
static void a_mask_depends_on_the_global_sample_alone(void **state)
{
    struct sl_dev *one = kt_open(1), *two = kt_open(2);
    float *x = kt_random(N, 1, 1), *whole = kt_floats(N), *cut = kt_floats(N);
    struct sl_k_dropout a = args(x, whole, 0.3);

    (void)state;
    a.sample0 = 16;
    assert_int_equal(sl_k_dropout(one, &a, NULL), 0);
    for (int r = 0; r < 4; r++) { /* four ranks of two samples */
        struct sl_k_dropout b = a;

        b.x = x + 2 * r * EACH, b.y = cut + 2 * r * EACH;
        b.n = 2 * EACH, b.sample0 = 16 + 2 * r;
        assert_int_equal(sl_k_dropout(two, &b, NULL), 0);
    }
    kt_same(whole, cut, N * 4);
    a.y = x;
    assert_int_equal(sl_k_dropout(two, &a, NULL), 0);
    kt_same(whole, x, N * 4); /* two threads, in place */
    sl_dev_close(one), sl_dev_close(two);
    free(x), free(whole), free(cut);
}

static uint64_t first_mask;
static int sets;

static void first_bits(struct sl_dev *dev)
{
    float *x = ones(), *y = kt_floats(N);
    struct sl_k_dropout a = args(x, y, 0.5);
    uint64_t mask = 0;

    assert_int_equal(sl_k_dropout(dev, &a, NULL), 0);
    for (int i = 0; i < 64; i++)
        mask |= (uint64_t)(y[i] != 0) << i;
    if (sets++ == 0)
        first_mask = mask;
    assert_true(mask == first_mask);
    free(x), free(y);
}

static void every_instruction_set_has_the_same_mask(void **state)
{
    (void)state;
    sets = 0;
    kt_each(first_bits, 1);
}

static void a_dropped_nan_is_zero_and_a_kept_one_stays(void **state)
{
    struct sl_dev *dev = kt_open(1);
    float *x = ones(), *y = kt_floats(N), *z = kt_floats(N);
    struct sl_k_dropout a = args(x, y, 0.5);

    (void)state;
    assert_int_equal(sl_k_dropout(dev, &a, NULL), 0);
    for (int i = 0; i < N; i++)
        x[i] = NAN;
    a.y = z;
    assert_int_equal(sl_k_dropout(dev, &a, NULL), 0);
    for (int i = 0; i < N; i++)
        assert_true(y[i] == 0 ? z[i] == 0 : isnan(z[i]));
    sl_dev_close(dev);
    free(x), free(y), free(z);
}

static void wrong_arguments_are_refused(void **state)
{
    struct sl_dev *dev = kt_open(1);
    struct sl_err err;
    float x[4] = {0};

    (void)state;
    kt_usage(sl_k_dropout(dev, &(struct sl_k_dropout){.x = x, .y = x, .n = 4, .per_sample = 3}, &err));
    kt_usage(sl_k_dropout(dev, &(struct sl_k_dropout){.x = x, .y = x, .n = 4, .per_sample = 0}, &err));
    kt_usage(sl_k_dropout(dev, &(struct sl_k_dropout){.x = x, .y = x, .n = -4, .per_sample = 4}, &err));
    kt_usage(sl_k_dropout(dev, &(struct sl_k_dropout){.x = x, .y = x, .n = 4, .per_sample = 4, .p = 1},
                          &err));
    kt_usage(sl_k_dropout(dev, &(struct sl_k_dropout){.x = x, .y = x, .n = 4, .per_sample = 4,
                                                      .p = NAN}, &err));
    kt_usage(sl_k_dropout(dev, &(struct sl_k_dropout){.x = x, .y = x, .n = 4, .per_sample = 4,
                                                      .sample0 = -1}, &err));
    sl_dev_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_share_of_zeros_is_p),
        cmocka_unit_test(masks_of_other_streams_are_independent),
        cmocka_unit_test(a_mask_depends_on_the_global_sample_alone),
        cmocka_unit_test(every_instruction_set_has_the_same_mask),
        cmocka_unit_test(a_dropped_nan_is_zero_and_a_kept_one_stays),
        cmocka_unit_test(wrong_arguments_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
