#ifndef SL_RECOMPUTE_H
#define SL_RECOMPUTE_H

/*
 * recompute.h - activation checkpointing per unit, as an edit of the graph
 *
 * The forward operations of a unit whose results its backward wants are cloned in front of the
 * unit's first backward operation; what crosses from unit to unit stays. A clone keeps its id, so
 * dropout draws the same mask. Units that hold the embedding or the head are left alone: the one
 * has nothing to save, the other is needed at once.
 */

#include "executor/graph/graph.h"

/* After autodiff, before shard. nfwd stays the number of operations before the first backward one. */
int sl_recompute(struct sl_graph *g);

#endif
