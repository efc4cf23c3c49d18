#include "kernels/gelu/gelu.h"

#include <math.h>

#include "kernels/cpu.h"

enum { GRAIN = 1 << 13 };

#define C0 0.7978845608028654f /* sqrt(2 / pi) */
#define C1 0.044715f

static void part(void *arg, int64_t from, int64_t to, int thread)
{
    const struct sl_k_gelu *a = arg;

    (void)thread;
    for (int64_t i = from; i < to; i++) {
        float x = a->x[i];

        a->y[i] = 0.5f * x * (1 + tanhf(C0 * (x + C1 * x * x * x)));
    }
}

int SL_CPU(gelu)(struct sl_dev *dev, const struct sl_k_gelu *a, struct sl_err *err)
{
    (void)err;
    sl_par_range(dev, a->n, GRAIN, part, (void *)a);
    return 0;
}

static void part_bwd(void *arg, int64_t from, int64_t to, int thread)
{
    const struct sl_k_gelu_bwd *a = arg;

    (void)thread;
    for (int64_t i = from; i < to; i++) {
        float x = a->x[i], t = tanhf(C0 * (x + C1 * x * x * x));

        a->dx[i] = a->dy[i] * 0.5f * (1 + t + x * (1 - t * t) * C0 * (1 + 3 * C1 * x * x));
    }
}

int SL_CPU(gelu_bwd)(struct sl_dev *dev, const struct sl_k_gelu_bwd *a, struct sl_err *err)
{
    (void)err;
    sl_par_range(dev, a->n, GRAIN, part_bwd, (void *)a);
    return 0;
}
