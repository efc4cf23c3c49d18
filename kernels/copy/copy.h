#ifndef SL_K_COPY_H
#define SL_K_COPY_H

/* copy.h - copy a range of bytes to one that does not overlap it. SL_USAGE: bytes < 0. */

#include "kernels/dev.h"

struct sl_k_copy {
    const void *x;
    void *y;
    int64_t bytes;
};

int sl_k_copy(struct sl_dev *dev, const struct sl_k_copy *a, struct sl_err *err);

#endif
