#ifndef SL_K_CONVERT_H
#define SL_K_CONVERT_H

/*
 * convert.h - elements from one type to the other
 *
 * f32 to bf16 rounds to nearest, ties to even; overflow gives infinity; a NaN stays a NaN (made
 * quiet, sign and upper payload kept). bf16 to f32 is exact. Equal types copy.
 *
 * Shapes   x: [n] xtype, y: [n] ytype, not overlapping.
 * Order    element-wise: the same bits wherever a range is cut and for any instruction set.
 * Errors   SL_USAGE: n < 0, another type.
 */

#include "kernels/dev.h"

struct sl_k_convert {
    const void *x;
    void *y;
    enum sl_dtype xtype, ytype;
    int64_t n;
};

int sl_k_convert(struct sl_dev *dev, const struct sl_k_convert *a, struct sl_err *err);

#endif
