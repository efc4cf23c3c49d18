#include "kt.h"

#include "tests/unit/kernels/vec_isa.h"

typedef void (*apply_f)(const float *x, float *y, int64_t n);

static const struct set {
    const char *name;
    apply_f exp, weight;
} sets[] = {
    {"cpu:base", vt_exp_base, vt_weight_base},
#ifdef SL_HAVE_V3
    {"cpu:v3", vt_exp_v3, vt_weight_v3},
#endif
#ifdef SL_HAVE_V4
    {"cpu:v4", vt_exp_v4, vt_weight_v4},
#endif
};

/* Distance from the exact value in units of the last place of the f32 that is nearest to it. */
static double ulps(float got, double want)
{
    int e;

    frexp(want, &e);
    return fabs((double)got - want) / ldexp(1, e - 24);
}

/* Every set that this machine can run. */
static void each(void (*f)(const struct set *s))
{
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        struct sl_dev *dev = sl_dev_open(sets[i].name, 1, NULL);

        if (!dev)
            continue;
        f(sets + i);
        sl_dev_close(dev);
    }
}

static void accuracy(const struct set *s)
{
    enum { N = 200003 };
    float *x = kt_floats(N), *y = kt_floats(N), *w = kt_floats(N);
    double worst = 0;

    for (int i = 0; i < N; i++)
        x[i] = (float)(-87.3 + (87.3 + 88.3) * i / (N - 1));
    x[1] = 0, x[2] = -0.0f, x[3] = 1e-30f, x[4] = -1e-30f, x[5] = -87.3f, x[6] = 88.3f, x[7] = 1;
    s->exp(x, y, N);
    s->weight(x, w, N);
    for (int i = 0; i < N; i++) {
        double want = exp((double)x[i]), off = ulps(y[i], want);

        worst = off > worst ? off : worst;
        assert_true(off <= 2); /* false for a NaN, too */
        assert_true(x[i] < -60 ? w[i] == 0 : w[i] == y[i]);
    }
    print_message("# %s: exp is within %.2f units in the last place\n", s->name, worst);
    assert_true(y[1] == 1 && y[2] == 1);
    free(x), free(y), free(w);
}

static void the_exponential_is_within_two_ulps(void **state)
{
    (void)state;
    each(accuracy);
}

static void edges(const struct set *s)
{
    float x[] = {-87.4f, -1000, -INFINITY, 88.4f, 1e30f, INFINITY, NAN}, y[7], w[7];

    s->exp(x, y, 7);
    s->weight(x, w, 7);
    for (int i = 0; i < 3; i++)
        assert_true(y[i] == 0 && w[i] == 0);
    for (int i = 3; i < 6; i++)
        assert_true(isinf(y[i]) && y[i] > 0);
    assert_true(isnan(y[6]) && isnan(w[6]));
}

static void far_arguments_give_zero_infinity_and_nan(void **state)
{
    (void)state;
    each(edges);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_exponential_is_within_two_ulps),
        cmocka_unit_test(far_arguments_give_zero_infinity_and_nan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
