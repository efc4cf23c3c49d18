#ifndef SL_K_SUMSQ_H
#define SL_K_SUMSQ_H

/*
 * sumsq.h - the sum of squares of a range: a gradient norm's partial sum
 *
 * Shapes   x: [n] type; ret: one double, written.
 * Order    squares and sums in double; blocks of 4,096 elements from the start of x; in a block,
 *          element i goes to lane i % 8, the lanes are merged as ((0+1)+(2+3))+((4+5)+(6+7)); blocks
 *          in order. The same bits for any number of threads and any instruction set.
 * Errors   SL_USAGE: n < 0, another type.
 */

#include "kernels/dev.h"

struct sl_k_sumsq {
    const void *x;
    enum sl_dtype type;
    int64_t n;
    double *ret;
};

int sl_k_sumsq(struct sl_dev *dev, const struct sl_k_sumsq *a, struct sl_err *err);

#endif
