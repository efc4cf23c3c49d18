#include "kernels/layernorm/layernorm.h"

#include <math.h>

#include "kernels/cpu.h"

enum { GRAIN = 1 << 14, COLUMNS = 64, ROWS = 32 };

static void rows_of(void *arg, int64_t from, int64_t to, int thread)
{
    const struct sl_k_layernorm *a = arg;
    int64_t n = a->width;

    (void)thread;
    for (int64_t i = from; i < to; i++) {
        const float *x = a->x + i * n;
        float *y = a->y + i * n, mean = 0, var = 0, rstd;

        for (int64_t j = 0; j < n; j++)
            mean += x[j];
        mean /= (float)n;
        for (int64_t j = 0; j < n; j++)
            var += (x[j] - mean) * (x[j] - mean);
        rstd = 1 / sqrtf(var / (float)n + a->eps);
        SL_SIMD
        for (int64_t j = 0; j < n; j++)
            y[j] = (x[j] - mean) * rstd * a->gain[j] + a->bias[j];
        a->stat[2 * i] = mean;
        a->stat[2 * i + 1] = rstd;
    }
}

int SL_CPU(layernorm)(struct sl_dev *dev, const struct sl_k_layernorm *a, struct sl_err *err)
{
    (void)err;
    sl_par_range(dev, a->rows, GRAIN / a->width + 1, rows_of, (void *)a);
    return 0;
}

static void columns_of(void *arg, int64_t from, int64_t to, int thread)
{
    const struct sl_k_layernorm_bwd *a = arg;
    int64_t n = a->width;
    float g[COLUMNS], b[COLUMNS];

    (void)thread;
    for (int64_t c = from; c < to; c += COLUMNS)
        for (int64_t r = 0; r < a->rows; r += ROWS) {
            int64_t rend = r + ROWS < a->rows ? r + ROWS : a->rows;
            int64_t m = to - c < COLUMNS ? to - c : COLUMNS;

            for (int64_t j = 0; j < m; j++)
                g[j] = b[j] = 0;
            for (int64_t i = r; i < rend; i++) {
                const float *dy = a->dy + i * n + c, *x = a->x + i * n + c;
                float mean = a->stat[2 * i], rstd = a->stat[2 * i + 1];

                for (int64_t j = 0; j < m; j++) {
                    g[j] += dy[j] * ((x[j] - mean) * rstd);
                    b[j] += dy[j];
                }
            }
            for (int64_t j = 0; j < m; j++) {
                a->dgain[c + j] += g[j];
                a->dbias[c + j] += b[j];
            }
        }
}

static void dx_rows_of(void *arg, int64_t from, int64_t to, int thread)
{
    const struct sl_k_layernorm_bwd *a = arg;
    int64_t n = a->width;

    (void)thread;
    for (int64_t i = from; i < to; i++) {
        const float *dy = a->dy + i * n, *x = a->x + i * n;
        float *dx = a->dx + i * n, mean = a->stat[2 * i], rstd = a->stat[2 * i + 1], s1 = 0, s2 = 0;

        for (int64_t j = 0; j < n; j++) {
            float g = dy[j] * a->gain[j];

            s1 += g;
            s2 += g * ((x[j] - mean) * rstd);
        }
        s1 /= (float)n;
        s2 /= (float)n;
        SL_SIMD
        for (int64_t j = 0; j < n; j++)
            dx[j] = rstd * (dy[j] * a->gain[j] - s1 - (x[j] - mean) * rstd * s2);
    }
}

int SL_CPU(layernorm_bwd)(struct sl_dev *dev, const struct sl_k_layernorm_bwd *a, struct sl_err *err)
{
    int64_t grain = GRAIN / (a->rows + 1) / COLUMNS * COLUMNS + COLUMNS;

    (void)err;
    sl_par_range(dev, a->width, grain, columns_of, (void *)a); /* before dx may overwrite dy or x */
    sl_par_range(dev, a->rows, GRAIN / a->width + 1, dx_rows_of, (void *)a);
    return 0;
}
