#ifndef SL_K_POSITION_H
#define SL_K_POSITION_H

/*
 * position.h - add the table of positions to every sample
 *
 *   y[i] = x[i] + w[i % context]        dw[i % context] += dy[i], samples in order; dx is dy itself
 *
 * Shapes   w, dw: [context, width] f32; x, y, dy: [rows, width] f32, rows = samples * context.
 * Order    results do not depend on the number of threads.
 * Errors   SL_USAGE: a size below 1 (rows: below 0).
 */

#include "kernels/dev.h"

struct sl_k_position {
    const float *x, *w;
    float *y; /* may be x */
    int64_t rows, width, context;
};

struct sl_k_position_bwd {
    const float *dy;
    float *dw;
    int64_t rows, width, context;
};

int sl_k_position(struct sl_dev *dev, const struct sl_k_position *a, struct sl_err *err);
int sl_k_position_bwd(struct sl_dev *dev, const struct sl_k_position_bwd *a, struct sl_err *err);

#endif
