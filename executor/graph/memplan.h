#ifndef SL_MEMPLAN_H
#define SL_MEMPLAN_H

/*
 * memplan.h - lifetimes from the list of operations, then offsets in one arena
 *
 * Persistent buffers lie where the set puts them; transients are packed behind what all ranks keep.
 * The inputs live from the first operation, the loss until the last. A result takes the place of a
 * dying input where its kernel allows it (ops.h). Categories are counted at the operation where the
 * total peaks, packing holes under workspace, so that they sum to the arena. What only rank 0 keeps
 * is not counted here.
 */

#include "executor/graph/graph.h"
#include "executor/graph/persist.h"

enum {
    SL_PLAN_PACK = 0,
    SL_PLAN_NO_SHARING = 1, /* every buffer its own bytes, nothing in place: to test a plan against */
};

/* The last pass. Sets offsets, arena, persistent, lower_bound, peak_op, at_peak, cat_peak. */
int sl_memplan(struct sl_graph *g, const struct sl_persist *set, int flags);

/* Pairs of buffers that share bytes while both live: 0 in a right plan. */
int sl_memplan_overlaps(const struct sl_graph *g);

/*
 * For tests of those who check lifetimes: pretend that buffer b ends one operation earlier, where it
 * is poisoned in the run loop's poison mode. Offsets stay. -1: b is persistent, unused, in place of
 * another, or lives for one operation only.
 */
int sl_memplan_cut(struct sl_graph *g, int b);

#endif
