#include "kt.h"

#include "kernels/head/head.h"

struct ref {
    int64_t rows, width, vocab;
    double scale;
    double *x, *w;
    const int32_t *targets;
};

static double loss(const void *ctx)
{
    const struct ref *r = ctx;
    double sum = 0, *l = kt_doubles(r->vocab);

    for (int64_t i = 0; i < r->rows; i++) {
        double z = 0;

        if (r->targets[i] < 0)
            continue;
        for (int64_t j = 0; j < r->vocab; j++) {
            l[j] = kt_dot(r->x + i * r->width, r->w + j * r->width, r->width);
            z += exp(l[j]);
        }
        sum += log(z) - l[r->targets[i]];
    }
    free(l);
    return sum * r->scale;
}

/* The gradients' formula, where central differences would take too long. */
static void gradients(const struct ref *r, double *dx, double *dw)
{
    double *l = kt_doubles(r->vocab);

    memset(dx, 0, (size_t)(r->rows * r->width) * sizeof *dx);
    memset(dw, 0, (size_t)(r->vocab * r->width) * sizeof *dw);
    for (int64_t i = 0; i < r->rows; i++) {
        double z = 0;

        if (r->targets[i] < 0)
            continue;
        for (int64_t j = 0; j < r->vocab; j++)
            z += l[j] = exp(kt_dot(r->x + i * r->width, r->w + j * r->width, r->width));
        for (int64_t j = 0; j < r->vocab; j++) {
            double g = r->scale * (l[j] / z - (j == r->targets[i]));

            for (int64_t c = 0; c < r->width; c++) {
                dx[i * r->width + c] += g * r->w[j * r->width + c];
                dw[j * r->width + c] += g * r->x[i * r->width + c];
            }
        }
    }
    free(l);
}

struct data {
    int64_t rows, width, vocab;
    float *x, *w, *dx, *dw, loss, eval;
    uint16_t *hx, *hw, *hdx, *hdw;
    int32_t *targets;
};

static struct data make(int64_t rows, int64_t width, int64_t vocab)
{
    struct data d = {.rows = rows, .width = width, .vocab = vocab};
    uint64_t seed = 9;

    d.x = kt_random(rows * width, 1, 1);
    d.w = kt_random(vocab * width, 2, 1);
    d.dw = kt_random(vocab * width, 3, 0.1);
    d.dx = kt_floats(rows * width);
    d.hx = kt_bf16_of(d.x, rows * width); /* x, w and dw are exact in bf16, so all types agree */
    d.hw = kt_bf16_of(d.w, vocab * width);
    d.hdw = kt_bf16_of(d.dw, vocab * width);
    d.hdx = kt_alloc(2 * rows * width);
    d.targets = kt_alloc(4 * rows);
    for (int64_t i = 0; i < rows; i++)
        d.targets[i] = i % 5 == 3 ? -1 : (int32_t)((kt_uniform(&seed) + 1) / 2 * (double)vocab);
    return d;
}

static void drop(struct data *d)
{
    free(d->x), free(d->w), free(d->dx), free(d->dw), free(d->hx), free(d->hw), free(d->hdx);
    free(d->hdw), free(d->targets);
}

static void call(struct sl_dev *dev, struct data *d, enum sl_dtype xt, enum sl_dtype wt, double scale)
{
    int64_t bytes = sl_k_head_scratch(d->rows, d->width, d->vocab, xt, wt);
    char *scratch = kt_alloc(bytes);
    struct sl_k_head a = {.x = xt == SL_F32 ? (void *)d->x : (void *)d->hx,
                          .w = wt == SL_F32 ? (void *)d->w : (void *)d->hw, .targets = d->targets,
                          .loss = &d->loss, .dx = xt == SL_F32 ? (void *)d->dx : (void *)d->hdx,
                          .dw = wt == SL_F32 ? (void *)d->dw : (void *)d->hdw, .xtype = xt,
                          .wtype = wt, .rows = d->rows, .width = d->width, .vocab = d->vocab,
                          .scale = scale, .scratch = scratch, .scratch_bytes = bytes};

    memset(scratch + bytes, 0x5a, 64);
    assert_int_equal(sl_k_head(dev, &a, NULL), 0);
    a.dx = a.dw = NULL;
    a.loss = &d->eval;
    assert_int_equal(sl_k_head(dev, &a, NULL), 0);
    for (int i = 0; i < 64; i++)
        assert_int_equal(scratch[bytes + i], 0x5a);
    free(scratch);
    for (int64_t i = 0; xt == SL_BF16 && i < d->rows * d->width; i++)
        d->dx[i] = sl_bf16_f32(d->hdx[i]);
    for (int64_t i = 0; wt == SL_BF16 && i < d->vocab * d->width; i++)
        d->dw[i] = sl_bf16_f32(d->hdw[i]);
}

static void check_shape(struct sl_dev *dev, int64_t rows, int64_t width, int64_t vocab, int differences,
                        enum sl_dtype xt, enum sl_dtype wt)
{
    struct data d = make(rows, width, vocab);
    struct ref r = {rows, width, vocab, 1.0 / 7, kt_double_of(d.x, rows * width),
                    kt_double_of(d.w, vocab * width), d.targets};
    double *dx, *dw, *dw0 = kt_double_of(d.dw, vocab * width);
    double round = ldexp(1, -8); /* bf16 */

    call(dev, &d, xt, wt, r.scale);
    assert_true(fabs((double)d.loss - loss(&r)) <= 2e-6 * (1 + loss(&r)));
    assert_true(d.loss == d.eval); /* the same sums in the same order */
    if (differences) {
        dx = kt_gradient(loss, &r, r.x, rows * width);
        dw = kt_gradient(loss, &r, r.w, vocab * width);
    } else {
        dx = kt_doubles(rows * width);
        dw = kt_doubles(vocab * width);
        gradients(&r, dx, dw);
    }
    for (int64_t i = 0; i < vocab * width; i++)
        dw[i] += dw0[i];
    kt_near(d.dx, dx, rows * width, 3e-6, xt == SL_F32 ? 1e-5 : round);
    kt_near(d.dw, dw, vocab * width, wt == SL_F32 ? 1e-5 : 2e-2, wt == SL_F32 ? 1e-5 : 3 * round);
    free(dx), free(dw), free(dw0), free(r.x), free(r.w);
    drop(&d);
}

static void shapes(struct sl_dev *dev)
{
    check_shape(dev, 1, 1, 1, 1, SL_F32, SL_F32);
    check_shape(dev, 1, 3, 7, 1, SL_F32, SL_F32);
    check_shape(dev, 17, 7, 13, 1, SL_F32, SL_F32);
    check_shape(dev, 37, 5, 29, 1, SL_F32, SL_F32); /* two chunks */
    check_shape(dev, 67, 17, 1301, 0, SL_F32, SL_F32);
    check_shape(dev, 33, 3, 1024, 0, SL_F32, SL_F32); /* padded rows of logits */
    check_shape(dev, 37, 5, 29, 1, SL_BF16, SL_BF16);
    check_shape(dev, 67, 17, 1301, 0, SL_F32, SL_BF16); /* two blocks of the vocabulary */
    check_shape(dev, 67, 17, 1301, 0, SL_BF16, SL_F32);
    check_shape(dev, 67, 17, 2063, 0, SL_BF16, SL_BF16);
}

static void gradients_are_those_of_the_formula(void **state)
{
    (void)state;
    kt_each(shapes, 1);
    kt_each(shapes, 2);
}

static void a_masked_row_has_no_loss_and_no_gradient(void **state)
{
    struct sl_dev *dev = kt_open(1);
    struct data d = make(23, 7, 19);

    (void)state;
    for (int64_t j = 0; j < 7; j++)
        d.x[5 * 7 + j] = NAN; /* its loss would be NaN */
    d.targets[5] = -1;
    call(dev, &d, SL_F32, SL_F32, 1);
    assert_true(isfinite(d.loss));
    for (int64_t i = 0; i < 23; i++)
        for (int64_t j = 0; d.targets[i] < 0 && j < 7; j++)
            assert_true(d.dx[i * 7 + j] == 0);
    for (int64_t i = 0; i < 23; i++)
        d.targets[i] = -1;
    call(dev, &d, SL_F32, SL_F32, 1);
    assert_true(d.loss == 0);
    drop(&d);
    sl_dev_close(dev);
}

static void a_nan_shows_in_the_loss(void **state)
{
    struct sl_dev *dev = kt_open(1);
    struct data d = make(23, 7, 19);

    (void)state;
    d.targets[5] = 1;
    d.x[5 * 7] = NAN;
    call(dev, &d, SL_F32, SL_F32, 1);
    assert_true(isnan(d.loss));
    drop(&d);
    sl_dev_close(dev);
}

/* Logits of +-2000 in one row: the largest is subtracted first. */
static void large_logits_do_not_overflow(void **state)
{
    struct sl_dev *dev = kt_open(1);
    struct data d = make(1, 1, 3);

    (void)state;
    d.x[0] = 2000, d.w[0] = 1, d.w[1] = -1, d.w[2] = 1, d.targets[0] = 1;
    d.dw[0] = d.dw[1] = d.dw[2] = 0;
    call(dev, &d, SL_F32, SL_F32, 1);
    assert_true(fabs((double)d.loss - (4000 + log(2))) <= 4e-4);
    assert_true(fabs((double)d.dw[0] - 1000) <= 1e-3 && fabs((double)d.dw[1] + 2000) <= 1e-3);
    drop(&d);
    sl_dev_close(dev);
}

static void a_micro_batch_takes_several_chunks(void **state)
{
    (void)state;
    for (int64_t rows = 32; rows < 5000; rows += 37)
        assert_true(sl_k_head_chunk(rows, 8192) < rows && sl_k_head_chunk(rows, 8192) <= 512);
    /* logits of 512 rows and their x, and little more; with a large vocabulary 64 MiB of them */
    assert_true(sl_k_head_scratch(1024, 384, 8192, SL_F32, SL_F32)
                <= ((512 + 16) * 8192 + 512 * 384) * 4 + 16384);
    assert_true(sl_k_head_scratch(1024, 384, 50304, SL_F32, SL_F32)
                <= (68 << 20) + 512 * 384 * 4 + 16384);
}

static void wrong_arguments_are_refused(void **state)
{
    struct sl_dev *dev = kt_open(1);
    struct sl_err err;
    int64_t bytes = sl_k_head_scratch(2, 1, 3, SL_F32, SL_F32);
    char *scratch = kt_alloc(bytes);
    int32_t ok[2] = {0, -1}, low[2] = {0, -2}, high[2] = {3, 0};
    float x[6] = {0}, out;
    struct sl_k_head a = {.x = x, .w = x, .targets = ok, .loss = &out, .rows = 2, .width = 1, .vocab = 3,
                          .scale = 1, .scratch = scratch, .scratch_bytes = bytes}, b;

    (void)state;
    assert_int_equal(sl_k_head(dev, &a, NULL), 0);
    b = a, b.targets = low;
    kt_usage(sl_k_head(dev, &b, &err));
    b = a, b.targets = high;
    kt_usage(sl_k_head(dev, &b, &err));
    assert_non_null(strstr(err.msg, "target 3 at row 0"));
    b = a, b.dx = x;
    kt_usage(sl_k_head(dev, &b, &err));
    b = a, b.scratch_bytes--;
    kt_usage(sl_k_head(dev, &b, &err));
    b = a, b.vocab = 0;
    kt_usage(sl_k_head(dev, &b, &err));
    b = a, b.wtype = SL_I32;
    kt_usage(sl_k_head(dev, &b, &err));
    free(scratch);
    sl_dev_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_the_formula),
        cmocka_unit_test(a_masked_row_has_no_loss_and_no_gradient),
        cmocka_unit_test(a_nan_shows_in_the_loss),
        cmocka_unit_test(large_logits_do_not_overflow),
        cmocka_unit_test(a_micro_batch_takes_several_chunks),
        cmocka_unit_test(wrong_arguments_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
