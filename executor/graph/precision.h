#ifndef SL_PRECISION_H
#define SL_PRECISION_H

/*
 * precision.h - scratch of operations: what their kernels want, and fp32 copies of bf16 operands
 *
 * Parameters, gradients and activations are stored in the graph's ptype. A kernel that does not know
 * bf16 (ops.h) works on fp32 copies in the operation's workspace: the run loop converts in and acc
 * operands before it, and out and acc operands after it. The workspace holds the kernel's own
 * scratch first, then one fp32 copy of every bf16 operand in the order in, out, acc.
 */

#include "executor/graph/graph.h"

enum sl_slot_kind { SL_SLOT_IN, SL_SLOT_OUT, SL_SLOT_ACC };

/* Give every operation that needs scratch its ws tensor (f32). After shard. threads: the rank's. */
int sl_precision(struct sl_graph *g, int threads);

/* Bytes of the kernel's own scratch at the start of the workspace. */
int64_t sl_precision_kernel_bytes(const struct sl_graph *g, const struct sl_op *op, int threads);

/* Byte in the workspace where the fp32 copy of an operand lies; -1: it needs no copy. */
int64_t sl_precision_slot(const struct sl_graph *g, const struct sl_op *op, enum sl_slot_kind kind,
                          int slot, int threads);

#endif
