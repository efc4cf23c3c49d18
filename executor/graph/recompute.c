#include "executor/graph/recompute.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

struct pass {
    struct sl_graph *g;
    struct sl_op *old;
    int nold, nt;
    int *home; /* by tensor: the unit whose forward made it, or -1 */
    int *map;  /* by tensor: its recomputed twin, or -1 */
    char *need, *want, *skip, *done;
};

static int prepare(struct pass *p)
{
    struct sl_graph *g = p->g;
    size_t nt = (size_t)g->nt + 1, nu = (size_t)g->nunits + 1;

    p->home = sl_calloc(nt, sizeof *p->home);
    p->map = sl_calloc(nt, sizeof *p->map);
    p->need = sl_calloc(nt, 1);
    p->want = sl_calloc((size_t)g->nops + 1, 1);
    p->skip = sl_calloc(nu, 1);
    p->done = sl_calloc(nu, 1);
    if (!p->home || !p->map || !p->need || !p->want || !p->skip || !p->done)
        return sl_graph_fail(g, SL_SYSTEM, "cannot plan recomputation: %s", strerror(errno));
    for (int i = 0; i < g->nt; i++)
        p->home[i] = p->map[i] = -1;
    return 0;
}

/* Which forward operations does a unit's own backward want again? */
static void select_ops(struct pass *p)
{
    const struct sl_graph *g = p->g;

    for (int i = 0; i < g->nfwd; i++) {
        const struct sl_op *o = &p->old[i];
        for (int a = 0; a < SL_MAX_OUT; a++)
            if (o->out[a] >= 0)
                p->home[o->out[a]] = o->home;
        if (o->kind == SL_OP_EMBED || o->kind == SL_OP_HEAD)
            p->skip[o->home] = 1;
    }
    for (int i = g->nfwd; i < p->nold; i++)
        for (int a = 0; a < SL_MAX_IN; a++) {
            int t = p->old[i].in[a];
            if (t >= 0 && p->home[t] == p->old[i].home && !p->skip[p->old[i].home])
                p->need[t] = 1;
        }
    for (int i = g->nfwd - 1; i >= 0; i--) {
        const struct sl_op *o = &p->old[i];
        for (int a = 0; a < SL_MAX_OUT; a++)
            if (o->out[a] >= 0 && p->need[o->out[a]])
                p->want[i] = 1;
        for (int a = 0; p->want[i] && a < SL_MAX_IN; a++)
            if (o->in[a] >= 0 && p->home[o->in[a]] == o->home)
                p->need[o->in[a]] = 1;
    }
}

static void clone_unit(struct pass *p, int unit)
{
    struct sl_graph *g = p->g;

    for (int k = 0; k < g->nfwd; k++) {
        struct sl_op c = p->old[k];
        if (!p->want[k] || c.home != unit)
            continue;
        for (int a = 0; a < SL_MAX_IN; a++)
            if (c.in[a] >= 0 && p->home[c.in[a]] == unit && p->map[c.in[a]] >= 0)
                c.in[a] = p->map[c.in[a]];
        for (int a = 0; a < SL_MAX_OUT; a++) {
            int t = c.out[a];
            if (t < 0)
                continue;
            c.out[a] = sl_tensor_new(g, SL_CAT_ACTIVATIONS, g->t[t].n, g->t[t].width, g->t[t].type);
            p->map[t] = c.out[a];
        }
        sl_op_push(g, &c);
    }
}

int sl_recompute(struct sl_graph *g)
{
    struct pass p = {.g = g, .old = g->ops, .nold = g->nops, .nt = g->nt};

    if (g->err.code)
        return -1;
    if (prepare(&p))
        goto out;
    select_ops(&p);
    g->ops = NULL;
    g->nops = g->room_ops = 0;
    for (int i = 0; i < p.nold; i++) {
        struct sl_op o = p.old[i];
        int back = i >= g->nfwd;

        if (back && !p.skip[o.home] && !p.done[o.home]) {
            p.done[o.home] = 1;
            clone_unit(&p, o.home);
        }
        for (int a = 0; back && a < SL_MAX_IN; a++)
            if (o.in[a] >= 0 && o.in[a] < p.nt && p.home[o.in[a]] == o.home
                && p.map[o.in[a]] >= 0)
                o.in[a] = p.map[o.in[a]];
        sl_op_push(g, &o);
    }
    free(p.old);
out:
    free(p.home);
    free(p.map);
    free(p.need);
    free(p.want);
    free(p.skip);
    free(p.done);
    return g->err.code ? -1 : 0;
}
