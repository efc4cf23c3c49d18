#ifndef SL_RUN_H
#define SL_RUN_H

/*
 * run.h - one rank's loop over the operations of a graph, in its arena
 *
 * The loop knows no strategy: what a strategy does stands in the graph. Operands are views of the
 * arena; bf16 operands of operations that know only f32 are converted into the operation's planned
 * scratch and results back. One run a rank, used by one thread.
 */

#include <stdint.h>

#include "executor/comm.h"
#include "executor/graph/graph.h"
#include "executor/job.h"
#include "executor/optimizer.h"
#include "kernels/dev.h"

enum { SL_RUN_MAX_BAD = 10 }; /* so many steps in a row that are not finite end the job */

struct sl_run {
    /* set once */
    struct sl_dev *dev;
    struct sl_comm *comm;
    char *arena;
    const struct sl_train_spec *spec;
    int accum;  /* micro-steps a step */
    int poison;   /* tests: NaN over every buffer at its end of life */
    void (*after)(void *user, struct sl_run *r, int op); /* tests: behind each operation; or NULL */
    void *after_user;

    /* per step or micro-step */
    const struct sl_graph *g;
    int64_t step;    /* from 1: dropout, and Adam's bias correction */
    int64_t sample0; /* place of the micro-batch's first sample in the step's global batch */
    int micro;       /* from 0 */
    double scale;    /* of the head's loss: 1 / tokens of the global batch */
    double lr;
    double loss; /* share of this rank so far: the caller sets 0 */

    /* what the step's merge said */
    struct sl_merge merge;
    int64_t skipped; /* steps not finite, so left out, since step 1: part of the state, Adam's t is step - skipped */
    int bad_row;     /* of them, those just before the next step */

    /* looking for the first result that is not finite */
    int search;
    int64_t found; /* micro-step * operations + operation; -1: not found */
};

void *sl_run_at(const struct sl_run *r, int tensor);        /* NULL for -1 */
int64_t sl_run_offset(const struct sl_run *r, int tensor);  /* bytes from the arena's start */

/* Parameters from (seed, parameter, index), moments 0; in `g`, whose persistent buffers all share. */
int sl_run_init(struct sl_run *r, uint64_t seed, struct sl_err *err);

/*
 * Operations first..last-1 of r->g. SL_PEER and SL_BUSY as comm.h says; else the kernels' errors,
 * with the operation and its unit.
 */
int sl_run_ops(struct sl_run *r, int first, int last, struct sl_err *err);

#endif
