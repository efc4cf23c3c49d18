#ifndef SL_K_ZERO_H
#define SL_K_ZERO_H

/* zero.h - set a range of bytes to 0. SL_USAGE: bytes < 0. */

#include "kernels/dev.h"

struct sl_k_zero {
    void *y;
    int64_t bytes;
};

int sl_k_zero(struct sl_dev *dev, const struct sl_k_zero *a, struct sl_err *err);

#endif
