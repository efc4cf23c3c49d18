/* test_gradients.c - a GPT's gradients, dropout on, against differences of its own loss */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/rng.h"
#include "executor/program.h"
#include "executor/run.h"
#include "tests/unit/executor/team.h"

struct world {
    struct team t;
    struct sl_program *p;
    struct sl_ctl *ctl;
    struct sl_dev *dev;
    struct sl_comm comm;
    struct sl_run run;
    char *arena[1];
};

static void open_world(struct world *w, enum sl_recompute recompute, int tied)
{
    struct sl_err err;

    memset(w, 0, sizeof *w);
    w->t = team_tiny(SL_ZERO3, 1);
    w->t.job.train.recompute = recompute;
    w->t.job.model.tie_embeddings = tied;
    w->t.job.train.batch = 16;
    w->p = sl_program_make(&w->t.job, 1, SL_ZERO3, 1, 0, &err);
    assert_non_null(w->p);
    w->ctl = calloc(1, sl_ctl_size(1, w->p->train->nunits));
    w->arena[0] = aligned_alloc(64, (size_t)(w->p->arena0 + 63) / 64 * 64);
    assert_true(w->ctl && w->arena[0]);
    assert_int_equal(sl_ctl_init(w->ctl, 1, w->p->train->nunits, &err), 0);
    w->dev = sl_dev_open("cpu", 1, &err);
    assert_non_null(w->dev);
    sl_comm_init(&w->comm, w->ctl, w->arena, w->dev, 0, 1, 10);
    w->run = (struct sl_run){
        .dev = w->dev,
        .comm = &w->comm,
        .arena = w->arena[0],
        .spec = &w->t.job.train,
        .accum = 1,
        .g = w->p->train,
        .step = 1,
        .scale = 1.0 / (16 * 9),
    };
    assert_int_equal(sl_run_init(&w->run, 42, &err), 0);
}

static void close_world(struct world *w)
{
    sl_dev_close(w->dev);
    free(w->arena[0]);
    free(w->ctl);
    sl_program_destroy(w->p);
}

/* Forward and backward of one batch; the loss. */
static double loss(struct world *w)
{
    struct sl_err err;
    const struct sl_graph *g = w->p->train;

    for (int64_t i = 0; i < 16; i++)
        team_sample(7, 211, 9, i, (int32_t *)sl_run_at(&w->run, g->ids) + i * 9,
                    (int32_t *)sl_run_at(&w->run, g->targets) + i * 9);
    w->run.loss = 0;
    assert_int_equal(sl_run_ops(&w->run, 0, g->opt_start, &err), 0);
    return w->run.loss;
}

static double loss_at(struct world *w, float *x, const float *x0, const double *dir, int64_t n,
                      double h)
{
    double l;

    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(x0[i] + h * dir[i]);
    l = loss(w);
    memcpy(x, x0, (size_t)n * sizeof *x);
    return l;
}

/*
 * Along its gradient plus a random unit vector, the slope of the loss is |g| + g . r. Central
 * differences at h and h / 2, extrapolated: the error is of order h^4. The loss has the resolution
 * of f32, so h moves it by about one hundredth.
 */
static double slope_error(struct world *w, const struct sl_param *p)
{
    const struct sl_unit *un = &w->p->train->unit[p->unit];
    float *x = (float *)sl_run_at(&w->run, un->pfull) + p->off, *x0;
    const float *g = (float *)sl_run_at(&w->run, un->gfull) + p->off;
    double *dir, norm = 0, r2 = 0, want = 0, len = 0, h, d1, d2;

    x0 = calloc((size_t)p->n, sizeof *x0);
    dir = calloc((size_t)p->n, sizeof *dir);
    assert_true(x0 && dir);
    memcpy(x0, x, (size_t)p->n * sizeof *x0);
    loss(w);
    for (int64_t i = 0; i < p->n; i++) {
        dir[i] = sl_rng_normal(3, (uint64_t)p->off, (uint64_t)i, 0);
        r2 += dir[i] * dir[i];
        norm += (double)g[i] * (double)g[i];
    }
    norm = sqrt(norm);
    for (int64_t i = 0; i < p->n; i++) {
        dir[i] = dir[i] / sqrt(r2) + (double)g[i] / norm;
        want += dir[i] * (double)g[i];
        len += dir[i] * dir[i];
    }
    h = fmin(0.006 / norm, 0.2);
    d1 = (loss_at(w, x, x0, dir, p->n, h) - loss_at(w, x, x0, dir, p->n, -h)) / (2 * h);
    h /= 2;
    d2 = (loss_at(w, x, x0, dir, p->n, h) - loss_at(w, x, x0, dir, p->n, -h)) / (2 * h);
    free(x0);
    free(dir);
    return fabs((4 * d2 - d1) / 3 - want) / want;
}

static void gradients_are_the_slopes_of_the_loss(void **state)
{
    (void)state;
    for (int v = 0; v < 3; v++) {
        struct world w;

        open_world(&w, v == 1 ? SL_RECOMPUTE_UNIT : SL_RECOMPUTE_NONE, v != 2);
        for (int i = 0; i < w.p->train->npar; i++) {
            const struct sl_param *p = &w.p->train->par[i];
            double e = slope_error(&w, p);

            if (!(e < 2e-3))
                fprintf(stderr, "# %s: relative error of the slope %g\n", p->name, e);
            assert_true(e < 2e-3);
        }
        close_world(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_the_slopes_of_the_loss),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
