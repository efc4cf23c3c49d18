#ifndef SL_SCHEDULE_H
#define SL_SCHEDULE_H

/*
 * schedule.h - where communication starts, where it is waited for, and where ranks must meet
 *
 * - Prefetch (optional): each gather moves to where the one before it stood: one stay ahead.
 * - A wait moves down to just before the next full buffer comes to life, so that peers have that
 *   long to read, and no more memory is in flight.
 * - Barriers: an operation that reads peers' memory gets a.barrier when what it reads was written
 *   since the ranks last met. All others find them together already. A wait that another
 *   operation's barrier has answered gets none.
 */

#include "executor/graph/graph.h"

int sl_schedule(struct sl_graph *g, int prefetch); /* after shard, before memplan */

#endif
