#include "executor/graph/precision.h"

#include "executor/graph/ops.h"

static int copied(const struct sl_graph *g, const struct sl_op *op, int t)
{
    return t >= 0 && g->t[t].type == SL_BF16 && !sl_op_info(op->kind)->native_bf16;
}

/* Walk the copies in their order; stop at (kind, slot), or give the whole size for kind -1. */
static int64_t walk(const struct sl_graph *g, const struct sl_op *op, int kind, int slot,
                    int threads)
{
    const int *list[] = {op->in, op->out, op->acc};
    const int size[] = {SL_MAX_IN, SL_MAX_OUT, SL_MAX_ACC};
    int64_t at = sl_precision_kernel_bytes(g, op, threads);

    for (int k = 0; k < 3; k++)
        for (int i = 0; i < size[k]; i++) {
            if (k == kind && i == slot)
                return copied(g, op, list[k][i]) ? at : -1;
            if (copied(g, op, list[k][i]))
                at += (g->t[list[k][i]].n * 4 + 63) & ~(int64_t)63;
        }
    return at;
}

int64_t sl_precision_kernel_bytes(const struct sl_graph *g, const struct sl_op *op, int threads)
{
    return (sl_op_scratch(g, op, threads) + 63) & ~(int64_t)63;
}

int64_t sl_precision_slot(const struct sl_graph *g, const struct sl_op *op, enum sl_slot_kind kind,
                          int slot, int threads)
{
    return walk(g, op, (int)kind, slot, threads);
}

int sl_precision(struct sl_graph *g, int threads)
{
    for (int i = 0; i < g->nops && !g->err.code; i++) {
        int64_t bytes = walk(g, &g->ops[i], -1, -1, threads);

        if (bytes < 0)
            return sl_graph_fail(g, SL_BUG, "the scratch of %s is too large to count",
                                 sl_kind_names[g->ops[i].kind]);
        if (bytes > 0) {
            int t = sl_tensor_new(g, SL_CAT_WORKSPACE, bytes / 4, bytes / 4, SL_F32);
            g->ops[i].ws = t;
        }
    }
    return g->err.code ? -1 : 0;
}
