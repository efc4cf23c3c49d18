#include "kt.h"

#include "kernels/add/add.h"
#include "kernels/gelu/gelu.h"

static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

/* A fine grid over everything that matters, and the far tails. */
static float *points(int64_t *n)
{
    int64_t half = 20011;
    float *x = kt_floats(2 * half + 8);

    for (int64_t i = 0; i < half; i++) {
        x[i] = (float)(12.0 * (double)i / (double)half);
        x[half + i] = -x[i];
    }
    x[2 * half] = 1e-30f, x[2 * half + 1] = -1e-42f, x[2 * half + 2] = 50, x[2 * half + 3] = -50;
    x[2 * half + 4] = 1e10f, x[2 * half + 5] = -1e10f, x[2 * half + 6] = 1e-8f, x[2 * half + 7] = -1e-4f;
    *n = 2 * half + 8;
    return x;
}

static void forward(struct sl_dev *dev)
{
    int64_t n;
    float *x = points(&n), *y = kt_floats(n);
    double *want = kt_doubles(n);

    for (int64_t i = 0; i < n; i++)
        want[i] = gelu((double)x[i]);
    assert_int_equal(sl_k_gelu(dev, &(struct sl_k_gelu){x, y, n}, NULL), 0);
    kt_near(y, want, n, 4e-7, 4e-7);
    assert_int_equal(sl_k_gelu(dev, &(struct sl_k_gelu){x, x, n}, NULL), 0);
    kt_same(x, y, n * 4); /* in place */
    free(x), free(y), free(want);
}

static void backward(struct sl_dev *dev)
{
    int64_t n;
    float *x = points(&n), *dx = kt_floats(n), *dy = kt_random(n, 1, 3);
    double *want = kt_doubles(n), h = 1e-5;

    for (int64_t i = 0; i < n; i++) {
        double at = (double)x[i];

        want[i] = fabs(at) > 20 ? (at > 0 ? (double)dy[i] : 0.0)
                                : (double)dy[i] * (gelu(at + h) - gelu(at - h)) / (2 * h);
    }
    assert_int_equal(sl_k_gelu_bwd(dev, &(struct sl_k_gelu_bwd){dy, x, dx, n}, NULL), 0);
    kt_near(dx, want, n, 3e-6, 1e-6); /* |dy| <= 3 */
    assert_int_equal(sl_k_gelu_bwd(dev, &(struct sl_k_gelu_bwd){dy, x, dy, n}, NULL), 0);
    kt_same(dx, dy, n * 4);
    free(x), free(dx), free(dy), free(want);
}

static void values_are_those_of_the_formula(void **state)
{
    (void)state;
    kt_each(forward, 1);
}

static void gradients_are_central_differences(void **state)
{
    (void)state;
    kt_each(backward, 1);
}

static void cuts(struct sl_dev *dev)
{
    int64_t n;
    float *x = points(&n), *whole = kt_floats(n), *cut = kt_floats(n), *dx = kt_floats(n);

    assert_int_equal(sl_k_gelu(dev, &(struct sl_k_gelu){x, whole, n}, NULL), 0);
    for (int64_t at = 0, m = 1; at < n; at += m, m = m % 97 + 1) {
        int64_t k = n - at < m ? n - at : m;
        assert_int_equal(sl_k_gelu(dev, &(struct sl_k_gelu){x + at, cut + at, k}, NULL), 0);
    }
    kt_same(whole, cut, n * 4);
    assert_int_equal(sl_k_gelu_bwd(dev, &(struct sl_k_gelu_bwd){x, x, dx, n}, NULL), 0);
    for (int64_t at = 0, m = 1; at < n; at += m, m = m % 97 + 1) {
        int64_t k = n - at < m ? n - at : m;
        assert_int_equal(sl_k_gelu_bwd(dev, &(struct sl_k_gelu_bwd){x + at, x + at, cut + at, k}, NULL),
                         0);
    }
    kt_same(dx, cut, n * 4);
    free(x), free(whole), free(cut), free(dx);
}

static void a_result_does_not_depend_on_the_cut(void **state)
{
    (void)state;
    kt_each(cuts, 1);
}

static void two_threads_give_the_same_bits(void **state)
{
    int64_t n;
    float *x = points(&n), *y[2], *dx[2];

    (void)state;
    for (int t = 0; t < 2; t++) {
        struct sl_dev *dev = kt_open(t + 1);

        y[t] = kt_floats(n), dx[t] = kt_floats(n);
        assert_int_equal(sl_k_gelu(dev, &(struct sl_k_gelu){x, y[t], n}, NULL), 0);
        assert_int_equal(sl_k_gelu_bwd(dev, &(struct sl_k_gelu_bwd){x, x, dx[t], n}, NULL), 0);
        sl_dev_close(dev);
    }
    kt_same(y[0], y[1], n * 4);
    kt_same(dx[0], dx[1], n * 4);
    free(x), free(y[0]), free(y[1]), free(dx[0]), free(dx[1]);
}

static void nans(struct sl_dev *dev)
{
    for (int n = 1; n < 40; n++) {
        float x[40] = {0}, y[40];

        x[n - 1] = NAN;
        assert_int_equal(sl_k_gelu(dev, &(struct sl_k_gelu){x, y, n}, NULL), 0);
        assert_true(isnan(y[n - 1]));
        assert_true(n == 1 || y[n - 2] == 0);
        assert_int_equal(sl_k_gelu_bwd(dev, &(struct sl_k_gelu_bwd){x, x, y, n}, NULL), 0);
        assert_true(isnan(y[n - 1]));
    }
}

static void a_nan_stays_one(void **state)
{
    (void)state;
    kt_each(nans, 1);
}

static void add_sums_in_place_too(void **state)
{
    int64_t n = 100003;
    float *a = kt_random(n, 1, 1), *b = kt_random(n, 2, 1), *y = kt_floats(n);
    struct sl_dev *dev = kt_open(2);
    struct sl_err err;

    (void)state;
    assert_int_equal(sl_k_add(dev, &(struct sl_k_add){a, b, y, n}, NULL), 0);
    for (int64_t i = 0; i < n; i++)
        assert_true(y[i] == a[i] + b[i]);
    assert_int_equal(sl_k_add(dev, &(struct sl_k_add){a, b, b, n}, NULL), 0);
    kt_same(y, b, n * 4);
    kt_usage(sl_k_add(dev, &(struct sl_k_add){a, b, y, -1}, &err));
    kt_usage(sl_k_gelu(dev, &(struct sl_k_gelu){a, b, -1}, &err));
    kt_usage(sl_k_gelu_bwd(dev, &(struct sl_k_gelu_bwd){a, a, b, -1}, &err));
    sl_dev_close(dev);
    free(a), free(b), free(y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_the_formula),
        cmocka_unit_test(gradients_are_central_differences),
        cmocka_unit_test(a_result_does_not_depend_on_the_cut),
        cmocka_unit_test(two_threads_give_the_same_bits),
        cmocka_unit_test(a_nan_stays_one),
        cmocka_unit_test(add_sums_in_place_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
