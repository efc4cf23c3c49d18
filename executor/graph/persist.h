#ifndef SL_PERSIST_H
#define SL_PERSIST_H

/*
 * persist.h - the buffers that outlive a step: one set, shared by all graphs of a program
 *
 * A buffer is known by (unit, role). The training graph is added first and decides what exists;
 * every graph is then bound: its persistent buffers get the set's offsets, and one that the set does
 * not have, or has in another size, is our bug and says so. Parameters lie first, in unit order,
 * then gradients, then optimizer state. What only rank 0 has (dp) is placed behind everything else,
 * so that all other offsets are equal on all ranks.
 */

#include "executor/graph/graph.h"

struct sl_persist; /* opaque */

struct sl_persist *sl_persist_create(struct sl_err *err);
void sl_persist_destroy(struct sl_persist *s); /* NULL is fine */

/* Take over the persistent buffers of a sharded graph that the set does not have yet. */
int sl_persist_add(struct sl_persist *s, const struct sl_graph *g, struct sl_err *err);

/* Bytes from 0 that all ranks keep: where transients may begin. */
int64_t sl_persist_bytes(const struct sl_persist *s);
/* Bytes of a category, as kept by all ranks, or (rank0) kept by rank 0 in addition. */
int64_t sl_persist_cat(const struct sl_persist *s, enum sl_cat cat, int rank0);

/* Place rank 0's own buffers from byte `at` (a multiple of 64); returns the byte behind them. */
int64_t sl_persist_tail(struct sl_persist *s, int64_t at);

/* Write offsets into the graph. SL_BUG: the graph does not fit the set. */
int sl_persist_bind(const struct sl_persist *s, struct sl_graph *g);

#endif
