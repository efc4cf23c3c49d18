#include "kt.h"

#include "kernels/layernorm/layernorm.h"

struct ref {
    int64_t rows, width;
    double *x, *gain, *bias, *dy, *y;
};

static void forward(const struct ref *r)
{
    for (int64_t i = 0; i < r->rows; i++) {
        const double *x = r->x + i * r->width;
        double mean = 0, var = 0;

        for (int64_t j = 0; j < r->width; j++)
            mean += x[j] / (double)r->width;
        for (int64_t j = 0; j < r->width; j++)
            var += (x[j] - mean) * (x[j] - mean) / (double)r->width;
        for (int64_t j = 0; j < r->width; j++)
            r->y[i * r->width + j] = (x[j] - mean) / sqrt(var + 1e-5) * r->gain[j] + r->bias[j];
    }
}

static double loss(const void *ctx)
{
    const struct ref *r = ctx;

    forward(r);
    return kt_dot(r->y, r->dy, r->rows * r->width);
}

static void check_shape(struct sl_dev *dev, int64_t rows, int64_t width)
{
    int64_t n = rows * width;
    float *x = kt_random(n, 1, 2), *gain = kt_random(width, 2, 1), *bias = kt_random(width, 3, 1);
    float *dy = kt_random(n, 4, 1), *y = kt_floats(n), *dx = kt_floats(n), *stat = kt_floats(2 * rows);
    float *dgain = kt_random(width, 5, 1), *dbias = kt_random(width, 6, 1);
    double *g0 = kt_double_of(dgain, width), *b0 = kt_double_of(dbias, width), *want;
    struct ref r = {rows, width, kt_double_of(x, n), kt_double_of(gain, width),
                    kt_double_of(bias, width), kt_double_of(dy, n), kt_doubles(n)};

    assert_int_equal(sl_k_layernorm(dev, &(struct sl_k_layernorm){.x = x, .gain = gain, .bias = bias,
                                    .y = y, .stat = stat, .rows = rows, .width = width,
                                    .eps = 1e-5f}, NULL), 0);
    forward(&r);
    kt_near(y, r.y, n, 2e-5, 1e-5);
    assert_int_equal(sl_k_layernorm_bwd(dev, &(struct sl_k_layernorm_bwd){.dy = dy, .x = x,
                                        .gain = gain, .stat = stat, .dx = dx, .dgain = dgain,
                                        .dbias = dbias, .rows = rows, .width = width}, NULL), 0);
    want = kt_gradient(loss, &r, r.x, n);
    kt_near(dx, want, n, width == 1 ? 1e-3 : 2e-4, 1e-4); /* rstd is up to 316 in one column */
    free(want);
    want = kt_gradient(loss, &r, r.gain, width);
    for (int64_t j = 0; j < width; j++)
        want[j] += g0[j];
    kt_near(dgain, want, width, 2e-5 * (double)rows, 1e-5);
    free(want);
    want = kt_gradient(loss, &r, r.bias, width);
    for (int64_t j = 0; j < width; j++)
        want[j] += b0[j];
    kt_near(dbias, want, width, 1e-6 * (double)rows, 1e-6);
    free(want);
    assert_int_equal(sl_k_layernorm_bwd(dev, &(struct sl_k_layernorm_bwd){.dy = dy, .x = x,
                                        .gain = gain, .stat = stat, .dx = dy, .dgain = dgain,
                                        .dbias = dbias, .rows = rows, .width = width}, NULL), 0);
    kt_same(dx, dy, n * 4); /* dx in place of dy */
    free(x), free(gain), free(bias), free(dy), free(y), free(dx), free(stat), free(dgain), free(dbias);
    free(g0), free(b0), free(r.x), free(r.gain), free(r.bias), free(r.dy), free(r.y);
}

static void shapes(struct sl_dev *dev)
{
    static const int64_t shape[][2] = {{1, 1}, {1, 7}, {7, 17}, {3, 64}, {5, 127}, {70, 5}};

    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        check_shape(dev, shape[i][0], shape[i][1]);
}

static void gradients_are_those_of_the_formula(void **state)
{
    (void)state;
    kt_each(shapes, 1);
}

static void two_threads_give_the_same_bits(void **state)
{
    int64_t rows = 301, width = 389, n = rows * width;
    float *x = kt_random(n, 1, 2), *gain = kt_random(width, 2, 1), *dy = kt_random(n, 4, 1);
    float *out[2][5];

    (void)state;
    for (int t = 0; t < 2; t++) {
        struct sl_dev *dev = kt_open(t + 1);
        float *y = out[t][0] = kt_floats(n), *stat = out[t][1] = kt_floats(2 * rows);
        float *dx = out[t][2] = kt_floats(n), *dg = out[t][3] = kt_random(width, 5, 1);
        float *db = out[t][4] = kt_random(width, 6, 1);

        assert_int_equal(sl_k_layernorm(dev, &(struct sl_k_layernorm){x, gain, gain, y, stat, rows,
                                        width, 1e-5f}, NULL), 0);
        assert_int_equal(sl_k_layernorm_bwd(dev, &(struct sl_k_layernorm_bwd){dy, x, gain, stat, dx,
                                            dg, db, rows, width}, NULL), 0);
        sl_dev_close(dev);
    }
    kt_same(out[0][0], out[1][0], n * 4);
    kt_same(out[0][1], out[1][1], 8 * rows);
    kt_same(out[0][2], out[1][2], n * 4);
    kt_same(out[0][3], out[1][3], 4 * width);
    kt_same(out[0][4], out[1][4], 4 * width);
    for (int i = 0; i < 5; i++)
        free(out[0][i]), free(out[1][i]);
    free(x), free(gain), free(dy);
}

static void a_nan_stays_in_its_row(void **state)
{
    struct sl_dev *dev = kt_open(1);
    float x[2 * 40], one[40], y[2 * 40], stat[4];

    (void)state;
    for (int i = 0; i < 80; i++)
        x[i] = (float)i;
    for (int i = 0; i < 40; i++)
        one[i] = 1;
    x[39] = NAN;
    assert_int_equal(sl_k_layernorm(dev, &(struct sl_k_layernorm){x, one, one, y, stat, 2, 40, 1e-5f},
                                    NULL), 0);
    for (int i = 0; i < 40; i++) {
        assert_true(isnan(y[i]));
        assert_false(isnan(y[40 + i]));
    }
    sl_dev_close(dev);
}

static void wrong_sizes_are_refused(void **state)
{
    struct sl_dev *dev = kt_open(1);
    struct sl_err err;

    (void)state;
    kt_usage(sl_k_layernorm(dev, &(struct sl_k_layernorm){.rows = -1, .width = 1, .eps = 1}, &err));
    kt_usage(sl_k_layernorm(dev, &(struct sl_k_layernorm){.rows = 1, .width = 0, .eps = 1}, &err));
    kt_usage(sl_k_layernorm(dev, &(struct sl_k_layernorm){.rows = 1, .width = 1, .eps = 0}, &err));
    kt_usage(sl_k_layernorm_bwd(dev, &(struct sl_k_layernorm_bwd){.rows = 1, .width = 0}, &err));
    sl_dev_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_the_formula),
        cmocka_unit_test(two_threads_give_the_same_bits),
        cmocka_unit_test(a_nan_stays_in_its_row),
        cmocka_unit_test(wrong_sizes_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
