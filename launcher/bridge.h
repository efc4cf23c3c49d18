#ifndef SL_BRIDGE_H
#define SL_BRIDGE_H

/*
 * bridge.h - one exchange over the PMIx server of who started us (srun, mpirun), then never again
 *
 * A process cannot be a client of one PMIx server and host another, and whoever stays a client of the
 * outer one is taken along by its ideas about dead peers. So a child of the caller, forked before any
 * PMIx call, puts this task's card, fences with all tasks, gets everybody's, finalizes and ends.
 */

#include <stddef.h>

#include "common/err.h"

struct sl_bridge {
    int me, n;   /* this task and their number, as the outer launcher counts */
    void *cards; /* n * size bytes, by task; the caller's to free */
};

enum { SL_BRIDGE_TASKS = 4096 };

/*
 * Takes at most `seconds`: some tasks may never come. The calling process must have no threads.
 * SL_BUSY: they did not; SL_SYSTEM: the outer server refuses.
 */
int sl_bridge_exchange(const void *card, size_t size, double seconds, struct sl_bridge *ret,
                       struct sl_err *err);

#endif
