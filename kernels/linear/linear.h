#ifndef SL_K_LINEAR_H
#define SL_K_LINEAR_H

/*
 * linear.h - a fully connected layer, and its three gradients
 *
 *   y = x w^T + b        dx = dy w        dw += dy^T x,  db += sum over rows of dy
 *
 * Shapes   x, dx: [rows, in]; w, dw: [out, in]; b, db: [out]; y, dy: [rows, out]; all f32.
 * Order    dw, dx and y come from the library's matrix product, whose order of sums may depend on
 *          the number of threads; db sums rows in blocks of 32, blocks in order.
 * Errors   SL_USAGE: a size below 1 (rows: below 0). SL_SYSTEM: the library refused.
 */

#include "kernels/dev.h"

struct sl_k_linear {
    const float *x, *w, *b; /* b may be NULL */
    float *y;
    int64_t rows, in, out;
};

struct sl_k_linear_dx {
    const float *dy, *w;
    float *dx;
    int64_t rows, in, out;
};

struct sl_k_linear_dw {
    const float *dy, *x;
    float *dw, *db; /* db may be NULL */
    int64_t rows, in, out;
};

int sl_k_linear(struct sl_dev *dev, const struct sl_k_linear *a, struct sl_err *err);
int sl_k_linear_dx(struct sl_dev *dev, const struct sl_k_linear_dx *a, struct sl_err *err);
int sl_k_linear_dw(struct sl_dev *dev, const struct sl_k_linear_dw *a, struct sl_err *err);

#endif
