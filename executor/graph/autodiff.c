#include "executor/graph/autodiff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

struct pass {
    struct sl_graph *g;
    int *grad;  /* by tensor of the description: its gradient so far, or -1 */
    char *need; /* by tensor: a trainable parameter lies behind it */
};

/* The gradient tensor of a parameter, made at its first use; -1 for a frozen one. */
static int param_grad(struct sl_graph *g, int value)
{
    int id = g->t[value].param, t;

    if (g->par[id].frozen)
        return -1;
    if (g->par[id].grad < 0) {
        t = sl_tensor_add(g, -1, g->par[id].off, g->par[id].n, g->ptype);
        g->t[t].width = g->t[value].width;
        g->t[t].param = id;
        g->t[t].is_grad = 1;
        g->par[id].grad = t;
    }
    return g->par[id].grad;
}

/* The same, where the kernel must have a place: a frozen parameter's goes to scratch, unread. */
static int param_sink(struct sl_graph *g, int value)
{
    int t = param_grad(g, value);

    return t >= 0 ? t
                  : sl_tensor_new(g, SL_CAT_WORKSPACE, g->t[value].n, g->t[value].width, g->ptype);
}

static int like(struct sl_graph *g, int x)
{
    return sl_tensor_new(g, SL_CAT_ACTIVATIONS, g->t[x].n, g->t[x].width, g->t[x].type);
}

static struct sl_op *backward(struct sl_graph *g, const struct sl_op *f, enum sl_kind kind)
{
    struct sl_op *o = sl_op_add(g, kind);

    o->a = f->a;
    o->id = f->id; /* the same random stream: a dropout's mask is made again, not stored */
    o->home = f->home;
    return o;
}

/* x receives one more contribution to its gradient. */
static void give(struct pass *p, const struct sl_op *f, int x, int dx)
{
    struct sl_graph *g = p->g;
    struct sl_op *o;
    int y;

    if (!p->need[x])
        return;
    if (p->grad[x] < 0) {
        p->grad[x] = dx;
        return;
    }
    y = like(g, x);
    o = backward(g, f, SL_OP_ADD);
    memset(&o->a, 0, sizeof o->a);
    o->in[0] = dx; /* dies here: may be overwritten */
    o->in[1] = p->grad[x];
    o->out[0] = y;
    o->a.n = g->t[x].n;
    p->grad[x] = y;
}

/* The rule of one operation whose result has the gradient dy (-1: the head). f is a copy. */
static void rule(struct pass *p, int at, const struct sl_op *f, int dy)
{
    struct sl_graph *g = p->g;
    struct sl_op *o;
    int x = f->in[0], dx, dw, db;

    switch (f->kind) {
    case SL_OP_HEAD:
        dw = param_sink(g, f->in[1]);
        dx = like(g, x);
        g->ops[at].out[1] = dx;
        g->ops[at].acc[0] = dw;
        give(p, f, x, dx);
        break;
    case SL_OP_EMBED:
        dw = param_grad(g, x);
        if (dw < 0)
            break;
        o = backward(g, f, SL_OP_EMBED_BWD);
        o->in[0] = dy;
        o->in[1] = f->in[1];
        o->acc[0] = dw;
        break;
    case SL_OP_POSITION:
        dw = param_grad(g, x);
        if (dw >= 0) {
            o = backward(g, f, SL_OP_POSITION_BWD);
            o->in[0] = dy;
            o->acc[0] = dw;
        }
        give(p, f, f->in[1], dy);
        break;
    case SL_OP_LAYERNORM:
        dw = param_sink(g, f->in[1]);
        db = param_sink(g, f->in[2]);
        dx = like(g, x);
        o = backward(g, f, SL_OP_LAYERNORM_BWD);
        o->in[0] = dy;
        o->in[1] = x;
        o->in[2] = f->in[1];
        o->in[3] = f->out[1];
        o->out[0] = dx;
        o->acc[0] = dw;
        o->acc[1] = db;
        give(p, f, x, dx);
        break;
    case SL_OP_LINEAR:
        dw = param_grad(g, f->in[1]);
        db = param_grad(g, f->in[2]);
        if (dw >= 0 || db >= 0) {
            dw = param_sink(g, f->in[1]);
            o = backward(g, f, SL_OP_LINEAR_DW);
            o->in[0] = dy;
            o->in[1] = x;
            o->acc[0] = dw;
            o->acc[1] = db;
        }
        if (!p->need[x])
            break;
        dx = like(g, x);
        o = backward(g, f, SL_OP_LINEAR_DX);
        o->in[0] = dy;
        o->in[1] = f->in[1];
        o->out[0] = dx;
        give(p, f, x, dx);
        break;
    case SL_OP_GELU:
        dx = like(g, x);
        o = backward(g, f, SL_OP_GELU_BWD);
        o->in[0] = dy;
        o->in[1] = x;
        o->out[0] = dx;
        give(p, f, x, dx);
        break;
    case SL_OP_DROPOUT:
        dx = like(g, x);
        o = backward(g, f, SL_OP_DROPOUT_BWD);
        o->in[0] = dy;
        o->out[0] = dx;
        give(p, f, x, dx);
        break;
    case SL_OP_ADD:
        give(p, f, x, dy);
        give(p, f, f->in[1], dy);
        break;
    case SL_OP_ATTENTION:
        dx = like(g, x);
        o = backward(g, f, SL_OP_ATTENTION_BWD);
        o->in[0] = dy;
        o->in[1] = x;
        o->in[2] = f->out[0];
        o->in[3] = f->out[1];
        o->out[0] = dx;
        give(p, f, x, dx);
        break;
    default:
        sl_graph_fail(g, SL_BUG, "the operation %s has no backward rule", sl_kind_names[f->kind]);
    }
}

/* Forward over the description: does anything trainable lie behind a tensor? */
static int mark(struct pass *p, int nops)
{
    struct sl_graph *g = p->g;
    int any = 0;

    for (int i = 0; i < nops; i++) {
        const struct sl_op *o = &g->ops[i];
        int hit = 0;

        for (int a = 0; a < SL_MAX_IN; a++) {
            int t = o->in[a];
            if (t >= 0)
                hit |= g->t[t].param >= 0 ? !g->par[g->t[t].param].frozen : p->need[t];
        }
        for (int a = 0; a < SL_MAX_OUT; a++)
            if (o->out[a] >= 0)
                p->need[o->out[a]] = (char)hit;
        any |= hit;
    }
    return any;
}

int sl_autodiff(struct sl_graph *g)
{
    struct pass p = {.g = g};
    int nops = g->nops, nt = g->nt;

    if (g->err.code)
        return -1;
    if (g->loss < 0)
        return sl_graph_fail(g, SL_USAGE, "the model has no output layer");
    g->nfwd = nops;
    p.grad = sl_calloc((size_t)nt, sizeof *p.grad);
    p.need = sl_calloc((size_t)nt, 1);
    if (!p.grad || !p.need) {
        sl_graph_fail(g, SL_SYSTEM, "cannot differentiate: %s", strerror(errno));
        goto out;
    }
    for (int i = 0; i < nt; i++)
        p.grad[i] = -1;
    if (!mark(&p, nops)) {
        sl_graph_fail(g, SL_USAGE, "the model has no parameter to train");
        goto out;
    }
    for (int i = nops - 1; i >= 0 && !g->err.code; i--) {
        struct sl_op f = g->ops[i];
        int dy = f.kind == SL_OP_HEAD ? -1 : p.grad[f.out[0]];

        if (dy >= 0 || (f.kind == SL_OP_HEAD && p.need[f.out[0]]))
            rule(&p, i, &f, dy);
    }
out:
    free(p.grad);
    free(p.need);
    return g->err.code ? -1 : 0;
}
