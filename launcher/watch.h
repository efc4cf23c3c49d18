#ifndef SL_WATCH_H
#define SL_WATCH_H

/*
 * watch.h - noticing that a run has stopped moving, and telling how each rank stands
 *
 * A run hangs when no rank's state word has changed for `timeout` seconds: one rank may wait for
 * long while another one works, and the working one moves. Time is counted from looks, not from
 * clocks: a machine that slept, or an agent that was stopped, does not make a hang. Until all ranks
 * have done their first step, which reads data and touches all memory for the first time, the
 * limit is SL_WATCH_FIRST times as long.
 */

#include <stdint.h>

#include "executor/ctl.h"

enum { SL_WATCH_FIRST = 2 };

struct sl_watch {
    double timeout; /* seconds; 0: never */
    double still;   /* seconds seen without a move */
    uint64_t last;  /* ns of the last look; 0: none yet */
    uint64_t sum;   /* of all state words and their times */
};

void sl_watch_init(struct sl_watch *w, double timeout);

/* A look at `now` (ns), once every second or more often. 1: nothing has moved for the limit. */
int sl_watch_look(struct sl_watch *w, const struct sl_ctl *c, uint64_t now);
double sl_watch_limit(const struct sl_watch *w, const struct sl_ctl *c); /* seconds; 0: never */

/* "rank 1 (pid 77): waiting for 2.1 s in step 3, in collective 12 (gather)" */
void sl_watch_rank(const struct sl_ctl *c, int rank, char *text, size_t size);

#endif
