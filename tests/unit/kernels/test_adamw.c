#include "kt.h"

#include "kernels/adamw/adamw.h"

static struct sl_k_adamw args(float *w, float *m, float *v, const void *g, int64_t n)
{
    return (struct sl_k_adamw){.w = w, .m = m, .v = v, .g = g, .gtype = SL_F32, .n = n, .t = 1,
                               .lr = 0.01, .b1 = 0.9, .b2 = 0.999, .eps = 1e-8, .decay = 0.1,
                               .gscale = 1};
}

/* torch/optim/adamw.py, _single_tensor_adamw, in double */
static void reference(double *w, double *m, double *v, double g, const struct sl_k_adamw *a)
{
    g *= a->gscale;
    *w *= 1 - a->lr * a->decay;
    *m = *m + (g - *m) * (1 - a->b1);
    *v = *v * a->b2 + (1 - a->b2) * g * g;
    *w -= a->lr / (1 - pow(a->b1, (double)a->t)) * *m
          / (sqrt(*v) / sqrt(1 - pow(a->b2, (double)a->t)) + a->eps);
}

static void steps(struct sl_dev *dev)
{
    int64_t n = 1009;
    float *w = kt_random(n, 1, 1), *m = kt_random(n, 2, 0), *v = kt_random(n, 2, 0);
    double *rw = kt_double_of(w, n), *rm = kt_double_of(m, n), *rv = kt_double_of(v, n);

    for (int t = 1; t <= 50; t++) {
        float *g = kt_random(n, (uint64_t)(10 + t), t % 7 == 0 ? 100 : 0.01);
        struct sl_k_adamw a = args(w, m, v, g, n);

        a.t = t;
        a.gscale = t % 2 ? 1 : 0.37;
        assert_int_equal(sl_k_adamw(dev, &a, NULL), 0);
        for (int64_t i = 0; i < n; i++)
            reference(rw + i, rm + i, rv + i, (double)g[i], &a);
        free(g);
    }
    kt_near(w, rw, n, 1e-6, 1e-5);
    kt_near(m, rm, n, 1e-6, 1e-5);
    kt_near(v, rv, n, 1e-9, 2e-5);
    free(w), free(m), free(v), free(rw), free(rm), free(rv);
}

static void fifty_steps_follow_pytorch(void **state)
{
    (void)state;
    kt_each(steps, 1);
    kt_each(steps, 2);
}

/* From m = v = 0 the step is lr (sign(g) + decay w), whatever g is. */
static void the_first_step_has_a_closed_form(void **state)
{
    float w = 2, m = 0, v = 0, g = -123;
    double want = 2 - 0.01 * (-1 + 0.1 * 2);
    struct sl_dev *dev = kt_open(1);
    struct sl_k_adamw a = args(&w, &m, &v, &g, 1);

    (void)state;
    assert_int_equal(sl_k_adamw(dev, &a, NULL), 0);
    kt_near(&w, &want, 1, 1e-6, 0);
    sl_dev_close(dev);
}

struct out {
    float *w, *m, *v;
    uint16_t *copy;
};

static struct out run(const char *isa, int threads, int64_t n, int pieces, enum sl_dtype type)
{
    struct sl_dev *dev = sl_dev_open(isa, threads, NULL);
    struct out o = {kt_random(n, 1, 1), kt_random(n, 2, 0.1), kt_random(n, 3, 0), kt_alloc(2 * n)};
    float *g = kt_random(n, 4, 1);
    uint16_t *h = kt_bf16_of(g, n);

    if (!dev) {
        free(o.w), free(o.m), free(o.v), free(o.copy), free(g), free(h);
        return (struct out){0};
    }
    for (int p = 0; p < pieces; p++) {
        int64_t at = n * p / pieces, to = n * (p + 1) / pieces;
        struct sl_k_adamw a = args(o.w + at, o.m + at, o.v + at,
                                   type == SL_F32 ? (void *)(g + at) : (void *)(h + at), to - at);

        a.gtype = type;
        a.copy = o.copy + at;
        a.t = 7;
        assert_int_equal(sl_k_adamw(dev, &a, NULL), 0);
    }
    sl_dev_close(dev);
    free(g), free(h);
    return o;
}

static void drop(struct out *o)
{
    free(o->w), free(o->m), free(o->v), free(o->copy);
}

static void same(const struct out *a, const struct out *b, int64_t n)
{
    kt_same(a->w, b->w, n * 4);
    kt_same(a->m, b->m, n * 4);
    kt_same(a->v, b->v, n * 4);
    kt_same(a->copy, b->copy, n * 2);
}

/* Cuts at odd places, threads, instruction sets and an exact bf16 gradient change no bit. */
static void bits_depend_on_nothing_but_the_numbers(void **state)
{
    int64_t n = 50021;
    struct out plain = run("cpu:base", 1, n, 1, SL_F32), o;
    static const char *const isas[] = {"cpu:base", "cpu:v3", "cpu:v4"};

    (void)state;
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(plain.copy[i], sl_f32_bf16(plain.w[i]));
    for (int i = 0; i < 3; i++)
        for (int how = 0; how < 3; how++) {
            o = run(isas[i], 1 + how % 2, n, how ? 613 : 1, how == 2 ? SL_BF16 : SL_F32);
            if (!o.w)
                continue;
            same(&plain, &o, n);
            drop(&o);
        }
    drop(&plain);
}

/* A row without gradients decays to exactly 0 and never lingers among the subnormal numbers. */
static void moments_end_at_zero(void **state)
{
    float w[3] = {1, 1, 1}, m[3] = {1e-3f, -2e-38f, 1e-39f}, v[3] = {1e-3f, 2e-38f, 1e-39f}, g[3] = {0};
    struct sl_dev *dev = kt_open(1);
    struct sl_k_adamw a = args(w, m, v, g, 3);

    (void)state;
    a.b2 = 0.95;
    for (a.t = 1; a.t <= 3000; a.t++) {
        assert_int_equal(sl_k_adamw(dev, &a, NULL), 0);
        for (int i = 0; i < 3; i++)
            assert_true((m[i] == 0 || isnormal(m[i])) && (v[i] == 0 || isnormal(v[i])));
    }
    for (int i = 0; i < 3; i++)
        assert_true(m[i] == 0 && v[i] == 0 && isfinite(w[i]));
    sl_dev_close(dev);
}

static void a_nan_gradient_is_not_swallowed(void **state)
{
    float w[20], m[20] = {0}, v[20] = {0}, g[20] = {0};
    uint16_t copy[20];
    struct sl_dev *dev = kt_open(1);
    struct sl_k_adamw a = args(w, m, v, g, 20);

    (void)state;
    for (int i = 0; i < 20; i++)
        w[i] = 1;
    g[17] = NAN;
    a.copy = copy;
    assert_int_equal(sl_k_adamw(dev, &a, NULL), 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(isnan(w[i]), i == 17);
        assert_int_equal(isnan(sl_bf16_f32(copy[i])), i == 17);
    }
    sl_dev_close(dev);
}

static void wrong_arguments_are_refused(void **state)
{
    struct sl_dev *dev = kt_open(1);
    struct sl_err err;
    float x = 0;
    struct sl_k_adamw a = args(&x, &x, &x, &x, 1), b;

    (void)state;
    b = a, b.n = -1;
    kt_usage(sl_k_adamw(dev, &b, &err));
    b = a, b.t = 0;
    kt_usage(sl_k_adamw(dev, &b, &err));
    assert_true(err.hint[0] != '\0');
    b = a, b.b1 = 1;
    kt_usage(sl_k_adamw(dev, &b, &err));
    b = a, b.b2 = NAN;
    kt_usage(sl_k_adamw(dev, &b, &err));
    b = a, b.gtype = SL_I32;
    kt_usage(sl_k_adamw(dev, &b, &err));
    sl_dev_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fifty_steps_follow_pytorch),
        cmocka_unit_test(the_first_step_has_a_closed_form),
        cmocka_unit_test(bits_depend_on_nothing_but_the_numbers),
        cmocka_unit_test(moments_end_at_zero),
        cmocka_unit_test(a_nan_gradient_is_not_swallowed),
        cmocka_unit_test(wrong_arguments_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
