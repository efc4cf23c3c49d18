#ifndef SL_TRAIN_H
#define SL_TRAIN_H

/*
 * train.h - a rank's training: steps, accumulation, evaluation, and what it tells about them
 *
 * All ranks of a job call it at the same time with the same job and program. Step s (from 1) takes
 * samples (s - 1) batch ... s batch - 1 of the run's order, whatever the number of ranks. Validation
 * counts every chosen sample once; a last round that is not full is padded with masked samples.
 *
 * With checkpoints, the first step is the one behind the checkpoint's. One is written every
 * checkpoint.every steps, behind the last step then, and behind the step at which the agent's wish to
 * stop is met. A save that fails is an event; training goes on.
 */

#include <stdint.h>

#include "executor/checkpoint/checkpoint.h"
#include "executor/comm.h"
#include "executor/job.h"
#include "executor/program.h"
#include "executor/reporter.h"
#include "executor/run.h"

/* Where samples come from; ids and targets are [context]. executor/data, or made up in tests. */
struct sl_samples {
    int (*train)(const void *from, int64_t sample, int32_t *ids, int32_t *targets,
                 struct sl_err *err);
    int (*valid)(const void *from, int64_t index, int32_t *ids, int32_t *targets,
                 struct sl_err *err);
    const void *from;
    int64_t valid_samples; /* 0: no evaluation */
};

struct sl_training {
    const struct sl_job *job;
    const struct sl_program *program;
    struct sl_dev *dev;
    struct sl_comm *comm;
    char *arena;
    struct sl_samples samples;
    int64_t steps;
    sl_report_f *report; /* NULL: nobody listens */
    void *report_to;
    const struct sl_ckpt_conf *checkpoint; /* NULL: none are read or written */
    int poison;          /* tests: see run.h */
    void (*after)(void *user, struct sl_run *r, int op); /* tests: see run.h */
    void *after_user;
};

struct sl_trained {
    int64_t step;    /* last finished step, also of what was resumed */
    int64_t skipped; /* steps left out because they were not finite (failure.on_nan) */
    int stopped;    /* left behind a step because the agent asked for it */
    int diverged;   /* loss or gradient is not finite: the error says where */
    double loss, norm, valid_loss; /* of the last step; of the last evaluation, NaN: none */
};

/* SL_PEER, SL_BUSY: see comm.h. SL_USAGE: diverged here, or a sample that is not one. */
int sl_train(const struct sl_training *t, struct sl_trained *ret, struct sl_err *err);

#endif
