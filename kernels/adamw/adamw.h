#ifndef SL_K_ADAMW_H
#define SL_K_ADAMW_H

/*
 * adamw.h - one AdamW step on one range of parameters
 *
 *   g' = gscale g        w <- w (1 - lr decay)
 *   m <- b1 m + (1 - b1) g'        v <- b2 v + (1 - b2) g'^2
 *   w <- w - lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + eps)
 *
 * A moment that would be subnormal (below 2^-126) becomes 0.
 *
 * Shapes   w, m, v: [n] f32, in place; g: [n] gtype; copy: [n] bf16 or NULL: w rounded to nearest
 *          even, for training with bf16 parameters, where w is the master copy.
 * Units    t counts steps from 1; lr and decay are per step; gscale is the clipping factor (1: none)
 *          that turns g into the mean over the batch.
 * Agrees   element-wise, each operation rounded once in f32: a result does not depend on where a
 *          range is cut nor on the instruction set.
 * Errors   SL_USAGE: n < 0, t < 1, b1 or b2 outside [0, 1), another type.
 * Source   arXiv 1711.05101, algorithm 2, but decay is scaled by lr, as PyTorch's AdamW does.
 */

#include "kernels/dev.h"

struct sl_k_adamw {
    float *w, *m, *v;
    const void *g;
    uint16_t *copy;
    enum sl_dtype gtype;
    int64_t n, t;
    double lr, b1, b2, eps, decay, gscale;
};

int sl_k_adamw(struct sl_dev *dev, const struct sl_k_adamw *a, struct sl_err *err);

#endif
