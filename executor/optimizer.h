#ifndef SL_OPTIMIZER_H
#define SL_OPTIMIZER_H

/*
 * optimizer.h - what happens once a step: the rate, the norm, AdamW on the ranges a rank owns
 *
 * The norm is of the raw mean gradient, over all parameters: partial sums of squares per (unit,
 * shard) lie in the control block and every rank adds them in one order (units, then ranks), so all
 * ranks and all strategies get the same bits and take the same decision.
 */

#include <stdint.h>

#include "executor/ctl.h"
#include "executor/graph/graph.h"
#include "executor/job.h"
#include "kernels/dev.h"

/*
 * The rate of `step` (from 1) of `steps`. Warm-up: lr step / warmup. Then x = (step - warmup) /
 * (steps - warmup), 1 in the last step; linear: lr + (min_lr - lr) x; cosine: min_lr + (lr - min_lr)
 * (1 + cos(pi x)) / 2 (arXiv 1608.03983, equation 5, without restarts).
 */
double sl_lr_at(const struct sl_train_spec *t, int64_t step, int64_t steps);

struct sl_merge {
    double loss;   /* mean over the global batch */
    double norm;   /* of the raw gradient */
    double gscale; /* what clipping multiplies gradients with; 1: nothing */
    int stop;      /* a rank saw the agent's stop flag: all stop behind this step */
    /* not finite, the same on all ranks: the rank whose loss is, else whose shard is; -1: all is well */
    int bad_rank;
    int bad_param; /* first parameter with such a gradient, -1: not found */
    int searched;  /* the step was done again: bad_rank is then where it began, if it was found */
    int bad_op;    /* operation where it began, -1: not found */
};

/* Add the partial results of all ranks; behind the merge's wait. clip 0: none. */
void sl_merge_read(const struct sl_ctl *ctl, const struct sl_graph *g, double clip,
                   struct sl_merge *ret);

/*
 * "loss nan, gradient norm inf on rank 1, first in the gradient of "wte.weight"; it began in gelu of
 * "h.0" on rank 1": of a bad merge.
 */
void sl_merge_text(const struct sl_merge *m, const struct sl_graph *g, char *ret, size_t size);

/*
 * The parameters of unit `unit` inside elements lo..hi-1 of its flat buffer, first index from `i`
 * on; -1 when there is none. *a..*b is their range inside the buffer.
 */
int sl_params_in(const struct sl_graph *g, int unit, int64_t lo, int64_t hi, int i, int64_t *a,
                 int64_t *b);

struct sl_adamw_range {
    int unit;
    int64_t lo, n;   /* elements of the unit's flat buffer that the pointers stand for */
    const void *g;   /* gradient */
    enum sl_dtype gtype;
    float *w, *m, *v; /* w: the fp32 parameters, or their master copy */
    uint16_t *copy;   /* bf16 parameters, NULL for fp32 */
};

/* One step on a range; weight decay by parameter, padding is never touched. t from 1. */
int sl_adamw_range(struct sl_dev *dev, const struct sl_graph *g, const struct sl_train_spec *spec,
                   const struct sl_adamw_range *r, double lr, double gscale, int64_t t,
                   struct sl_err *err);

/*
 * The first parameter with a gradient that is not finite inside elements lo..lo+n-1 of a unit's flat
 * gradient at `grad`, or -1.
 */
int sl_grad_bad(const struct sl_graph *g, int unit, int64_t lo, int64_t n, const void *grad,
                enum sl_dtype type);

/* 1: a number among n is not finite. */
int sl_any_bad(const void *p, enum sl_dtype type, int64_t n);

/*
 * Initial values of elements lo..lo+n-1 of a unit, as fp32: a function of (seed, parameter, index)
 * alone, so a shard equals its part of the whole; padding is 0. Normal values are kernels/normal's.
 */
int sl_init_range(struct sl_dev *dev, const struct sl_graph *g, uint64_t seed, int unit, int64_t lo,
                  int64_t n, float *w, struct sl_err *err);

#endif
