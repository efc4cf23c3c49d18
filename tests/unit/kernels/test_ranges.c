#include "kt.h"

#include "kernels/convert/convert.h"
#include "kernels/copy/copy.h"
#include "kernels/reduce/reduce.h"
#include "kernels/sumsq/sumsq.h"
#include "kernels/zero/zero.h"

static float of_bits(uint32_t u)
{
    float f;

    memcpy(&f, &u, 4);
    return f;
}

/* The nearest of the two neighbours, by the distance in double; a tie goes to the even one. */
static uint16_t nearest(uint32_t u)
{
    uint16_t low = (uint16_t)(u >> 16);
    double x = (double)of_bits(u), a, b;

    if (isnan(x) || (u & 0xffff) == 0)
        return isnan(x) ? low | 0x40 : low;
    a = (double)of_bits((uint32_t)low << 16);
    b = (double)of_bits((uint32_t)(low + 1) << 16);
    if (isinf(b))
        b = copysign(ldexp(1, 128), b); /* where the next finite number would be */
    if (fabs(x - a) < fabs(b - x))
        return low;
    if (fabs(x - a) > fabs(b - x))
        return (uint16_t)(low + 1);
    return low & 1 ? (uint16_t)(low + 1) : low;
}

static void rounding(struct sl_dev *dev)
{
    enum { N = 1 << 17 };
    float *x = kt_floats(N), *back = kt_floats(65536);
    uint16_t *h = kt_alloc(2 * N), *all = kt_alloc(2 * 65536);

    for (uint32_t i = 0; i < N; i++) { /* every upper half, twice: a tie and a neighbour of it */
        uint32_t u = (i >> 1) << 16 | (i & 1 ? 0x8000u : (i * 2654435761u) >> 16);
        memcpy(x + i, &u, 4);
    }
    assert_int_equal(sl_k_convert(dev, &(struct sl_k_convert){x, h, SL_F32, SL_BF16, N}, NULL), 0);
    for (uint32_t i = 0; i < N; i++) {
        uint32_t u;
        memcpy(&u, x + i, 4);
        assert_int_equal(h[i], nearest(u));
    }
    for (uint32_t i = 0; i < 65536; i++)
        all[i] = (uint16_t)i;
    assert_int_equal(sl_k_convert(dev, &(struct sl_k_convert){all, back, SL_BF16, SL_F32, 65536}, NULL),
                     0);
    for (uint32_t i = 0; i < 65536; i++) {
        uint32_t u;
        memcpy(&u, back + i, 4);
        assert_int_equal(u, i << 16);
    }
    assert_int_equal(sl_k_convert(dev, &(struct sl_k_convert){back, h, SL_F32, SL_F32, 32768}, NULL), 0);
    kt_same(back, h, 4 * 32768);
    free(x), free(back), free(h), free(all);
}

static void conversion_rounds_to_nearest_even_and_keeps_nans(void **state)
{
    (void)state;
    kt_each(rounding, 1);
    kt_each(rounding, 2);
}

/* The contract's order, written down plainly. */
static double sum_of(const float *x, int64_t n)
{
    double total = 0;

    for (int64_t b = 0; b < n; b += 4096) {
        double s[8] = {0};

        for (int64_t i = b; i < n && i < b + 4096; i++)
            s[i % 8] += (double)x[i] * (double)x[i];
        total += ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
    }
    return total;
}

static void sums(struct sl_dev *dev)
{
    int64_t n = 2000003, lengths[] = {0, 1, 7, 8, 17, 4095, 4096, 4097, 32771, 2000003};
    float *x = kt_random(n, 1, 100);
    uint16_t *h = kt_bf16_of(x, n);
    double got;

    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int type = SL_F32; type <= SL_BF16; type++) {
            double want = sum_of(x, lengths[i]);

            assert_int_equal(sl_k_sumsq(dev, &(struct sl_k_sumsq){
                                        type == SL_F32 ? (void *)x : (void *)h, type, lengths[i], &got},
                                        NULL), 0);
            kt_same(&got, &want, 8);
        }
    x[77] = NAN;
    assert_int_equal(sl_k_sumsq(dev, &(struct sl_k_sumsq){x, SL_F32, 100, &got}, NULL), 0);
    assert_true(isnan(got));
    free(x), free(h);
}

static void the_sum_of_squares_has_one_order(void **state)
{
    (void)state;
    kt_each(sums, 1);
    kt_each(sums, 2);
}

static void check_reduce(struct sl_dev *dev, int k, int64_t n, enum sl_dtype xt, enum sl_dtype yt, int add,
                         int place)
{
    const void *src[16];
    float *f[16], *y = kt_random(n, 99, 1), *want = kt_floats(n);
    uint16_t *h[16], *hy = kt_bf16_of(y, n);

    for (int r = 0; r < k; r++) {
        f[r] = kt_random(n, (uint64_t)r + 1, pow(10, r % 5 - 2));
        h[r] = kt_bf16_of(f[r], n);
        src[r] = xt == SL_F32 ? (void *)f[r] : (void *)h[r];
    }
    for (int64_t i = 0; i < n; i++) {
        want[i] = f[0][i];
        for (int r = 1; r < k; r++)
            want[i] += f[r][i];
        if (add)
            want[i] = (place >= 0 ? f[place][i] : y[i]) + want[i];
        if (yt == SL_BF16)
            want[i] = sl_bf16_f32(sl_f32_bf16(want[i]));
    }
    void *out = place >= 0 ? (void *)(uintptr_t)src[place] : yt == SL_F32 ? (void *)y : (void *)hy;
    /* in two calls, cut at an odd place */
    const void *rest[16];
    int64_t cut = n / 3, xs = sl_dtype_size(xt), ys = sl_dtype_size(yt);
    for (int r = 0; r < k; r++)
        rest[r] = (const char *)src[r] + cut * xs;
    assert_int_equal(sl_k_reduce(dev, &(struct sl_k_reduce){src, out, xt, yt, k, cut, add}, NULL), 0);
    assert_int_equal(sl_k_reduce(dev, &(struct sl_k_reduce){rest, (char *)out + cut * ys, xt, yt, k,
                                 n - cut, add}, NULL), 0);
    for (int64_t i = 0; i < n; i++)
        assert_true((yt == SL_F32 ? ((float *)out)[i] : sl_bf16_f32(((uint16_t *)out)[i])) == want[i]);
    for (int r = 0; r < k; r++)
        free(f[r]), free(h[r]);
    free(y), free(want), free(hy);
}

static void reductions(struct sl_dev *dev)
{
    for (int add = 0; add < 2; add++)
        for (int xt = SL_F32; xt <= SL_BF16; xt++) {
            for (int yt = SL_F32; yt <= SL_BF16; yt++) {
                check_reduce(dev, 1, 7, xt, yt, add, -1);
                check_reduce(dev, 3, 1031, xt, yt, add, -1);
                check_reduce(dev, 16, 40009, xt, yt, add, -1);
            }
            check_reduce(dev, 4, 40009, xt, xt, add, 2); /* in place of a source */
        }
}

static void a_reduction_sums_in_the_order_given(void **state)
{
    (void)state;
    kt_each(reductions, 1);
    kt_each(reductions, 2);
}

static void bytes_are_copied_and_cleared(void **state)
{
    int64_t n = 600011;
    char *a = kt_alloc(n), *b = kt_alloc(n);
    struct sl_dev *dev = kt_open(2);

    (void)state;
    for (int64_t i = 0; i < n; i++)
        a[i] = (char)(i * 31);
    assert_int_equal(sl_k_copy(dev, &(struct sl_k_copy){a + 3, b + 1, n - 3}, NULL), 0);
    kt_same(a + 3, b + 1, n - 3);
    assert_int_equal((unsigned char)b[0], 0xff);
    assert_int_equal((unsigned char)b[n - 2], 0xff);
    assert_int_equal(sl_k_zero(dev, &(struct sl_k_zero){a + 5, n - 9}, NULL), 0);
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(a[i], i < 5 || i >= n - 4 ? (char)(i * 31) : 0);
    sl_dev_close(dev);
    free(a), free(b);
}

static void wrong_arguments_are_refused(void **state)
{
    struct sl_dev *dev = kt_open(1);
    struct sl_err err;
    float x = 0;
    double d;
    const void *src[1] = {&x};

    (void)state;
    kt_usage(sl_k_convert(dev, &(struct sl_k_convert){&x, &x, SL_F32, SL_F32, -1}, &err));
    kt_usage(sl_k_convert(dev, &(struct sl_k_convert){&x, &x, SL_I32, SL_F32, 1}, &err));
    kt_usage(sl_k_convert(dev, &(struct sl_k_convert){&x, &x, SL_F32, SL_DTYPES, 1}, &err));
    kt_usage(sl_k_sumsq(dev, &(struct sl_k_sumsq){&x, SL_F32, -1, &d}, &err));
    kt_usage(sl_k_sumsq(dev, &(struct sl_k_sumsq){&x, SL_I32, 1, &d}, &err));
    kt_usage(sl_k_reduce(dev, &(struct sl_k_reduce){src, &x, SL_F32, SL_F32, 0, 1, 0}, &err));
    kt_usage(sl_k_reduce(dev, &(struct sl_k_reduce){src, &x, SL_F32, SL_F32, 65, 1, 0}, &err));
    kt_usage(sl_k_reduce(dev, &(struct sl_k_reduce){src, &x, SL_F32, SL_F32, 1, -1, 0}, &err));
    kt_usage(sl_k_reduce(dev, &(struct sl_k_reduce){src, &x, SL_I32, SL_F32, 1, 1, 0}, &err));
    kt_usage(sl_k_copy(dev, &(struct sl_k_copy){&x, &d, -1}, &err));
    kt_usage(sl_k_zero(dev, &(struct sl_k_zero){&d, -1}, &err));
    sl_dev_close(dev);
}

static void a_device_is_opened_by_name(void **state)
{
    struct sl_err err;
    struct sl_dev *dev = sl_dev_open("cpu", 1, NULL);

    (void)state;
    assert_non_null(dev);
    assert_int_equal(strncmp(dev->name, "cpu:", 4), 0);
    assert_int_equal(dev->threads, 1);
    sl_dev_close(dev);
    sl_dev_close(NULL);
    assert_null(sl_dev_open("gpu", 1, &err));
    assert_int_equal(err.code, SL_USAGE);
    assert_true(err.hint[0] != '\0');
    assert_null(sl_dev_open("cpu:v5", 1, &err));
    assert_int_equal(err.code, SL_USAGE);
    assert_null(sl_dev_open("cpu", 0, &err));
    assert_int_equal(err.code, SL_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conversion_rounds_to_nearest_even_and_keeps_nans),
        cmocka_unit_test(the_sum_of_squares_has_one_order),
        cmocka_unit_test(a_reduction_sums_in_the_order_given),
        cmocka_unit_test(bytes_are_copied_and_cleared),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(a_device_is_opened_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
