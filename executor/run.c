/* run.c - the loop: operands from the arena, conversions, the call, poison */
#include "executor/run.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "executor/call.h"
#include "executor/graph/ops.h"
#include "executor/graph/precision.h"
#include "kernels/convert/convert.h"
#include "kernels/zero/zero.h"

enum { INIT_CHUNK = 1 << 16 }; /* elements made at a time for bf16 parameters */

int64_t sl_run_offset(const struct sl_run *r, int tensor)
{
    const struct sl_tensor *t = &r->g->t[tensor];
    int64_t element = t->off + (t->by_rank ? t->n * r->comm->rank : 0);

    return r->g->b[t->buf].offset + element * sl_dtype_size(t->type);
}

void *sl_run_at(const struct sl_run *r, int tensor)
{
    return tensor < 0 ? NULL : r->arena + sl_run_offset(r, tensor);
}

static int convert(struct sl_run *r, const void *x, enum sl_dtype xtype, void *y,
                   enum sl_dtype ytype, int64_t n, struct sl_err *err)
{
    struct sl_k_convert a = {.x = x, .y = y, .xtype = xtype, .ytype = ytype, .n = n};

    return sl_k_convert(r->dev, &a, err);
}

/* One operand: its place, or its f32 copy in the scratch, filled when it is read. */
static int operand(struct sl_call *c, enum sl_slot_kind kind, int slot, int tensor, void **p,
                   struct sl_err *err)
{
    struct sl_run *r = c->r;
    int64_t at;

    *p = sl_run_at(r, tensor);
    if (tensor < 0 || r->g->t[tensor].type != SL_BF16 || sl_op_info(c->o->kind)->native_bf16)
        return 0;
    at = sl_precision_slot(r->g, c->o, kind, slot, r->dev->threads);
    if (at < 0)
        return sl_fail(err, SL_BUG, "a bf16 operand without a planned copy");
    *p = (char *)sl_run_at(r, c->o->ws) + at;
    if (kind == SL_SLOT_OUT)
        return 0;
    return convert(r, sl_run_at(r, tensor), SL_BF16, *p, SL_F32, r->g->t[tensor].n, err);
}

/* A result that was made in f32 goes back where it belongs. */
static int put_back(struct sl_call *c, int tensor, const void *p, struct sl_err *err)
{
    void *home = sl_run_at(c->r, tensor);

    if (tensor < 0 || p == home)
        return 0;
    return convert(c->r, p, SL_F32, home, SL_BF16, c->r->g->t[tensor].n, err);
}

static int call(struct sl_run *r, const struct sl_op *o, struct sl_err *err)
{
    struct sl_call c = {.r = r, .o = o};

    for (int i = 0; i < SL_MAX_IN; i++)
        if (operand(&c, SL_SLOT_IN, i, o->in[i], &c.in[i], err))
            return -1;
    for (int i = 0; i < SL_MAX_OUT; i++)
        if (operand(&c, SL_SLOT_OUT, i, o->out[i], &c.out[i], err))
            return -1;
    for (int i = 0; i < SL_MAX_ACC; i++)
        if (operand(&c, SL_SLOT_ACC, i, o->acc[i], &c.acc[i], err))
            return -1;
    if (o->ws >= 0) {
        c.ws = sl_run_at(r, o->ws);
        c.ws_bytes = sl_precision_kernel_bytes(r->g, o, r->dev->threads);
    }
    if (sl_callers[o->kind](&c, err))
        return -1;
    for (int i = 0; i < SL_MAX_OUT; i++)
        if (put_back(&c, o->out[i], c.out[i], err))
            return -1;
    for (int i = 0; i < SL_MAX_ACC; i++)
        if (put_back(&c, o->acc[i], c.acc[i], err))
            return -1;
    return 0;
}

/* All ones is a NaN in f32 and in bf16, and an id outside every table. */
static void poison(struct sl_run *r, int op)
{
    for (int i = 0; i < r->g->nb; i++) {
        const struct sl_buffer *b = &r->g->b[i];

        if (b->last == op && !b->persistent && b->alias < 0)
            memset(r->arena + b->offset, 0xff, (size_t)b->bytes);
    }
}

static void look(struct sl_run *r, int op)
{
    const struct sl_op *o = &r->g->ops[op];
    int bad = 0;

    for (int i = 0; i < SL_MAX_OUT + SL_MAX_ACC; i++) {
        int t = i < SL_MAX_OUT ? o->out[i] : o->acc[i - SL_MAX_OUT];

        bad |= t >= 0 && sl_any_bad(sl_run_at(r, t), r->g->t[t].type, r->g->t[t].n);
    }
    if (bad)
        r->found = (int64_t)r->micro * r->g->nops + op;
}

static int idle(const struct sl_run *r, const struct sl_op *o)
{
    return (o->a.first_micro && r->micro > 0) || (o->a.last_micro && r->micro < r->accum - 1)
           || (o->a.rank0 && r->comm->rank > 0);
}

static int where(const struct sl_run *r, int i, struct sl_err *err)
{
    const struct sl_op *o = &r->g->ops[i];
    const char *unit = o->unit >= 0 ? r->g->unit[o->unit].name : NULL;

    if (err && (err->code == SL_PEER || o->kind == SL_OP_NORM_MERGE))
        return -1; /* says where by itself */
    if (err && err->code == SL_BUSY)
        return unit ? sl_within(err, "unit \"%s\"", unit) : -1;
    return sl_within(err, "step %lld, operation %d (%s%s%s)", (long long)r->step, i,
                     sl_kind_names[o->kind], unit ? " of " : "", unit ? unit : "");
}

int sl_run_ops(struct sl_run *r, int first, int last, struct sl_err *err)
{
    for (int i = first; i < last; i++) {
        const struct sl_op *o = &r->g->ops[i];

        sl_ctl_touch(r->comm->ctl, r->comm->rank);
        if (!idle(r, o) && call(r, o, err))
            return where(r, i, err);
        if (r->after)
            r->after(r->after_user, r, i);
        if (r->search && r->found < 0 && !idle(r, o))
            look(r, i);
        if (r->poison)
            poison(r, i);
    }
    return 0;
}

/* Elements lo..lo+n-1 of a unit as parameters of the graph's type. */
static int init_values(struct sl_run *r, uint64_t seed, int unit, int64_t lo, int64_t n, void *w,
                       float *chunk, struct sl_err *err)
{
    if (r->g->ptype == SL_F32)
        return sl_init_range(r->dev, r->g, seed, unit, lo, n, w, err);
    for (int64_t k = 0; k < n; k += INIT_CHUNK) {
        int64_t m = n - k < INIT_CHUNK ? n - k : INIT_CHUNK;

        if (sl_init_range(r->dev, r->g, seed, unit, lo + k, m, chunk, err)
            || convert(r, chunk, SL_F32, (uint16_t *)w + k, SL_BF16, m, err))
            return -1;
    }
    return 0;
}

static int zero(struct sl_run *r, int tensor, struct sl_err *err)
{
    struct sl_k_zero a = {.y = sl_run_at(r, tensor),
                          .bytes = r->g->t[tensor].n * sl_dtype_size(r->g->t[tensor].type)};

    return sl_k_zero(r->dev, &a, err);
}

static int absent(const struct sl_run *r, int tensor)
{
    return tensor < 0 || (r->g->b[r->g->t[tensor].buf].rank0 && r->comm->rank > 0);
}

static int init_unit(struct sl_run *r, uint64_t seed, int u, float *chunk, struct sl_err *err)
{
    const struct sl_unit *un = &r->g->unit[u];
    int whole = un->pfull >= 0, t = whole ? un->pfull : un->psh;
    int64_t mine = un->shard * r->comm->rank;

    if (init_values(r, seed, u, whole ? 0 : mine, r->g->t[t].n, sl_run_at(r, t), chunk, err))
        return -1;
    if (!absent(r, un->master)) {
        int64_t n = r->g->t[un->master].n;

        if (sl_init_range(r->dev, r->g, seed, u, n > un->shard ? 0 : mine, n,
                          sl_run_at(r, un->master), err))
            return -1;
    }
    if (!absent(r, un->m) && (zero(r, un->m, err) || zero(r, un->v, err)))
        return -1;
    return 0;
}

int sl_run_init(struct sl_run *r, uint64_t seed, struct sl_err *err)
{
    float *chunk = sl_calloc(INIT_CHUNK, sizeof *chunk);
    int rc = 0;

    if (!chunk)
        return sl_fail(err, SL_SYSTEM, "no memory to make the first parameters");
    for (int u = 0; u < r->g->nunits && !rc; u++) {
        sl_ctl_touch(r->comm->ctl, r->comm->rank);
        rc = init_unit(r, seed, u, chunk, err);
    }
    free(chunk);
    return rc;
}
