#include "kt.h"

#include "kernels/linear/linear.h"

struct ref {
    int64_t rows, in, out;
    double *x, *w, *b, *dy, *y;
};

static void forward(const struct ref *r)
{
    for (int64_t i = 0; i < r->rows; i++)
        for (int64_t o = 0; o < r->out; o++)
            r->y[i * r->out + o] = kt_dot(r->x + i * r->in, r->w + o * r->in, r->in) + r->b[o];
}

static double loss(const void *ctx)
{
    const struct ref *r = ctx;

    forward(r);
    return kt_dot(r->y, r->dy, r->rows * r->out);
}

static void near_sum(const float *got, double *want, const double *before, int64_t n, double tol)
{
    for (int64_t i = 0; i < n; i++)
        want[i] += before[i];
    kt_near(got, want, n, tol, tol);
    free(want);
}

static void check_shape(struct sl_dev *dev, int64_t rows, int64_t in, int64_t out)
{
    float *x = kt_random(rows * in, 1, 1), *w = kt_random(out * in, 2, 1), *b = kt_random(out, 3, 1);
    float *dy = kt_random(rows * out, 4, 1), *y = kt_floats(rows * out), *dx = kt_floats(rows * in);
    float *dw = kt_random(out * in, 5, 1), *db = kt_random(out, 6, 1);
    double *dw0 = kt_double_of(dw, out * in), *db0 = kt_double_of(db, out), *want;
    struct ref r = {rows, in, out, kt_double_of(x, rows * in), kt_double_of(w, out * in),
                    kt_double_of(b, out), kt_double_of(dy, rows * out), kt_doubles(rows * out)};

    assert_int_equal(sl_k_linear(dev, &(struct sl_k_linear){x, w, b, y, rows, in, out}, NULL), 0);
    forward(&r);
    kt_near(y, r.y, rows * out, 1e-5, 1e-5);
    assert_int_equal(sl_k_linear_dx(dev, &(struct sl_k_linear_dx){dy, w, dx, rows, in, out}, NULL), 0);
    want = kt_gradient(loss, &r, r.x, rows * in);
    kt_near(dx, want, rows * in, 2e-5, 1e-5);
    free(want);
    assert_int_equal(sl_k_linear_dw(dev, &(struct sl_k_linear_dw){dy, x, dw, db, rows, in, out}, NULL),
                     0);
    near_sum(dw, kt_gradient(loss, &r, r.w, out * in), dw0, out * in, 2e-5);
    near_sum(db, kt_gradient(loss, &r, r.b, out), db0, out, 2e-5);

    for (int64_t o = 0; o < out; o++)
        r.b[o] = 0;
    assert_int_equal(sl_k_linear(dev, &(struct sl_k_linear){x, w, NULL, y, rows, in, out}, NULL), 0);
    forward(&r);
    kt_near(y, r.y, rows * out, 1e-5, 1e-5);
    free(x), free(w), free(b), free(dy), free(y), free(dx), free(dw), free(db), free(dw0), free(db0);
    free(r.x), free(r.w), free(r.b), free(r.dy), free(r.y);
}

static void shapes(struct sl_dev *dev)
{
    static const int64_t shape[][3] = {{1, 1, 1}, {7, 1, 3}, {1, 17, 7}, {7, 17, 13}, {67, 5, 11}};

    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        check_shape(dev, shape[i][0], shape[i][1], shape[i][2]);
}

static void gradients_are_those_of_the_formula(void **state)
{
    (void)state;
    kt_each(shapes, 1);
    kt_each(shapes, 2);
}

static void the_bias_gradient_does_not_depend_on_threads(void **state)
{
    int64_t rows = 333, in = 3, out = 517;
    float *dy = kt_random(rows * out, 1, 1), *x = kt_random(rows * in, 2, 1), *db[2], *dw;

    (void)state;
    for (int t = 0; t < 2; t++) {
        struct sl_dev *dev = kt_open(t + 1);

        db[t] = kt_random(out, 3, 1);
        dw = kt_random(out * in, 4, 1);
        assert_int_equal(sl_k_linear_dw(dev, &(struct sl_k_linear_dw){dy, x, dw, db[t], rows, in, out},
                                        NULL), 0);
        free(dw);
        sl_dev_close(dev);
    }
    kt_same(db[0], db[1], out * 4);
    free(dy), free(x), free(db[0]), free(db[1]);
}

/*
 * The same operands at another place (tensors begin at multiples of 64 bytes) and called again give
 * the same bits: sharding strategies lay memory out differently and must agree.
 */
static void a_product_does_not_depend_on_the_place(void **state)
{
    static const int64_t shape[][3] = {{64, 96, 80}, {256, 384, 1152}, {13, 7, 17}, {100, 384, 96}};

    (void)state;
    for (int threads = 1; threads <= 2; threads++)
        for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
            int64_t rows = shape[i][0], in = shape[i][1], out = shape[i][2];
            struct sl_dev *dev = kt_open(threads);
            float *first[3] = {NULL};

            for (int at = 0; at < 4; at++) { /* 64-byte steps: 0, 0 again, 5, 67 */
                int64_t off = (int64_t[]){0, 0, 80, 1072}[at];
                float *x = kt_floats(rows * in + off) + off, *w = kt_floats(out * in + off) + off;
                float *dy = kt_floats(rows * out + off) + off, *y = kt_floats(rows * out + off) + off;
                float *dx = kt_floats(rows * in + off) + off, *dw = kt_floats(out * in + off) + off;
                float *db = kt_random(out, 5, 1), *result[3] = {y, dx, dw}, *input[3] = {x, w, dy};
                int64_t n[3] = {rows * out, rows * in, out * in}, m[3] = {rows * in, out * in, rows * out};

                for (int k = 0; k < 3; k++) {
                    float *r = kt_random(m[k], (uint64_t)k + 1, 1);

                    memcpy(input[k], r, (size_t)m[k] * 4);
                    free(r);
                }
                memset(dw, 0, (size_t)n[2] * 4);
                assert_int_equal(sl_k_linear(dev, &(struct sl_k_linear){x, w, db, y, rows, in, out},
                                             NULL), 0);
                assert_int_equal(sl_k_linear_dx(dev, &(struct sl_k_linear_dx){dy, w, dx, rows, in, out},
                                                NULL), 0);
                assert_int_equal(sl_k_linear_dw(dev, &(struct sl_k_linear_dw){dy, x, dw, db, rows, in,
                                                out}, NULL), 0);
                for (int k = 0; k < 3; k++) {
                    if (at == 0) {
                        first[k] = kt_floats(n[k]);
                        memcpy(first[k], result[k], (size_t)n[k] * 4);
                    }
                    kt_same(first[k], result[k], n[k] * 4);
                    free(result[k] - off), free(input[k] - off);
                }
                free(db);
            }
            free(first[0]), free(first[1]), free(first[2]);
            sl_dev_close(dev);
        }
}

static void no_rows_leave_the_gradients_alone(void **state)
{
    struct sl_dev *dev = kt_open(2);
    float dw[6] = {1, 2, 3, 4, 5, 6}, db[2] = {7, 8}, x[1] = {0};

    (void)state;
    assert_int_equal(sl_k_linear_dw(dev, &(struct sl_k_linear_dw){x, x, dw, db, 0, 3, 2}, NULL), 0);
    for (int i = 0; i < 6; i++)
        assert_true(dw[i] == (float)(i + 1));
    assert_true(db[0] == 7 && db[1] == 8);
    sl_dev_close(dev);
}

static void wrong_sizes_are_refused(void **state)
{
    struct sl_dev *dev = kt_open(1);
    struct sl_err err;

    (void)state;
    kt_usage(sl_k_linear(dev, &(struct sl_k_linear){.rows = -1, .in = 1, .out = 1}, &err));
    kt_usage(sl_k_linear(dev, &(struct sl_k_linear){.rows = 1, .in = 0, .out = 1}, &err));
    kt_usage(sl_k_linear_dx(dev, &(struct sl_k_linear_dx){.rows = 1, .in = 1, .out = 0}, &err));
    kt_usage(sl_k_linear_dw(dev, &(struct sl_k_linear_dw){.rows = 1, .in = -3, .out = 1}, &err));
    sl_dev_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_the_formula),
        cmocka_unit_test(the_bias_gradient_does_not_depend_on_threads),
        cmocka_unit_test(a_product_does_not_depend_on_the_place),
        cmocka_unit_test(no_rows_leave_the_gradients_alone),
        cmocka_unit_test(wrong_sizes_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
