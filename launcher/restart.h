#ifndef SL_RESTART_H
#define SL_RESTART_H

/*
 * restart.h - whether a run whose attempt has failed gets another one, and when
 *
 * A rank that died and a hang are worth another attempt, at most failure.max_restarts times. What
 * would fail again is not: a job file or data that a person must mend, a loss that is not finite, and
 * the same failure (rank, signal or status, step) twice in a row. The first new attempt starts at
 * once; each further one that follows a failure without a new step waits 1, 2, 4, ... 60 s, so that
 * a broken machine is not hammered, and a run that moves on loses no time.
 */

#include <stddef.h>
#include <stdint.h>

#include "launcher/supervise.h"

struct sl_restart {
    int64_t max, used;
    int64_t best;    /* highest step in which an attempt has failed */
    int in_vain;     /* failures in a row that were not beyond it */
    int rank, code;  /* of the last failure */
    int64_t step;
};

void sl_restart_init(struct sl_restart *r, int64_t max);

/*
 * The attempt that `s` describes is over. 1: begin another one after *delay seconds. 0: this was the
 * last. `why` gets a line for people, "" when there is nothing to say (no restarts were asked for, or
 * the end is none that a restart could change).
 */
int sl_restart_ask(struct sl_restart *r, const struct sl_supervise *s, double *delay, char *why,
                   size_t size);

#endif
