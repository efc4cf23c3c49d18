#include "kernels/position/position.h"

#include "kernels/cpu.h"

enum { GRAIN = 1 << 15, COLUMNS = 64 };

static void rows_of(void *arg, int64_t from, int64_t to, int thread)
{
    const struct sl_k_position *a = arg;
    int64_t n = a->width;

    (void)thread;
    for (int64_t i = from; i < to; i++) {
        const float *x = a->x + i * n, *w = a->w + i % a->context * n;
        float *y = a->y + i * n;

        SL_SIMD
        for (int64_t j = 0; j < n; j++)
            y[j] = x[j] + w[j];
    }
}

int SL_CPU(position)(struct sl_dev *dev, const struct sl_k_position *a, struct sl_err *err)
{
    (void)err;
    sl_par_range(dev, a->rows, GRAIN / a->width + 1, rows_of, (void *)a);
    return 0;
}

static void columns_of(void *arg, int64_t from, int64_t to, int thread)
{
    const struct sl_k_position_bwd *a = arg;
    int64_t n = a->width;

    (void)thread;
    for (int64_t i = 0; i < a->rows; i++) {
        const float *dy = a->dy + i * n;
        float *dw = a->dw + i % a->context * n;

        SL_SIMD
        for (int64_t j = from; j < to; j++)
            dw[j] += dy[j];
    }
}

int SL_CPU(position_bwd)(struct sl_dev *dev, const struct sl_k_position_bwd *a, struct sl_err *err)
{
    int64_t grain = GRAIN / (a->rows + 1) / COLUMNS * COLUMNS + COLUMNS;

    (void)err;
    sl_par_range(dev, a->width, grain, columns_of, (void *)a);
    return 0;
}
