/* optimizer.c - the rate, the norm and AdamW, on the ranges a rank owns */
#include "executor/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/adamw/adamw.h"
#include "kernels/normal/normal.h"

enum {
    INIT_STREAM = 0x696e6974
}; /* "init": keeps these numbers apart from dropout's and the data's */

static const double pi = 3.14159265358979323846;

double sl_lr_at(const struct sl_train_spec *t, int64_t step, int64_t steps)
{
    double x;

    if (step <= t->warmup)
        return t->lr * (double)step / (double)t->warmup;
    x = steps > t->warmup ? (double)(step - t->warmup) / (double)(steps - t->warmup) : 1;
    switch (t->schedule) {
    case SL_LINEAR:
        return t->lr + (t->min_lr - t->lr) * x;
    case SL_COSINE:
        return t->min_lr + (t->lr - t->min_lr) * (1 + cos(pi * x)) / 2;
    case SL_CONSTANT:
        break;
    }
    return t->lr;
}

void sl_merge_read(const struct sl_ctl *ctl, const struct sl_graph *g, double clip,
                   struct sl_merge *ret)
{
    double sum = 0;
    int bad_shard = -1;

    *ret = (struct sl_merge){.gscale = 1, .bad_rank = -1, .bad_param = -1, .bad_op = -1};
    for (int u = 0; u < g->nunits; u++) {
        if (g->unit[u].gsh < 0)
            continue; /* frozen or unused: it has no gradient */
        for (int r = 0; r < ctl->ranks; r++) {
            double part = ctl->norm[u * ctl->ranks + r];

            if (!isfinite(part) && bad_shard < 0)
                bad_shard = r;
            sum += part;
        }
    }
    for (int r = 0; r < ctl->ranks; r++) {
        const struct sl_ctl_rank *it = &ctl->r[r];

        ret->loss += it->loss;
        ret->stop |= it->stop != 0;
        if (!isfinite(it->loss) && ret->bad_rank < 0)
            ret->bad_rank = r;
        if (it->bad_param >= 0 && (ret->bad_param < 0 || it->bad_param < ret->bad_param))
            ret->bad_param = it->bad_param;
    }
    if (ret->bad_rank < 0)
        ret->bad_rank = bad_shard;
    ret->norm = sqrt(sum);
    if (ret->bad_rank < 0 && !isfinite(ret->norm))
        ret->bad_rank = 0; /* finite parts whose sum is not */
    if (clip > 0 && ret->norm > clip)
        ret->gscale = clip / ret->norm;
}

void sl_merge_text(const struct sl_merge *m, const struct sl_graph *g, char *ret, size_t size)
{
    const struct sl_op *o = m->bad_op >= 0 ? &g->ops[m->bad_op] : NULL;
    char of[96] = "", at[160] = "";

    if (m->bad_param >= 0)
        snprintf(of, sizeof of, ", first in the gradient of \"%s\"", g->par[m->bad_param].name);
    if (o)
        snprintf(at, sizeof at, "; it began in %s of \"%s\" on rank %d", sl_kind_names[o->kind],
                 o->home >= 0 ? g->unit[o->home].name : "", m->bad_rank);
    else if (m->searched)
        snprintf(at, sizeof at, "; done again, the step was finite: is a memory or a processor bad?");
    snprintf(ret, size, "loss %g, gradient norm %g on rank %d%s%s", isnan(m->loss) ? NAN : m->loss,
             isnan(m->norm) ? NAN : m->norm, m->bad_rank, of, at); /* a NaN's sign says nothing */
}

int sl_params_in(const struct sl_graph *g, int unit, int64_t lo, int64_t hi, int i, int64_t *a,
                 int64_t *b)
{
    for (; i < g->npar; i++) {
        const struct sl_param *p = &g->par[i];

        *a = p->off > lo ? p->off : lo;
        *b = p->off + p->n < hi ? p->off + p->n : hi;
        if (p->unit == unit && *a < *b)
            return i;
    }
    return -1;
}

int sl_adamw_range(struct sl_dev *dev, const struct sl_graph *g, const struct sl_train_spec *spec,
                   const struct sl_adamw_range *r, double lr, double gscale, int64_t t,
                   struct sl_err *err)
{
    int64_t a, b;
    int gsize = sl_dtype_size(r->gtype);

    for (int i = 0; (i = sl_params_in(g, r->unit, r->lo, r->lo + r->n, i, &a, &b)) >= 0; i++) {
        int64_t k = a - r->lo;
        struct sl_k_adamw args = {
            .w = r->w + k,
            .m = r->m + k,
            .v = r->v + k,
            .g = (const char *)r->g + k * gsize,
            .copy = r->copy ? r->copy + k : NULL,
            .gtype = r->gtype,
            .n = b - a,
            .t = t,
            .lr = lr,
            .b1 = spec->beta1,
            .b2 = spec->beta2,
            .eps = spec->eps,
            .decay = g->par[i].decay ? spec->weight_decay : 0,
            .gscale = gscale,
        };

        if (sl_k_adamw(dev, &args, err))
            return sl_within(err, "optimizer of \"%s\"", g->par[i].name);
    }
    return 0;
}

/* Not finite: the exponent is all ones. In bf16 it is the same bits, without the low half. */
static int bad_at(const void *p, enum sl_dtype type, int64_t i)
{
    uint32_t bits;

    if (type == SL_BF16)
        bits = (uint32_t)((const uint16_t *)p)[i] << 16;
    else
        memcpy(&bits, (const char *)p + 4 * i, sizeof bits);
    return (bits & 0x7f800000u) == 0x7f800000u;
}

int sl_any_bad(const void *p, enum sl_dtype type, int64_t n)
{
    if (type != SL_F32 && type != SL_BF16)
        return 0;
    for (int64_t i = 0; i < n; i++)
        if (bad_at(p, type, i))
            return 1;
    return 0;
}

int sl_grad_bad(const struct sl_graph *g, int unit, int64_t lo, int64_t n, const void *grad,
                enum sl_dtype type)
{
    int64_t a, b;

    for (int i = 0; (i = sl_params_in(g, unit, lo, lo + n, i, &a, &b)) >= 0; i++)
        for (int64_t k = a; k < b; k++)
            if (bad_at(grad, type, k - lo))
                return i;
    return -1;
}

int sl_init_range(struct sl_dev *dev, const struct sl_graph *g, uint64_t seed, int unit, int64_t lo,
                  int64_t n, float *w, struct sl_err *err)
{
    int64_t a, b;

    memset(w, 0, (size_t)n * sizeof *w);
    for (int i = 0; (i = sl_params_in(g, unit, lo, lo + n, i, &a, &b)) >= 0; i++) {
        const struct sl_param *p = &g->par[i];
        struct sl_k_normal args = {
            .y = w + (a - lo),
            .first = a - p->off,
            .n = b - a,
            .seed = seed,
            .stream = (uint64_t)INIT_STREAM << 32 | (uint64_t)i,
            .scale = p->scale,
        };

        if (p->init == SL_INIT_NORMAL && sl_k_normal(dev, &args, err))
            return sl_within(err, "first values of \"%s\"", p->name);
        for (int64_t k = a; k < b && p->init == SL_INIT_ONE; k++)
            w[k - lo] = 1;
    }
    return 0;
}
