#include "kt.h"

#include "common/rng.h"
#include "kernels/normal/normal.h"

enum { N = 200003 };

static void draw(struct sl_dev *dev, float *y, uint64_t seed, uint64_t stream, int64_t first, int64_t n)
{
    struct sl_k_normal a = {.y = y, .first = first, .n = n, .seed = seed, .stream = stream, .scale = 0.5};

    assert_int_equal(sl_k_normal(dev, &a, NULL), 0);
}

/* Box and Muller's formula with the C library's functions; the first of a pair is sl_rng_normal. */
static double formula(uint64_t seed, uint64_t stream, int64_t place)
{
    uint32_t r[4];
    double u, v;

    if (place % 2 == 0)
        return sl_rng_normal(seed, stream, (uint64_t)place / 2, 0);
    sl_rng_block(seed, stream, (uint64_t)place / 2, 0, r);
    u = ((double)(((uint64_t)r[1] << 32 | r[0]) >> 11) + 1) * 0x1p-53;
    v = (double)(((uint64_t)r[3] << 32 | r[2]) >> 11) * 0x1p-53;
    return sqrt(-2 * log(u)) * sin(2 * 3.14159265358979323846 * v);
}

/* Rounding to f32, and 2^-40 of the scale where a cosine is near 0. */
static void agrees(struct sl_dev *dev)
{
    static const int64_t first[] = {0, 1, ((int64_t)1 << 33) - 5, ((int64_t)1 << 39) + 3};
    float *y = kt_floats(N);
    double *want = kt_doubles(N);

    for (int i = 0; i < 4; i++) {
        draw(dev, y, 42, 7 + (uint64_t)i, first[i], N);
        for (int64_t j = 0; j < N; j++)
            want[j] = 0.5 * formula(42, 7 + (uint64_t)i, first[i] + j);
        kt_near(y, want, N, 0x1p-40, 0x1p-23);
    }
    free(y), free(want);
}

static void values_are_those_of_the_formula(void **state)
{
    (void)state;
    kt_each(agrees, 1);
    kt_each(agrees, 2);
}

static float *reference;

static void same(struct sl_dev *dev)
{
    float *y = kt_floats(N);

    for (int64_t at = 0, n = 1; at < N; at += n, n = n * 2 + 1)
        draw(dev, y + at, 5, 6, at, N - at < n ? N - at : n);
    kt_same(y, reference, N * 4);
    free(y);
}

static void cuts_threads_and_instruction_sets_change_no_bit(void **state)
{
    struct sl_dev *dev = kt_open(1);

    (void)state;
    reference = kt_floats(N);
    draw(dev, reference, 5, 6, 0, N);
    kt_each(same, 1);
    kt_each(same, 3);
    free(reference);
    sl_dev_close(dev);
}

/* Mean and variance of n values: within 5 standard deviations of 0 and 1/4. Streams differ. */
static void streams_are_normal_and_apart(void **state)
{
    struct sl_dev *dev = kt_open(1);
    float *y = kt_floats(N), *z = kt_floats(N);
    double sum = 0, sq = 0, both = 0;

    (void)state;
    draw(dev, y, 1, 2, 0, N);
    draw(dev, z, 1, 3, 0, N);
    for (int64_t i = 0; i < N; i++) {
        sum += (double)y[i];
        sq += (double)y[i] * (double)y[i];
        both += (double)y[i] * (double)z[i];
    }
    assert_true(fabs(sum / N) <= 5 * 0.5 / sqrt(N));
    assert_true(fabs(sq / N - 0.25) <= 5 * 0.25 * sqrt(2.0 / N));
    assert_true(fabs(both / N) <= 5 * 0.25 / sqrt(N));
    free(y), free(z);
    sl_dev_close(dev);
}

static void wrong_arguments_are_refused(void **state)
{
    struct sl_dev *dev = kt_open(1);
    struct sl_k_normal a = {.n = -1}, b = {.first = -1};
    struct sl_err err;

    (void)state;
    assert_int_equal(sl_k_normal(dev, &a, &err), -1);
    assert_int_equal(err.code, SL_USAGE);
    assert_int_equal(sl_k_normal(dev, &b, &err), -1);
    assert_int_equal(err.code, SL_USAGE);
    sl_dev_close(dev);
}

int main(void)
{
    static const struct CMUnitTest t[] = {
        cmocka_unit_test(values_are_those_of_the_formula),
        cmocka_unit_test(cuts_threads_and_instruction_sets_change_no_bit),
        cmocka_unit_test(streams_are_normal_and_apart),
        cmocka_unit_test(wrong_arguments_are_refused),
    };

    return cmocka_run_group_tests(t, NULL, NULL);
}
