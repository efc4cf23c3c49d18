/* call.c - one small function a kind of operation, and the table of them */
#include "executor/call.h"

#include <math.h>
#include <stdio.h>

#include "kernels/add/add.h"
#include "kernels/attention/attention.h"
#include "kernels/dropout/dropout.h"
#include "kernels/embed/embed.h"
#include "kernels/gelu/gelu.h"
#include "kernels/head/head.h"
#include "kernels/layernorm/layernorm.h"
#include "kernels/linear/linear.h"
#include "kernels/position/position.h"
#include "kernels/sumsq/sumsq.h"
#include "kernels/zero/zero.h"

static const float layernorm_eps = 1e-5f; /* GPT-2's */

static enum sl_dtype type_of(const struct sl_call *c, int tensor)
{
    return c->r->g->t[tensor].type;
}

static int embed(struct sl_call *c, struct sl_err *err)
{
    const struct sl_op *o = c->o;
    struct sl_k_embed a = {
        .ids = c->in[1],
        .w = c->in[0],
        .y = c->out[0],
        .wtype = type_of(c, o->in[0]),
        .ytype = type_of(c, o->out[0]),
        .rows = o->a.rows,
        .width = o->a.width,
        .vocab = o->a.vocab,
    };

    return sl_k_embed(c->r->dev, &a, err);
}

static int embed_bwd(struct sl_call *c, struct sl_err *err)
{
    const struct sl_op *o = c->o;
    struct sl_k_embed_bwd a = {
        .ids = c->in[1],
        .dy = c->in[0],
        .dw = c->acc[0],
        .wtype = type_of(c, o->acc[0]),
        .ytype = type_of(c, o->in[0]),
        .rows = o->a.rows,
        .width = o->a.width,
        .vocab = o->a.vocab,
    };

    return sl_k_embed_bwd(c->r->dev, &a, err);
}

static int position(struct sl_call *c, struct sl_err *err)
{
    struct sl_k_position a = {
        .x = c->in[1],
        .w = c->in[0],
        .y = c->out[0],
        .rows = c->o->a.rows,
        .width = c->o->a.width,
        .context = c->o->a.context,
    };

    return sl_k_position(c->r->dev, &a, err);
}

static int position_bwd(struct sl_call *c, struct sl_err *err)
{
    struct sl_k_position_bwd a = {
        .dy = c->in[0],
        .dw = c->acc[0],
        .rows = c->o->a.rows,
        .width = c->o->a.width,
        .context = c->o->a.context,
    };

    return sl_k_position_bwd(c->r->dev, &a, err);
}

static int layernorm(struct sl_call *c, struct sl_err *err)
{
    struct sl_k_layernorm a = {
        .x = c->in[0],
        .gain = c->in[1],
        .bias = c->in[2],
        .y = c->out[0],
        .stat = c->out[1],
        .rows = c->o->a.rows,
        .width = c->o->a.width,
        .eps = layernorm_eps,
    };

    return sl_k_layernorm(c->r->dev, &a, err);
}

static int layernorm_bwd(struct sl_call *c, struct sl_err *err)
{
    struct sl_k_layernorm_bwd a = {
        .dy = c->in[0],
        .x = c->in[1],
        .gain = c->in[2],
        .stat = c->in[3],
        .dx = c->out[0],
        .dgain = c->acc[0],
        .dbias = c->acc[1],
        .rows = c->o->a.rows,
        .width = c->o->a.width,
    };

    return sl_k_layernorm_bwd(c->r->dev, &a, err);
}

static int linear(struct sl_call *c, struct sl_err *err)
{
    struct sl_k_linear a = {
        .x = c->in[0],
        .w = c->in[1],
        .b = c->in[2],
        .y = c->out[0],
        .rows = c->o->a.rows,
        .in = c->o->a.inner,
        .out = c->o->a.outer,
    };

    return sl_k_linear(c->r->dev, &a, err);
}

static int linear_dx(struct sl_call *c, struct sl_err *err)
{
    struct sl_k_linear_dx a = {
        .dy = c->in[0],
        .w = c->in[1],
        .dx = c->out[0],
        .rows = c->o->a.rows,
        .in = c->o->a.inner,
        .out = c->o->a.outer,
    };

    return sl_k_linear_dx(c->r->dev, &a, err);
}

static int linear_dw(struct sl_call *c, struct sl_err *err)
{
    struct sl_k_linear_dw a = {
        .dy = c->in[0],
        .x = c->in[1],
        .dw = c->acc[0],
        .db = c->acc[1],
        .rows = c->o->a.rows,
        .in = c->o->a.inner,
        .out = c->o->a.outer,
    };

    return sl_k_linear_dw(c->r->dev, &a, err);
}

static int gelu(struct sl_call *c, struct sl_err *err)
{
    struct sl_k_gelu a = {.x = c->in[0], .y = c->out[0], .n = c->o->a.n};

    return sl_k_gelu(c->r->dev, &a, err);
}

static int gelu_bwd(struct sl_call *c, struct sl_err *err)
{
    struct sl_k_gelu_bwd a = {.dy = c->in[0], .x = c->in[1], .dx = c->out[0], .n = c->o->a.n};

    return sl_k_gelu_bwd(c->r->dev, &a, err);
}

static int add(struct sl_call *c, struct sl_err *err)
{
    struct sl_k_add a = {.a = c->in[0], .b = c->in[1], .y = c->out[0], .n = c->o->a.n};

    return sl_k_add(c->r->dev, &a, err);
}

/* Forward and backward alike: the mask is drawn again from the same place. */
static int dropout(struct sl_call *c, struct sl_err *err)
{
    const struct sl_op *o = c->o;
    struct sl_k_dropout a = {
        .x = c->in[0],
        .y = c->out[0],
        .n = o->a.n,
        .per_sample = o->a.context * o->a.width,
        .sample0 = c->r->sample0,
        .step = c->r->step,
        .seed = c->r->spec->seed,
        .op = o->id,
        .p = o->a.p,
    };

    return sl_k_dropout(c->r->dev, &a, err);
}

static int attention(struct sl_call *c, struct sl_err *err)
{
    const struct sl_op *o = c->o;
    struct sl_k_attention a = {
        .qkv = c->in[0],
        .y = c->out[0],
        .lse = c->out[1],
        .samples = o->a.rows / o->a.context,
        .context = o->a.context,
        .width = o->a.width,
        .heads = o->a.heads,
        .scratch = c->ws,
        .scratch_bytes = c->ws_bytes,
    };

    return sl_k_attention(c->r->dev, &a, err);
}

static int attention_bwd(struct sl_call *c, struct sl_err *err)
{
    const struct sl_op *o = c->o;
    struct sl_k_attention_bwd a = {
        .dy = c->in[0],
        .qkv = c->in[1],
        .y = c->in[2],
        .lse = c->in[3],
        .dqkv = c->out[0],
        .samples = o->a.rows / o->a.context,
        .context = o->a.context,
        .width = o->a.width,
        .heads = o->a.heads,
        .scratch = c->ws,
        .scratch_bytes = c->ws_bytes,
    };

    return sl_k_attention_bwd(c->r->dev, &a, err);
}

/* The loss is taken at once: its place in the arena may be another's right after. */
static int head(struct sl_call *c, struct sl_err *err)
{
    const struct sl_op *o = c->o;
    struct sl_k_head a = {
        .x = c->in[0],
        .w = c->in[1],
        .targets = c->in[2],
        .loss = c->out[0],
        .dx = c->out[1],
        .dw = c->acc[0],
        .xtype = type_of(c, o->in[0]),
        .wtype = type_of(c, o->in[1]),
        .rows = o->a.rows,
        .width = o->a.width,
        .vocab = o->a.vocab,
        .scale = c->r->scale,
        .scratch = c->ws,
        .scratch_bytes = c->ws_bytes,
    };

    if (sl_k_head(c->r->dev, &a, err))
        return -1;
    c->r->loss += (double)*(const float *)c->out[0];
    return 0;
}

static int zero(struct sl_call *c, struct sl_err *err)
{
    const struct sl_tensor *t = &c->r->g->t[c->o->out[0]];
    struct sl_k_zero a = {.y = c->out[0], .bytes = t->n * sl_dtype_size(t->type)};

    return sl_k_zero(c->r->dev, &a, err);
}

static struct sl_move move_of(const struct sl_call *c, int tensor)
{
    return (struct sl_move){
        .unit = c->o->unit,
        .shard = c->o->a.n,
        .type = type_of(c, tensor),
        .meet = c->o->a.barrier,
    };
}

static int broadcast(struct sl_call *c, struct sl_err *err)
{
    struct sl_move m = move_of(c, c->o->acc[0]);

    return sl_comm_broadcast(c->r->comm, &m, sl_run_offset(c->r, c->o->acc[0]), err);
}

static int reduce(struct sl_call *c, struct sl_err *err)
{
    struct sl_move m = move_of(c, c->o->acc[0]);

    return sl_comm_reduce(c->r->comm, &m, sl_run_offset(c->r, c->o->acc[0]), err);
}

static int gather(struct sl_call *c, struct sl_err *err)
{
    struct sl_move m = move_of(c, c->o->in[0]);

    return sl_comm_gather(c->r->comm, &m, sl_run_offset(c->r, c->o->in[0]),
                          sl_run_offset(c->r, c->o->out[0]), err);
}

static int reduce_scatter(struct sl_call *c, struct sl_err *err)
{
    struct sl_move m = move_of(c, c->o->in[0]);

    return sl_comm_reduce_scatter(c->r->comm, &m, sl_run_offset(c->r, c->o->in[0]),
                                  sl_run_offset(c->r, c->o->acc[0]),
                                  c->o->a.accumulate && c->r->micro > 0, err);
}

static int reduce_inplace(struct sl_call *c, struct sl_err *err)
{
    struct sl_move m = move_of(c, c->o->acc[0]);

    return sl_comm_reduce_inplace(c->r->comm, &m, sl_run_offset(c->r, c->o->acc[0]), err);
}

static int allgather_inplace(struct sl_call *c, struct sl_err *err)
{
    struct sl_move m = move_of(c, c->o->acc[0]);

    return sl_comm_allgather_inplace(c->r->comm, &m, sl_run_offset(c->r, c->o->acc[0]), err);
}

static int comm_wait(struct sl_call *c, struct sl_err *err)
{
    return sl_comm_wait(c->r->comm, c->o->unit, c->o->a.barrier, err);
}

/*
 * My piece alone, or, where rank 0 has the whole gradient, every piece by itself. A sum that is not
 * finite makes the whole step bad at the merge; which tensor it was is looked for here, before peers read it.
 */
static int norm_part(struct sl_call *c, struct sl_err *err)
{
    const struct sl_run *r = c->r;
    const struct sl_tensor *t = &r->g->t[c->o->in[0]];
    int64_t shard = r->g->unit[c->o->unit].shard;
    double *row = r->comm->ctl->norm + (int64_t)c->o->unit * r->comm->n;
    struct sl_ctl_rank *me = &r->comm->ctl->r[r->comm->rank];
    int all = t->n > shard;

    for (int k = 0; k < (all ? r->comm->n : 1); k++) {
        struct sl_k_sumsq a = {
            .x = (const char *)c->in[0] + k * shard * sl_dtype_size(t->type),
            .type = t->type,
            .n = shard,
            .ret = &row[all ? k : r->comm->rank],
        };

        if (sl_k_sumsq(r->dev, &a, err))
            return -1;
        if (!isfinite(*a.ret) && me->bad_param < 0)
            me->bad_param = sl_grad_bad(r->g, c->o->unit, shard * (all ? k : r->comm->rank), shard,
                                        a.x, t->type);
    }
    return 0;
}

/* Every rank reads the same numbers, so all find a step bad, and leave it out, together. */
static int norm_merge(struct sl_call *c, struct sl_err *err)
{
    struct sl_run *r = c->r;
    struct sl_ctl *ctl = r->comm->ctl;
    struct sl_ctl_rank *me = &ctl->r[r->comm->rank];

    me->loss = r->loss;
    me->stop = atomic_load(&ctl->stop);
    if (c->o->a.barrier && sl_comm_merge(r->comm, r->g->strategy == SL_DP, err))
        return -1;
    sl_merge_read(ctl, r->g, r->spec->grad_clip, &r->merge);
    r->bad_row = r->merge.bad_rank < 0 ? 0 : r->bad_row + 1;
    r->skipped += r->bad_row > 0;
    return 0;
}

static int adamw(struct sl_call *c, struct sl_err *err)
{
    const struct sl_op *o = c->o;
    const struct sl_run *r = c->r;
    const struct sl_tensor *g = &r->g->t[o->in[0]];
    struct sl_adamw_range a = {
        .unit = o->unit,
        .lo = o->a.from_rank ? r->g->unit[o->unit].shard * r->comm->rank : 0,
        .n = g->n,
        .g = c->in[0],
        .gtype = g->type,
        .w = o->acc[3] >= 0 ? c->acc[3] : c->acc[0],
        .m = c->acc[1],
        .v = c->acc[2],
        .copy = o->acc[3] >= 0 ? c->acc[0] : NULL,
    };

    if (r->bad_row) /* the step is left out, on all ranks */
        return 0;
    return sl_adamw_range(r->dev, r->g, r->spec, &a, r->lr, r->merge.gscale, r->step - r->skipped,
                          err);
}

static int step_end(struct sl_call *c, struct sl_err *err)
{
    return c->o->a.barrier ? sl_comm_meet(c->r->comm, SL_OP_STEP_END, -1, err) : 0;
}

sl_call_f *const sl_callers[SL_OP_KINDS] = {
    [SL_OP_EMBED] = embed,
    [SL_OP_POSITION] = position,
    [SL_OP_LAYERNORM] = layernorm,
    [SL_OP_LINEAR] = linear,
    [SL_OP_GELU] = gelu,
    [SL_OP_ADD] = add,
    [SL_OP_DROPOUT] = dropout,
    [SL_OP_ATTENTION] = attention,
    [SL_OP_HEAD] = head,
    [SL_OP_EMBED_BWD] = embed_bwd,
    [SL_OP_POSITION_BWD] = position_bwd,
    [SL_OP_LAYERNORM_BWD] = layernorm_bwd,
    [SL_OP_LINEAR_DX] = linear_dx,
    [SL_OP_LINEAR_DW] = linear_dw,
    [SL_OP_GELU_BWD] = gelu_bwd,
    [SL_OP_DROPOUT_BWD] = dropout,
    [SL_OP_ATTENTION_BWD] = attention_bwd,
    [SL_OP_ZERO] = zero,
    [SL_OP_BROADCAST] = broadcast,
    [SL_OP_REDUCE] = reduce,
    [SL_OP_GATHER] = gather,
    [SL_OP_REDUCE_SCATTER] = reduce_scatter,
    [SL_OP_REDUCE_INPLACE] = reduce_inplace,
    [SL_OP_ALLGATHER_INPLACE] = allgather_inplace,
    [SL_OP_COMM_WAIT] = comm_wait,
    [SL_OP_NORM_PART] = norm_part,
    [SL_OP_NORM_MERGE] = norm_merge,
    [SL_OP_ADAMW] = adamw,
    [SL_OP_STEP_END] = step_end,
};
