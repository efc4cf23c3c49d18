#include "kernels/zero/zero.h"

#include <string.h>

#include "kernels/cpu.h"

enum { GRAIN = 1 << 18 };

static void part(void *arg, int64_t from, int64_t to, int thread)
{
    const struct sl_k_zero *a = arg;

    (void)thread;
    memset((char *)a->y + from, 0, (size_t)(to - from));
}

int SL_CPU(zero)(struct sl_dev *dev, const struct sl_k_zero *a, struct sl_err *err)
{
    (void)err;
    sl_par_range(dev, a->bytes, GRAIN, part, (void *)a);
    return 0;
}
