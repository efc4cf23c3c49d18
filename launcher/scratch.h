#ifndef SL_SCRATCH_H
#define SL_SCRATCH_H

/*
 * scratch.h - a run's temporary folder, $TMPDIR/shardlaunch-XXXXXX, and the sweep of dead ones
 *
 * The folder is locked (flock on the folder itself) by a descriptor that keeper and agent share
 * through fork: while one of them lives, it is locked. A folder whose lock is free belongs to a
 * run that was killed whole; the next run on the machine ends what that run left (processes
 * whose PMIX_NAMESPACE begins with the folder's name, which every rank inherits to its children)
 * and removes it.
 */

#include "common/err.h"

struct sl_scratch {
    char path[108];   /* short enough for a unix socket beside it */
    const char *name; /* last part of path */
    int lock;
};

/* SL_SYSTEM: the folder cannot be made or locked. */
int sl_scratch_open(struct sl_scratch *s, struct sl_err *err);

/* Remove the folder with all that is in it; the lock stays until the process ends. */
void sl_scratch_remove(const struct sl_scratch *s);

/* Clean up after dead runs of this user. Returns how many folders were removed. */
int sl_scratch_sweep(void);

#endif
