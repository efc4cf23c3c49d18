#ifndef SL_K_REDUCE_H
#define SL_K_REDUCE_H

/*
 * reduce.h - the sum of several ranges, in the order given: what a reduction over ranks computes
 *
 *   y = ((x[0] + x[1]) + x[2]) + ...        or, with add,  y = y + that sum
 *
 * Shapes   x: k pointers to [n] xtype; y: [n] ytype. y may be exactly one of the sources.
 * Types    f32 or bf16; sums in f32, rounded once when stored.
 * Order    element-wise: the same bits wherever a range is cut and for any instruction set.
 * Errors   SL_USAGE: n < 0, k outside 1 .. SL_K_REDUCE_MAX, another type.
 */

#include "kernels/dev.h"

enum { SL_K_REDUCE_MAX = 64 };

struct sl_k_reduce {
    const void *const *x;
    void *y;
    enum sl_dtype xtype, ytype;
    int64_t k, n;
    int add;
};

int sl_k_reduce(struct sl_dev *dev, const struct sl_k_reduce *a, struct sl_err *err);

#endif
