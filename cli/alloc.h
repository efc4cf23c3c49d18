#ifndef SL_CLI_ALLOC_H
#define SL_CLI_ALLOC_H

/*
 * alloc.h - ask Slurm for the nodes of a job, then start this very command on them
 *
 * The process becomes `salloc ... srun --mpi=pmix shardlaunch ...`, or, inside an allocation, the srun
 * alone. salloc's own environment (SALLOC_PARTITION, SALLOC_ACCOUNT ...) says the rest.
 */

#include "common/err.h"
#include "executor/job.h"

/* Only returns when it fails: SL_USAGE: srun or mpirun has started us; SL_SYSTEM: no Slurm here. */
int sl_alloc_become(const struct sl_job *job, struct sl_err *err);

#endif
