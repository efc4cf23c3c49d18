#include "kernels/copy/copy.h"

#include <string.h>

#include "kernels/cpu.h"

enum { GRAIN = 1 << 18 };

static void part(void *arg, int64_t from, int64_t to, int thread)
{
    const struct sl_k_copy *a = arg;

    (void)thread;
    memcpy((char *)a->y + from, (const char *)a->x + from, (size_t)(to - from));
}

int SL_CPU(copy)(struct sl_dev *dev, const struct sl_k_copy *a, struct sl_err *err)
{
    (void)err;
    sl_par_range(dev, a->bytes, GRAIN, part, (void *)a);
    return 0;
}
