#include "executor/graph/memplan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "executor/graph/ops.h"
#include "executor/graph/pack.h"

static void touch(struct sl_graph *g, int t, int op)
{
    struct sl_buffer *b;

    if (t < 0)
        return;
    b = &g->b[g->t[t].buf];
    if (b->first < 0 || op < b->first)
        b->first = op;
    if (op > b->last)
        b->last = op;
}

static int root(const struct sl_graph *g, int b)
{
    while (g->b[b].alias >= 0)
        b = g->b[b].alias;
    return b;
}

static void lifetimes(struct sl_graph *g)
{
    for (int i = 0; i < g->nb; i++)
        g->b[i].first = g->b[i].last = g->b[i].alias = -1;
    for (int i = 0; i < g->nops; i++) {
        const struct sl_op *o = &g->ops[i];

        for (int a = 0; a < SL_MAX_IN; a++)
            touch(g, o->in[a], i);
        for (int a = 0; a < SL_MAX_OUT; a++)
            touch(g, o->out[a], i);
        for (int a = 0; a < SL_MAX_ACC; a++)
            touch(g, o->acc[a], i);
        touch(g, o->ws, i);
    }
    touch(g, g->ids, 0); /* filled before the first operation */
    touch(g, g->targets, 0);
    touch(g, g->loss, g->nops - 1);
    for (int i = 0; i < g->nb; i++)
        if (g->b[i].persistent) {
            g->b[i].first = 0;
            g->b[i].last = g->nops - 1;
        }
}

/* May the result t of operation i take the place of its input x? */
static int fits(const struct sl_graph *g, int i, int t, int x)
{
    const struct sl_buffer *s, *d = &g->b[g->t[t].buf];

    if (x < 0)
        return 0;
    s = &g->b[root(g, g->t[x].buf)];
    return !s->persistent && s->last == i && s->bytes == d->bytes && s->cat == d->cat
           && g->t[x].type == g->t[t].type && g->t[x].off == 0 && d->alias < 0 && d->first == i;
}

static void in_place(struct sl_graph *g)
{
    for (int i = 0; i < g->nops; i++) {
        const struct sl_op *o = &g->ops[i];
        const struct sl_op_info *info = sl_op_info(o->kind);
        int t = info->place_out < 0 ? -1 : o->out[info->place_out];

        for (int a = 0; t >= 0 && a < SL_MAX_IN; a++) {
            int src;
            if (!(info->place_in >> a & 1) || !fits(g, i, t, o->in[a]))
                continue;
            src = root(g, g->t[o->in[a]].buf);
            g->b[g->t[t].buf].alias = src;
            g->b[src].last = g->b[g->t[t].buf].last;
            break;
        }
    }
}

static int transient(const struct sl_buffer *b)
{
    return !b->persistent && b->first >= 0 && b->alias < 0;
}

/* Sums by category over time: the bound, the peak, and each category's own highest. */
static int count(struct sl_graph *g, const struct sl_persist *set)
{
    int64_t(*change)[SL_CATS] = sl_calloc((size_t)g->nops + 1, sizeof *change);
    int64_t now[SL_CATS];

    if (!change)
        return sl_graph_fail(g, SL_SYSTEM, "cannot plan memory: %s", strerror(errno));
    for (int i = 0; i < g->nb; i++) {
        const struct sl_buffer *b = &g->b[i];
        if (!transient(b))
            continue;
        change[b->first][b->cat] += b->bytes;
        change[b->last + 1][b->cat] -= b->bytes;
    }
    g->lower_bound = 0;
    g->peak_op = 0;
    for (int c = 0; c < SL_CATS; c++)
        g->cat_peak[c] = g->at_peak[c] = now[c] = sl_persist_cat(set, (enum sl_cat)c, 0);
    for (int i = 0; i < g->nops; i++) {
        int64_t sum = 0;
        for (int c = 0; c < SL_CATS; c++) {
            now[c] += change[i][c];
            sum += now[c];
            if (now[c] > g->cat_peak[c])
                g->cat_peak[c] = now[c];
        }
        if (sum > g->lower_bound) {
            g->lower_bound = sum;
            g->peak_op = i;
            memcpy(g->at_peak, now, sizeof now);
        }
    }
    free(change);
    return 0;
}

static int pack(struct sl_graph *g, int flags)
{
    struct sl_pack_item *item = sl_calloc((size_t)g->nb + 1, sizeof *item);
    int64_t *off = sl_calloc((size_t)g->nb + 1, sizeof *off), top = 0;
    int n = 0;

    if (!item || !off) {
        sl_graph_fail(g, SL_SYSTEM, "cannot plan memory: %s", strerror(errno));
        goto out;
    }
    for (int i = 0; i < g->nb; i++)
        if (transient(&g->b[i]))
            item[n++] = (struct sl_pack_item){g->b[i].bytes, g->b[i].first, g->b[i].last};
    if (flags & SL_PLAN_NO_SHARING) {
        for (int i = 0; i < n; i++) {
            off[i] = top;
            top += item[i].bytes;
        }
    } else {
        struct sl_err err;
        top = sl_pack(item, n, g->lower_bound - g->persistent, off, &err);
        if (top < 0) {
            sl_graph_fail(g, err.code, "%s", err.msg);
            goto out;
        }
    }
    n = 0;
    for (int i = 0; i < g->nb; i++)
        if (transient(&g->b[i]))
            g->b[i].offset = g->persistent + off[n++];
    for (int i = 0; i < g->nb; i++)
        if (g->b[i].alias >= 0)
            g->b[i].offset = g->b[root(g, i)].offset;
    g->arena = g->persistent + top;
out:
    free(item);
    free(off);
    return g->err.code ? -1 : 0;
}

int sl_memplan(struct sl_graph *g, const struct sl_persist *set, int flags)
{
    if (g->err.code || sl_persist_bind(set, g))
        return -1;
    g->persistent = sl_persist_bytes(set);
    lifetimes(g);
    if (!(flags & SL_PLAN_NO_SHARING))
        in_place(g);
    if (count(g, set) || pack(g, flags))
        return -1;
    g->at_peak[SL_CAT_WORKSPACE] += g->arena - g->lower_bound; /* the hole */
    if (g->cat_peak[SL_CAT_WORKSPACE] < g->at_peak[SL_CAT_WORKSPACE])
        g->cat_peak[SL_CAT_WORKSPACE] = g->at_peak[SL_CAT_WORKSPACE];
    return 0;
}

int sl_memplan_overlaps(const struct sl_graph *g)
{
    int bad = 0;

    for (int i = 0; i < g->nb; i++)
        for (int j = 0; j < i; j++) {
            const struct sl_buffer *a = &g->b[i], *b = &g->b[j];
            if (a->first < 0 || b->first < 0 || a->alias >= 0 || b->alias >= 0)
                continue;
            if (a->last < b->first || b->last < a->first)
                continue;
            bad += a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
        }
    return bad;
}

int sl_memplan_cut(struct sl_graph *g, int b)
{
    if (b < 0 || b >= g->nb || !transient(&g->b[b]) || g->b[b].last <= g->b[b].first)
        return -1;
    g->b[b].last--;
    return 0;
}
