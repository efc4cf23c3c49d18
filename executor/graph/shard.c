#include "executor/graph/shard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "executor/job.h"

/* What a strategy means, once the number of ranks is known. */
struct rules {
    int gathered;  /* parameters live as shards */
    int scattered; /* gradients leave for the shards as backward goes */
    int bucketed;  /* gradients are summed in place as backward goes, in the last micro-step */
    int one_owner; /* rank 0 alone has an optimizer */
    int full_opt;  /* the optimizer covers the full buffer, on every rank or on rank 0 */
};

struct pass {
    struct sl_graph *g;
    struct rules r;
    struct sl_op *old;
    int nold;
    int *first, *last; /* by unit: first and last operation that adds to its gradient, or -1 */
    int *now;          /* by unit: the gathered copy of its present stay, or -1 */
};

static struct rules rules_of(int strategy, int ranks)
{
    struct rules r = {0};

    if (ranks == 1) { /* shard and full copy are one: nothing to move */
        r.full_opt = 1;
        return r;
    }
    r.gathered = strategy == SL_ZERO3;
    r.scattered = strategy == SL_ZERO2 || strategy == SL_ZERO3;
    r.bucketed = strategy == SL_DDP;
    r.one_owner = strategy == SL_DP;
    r.full_opt = strategy == SL_DDP || strategy == SL_DP;
    return r;
}

static int persistent(struct sl_graph *g, int u, enum sl_role role, int64_t n)
{
    static const enum sl_cat cat[] = {
        [SL_ROLE_PARAM] = SL_CAT_PARAMETERS, [SL_ROLE_GRAD] = SL_CAT_GRADIENTS,
        [SL_ROLE_MASTER] = SL_CAT_OPTIMIZER, [SL_ROLE_M] = SL_CAT_OPTIMIZER,
        [SL_ROLE_V] = SL_CAT_OPTIMIZER,
    };
    enum sl_dtype type = role >= SL_ROLE_MASTER ? SL_F32 : g->ptype;
    int t = sl_tensor_new(g, cat[role], n, n, type);
    struct sl_buffer *b = &g->b[g->t[t].buf];

    b->persistent = 1;
    b->unit = u;
    b->role = role;
    return t;
}

static int64_t full_n(const struct sl_graph *g, int u)
{
    return g->unit[u].shard * g->ranks;
}

/* A full buffer in flight: alive from its first to its last use. */
static int in_flight(struct sl_graph *g, int u)
{
    return sl_tensor_new(g, SL_CAT_COMMUNICATION, full_n(g, u), full_n(g, u), g->ptype);
}

/* My piece of a full buffer. */
static int mine(struct sl_graph *g, int whole, int u)
{
    int t = sl_tensor_add(g, g->t[whole].buf, 0, g->unit[u].shard, g->t[whole].type);

    g->t[t].by_rank = 1;
    return t;
}

static int param_unit(const struct sl_graph *g, int t)
{
    if (t < 0 || g->t[t].param < 0 || g->t[t].is_grad)
        return -1;
    return g->par[g->t[t].param].unit;
}

/* Does the operation read a parameter of unit u (of any unit: u < 0)? */
static int uses(const struct sl_graph *g, const struct sl_op *o, int u)
{
    for (int i = 0; i < SL_MAX_IN; i++) {
        int of = param_unit(g, o->in[i]);
        if (of >= 0 && (u < 0 || of == u))
            return 1;
    }
    return 0;
}

static struct sl_op *comm(struct pass *p, enum sl_kind kind, int u, int in, int out, int acc)
{
    struct sl_op *o = sl_op_add(p->g, kind);

    o->unit = u;
    o->home = -1;
    o->in[0] = in;
    o->out[0] = out;
    o->acc[0] = acc;
    o->a.n = p->g->unit[u].shard;
    return o;
}

static void find_gradients(struct pass *p)
{
    const struct sl_graph *g = p->g;

    for (int i = 0; i < p->nold; i++)
        for (int a = 0; a < SL_MAX_ACC; a++) {
            int t = p->old[i].acc[a], u;
            if (t < 0 || g->t[t].param < 0)
                continue;
            u = g->par[g->t[t].param].unit;
            if (p->first[u] < 0)
                p->first[u] = i;
            p->last[u] = i;
        }
}

/* The unit's buffers that last from step to step, and the views of its parameters. */
static void place_unit(struct pass *p, int u)
{
    struct sl_graph *g = p->g;
    struct sl_unit *un = &g->unit[u];
    int64_t full = full_n(g, u), opt = p->r.full_opt ? full : un->shard;

    if (p->r.gathered) {
        un->psh = persistent(g, u, SL_ROLE_PARAM, un->shard);
    } else {
        un->pfull = persistent(g, u, SL_ROLE_PARAM, full);
        un->psh = mine(g, un->pfull, u);
    }
    if (p->first[u] >= 0) { /* else frozen or unused: no gradient, no optimizer state */
        if (p->r.scattered) {
            un->gfull = in_flight(g, u);
            un->gsh = persistent(g, u, SL_ROLE_GRAD, un->shard);
        } else {
            un->gfull = persistent(g, u, SL_ROLE_GRAD, full);
            un->gsh = mine(g, un->gfull, u);
        }
        if (g->ptype == SL_BF16)
            un->master = persistent(g, u, SL_ROLE_MASTER, opt);
        un->m = persistent(g, u, SL_ROLE_M, opt);
        un->v = persistent(g, u, SL_ROLE_V, opt);
        if (p->r.one_owner) {
            if (un->master >= 0)
                g->b[g->t[un->master].buf].rank0 = 1;
            g->b[g->t[un->m].buf].rank0 = g->b[g->t[un->v].buf].rank0 = 1;
        }
    }
    for (int i = 0; i < g->npar; i++) {
        if (g->par[i].unit != u)
            continue;
        if (un->pfull >= 0)
            g->t[g->par[i].value].buf = g->t[un->pfull].buf;
        if (g->par[i].grad >= 0)
            g->t[g->par[i].grad].buf = g->t[un->gfull].buf;
    }
}

/* zero3: operation o reads gathered copies; those that nobody reads any more are let go. */
static void stay(struct pass *p, struct sl_op *o)
{
    struct sl_graph *g = p->g;

    if (!uses(g, o, -1))
        return;
    for (int u = 0; u < g->nunits; u++)
        if (p->now[u] >= 0 && !uses(g, o, u))
            p->now[u] = -1;
    for (int a = 0; a < SL_MAX_IN; a++) {
        int u = param_unit(g, o->in[a]), t;
        const struct sl_tensor *old;
        if (u < 0)
            continue;
        if (p->now[u] < 0) {
            p->now[u] = in_flight(g, u);
            comm(p, SL_OP_GATHER, u, g->unit[u].psh, p->now[u], -1);
        }
        old = &g->t[o->in[a]];
        t = sl_tensor_add(g, g->t[p->now[u]].buf, old->off, old->n, old->type);
        g->t[t].width = g->t[o->in[a]].width;
        o->in[a] = t;
    }
}

/* What follows the operation that completes a unit's gradient. */
static void reduce(struct pass *p, int u)
{
    struct sl_graph *g = p->g;
    struct sl_op *o;

    if (p->r.scattered) {
        o = comm(p, SL_OP_REDUCE_SCATTER, u, g->unit[u].gfull, -1, g->unit[u].gsh);
        o->a.accumulate = 1;
        comm(p, SL_OP_COMM_WAIT, u, g->unit[u].gfull, -1, -1);
    } else if (p->r.bucketed) {
        o = comm(p, SL_OP_REDUCE_INPLACE, u, -1, -1, g->unit[u].gfull);
        o->a.last_micro = 1;
    }
}

static void adamw(struct pass *p, int u)
{
    const struct sl_unit *un = &p->g->unit[u];
    int whole = p->r.full_opt;
    struct sl_op *o = comm(p, SL_OP_ADAMW, u, whole ? un->gfull : un->gsh, -1,
                           whole ? un->pfull : un->psh);

    o->acc[1] = un->m;
    o->acc[2] = un->v;
    o->acc[3] = un->master;
    o->a.n = whole ? full_n(p->g, u) : un->shard;
    o->a.from_rank = !whole;
    o->a.rank0 = p->r.one_owner;
}

/* The optimizer step: complete the sums, the norm, the update, and the parameters to all ranks. */
static void finish(struct pass *p)
{
    struct sl_graph *g = p->g;
    int many = g->ranks > 1, any = 0;

    g->cur_unit = -1;
    for (int u = 0; u < g->nunits; u++) {
        if (p->first[u] < 0)
            continue;
        any = 1;
        if (p->r.one_owner)
            comm(p, SL_OP_REDUCE, u, -1, -1, g->unit[u].gfull);
        else if (many && !p->r.bucketed && !p->r.scattered)
            comm(p, SL_OP_REDUCE_INPLACE, u, -1, -1, g->unit[u].gfull);
    }
    if (!any)
        return;
    for (int u = 0; u < g->nunits; u++) {
        struct sl_op *o;
        if (p->first[u] < 0)
            continue;
        o = comm(p, SL_OP_NORM_PART, u, p->r.one_owner ? g->unit[u].gfull : g->unit[u].gsh, -1, -1);
        o->a.rank0 = p->r.one_owner;
    }
    sl_op_add(g, SL_OP_NORM_MERGE);
    for (int u = 0; u < g->nunits; u++) {
        if (p->first[u] < 0)
            continue;
        if (p->r.bucketed)
            comm(p, SL_OP_ALLGATHER_INPLACE, u, -1, -1, g->unit[u].gfull);
        adamw(p, u);
    }
    for (int u = 0; u < g->nunits; u++) {
        if (p->first[u] < 0 || !many || p->r.bucketed || p->r.gathered)
            continue;
        comm(p, p->r.one_owner ? SL_OP_BROADCAST : SL_OP_ALLGATHER_INPLACE, u, -1, -1,
             g->unit[u].pfull);
    }
    sl_op_add(g, SL_OP_STEP_END);
}

static void rewrite(struct pass *p)
{
    struct sl_graph *g = p->g;

    g->ops = NULL;
    g->nops = g->room_ops = 0;
    for (int i = 0; i < p->nold; i++) {
        struct sl_op o = p->old[i];

        if (p->r.gathered)
            stay(p, &o);
        for (int u = 0; u < g->nunits; u++)
            if (p->first[u] == i) { /* padding included: the norm sees it */
                struct sl_op *z = comm(p, SL_OP_ZERO, u, -1, g->unit[u].gfull, -1);
                z->a.first_micro = !p->r.scattered;
            }
        sl_op_push(g, &o);
        for (int u = 0; u < g->nunits; u++)
            if (p->last[u] == i)
                reduce(p, u);
    }
    g->opt_start = g->nops;
    finish(p);
}

int sl_shard(struct sl_graph *g, int strategy, int ranks)
{
    struct pass p = {.g = g, .old = g->ops, .nold = g->nops};
    size_t nu = (size_t)g->nunits + 1;
    int64_t grain = 64 / sl_dtype_size(g->ptype); /* a shard is whole cache lines */

    if (g->err.code)
        return -1;
    if (ranks < 1 || strategy < 0 || strategy >= SL_STRATEGIES)
        return sl_graph_fail(g, SL_USAGE, "no strategy %d over %d ranks", strategy, ranks);
    p.r = rules_of(strategy, ranks);
    p.first = sl_calloc(nu, sizeof *p.first);
    p.last = sl_calloc(nu, sizeof *p.last);
    p.now = sl_calloc(nu, sizeof *p.now);
    if (!p.first || !p.last || !p.now) {
        sl_graph_fail(g, SL_SYSTEM, "cannot shard the graph: %s", strerror(errno));
        goto out;
    }
    g->ranks = ranks;
    g->strategy = strategy;
    for (int u = 0; u < g->nunits; u++) {
        int64_t each = (g->unit[u].n + ranks - 1) / ranks;
        p.first[u] = p.last[u] = p.now[u] = -1;
        g->unit[u].shard = (each + grain - 1) / grain * grain;
    }
    find_gradients(&p);
    for (int u = 0; u < g->nunits; u++)
        place_unit(&p, u);
    rewrite(&p);
    free(p.old);
out:
    free(p.first);
    free(p.last);
    free(p.now);
    return g->err.code ? -1 : 0;
}
