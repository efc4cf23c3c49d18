/* load.c - a rank's state from a checkpoint of any ranks and any strategy */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "executor/checkpoint/checkpoint.h"
#include "executor/checkpoint/folder.h"
#include "executor/checkpoint/reader.h"
#include "kernels/convert/convert.h"
#include "kernels/zero/zero.h"

enum { PIECE = 1 << 16 }; /* elements of bf16 that are made at a time */

struct load {
    struct sl_run *r;
    struct sl_ckpt_reader *from;
    const char *path;
    float *piece; /* [PIECE] */
};

static int clear(struct load *l, int tensor, struct sl_err *err)
{
    const struct sl_tensor *t = &l->r->g->t[tensor];
    struct sl_k_zero a = {.y = sl_run_at(l->r, tensor), .bytes = t->n * sl_dtype_size(t->type)};

    return sl_k_zero(l->r->dev, &a, err);
}

/* Elements lo..lo+n-1 of a parameter's kind to `to`, rounded when the tensor is bf16. */
static int fill(struct load *l, const struct sl_param *p, enum sl_ckpt_kind kind, int64_t lo,
                int64_t n, enum sl_dtype type, char *to, struct sl_err *err)
{
    if (type == SL_F32)
        return sl_ckpt_reader_get(l->from, p->name, kind, lo, n, (float *)to, err);
    for (int64_t k = 0; k < n; k += PIECE) {
        int64_t m = n - k < PIECE ? n - k : PIECE;
        struct sl_k_convert a
            = {.x = l->piece, .y = to + 2 * k, .xtype = SL_F32, .ytype = SL_BF16, .n = m};

        if (sl_ckpt_reader_get(l->from, p->name, kind, lo + k, m, l->piece, err)
            || sl_k_convert(l->r->dev, &a, err))
            return -1;
    }
    return 0;
}

/* A unit's buffer whose first element is element `first` of the unit; padding becomes 0. */
static int fill_tensor(struct load *l, int u, int tensor, int64_t first, enum sl_ckpt_kind kind,
                       struct sl_err *err)
{
    const struct sl_graph *g = l->r->g;
    const struct sl_tensor *t = &g->t[tensor];
    int64_t a, b, size = sl_dtype_size(t->type);
    char *base = sl_run_at(l->r, tensor);

    if (clear(l, tensor, err))
        return -1;
    for (int i = 0; (i = sl_params_in(g, u, first, first + t->n, i, &a, &b)) >= 0; i++) {
        sl_ctl_touch(l->r->comm->ctl, l->r->comm->rank);
        if (fill(l, &g->par[i], kind, a - g->par[i].off, b - a, t->type, base + (a - first) * size,
                 err))
            return -1;
    }
    return 0;
}

static int absent(const struct load *l, int tensor)
{
    const struct sl_graph *g = l->r->g;

    return tensor < 0 || (g->b[g->t[tensor].buf].rank0 && l->r->comm->rank > 0);
}

static int fill_kind(struct load *l, int u, enum sl_ckpt_kind kind, struct sl_err *err)
{
    const struct sl_unit *un = &l->r->g->unit[u];
    int64_t mine = un->shard * l->r->comm->rank;
    int t = kind == SL_CKPT_M ? un->m : kind == SL_CKPT_V ? un->v : un->master;

    if (kind == SL_CKPT_PARAM
        && fill_tensor(l, u, un->pfull >= 0 ? un->pfull : un->psh, un->pfull >= 0 ? 0 : mine, kind,
                       err))
        return -1;
    if (absent(l, t))
        return 0;
    return fill_tensor(l, u, t, l->r->g->t[t].n > un->shard ? 0 : mine, kind, err);
}

static int load_all(struct load *l, struct sl_err *err)
{
    const struct sl_comm *c = l->r->comm;

    l->piece = sl_calloc(PIECE, sizeof *l->piece);
    if (!l->piece)
        return sl_fail(err, SL_SYSTEM, "no memory to read a checkpoint");
    if (sl_ckpt_reader_check(l->from, l->r->g, err))
        return sl_within(err, "\"%s\"", l->path);
    for (int f = c->rank; f < sl_ckpt_reader_files(l->from); f += c->n)
        if (sl_ckpt_reader_header(l->from, f, err))
            return -1;
    for (int k = 0; k < SL_CKPT_KINDS; k++)
        for (int u = 0; u < l->r->g->nunits; u++)
            if (fill_kind(l, u, (enum sl_ckpt_kind)k, err))
                return -1;
    return 0;
}

int sl_ckpt_load(struct sl_run *r, const struct sl_job *job, const struct sl_ckpt_conf *conf,
                 int64_t *step, struct sl_err *err)
{
    struct load l = {.r = r, .path = conf->from, .from = sl_ckpt_reader_open(conf->from, err)};
    const struct sl_ckpt_manifest *m = l.from ? sl_ckpt_reader_manifest(l.from) : NULL;
    int rc = -1;

    if (m && sl_ckpt_manifest_fits(m, job, conf->steps, conf->samples, err)) {
        sl_within(err, "\"%s\"", conf->from);
    } else if (m && !load_all(&l, err)) {
        *step = m->step;
        r->skipped = m->skipped;
        r->bad_row = (int)m->bad_row;
        rc = 0;
    }
    free(l.piece);
    sl_ckpt_reader_close(l.from);
    if (rc && (!err || err->code != SL_SYSTEM))
        sl_ckpt_offer(conf->from, err);
    return rc ? sl_within(err, "resume") : 0;
}
