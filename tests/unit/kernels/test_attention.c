#include "kt.h"

#include "kernels/attention/attention.h"

struct ref {
    int64_t samples, context, width, heads;
    double *qkv, *dy, *y, *lse;
};

static void forward(const struct ref *r)
{
    int64_t d = r->width / r->heads, w = 3 * r->width;
    double *p = kt_doubles(r->context);

    for (int64_t s = 0; s < r->samples; s++)
        for (int64_t h = 0; h < r->heads; h++)
            for (int64_t i = 0; i < r->context; i++) {
                int64_t row = s * r->context + i;
                double sum = 0;

                for (int64_t j = 0; j <= i; j++) {
                    p[j] = exp(kt_dot(r->qkv + row * w + h * d,
                                      r->qkv + (s * r->context + j) * w + r->width + h * d, d)
                               / sqrt((double)d));
                    sum += p[j];
                }
                r->lse[row * r->heads + h] = log(sum);
                for (int64_t c = 0; c < d; c++) {
                    double y = 0;

                    for (int64_t j = 0; j <= i; j++)
                        y += p[j] / sum * r->qkv[(s * r->context + j) * w + 2 * r->width + h * d + c];
                    r->y[row * r->width + h * d + c] = y;
                }
            }
    free(p);
}

static double loss(const void *ctx)
{
    const struct ref *r = ctx;

    forward(r);
    return kt_dot(r->y, r->dy, r->samples * r->context * r->width);
}

/* Both calls on fresh memory: y, lse and dqkv. */
static void call(struct sl_dev *dev, int64_t samples, int64_t context, int64_t width, int64_t heads,
                 const float *qkv, const float *dy, float *y, float *lse, float *dqkv)
{
    int64_t fwd = sl_k_attention_scratch(context, width, heads, dev->threads);
    int64_t bwd = sl_k_attention_bwd_scratch(context, width, heads, dev->threads);
    char *scratch = kt_alloc(fwd > bwd ? fwd : bwd);
    int64_t edge = fwd > bwd ? fwd : bwd;

    assert_int_equal(fwd % 64 + bwd % 64, 0);
    memset(scratch + edge, 0x5a, 64);
    assert_int_equal(sl_k_attention(dev, &(struct sl_k_attention){qkv, y, lse, samples, context, width,
                                    heads, scratch, fwd}, NULL), 0);
    memset(scratch, 0xff, (size_t)edge);
    assert_int_equal(sl_k_attention_bwd(dev, &(struct sl_k_attention_bwd){dy, qkv, y, lse, dqkv,
                                        samples, context, width, heads, scratch, bwd}, NULL), 0);
    for (int i = 0; i < 64; i++)
        assert_int_equal(scratch[edge + i], 0x5a);
    free(scratch);
}

static void check_shape(struct sl_dev *dev, int64_t samples, int64_t context, int64_t width,
                        int64_t heads)
{
    int64_t rows = samples * context, n = rows * width;
    float *qkv = kt_random(3 * n, 1, 2), *dy = kt_random(n, 2, 1), *y = kt_floats(n);
    float *lse = kt_floats(rows * heads), *dqkv = kt_floats(3 * n);
    struct ref r = {samples, context, width, heads, kt_double_of(qkv, 3 * n), kt_double_of(dy, n),
                    kt_doubles(n), kt_doubles(rows * heads)};
    double *want;

    call(dev, samples, context, width, heads, qkv, dy, y, lse, dqkv);
    forward(&r);
    kt_near(y, r.y, n, 5e-6, 1e-5);
    kt_near(lse, r.lse, rows * heads, 5e-6, 2e-6);
    want = kt_gradient(loss, &r, r.qkv, 3 * n);
    kt_near(dqkv, want, 3 * n, 3e-5, 3e-5);
    free(want), free(qkv), free(dy), free(y), free(lse), free(dqkv);
    free(r.qkv), free(r.dy), free(r.y), free(r.lse);
}

static void shapes(struct sl_dev *dev)
{
    check_shape(dev, 1, 1, 1, 1);
    check_shape(dev, 2, 7, 6, 2);
    check_shape(dev, 1, 17, 7, 1);
    check_shape(dev, 2, 13, 33, 3);
    check_shape(dev, 1, 37, 20, 1);
}

static void gradients_are_central_differences(void **state)
{
    (void)state;
    kt_each(shapes, 1);
}

/* Long enough for several blocks of queries; the reference's backward by its own formula. */
static void blocks(struct sl_dev *dev)
{
    int64_t samples = 2, context = 197, width = 2 * 24, heads = 2, d = width / heads, w = 3 * width;
    int64_t rows = samples * context, n = rows * width;
    float *qkv = kt_random(3 * n, 1, 2), *dy = kt_random(n, 2, 1), *y = kt_floats(n);
    float *lse = kt_floats(rows * heads), *dqkv = kt_floats(3 * n);
    struct ref r = {samples, context, width, heads, kt_double_of(qkv, 3 * n), kt_double_of(dy, n),
                    kt_doubles(n), kt_doubles(rows * heads)};
    double *want = kt_doubles(3 * n);

    memset(want, 0, (size_t)(3 * n) * sizeof *want);
    call(dev, samples, context, width, heads, qkv, dy, y, lse, dqkv);
    forward(&r);
    kt_near(y, r.y, n, 5e-6, 1e-5);
    kt_near(lse, r.lse, rows * heads, 5e-6, 2e-6);
    for (int64_t s = 0; s < samples; s++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < context; i++) {
                int64_t ri = s * context + i;
                const double *q = r.qkv + ri * w + h * d, *g = r.dy + ri * width + h * d;
                double dot = kt_dot(g, r.y + ri * width + h * d, d);

                for (int64_t j = 0; j <= i; j++) {
                    int64_t rj = s * context + j;
                    const double *k = r.qkv + rj * w + width + h * d, *v = k + width;
                    double p = exp(kt_dot(q, k, d) / sqrt((double)d) - r.lse[ri * heads + h]);
                    double ds = p * (kt_dot(g, v, d) - dot) / sqrt((double)d);

                    for (int64_t c = 0; c < d; c++) {
                        want[ri * w + h * d + c] += ds * k[c];
                        want[rj * w + width + h * d + c] += ds * q[c];
                        want[rj * w + 2 * width + h * d + c] += p * g[c];
                    }
                }
            }
    kt_near(dqkv, want, 3 * n, 3e-5, 3e-5);
    free(want), free(qkv), free(dy), free(y), free(lse), free(dqkv);
    free(r.qkv), free(r.dy), free(r.y), free(r.lse);
}

static void several_blocks_agree_with_the_formula(void **state)
{
    (void)state;
    kt_each(blocks, 2);
}

static void two_threads_give_the_same_bits(void **state)
{
    int64_t samples = 2, context = 150, width = 48, heads = 3, n = samples * context * width;
    float *qkv = kt_random(3 * n, 1, 2), *dy = kt_random(n, 2, 1), *y[2], *lse[2], *dqkv[2];

    (void)state;
    for (int t = 0; t < 2; t++) {
        struct sl_dev *dev = kt_open(t + 1);

        y[t] = kt_floats(n), lse[t] = kt_floats(samples * context * heads), dqkv[t] = kt_floats(3 * n);
        call(dev, samples, context, width, heads, qkv, dy, y[t], lse[t], dqkv[t]);
        sl_dev_close(dev);
    }
    kt_same(y[0], y[1], n * 4);
    kt_same(lse[0], lse[1], samples * context * heads * 4);
    kt_same(dqkv[0], dqkv[1], 3 * n * 4);
    for (int t = 0; t < 2; t++)
        free(y[t]), free(lse[t]), free(dqkv[t]);
    free(qkv), free(dy);
}

/* A later key, value or query never reaches an earlier row, whatever it holds. */
static void the_future_is_not_seen(void **state)
{
    int64_t context = 70, width = 16, n = context * width, from = 66;
    float *qkv = kt_random(3 * n, 1, 2), *dy = kt_random(n, 2, 1), *y[2], *lse[2], *dqkv[2];
    struct sl_dev *dev = kt_open(1);

    (void)state;
    for (int t = 0; t < 2; t++) {
        y[t] = kt_floats(n), lse[t] = kt_floats(context * 2), dqkv[t] = kt_floats(3 * n);
        call(dev, 1, context, width, 2, qkv, dy, y[t], lse[t], dqkv[t]);
        for (int64_t i = from * 3 * width; i < 3 * n; i++)
            qkv[i] = -3 * qkv[i] + 1;
    }
    kt_same(y[0], y[1], from * width * 4);
    kt_same(lse[0], lse[1], from * 2 * 4);
    assert_memory_not_equal(y[0] + from * width, y[1] + from * width, (size_t)width * 4);
    for (int t = 0; t < 2; t++)
        free(y[t]), free(lse[t]), free(dqkv[t]);
    free(qkv), free(dy);
    sl_dev_close(dev);
}

/* Scores in the thousands: the largest is subtracted before the exponential. */
static void large_scores_do_not_overflow(void **state)
{
    int64_t context = 9, width = 4, n = context * width;
    float *qkv = kt_random(3 * n, 1, 90), *dy = kt_random(n, 2, 1);
    float *y = kt_floats(n), *lse = kt_floats(context), *dqkv = kt_floats(3 * n);
    struct sl_dev *dev = kt_open(1);

    (void)state;
    call(dev, 1, context, width, 1, qkv, dy, y, lse, dqkv);
    for (int64_t i = 0; i < 3 * n; i++)
        assert_true(isfinite(dqkv[i]));
    for (int64_t i = 0; i < n; i++)
        assert_true(isfinite(y[i]) && fabsf(y[i]) <= 90);
    sl_dev_close(dev);
    free(qkv), free(dy), free(y), free(lse), free(dqkv);
}

static void a_nan_key_is_not_hidden(void **state)
{
    int64_t context = 5, width = 4, n = context * width;
    float *qkv = kt_random(3 * n, 1, 1), *dy = kt_random(n, 2, 1);
    float *y = kt_floats(n), *lse = kt_floats(context), *dqkv = kt_floats(3 * n);
    struct sl_dev *dev = kt_open(1);

    (void)state;
    memset(y, 0, (size_t)n * 4);
    qkv[2 * 3 * width + width] = NAN; /* the key of row 2 */
    call(dev, 1, context, width, 1, qkv, dy, y, lse, dqkv);
    assert_true(isfinite(y[1 * width]));
    assert_true(isnan(y[2 * width]) && isnan(y[4 * width]) && isnan(lse[3]));
    sl_dev_close(dev);
    free(qkv), free(dy), free(y), free(lse), free(dqkv);
}

static void wrong_arguments_are_refused(void **state)
{
    struct sl_dev *dev = kt_open(1);
    struct sl_err err;
    int64_t need = sl_k_attention_scratch(8, 8, 2, 1), more = sl_k_attention_bwd_scratch(8, 8, 2, 1);
    char *p = kt_alloc(need > more ? need : more);
    float x[1];

    (void)state;
    kt_usage(sl_k_attention(dev, &(struct sl_k_attention){x, x, x, 1, 8, 8, 3, p, need}, &err));
    kt_usage(sl_k_attention(dev, &(struct sl_k_attention){x, x, x, -1, 8, 8, 2, p, need}, &err));
    kt_usage(sl_k_attention(dev, &(struct sl_k_attention){x, x, x, 1, 0, 8, 2, p, need}, &err));
    kt_usage(sl_k_attention(dev, &(struct sl_k_attention){x, x, x, 1, 8, 8, 2, p, need - 1}, &err));
    kt_usage(sl_k_attention(dev, &(struct sl_k_attention){x, x, x, 1, 8, 8, 2, NULL, need}, &err));
    kt_usage(sl_k_attention(dev, &(struct sl_k_attention){x, x, x, 1, 8, 8, 2, p + 4, need}, &err));
    kt_usage(sl_k_attention_bwd(dev, &(struct sl_k_attention_bwd){x, x, x, x, x, 1, 8, 8, 2, p,
                                more - 1}, &err));
    kt_usage(sl_k_attention_bwd(dev, &(struct sl_k_attention_bwd){x, x, x, x, x, 1, 8, 8, 5, p, more},
                                &err));
    free(p);
    sl_dev_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_central_differences),
        cmocka_unit_test(several_blocks_agree_with_the_formula),
        cmocka_unit_test(two_threads_give_the_same_bits),
        cmocka_unit_test(the_future_is_not_seen),
        cmocka_unit_test(large_scores_do_not_overflow),
        cmocka_unit_test(a_nan_key_is_not_hidden),
        cmocka_unit_test(wrong_arguments_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
