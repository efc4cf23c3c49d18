#ifndef SL_K_ADD_H
#define SL_K_ADD_H

/*
 * add.h - y = a + b, the residual connection
 *
 * Shapes   a, b, y: [n] f32; y may be a or b.
 * Errors   SL_USAGE: n < 0.
 */

#include "kernels/dev.h"

struct sl_k_add {
    const float *a, *b;
    float *y;
    int64_t n;
};

int sl_k_add(struct sl_dev *dev, const struct sl_k_add *a, struct sl_err *err);

#endif
