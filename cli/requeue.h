#ifndef SL_CLI_REQUEUE_H
#define SL_CLI_REQUEUE_H

/*
 * requeue.h - a batch job that Slurm starts again is the same job here
 *
 * A run inside Slurm notes its id in <state folder>/slurm/CLUSTER.JOB.STEP. When Slurm has started the
 * job again (SLURM_RESTART_COUNT), the run of the same step takes that id up, as `retry ID` does.
 * Outside Slurm nothing happens.
 */

#include <stdint.h>

#include "common/err.h"

int sl_requeue_again(void); /* 1: Slurm has started this job before: who ran it then is dead */

/* 1: *id is what the run before had. */
int sl_requeue_find(const char *folder, int64_t *id, struct sl_err *err);
int sl_requeue_note(const char *folder, int64_t id, struct sl_err *err);

#endif
