#ifndef SL_K_DROPOUT_H
#define SL_K_DROPOUT_H

/*
 * dropout.h - zero an element with probability p, scale the others by 1 / (1 - p)
 *
 * Whether an element lives is a function of (seed, step, global sample, op, element of the sample)
 * alone, so it is the same on any number of ranks and threads, and the backward pass is the same
 * call on dy: no mask is stored. A dropped element is 0 whatever x holds, also for a NaN.
 *
 * Shapes   x, y: [n] f32, n = samples of this call * per_sample; y may be x.
 * Units    sample0 is the place of the first sample in the step's global batch; the following ones
 *          count on. p is cut to a multiple of 2^-32.
 * Errors   SL_USAGE: n < 0, per_sample outside 1 .. 2^32 - 1 or not dividing n, p outside [0, 1),
 *          sample0 < 0, step < 0.
 * Source   arXiv 1207.0580; random bits: the finaliser of splitmix64 and of MurmurHash3.
 */

#include "kernels/dev.h"

struct sl_k_dropout {
    const float *x;
    float *y;
    int64_t n, per_sample, sample0, step;
    uint64_t seed;
    int op; /* sl_op.id */
    double p;
};

int sl_k_dropout(struct sl_dev *dev, const struct sl_k_dropout *a, struct sl_err *err);

#endif
