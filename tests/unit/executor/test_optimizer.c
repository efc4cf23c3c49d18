/* test_optimizer.c - rates, the merge of the norm, first parameters, AdamW on ranges */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "executor/optimizer.h"
#include "executor/program.h"
#include "tests/unit/executor/team.h"

static void near(double x, double want, double tolerance)
{
    if (!(fabs(x - want) <= tolerance))
        fail_msg("%.17g, expected %.17g", x, want);
}

static void rates_follow_their_formulas(void **state)
{
    struct sl_train_spec t = {.lr = 1, .min_lr = 0.1, .warmup = 10, .schedule = SL_CONSTANT};

    (void)state;
    near(sl_lr_at(&t, 1, 110), 0.1, 1e-15);
    near(sl_lr_at(&t, 10, 110), 1, 1e-15);
    near(sl_lr_at(&t, 110, 110), 1, 1e-15);
    t.schedule = SL_LINEAR;
    near(sl_lr_at(&t, 5, 110), 0.5, 1e-15);
    near(sl_lr_at(&t, 60, 110), 0.55, 1e-15);
    near(sl_lr_at(&t, 110, 110), 0.1, 1e-15);
    t.schedule = SL_COSINE;
    near(sl_lr_at(&t, 10, 110), 1, 1e-15);
    near(sl_lr_at(&t, 35, 110), 0.1 + 0.9 * (1 + sqrt(0.5)) / 2, 1e-15); /* a quarter of the way */
    near(sl_lr_at(&t, 60, 110), 0.55, 1e-15);
    near(sl_lr_at(&t, 110, 110), 0.1, 1e-15);
    t.warmup = 0;
    near(sl_lr_at(&t, 1, 1), 0.1, 1e-15);
    t.warmup = 200; /* longer than the run: it never ends */
    near(sl_lr_at(&t, 110, 110), 0.55, 1e-15);
}

static struct sl_program *program(int ranks)
{
    struct team t = team_tiny(SL_ZERO2, ranks);
    struct sl_err err;
    struct sl_program *p = sl_program_make(&t.job, ranks, SL_ZERO2, 1, 0, &err);

    assert_non_null(p);
    return p;
}

static struct sl_ctl *control(int ranks, int units)
{
    struct sl_ctl *c = calloc(1, sl_ctl_size(ranks, units));

    assert_non_null(c);
    assert_int_equal(sl_ctl_init(c, ranks, units, NULL), 0);
    return c;
}

static void the_norm_is_the_root_of_all_squares(void **state)
{
    struct sl_program *p = program(2);
    const struct sl_graph *g = p->train;
    struct sl_ctl *c = control(2, g->nunits);
    struct sl_merge m;

    (void)state;
    c->norm[0] = 9;
    c->norm[2 * (g->nunits - 1) + 1] = 16;
    c->r[0].loss = 1.25;
    c->r[1].loss = 0.5;
    sl_merge_read(c, g, 0, &m);
    near(m.norm, 5, 0);
    near(m.loss, 1.75, 0);
    near(m.gscale, 1, 0); /* no clipping asked for */
    sl_merge_read(c, g, 2, &m);
    near(m.norm, 5, 0); /* raw */
    near(m.gscale, 0.4, 1e-16);
    sl_merge_read(c, g, 5, &m);
    near(m.gscale, 1, 0); /* at the limit */
    assert_int_equal(m.bad_rank, -1);
    assert_int_equal(m.stop, 0);
    c->r[1].stop = 15;
    sl_merge_read(c, g, 0, &m);
    assert_int_equal(m.stop, 1);
    free(c);
    sl_program_destroy(p);
}

static void what_is_not_finite_has_an_owner(void **state)
{
    struct sl_program *p = program(3);
    const struct sl_graph *g = p->train;
    struct sl_ctl *c = control(3, g->nunits);
    struct sl_merge m;

    (void)state;
    c->norm[3 * 1 + 2] = NAN; /* unit 1, shard of rank 2 */
    c->r[2].bad_param = 7;
    c->r[1].bad_param = 9;
    sl_merge_read(c, g, 1, &m);
    assert_int_equal(m.bad_rank, 2);
    assert_int_equal(m.bad_param, 7);
    c->r[1].loss = INFINITY; /* a loss is nearer to the cause than a shard of the sum */
    sl_merge_read(c, g, 1, &m);
    assert_int_equal(m.bad_rank, 1);
    free(c);
    sl_program_destroy(p);
}

static void a_bad_gradient_is_found_by_name(void **state)
{
    struct sl_program *p = program(1);
    const struct sl_graph *g = p->train;
    const struct sl_param *par = NULL;
    int64_t n = g->unit[1].shard;
    float *grad = calloc((size_t)n, sizeof *grad);
    uint16_t *half = calloc((size_t)n, sizeof *half);
    int i, k = 0;

    (void)state;
    assert_true(grad && half);
    for (i = 0; i < g->npar; i++)
        if (g->par[i].unit == 1 && ++k == 3)
            break;
    par = &g->par[i];
    assert_int_equal(sl_grad_bad(g, 1, 0, n, grad, SL_F32), -1);
    grad[par->off + par->n - 1] = -INFINITY;
    half[par->off] = 0x7fc0;
    assert_int_equal(sl_grad_bad(g, 1, 0, n, grad, SL_F32), i);
    assert_int_equal(sl_grad_bad(g, 1, 0, n, half, SL_BF16), i);
    /* a shard that begins behind it does not have it */
    assert_int_equal(sl_grad_bad(g, 1, par->off + par->n, 16, grad + par->off + par->n, SL_F32),
                     -1);
    free(grad);
    free(half);
    sl_program_destroy(p);
}

static void a_shard_starts_as_its_part_of_the_whole(void **state)
{
    struct sl_dev *dev = sl_dev_open("cpu", 1, NULL);
    struct sl_program *p = program(1);
    const struct sl_graph *g = p->train;

    (void)state;
    assert_non_null(dev);
    for (int u = 0; u < g->nunits; u++) {
        int64_t n = g->unit[u].shard, cut = n / 3 | 1; /* also between two of a pair */
        float *whole = calloc((size_t)n, sizeof *whole), *part = calloc((size_t)n, sizeof *part);

        assert_true(whole && part);
        assert_int_equal(sl_init_range(dev, g, 42, u, 0, n, whole, NULL), 0);
        assert_int_equal(sl_init_range(dev, g, 42, u, 0, cut, part, NULL), 0);
        assert_int_equal(sl_init_range(dev, g, 42, u, cut, n - cut, part + cut, NULL), 0);
        assert_memory_equal(whole, part, (size_t)n * sizeof *whole);
        assert_int_equal(sl_init_range(dev, g, 43, u, 0, n, part, NULL), 0);
        if (u < g->nunits - 1) /* the last has gains and biases only, which no seed changes */
            assert_memory_not_equal(whole, part, (size_t)n * sizeof *whole);
        free(whole);
        free(part);
    }
    sl_dev_close(dev);
    sl_program_destroy(p);
}

/*
 * GPT-2: matrices normal of deviation 0.02 (0.01 into the residual of two layers), vectors 0 or 1.
 * Sampling errors of n values: 1 / sqrt(n) of the deviation for the mean, 1 / sqrt(2 n) for itself.
 */
static void first_parameters_have_the_right_moments(void **state)
{
    struct sl_dev *cpu = sl_dev_open("cpu", 1, NULL);
    struct sl_program *p = program(1);
    const struct sl_graph *g = p->train;

    (void)state;
    assert_non_null(cpu);
    for (int i = 0; i < g->npar; i++) {
        const struct sl_param *par = &g->par[i];
        float *w = calloc((size_t)par->n, sizeof *w);
        double sum = 0, sq = 0, n = (double)par->n, dev;

        assert_non_null(w);
        assert_int_equal(sl_init_range(cpu, g, 42, par->unit, par->off, par->n, w, NULL), 0);
        for (int64_t k = 0; k < par->n; k++) {
            sum += (double)w[k];
            sq += (double)w[k] * (double)w[k];
        }
        dev = sqrt(sq / n);
        if (par->dim[1]) {
            double want = strstr(par->name, "c_proj") ? 0.02 / sqrt(2 * 2) : 0.02;

            near(dev / want, 1, 4 / sqrt(2 * n));
            near(sum / n / want, 0, 4 / sqrt(n));
        } else if (strstr(par->name, "bias")) {
            near(sq, 0, 0);
        } else {
            near(sum, n, 0);
            near(sq, n, 0);
        }
        free(w);
    }
    sl_dev_close(cpu);
    sl_program_destroy(p);
}

/* With b1 = b2 = 0 the step is lr (sign(g) + decay w), and decay is for matrices only. */
static void updates_decay_matrices_and_leave_padding(void **state)
{
    struct sl_program *p = program(1);
    const struct sl_graph *g = p->train;
    const struct sl_train_spec spec = {.weight_decay = 0.5};
    struct sl_dev *dev = sl_dev_open("cpu", 1, NULL);
    int64_t n = g->unit[1].shard, lo = n / 4 / 16 * 16, m = n / 2 / 16 * 16;
    float *w = calloc((size_t)n, sizeof *w), *grad = calloc((size_t)n, sizeof *grad);
    float *m1 = calloc((size_t)n, sizeof *m1), *v = calloc((size_t)n, sizeof *v);
    char *inside = calloc((size_t)n, 1); /* 1: vector, 2: matrix */

    (void)state;
    assert_true(dev && w && grad && m1 && v && inside);
    for (int64_t i = 0; i < n; i++) {
        w[i] = 2;
        grad[i] = i % 2 ? 3 : -3;
    }
    for (int i = 0; i < g->npar; i++)
        if (g->par[i].unit == 1)
            memset(inside + g->par[i].off, g->par[i].dim[1] ? 2 : 1, (size_t)g->par[i].n);
    struct sl_adamw_range r = {1, lo, m, grad + lo, SL_F32, w + lo, m1 + lo, v + lo, NULL};
    assert_int_equal(sl_adamw_range(dev, g, &spec, &r, 0.1, 1, 1, NULL), 0);
    for (int64_t i = 0; i < n; i++) {
        double want = 2;

        if (i >= lo && i < lo + m && inside[i])
            want -= 0.1 * ((i % 2 ? 1 : -1) + (inside[i] == 2 ? 0.5 * 2 : 0));
        near((double)w[i], want, 1e-6);
    }
    free(w);
    free(grad);
    free(m1);
    free(v);
    free(inside);
    sl_dev_close(dev);
    sl_program_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_follow_their_formulas),
        cmocka_unit_test(the_norm_is_the_root_of_all_squares),
        cmocka_unit_test(what_is_not_finite_has_an_owner),
        cmocka_unit_test(a_bad_gradient_is_found_by_name),
        cmocka_unit_test(a_shard_starts_as_its_part_of_the_whole),
        cmocka_unit_test(first_parameters_have_the_right_moments),
        cmocka_unit_test(updates_decay_matrices_and_leave_padding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
