#ifndef SL_OPS_H
#define SL_OPS_H

/*
 * ops.h - one row per operation: what the passes may assume about it
 *
 * A new operation is a kind in graph.h, a row here, a backward rule in autodiff.c, and a case in
 * the run loop.
 */

#include "executor/graph/graph.h"

struct sl_op_info {
    int place_out;      /* out slot that may take the place of an input, or -1 */
    unsigned place_in;  /* bit i: in[i] may be overwritten by it, when it dies here */
    int native_bf16;    /* its kernel reads and writes bf16 itself; the others see fp32 */
    int comm;           /* a collective */
    int reads_peers;    /* 1: of in[0], 2: of acc[0], 0: never */
};

const struct sl_op_info *sl_op_info(enum sl_kind kind);

/*
 * Bytes of scratch that the operation's own kernel wants on a device with `threads` threads, 0 for
 * most; a multiple of 64. g: for the types of its operands.
 */
int64_t sl_op_scratch(const struct sl_graph *g, const struct sl_op *op, int threads);

#endif
