#include "kernels/reduce/reduce.h"

#include "kernels/cpu.h"

enum { GRAIN = 1 << 14, TILE = 1024 /* sums held in the first-level cache, so y may be a source */ };

static void first(float *sum, const void *x, enum sl_dtype type, int64_t at, int64_t n)
{
    if (type == SL_F32)
        for (int64_t j = 0; j < n; j++)
            sum[j] = ((const float *)x)[at + j];
    else
        for (int64_t j = 0; j < n; j++)
            sum[j] = sl_bf16_f32(((const uint16_t *)x)[at + j]);
}

static void more(float *sum, const void *x, enum sl_dtype type, int64_t at, int64_t n)
{
    if (type == SL_F32)
        for (int64_t j = 0; j < n; j++)
            sum[j] += ((const float *)x)[at + j];
    else
        for (int64_t j = 0; j < n; j++)
            sum[j] += sl_bf16_f32(((const uint16_t *)x)[at + j]);
}

static void part(void *arg, int64_t from, int64_t to, int thread)
{
    const struct sl_k_reduce *a = arg;
    float sum[TILE];

    (void)thread;
    for (int64_t i = from; i < to; i += TILE) {
        int64_t n = to - i < TILE ? to - i : TILE;

        first(sum, a->x[0], a->xtype, i, n);
        for (int64_t r = 1; r < a->k; r++)
            more(sum, a->x[r], a->xtype, i, n);
        if (a->add)
            more(sum, a->y, a->ytype, i, n);
        if (a->ytype == SL_F32)
            for (int64_t j = 0; j < n; j++)
                ((float *)a->y)[i + j] = sum[j];
        else
            for (int64_t j = 0; j < n; j++)
                ((uint16_t *)a->y)[i + j] = sl_f32_bf16(sum[j]);
    }
}

int SL_CPU(reduce)(struct sl_dev *dev, const struct sl_k_reduce *a, struct sl_err *err)
{
    (void)err;
    sl_par_range(dev, a->n, GRAIN, part, (void *)a);
    return 0;
}
