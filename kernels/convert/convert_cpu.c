#include "kernels/convert/convert.h"

#include <string.h>

#include "kernels/cpu.h"

enum { GRAIN = 1 << 15 };

static void part(void *arg, int64_t from, int64_t to, int thread)
{
    const struct sl_k_convert *a = arg;

    (void)thread;
    if (a->xtype == a->ytype) {
        int64_t size = sl_dtype_size(a->xtype);

        memcpy((char *)a->y + from * size, (const char *)a->x + from * size,
               (size_t)((to - from) * size));
    } else if (a->ytype == SL_F32) {
        const uint16_t *restrict x = a->x;
        float *restrict y = a->y;

        for (int64_t i = from; i < to; i++)
            y[i] = sl_bf16_f32(x[i]);
    } else {
        const float *restrict x = a->x;
        uint16_t *restrict y = a->y;

        for (int64_t i = from; i < to; i++)
            y[i] = sl_f32_bf16(x[i]);
    }
}

int SL_CPU(convert)(struct sl_dev *dev, const struct sl_k_convert *a, struct sl_err *err)
{
    (void)err;
    sl_par_range(dev, a->n, GRAIN, part, (void *)a);
    return 0;
}
