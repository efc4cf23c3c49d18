#ifndef SL_HANG_H
#define SL_HANG_H

/*
 * hang.h - how each rank of a run that does not move stands, as far as it can be seen from outside
 *
 * Tells apart: waiting for its peers in a collective; stopped by a signal or a debugger; running in
 * user code, outside every collective; waiting for a device; sleeping outside every collective; gone
 * from the steps. From the control block, the state in /proc and whether its processor time moves.
 */

#include <stddef.h>

#include "executor/ctl.h"

struct sl_hang_rank {
    char text[200];    /* "rank 1 (pid 77): computing for 2.1 s in step 3, collective 12 (gather of h.0)" */
    char verdict[160]; /* "it is stopped by a signal (state T): kill -CONT 77 lets it go on" */
};

/*
 * Fill ret[first..first+n-1], ranks of this agent. Takes about 0.3 s, in which `alive` (may be NULL) is called. The ranks
 * must not have been waited for yet.
 */
void sl_hang_look(const struct sl_ctl *ctl, int first, int n, void (*alive)(void *user), void *user,
                  struct sl_hang_rank *ret);

#endif
