#include "kernels/add/add.h"

#include "kernels/cpu.h"

enum { GRAIN = 1 << 15 };

static void part(void *arg, int64_t from, int64_t to, int thread)
{
    const struct sl_k_add *a = arg;
    const float *p = a->a, *q = a->b;
    float *y = a->y;

    (void)thread;
    SL_SIMD
    for (int64_t i = from; i < to; i++)
        y[i] = p[i] + q[i];
}

int SL_CPU(add)(struct sl_dev *dev, const struct sl_k_add *a, struct sl_err *err)
{
    (void)err;
    sl_par_range(dev, a->n, GRAIN, part, (void *)a);
    return 0;
}
