#include "executor/graph/ops.h"

#include "kernels/attention/attention.h"
#include "kernels/head/head.h"

static const struct sl_op_info plain = {.place_out = -1};

static const struct sl_op_info table[SL_OP_KINDS] = {
    [SL_OP_EMBED] = {.place_out = -1, .native_bf16 = 1},
    [SL_OP_POSITION] = {.place_out = 0, .place_in = 1 << 1},
    [SL_OP_LAYERNORM] = {.place_out = -1},
    [SL_OP_LINEAR] = {.place_out = -1},
    [SL_OP_GELU] = {.place_out = 0, .place_in = 1 << 0},
    [SL_OP_ADD] = {.place_out = 0, .place_in = 1 << 0 | 1 << 1},
    [SL_OP_DROPOUT] = {.place_out = 0, .place_in = 1 << 0},
    [SL_OP_ATTENTION] = {.place_out = -1},
    [SL_OP_HEAD] = {.place_out = 1, .place_in = 1 << 0, .native_bf16 = 1},
    [SL_OP_EMBED_BWD] = {.place_out = -1, .native_bf16 = 1},
    [SL_OP_POSITION_BWD] = {.place_out = -1},
    [SL_OP_LAYERNORM_BWD] = {.place_out = 0, .place_in = 1 << 0 | 1 << 1},
    [SL_OP_LINEAR_DX] = {.place_out = -1},
    [SL_OP_LINEAR_DW] = {.place_out = -1},
    [SL_OP_GELU_BWD] = {.place_out = 0, .place_in = 1 << 0 | 1 << 1},
    [SL_OP_DROPOUT_BWD] = {.place_out = 0, .place_in = 1 << 0},
    [SL_OP_ATTENTION_BWD] = {.place_out = -1},
    [SL_OP_ZERO] = {.place_out = -1, .native_bf16 = 1},
    [SL_OP_BROADCAST] = {.place_out = -1, .native_bf16 = 1, .comm = 1, .reads_peers = 2},
    [SL_OP_REDUCE] = {.place_out = -1, .native_bf16 = 1, .comm = 1, .reads_peers = 2},
    [SL_OP_GATHER] = {.place_out = -1, .native_bf16 = 1, .comm = 1, .reads_peers = 1},
    [SL_OP_REDUCE_SCATTER] = {.place_out = -1, .native_bf16 = 1, .comm = 1, .reads_peers = 1},
    [SL_OP_REDUCE_INPLACE] = {.place_out = -1, .native_bf16 = 1, .comm = 1, .reads_peers = 2},
    [SL_OP_ALLGATHER_INPLACE] = {.place_out = -1, .native_bf16 = 1, .comm = 1, .reads_peers = 2},
    [SL_OP_COMM_WAIT] = {.place_out = -1, .native_bf16 = 1},
    [SL_OP_NORM_PART] = {.place_out = -1, .native_bf16 = 1},
    [SL_OP_NORM_MERGE] = {.place_out = -1, .native_bf16 = 1},
    [SL_OP_ADAMW] = {.place_out = -1, .native_bf16 = 1},
    [SL_OP_STEP_END] = {.place_out = -1, .native_bf16 = 1},
};

const struct sl_op_info *sl_op_info(enum sl_kind kind)
{
    return (unsigned)kind < SL_OP_KINDS ? &table[kind] : &plain;
}

int64_t sl_op_scratch(const struct sl_graph *g, const struct sl_op *op, int threads)
{
    const struct sl_attr *a = &op->a;

    switch (op->kind) {
    case SL_OP_ATTENTION:
        return sl_k_attention_scratch(a->context, a->width, a->heads, threads);
    case SL_OP_ATTENTION_BWD:
        return sl_k_attention_bwd_scratch(a->context, a->width, a->heads, threads);
    case SL_OP_HEAD:
        return sl_k_head_scratch(a->rows, a->width, a->vocab, g->t[op->in[0]].type,
                                 g->t[op->in[1]].type);
    default:
        return 0;
    }
}
