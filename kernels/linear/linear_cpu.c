#include "kernels/linear/linear.h"

#include <string.h>

#include "kernels/cpu.h"
#include "kernels/gemm.h"

enum { GRAIN = 1 << 15, COLUMNS = 64, ROWS = 32 };

static void bias_rows(void *arg, int64_t from, int64_t to, int thread)
{
    const struct sl_k_linear *a = arg;

    (void)thread;
    for (int64_t i = from; i < to; i++)
        memcpy(a->y + i * a->out, a->b, (size_t)a->out * sizeof *a->y);
}

int SL_CPU(linear)(struct sl_dev *dev, const struct sl_k_linear *a, struct sl_err *err)
{
    if (a->b)
        sl_par_range(dev, a->rows, GRAIN / a->out + 1, bias_rows, (void *)a);
    return sl_gemm(&(struct sl_gemm){.tb = 1, .m = a->rows, .n = a->out, .k = a->in, .a = a->x,
                                     .lda = a->in, .b = a->w, .ldb = a->in, .beta = a->b ? 1 : 0,
                                     .c = a->y, .ldc = a->out}, err);
}

int SL_CPU(linear_dx)(struct sl_dev *dev, const struct sl_k_linear_dx *a, struct sl_err *err)
{
    (void)dev;
    return sl_gemm(&(struct sl_gemm){.m = a->rows, .n = a->in, .k = a->out, .a = a->dy,
                                     .lda = a->out, .b = a->w, .ldb = a->in, .c = a->dx,
                                     .ldc = a->in}, err);
}

static void bias_columns(void *arg, int64_t from, int64_t to, int thread)
{
    const struct sl_k_linear_dw *a = arg;
    float sum[COLUMNS];

    (void)thread;
    for (int64_t c = from; c < to; c += COLUMNS)
        for (int64_t r = 0; r < a->rows; r += ROWS) {
            int64_t rend = r + ROWS < a->rows ? r + ROWS : a->rows;
            int64_t m = to - c < COLUMNS ? to - c : COLUMNS;

            for (int64_t j = 0; j < m; j++)
                sum[j] = 0;
            for (int64_t i = r; i < rend; i++)
                for (int64_t j = 0; j < m; j++)
                    sum[j] += a->dy[i * a->out + c + j];
            for (int64_t j = 0; j < m; j++)
                a->db[c + j] += sum[j];
        }
}

int SL_CPU(linear_dw)(struct sl_dev *dev, const struct sl_k_linear_dw *a, struct sl_err *err)
{
    int64_t grain = GRAIN / (a->rows + 1) / COLUMNS * COLUMNS + COLUMNS;

    if (a->db)
        sl_par_range(dev, a->out, grain, bias_columns, (void *)a);
    return sl_gemm(&(struct sl_gemm){.ta = 1, .m = a->out, .n = a->in, .k = a->rows, .a = a->dy,
                                     .lda = a->out, .b = a->x, .ldb = a->in, .beta = 1, .c = a->dw,
                                     .ldc = a->in}, err);
}
