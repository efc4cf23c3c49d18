#include "executor/graph/schedule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "executor/graph/ops.h"

/* Each gather moves to where the one before it stood. */
static void prefetch_gathers(struct sl_graph *g)
{
    struct sl_op *old = g->ops;
    int nold = g->nops, next = -1, start = g->opt_start;

    g->ops = NULL;
    g->nops = g->room_ops = 0;
    for (int i = 0; i < nold; i++) {
        if (i == start)
            g->opt_start = g->nops;
        if (old[i].kind != SL_OP_GATHER) {
            sl_op_push(g, &old[i]);
            continue;
        }
        if (next < 0)
            sl_op_push(g, &old[i]); /* the first has nobody before it */
        for (next = i + 1; next < nold && old[next].kind != SL_OP_GATHER; next++)
            ;
        if (next < nold)
            sl_op_push(g, &old[next]);
    }
    if (start == nold)
        g->opt_start = g->nops;
    free(old);
}

/* Does a full buffer in flight come to life here? */
static int begins(const struct sl_graph *g, const struct sl_op *o)
{
    return o->out[0] >= 0 && g->b[g->t[o->out[0]].buf].cat == SL_CAT_COMMUNICATION;
}

static void delay_waits(struct sl_graph *g)
{
    for (int i = g->opt_start - 1; i >= 0; i--) {
        struct sl_op w = g->ops[i];
        int to = i;

        if (w.kind != SL_OP_COMM_WAIT)
            continue;
        while (to + 1 < g->opt_start && !begins(g, &g->ops[to + 1])
               && g->ops[to + 1].kind != SL_OP_COMM_WAIT) {
            g->ops[to] = g->ops[to + 1];
            to++;
            if (g->ops[to - 1].kind == SL_OP_REDUCE_SCATTER)
                break; /* its barrier answers this wait */
        }
        g->ops[to] = w;
    }
}

static void written(const struct sl_graph *g, const struct sl_op *o, char *dirty)
{
    for (int a = 0; a < SL_MAX_OUT; a++)
        if (o->out[a] >= 0)
            dirty[g->t[o->out[a]].buf] = 1;
    for (int a = 0; a < SL_MAX_ACC; a++)
        if (o->acc[a] >= 0)
            dirty[g->t[o->acc[a]].buf] = 1;
}

/*
 * dirty[b]: written by somebody since all met; lent[b]: peers may be reading it since then. The
 * start is clean: a step ends with a barrier, and so does start-up. A barrier that only the last
 * micro-step meets (ddp) answers only operations of that micro-step, which are the same kind.
 */
static void barriers(struct sl_graph *g, char *dirty, char *lent)
{
    size_t nb = (size_t)g->nb;

    for (int i = 0; i < g->nops; i++) {
        struct sl_op *o = &g->ops[i];
        int reads = sl_op_info(o->kind)->reads_peers, buf = -1;

        if (reads)
            buf = g->t[reads == 1 ? o->in[0] : o->acc[0]].buf;
        if (o->kind == SL_OP_NORM_MERGE || o->kind == SL_OP_STEP_END)
            o->a.barrier = 1;
        else if (o->kind == SL_OP_COMM_WAIT)
            o->a.barrier = lent[g->t[o->in[0]].buf];
        else
            o->a.barrier = reads && dirty[buf];
        if (g->ranks == 1)
            o->a.barrier = 0;
        if (o->a.barrier) {
            memset(dirty, 0, nb);
            memset(lent, 0, nb);
        }
        if (reads)
            lent[buf] = 1;
        written(g, o, dirty);
    }
}

int sl_schedule(struct sl_graph *g, int prefetch)
{
    char *seen;

    if (g->err.code)
        return -1;
    seen = sl_calloc(2 * (size_t)g->nb + 2, 1);
    if (!seen)
        return sl_graph_fail(g, SL_SYSTEM, "cannot schedule the graph: %s", strerror(errno));
    if (prefetch)
        prefetch_gathers(g);
    if (!g->err.code) {
        delay_waits(g);
        barriers(g, seen, seen + g->nb + 1);
    }
    free(seen);
    return g->err.code ? -1 : 0;
}
