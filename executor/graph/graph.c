#include "executor/graph/graph.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

const char *const sl_cat_names[SL_CATS] = {
    "parameters", "gradients", "optimizer", "activations", "communication", "workspace",
};

const char *const sl_kind_names[SL_OP_KINDS] = {
    [SL_OP_EMBED] = "embed",
    [SL_OP_POSITION] = "position",
    [SL_OP_LAYERNORM] = "layernorm",
    [SL_OP_LINEAR] = "linear",
    [SL_OP_GELU] = "gelu",
    [SL_OP_ADD] = "add",
    [SL_OP_DROPOUT] = "dropout",
    [SL_OP_ATTENTION] = "attention",
    [SL_OP_HEAD] = "head",
    [SL_OP_EMBED_BWD] = "embed_bwd",
    [SL_OP_POSITION_BWD] = "position_bwd",
    [SL_OP_LAYERNORM_BWD] = "layernorm_bwd",
    [SL_OP_LINEAR_DX] = "linear_dx",
    [SL_OP_LINEAR_DW] = "linear_dw",
    [SL_OP_GELU_BWD] = "gelu_bwd",
    [SL_OP_DROPOUT_BWD] = "dropout_bwd",
    [SL_OP_ATTENTION_BWD] = "attention_bwd",
    [SL_OP_ZERO] = "zero",
    [SL_OP_BROADCAST] = "broadcast",
    [SL_OP_REDUCE] = "reduce",
    [SL_OP_GATHER] = "gather",
    [SL_OP_REDUCE_SCATTER] = "reduce_scatter",
    [SL_OP_REDUCE_INPLACE] = "reduce_inplace",
    [SL_OP_ALLGATHER_INPLACE] = "allgather_inplace",
    [SL_OP_COMM_WAIT] = "comm_wait",
    [SL_OP_NORM_PART] = "norm_part",
    [SL_OP_NORM_MERGE] = "norm_merge",
    [SL_OP_ADAMW] = "adamw",
    [SL_OP_STEP_END] = "step_end",
};

int sl_graph_fail(struct sl_graph *g, enum sl_code code, const char *fmt, ...)
{
    char text[sizeof g->err.msg];
    va_list ap;

    if (g->err.code)
        return -1;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return sl_fail(&g->err, code, "%s", text);
}

int sl_graph_error(const struct sl_graph *g, struct sl_err *err)
{
    if (!g->err.code)
        return 0;
    if (err)
        *err = g->err;
    return -1;
}

/* Room for one more; a graph that cannot grow is marked failed. */
static int grow(struct sl_graph *g, void **v, int n, int *room, size_t size)
{
    int want = *room ? 2 * *room : 64;
    void *more;

    if (n < *room)
        return 0;
    more = sl_resize(*v, (size_t)want, size);
    if (!more)
        return sl_graph_fail(g, SL_SYSTEM, "cannot hold the graph: %s", strerror(errno));
    *v = more;
    *room = want;
    return 0;
}

struct sl_graph *sl_graph_create(enum sl_dtype ptype, struct sl_err *err)
{
    struct sl_graph *g = sl_calloc(1, sizeof *g);

    if (!g)
        goto fail;
    g->ptype = ptype;
    g->cur_unit = g->ids = g->targets = g->loss = g->peak_op = -1;
    /* index 0 always exists, so that a failed add has a safe answer */
    if (grow(g, (void **)&g->t, 0, &g->room_t, sizeof *g->t)
        || grow(g, (void **)&g->b, 0, &g->room_b, sizeof *g->b)
        || grow(g, (void **)&g->par, 0, &g->room_par, sizeof *g->par)
        || grow(g, (void **)&g->unit, 0, &g->room_unit, sizeof *g->unit))
        goto fail;
    memset(g->t, 0, sizeof *g->t);
    memset(g->b, 0, sizeof *g->b);
    memset(g->par, 0, sizeof *g->par);
    memset(g->unit, 0, sizeof *g->unit);
    return g;
fail:
    sl_graph_destroy(g);
    sl_fail(err, SL_SYSTEM, "cannot hold the graph: %s", strerror(errno));
    return NULL;
}

void sl_graph_destroy(struct sl_graph *g)
{
    if (!g)
        return;
    free(g->ops);
    free(g->t);
    free(g->b);
    free(g->par);
    free(g->unit);
    free(g);
}

int sl_buffer_add(struct sl_graph *g, int64_t bytes, enum sl_cat cat)
{
    if (bytes < 0 || bytes > SL_MOST_BYTES - g->counted) {
        sl_graph_fail(g, SL_USAGE, "the model needs more than 16 PiB a rank, with all that it computes");
        bytes = 0; /* whatever sums it up does not overflow until someone looks at the error */
    }
    g->counted += bytes;
    if (grow(g, (void **)&g->b, g->nb, &g->room_b, sizeof *g->b))
        return 0;
    g->b[g->nb] = (struct sl_buffer){
        .bytes = (bytes + 63) & ~(int64_t)63,
        .offset = -1,
        .cat = cat,
        .unit = -1,
        .first = -1,
        .last = -1,
        .alias = -1,
    };
    return g->nb++;
}

int sl_tensor_add(struct sl_graph *g, int buf, int64_t off, int64_t n, enum sl_dtype type)
{
    if (grow(g, (void **)&g->t, g->nt, &g->room_t, sizeof *g->t))
        return 0;
    g->t[g->nt] = (struct sl_tensor){
        .buf = buf, .off = off, .n = n, .width = n, .type = type, .param = -1};
    return g->nt++;
}

int sl_tensor_new(struct sl_graph *g, enum sl_cat cat, int64_t n, int64_t width, enum sl_dtype type)
{
    int t = sl_tensor_add(g, sl_buffer_add(g, n * sl_dtype_size(type), cat), 0, n, type);

    g->t[t].width = width;
    return t;
}

int sl_unit_add(struct sl_graph *g)
{
    if (grow(g, (void **)&g->unit, g->nunits, &g->room_unit, sizeof *g->unit))
        return 0;
    g->unit[g->nunits] = (struct sl_unit){.pfull = -1,
                                          .psh = -1,
                                          .gfull = -1,
                                          .gsh = -1,
                                          .master = -1,
                                          .m = -1,
                                          .v = -1};
    return g->nunits++;
}

int sl_param_slot(struct sl_graph *g)
{
    if (grow(g, (void **)&g->par, g->npar, &g->room_par, sizeof *g->par))
        return 0;
    g->par[g->npar] = (struct sl_param){.unit = -1, .value = -1, .grad = -1};
    return g->npar++;
}

static void blank(struct sl_op *o, enum sl_kind kind)
{
    memset(o, 0, sizeof *o);
    o->kind = kind;
    for (int i = 0; i < SL_MAX_IN; i++)
        o->in[i] = -1;
    for (int i = 0; i < SL_MAX_OUT; i++)
        o->out[i] = -1;
    for (int i = 0; i < SL_MAX_ACC; i++)
        o->acc[i] = -1;
    o->ws = o->unit = o->id = -1;
}

struct sl_op *sl_op_add(struct sl_graph *g, enum sl_kind kind)
{
    struct sl_op *o = &g->spare;

    if (!grow(g, (void **)&g->ops, g->nops, &g->room_ops, sizeof *g->ops))
        o = &g->ops[g->nops++];
    blank(o, kind);
    o->home = g->cur_unit;
    return o;
}

void sl_op_push(struct sl_graph *g, const struct sl_op *op)
{
    struct sl_op copy = *op; /* op may lie in the list that moves */

    *sl_op_add(g, op->kind) = copy;
}
