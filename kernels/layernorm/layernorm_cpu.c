#include "kernels/layernorm/layernorm.h"

#include <math.h>

#include "kernels/cpu.h"
#include "kernels/vec.h"

enum { GRAIN = 1 << 14, GROUP = 4 /* vectors of columns summed at once */, COLUMNS = 64, ROWS = 32 };

/* The whole vectors of a row end here. */
static inline int64_t body(int64_t n)
{
    return n / SL_VL * SL_VL;
}

static float sum(const float *x, int64_t n)
{
    vf s[2] = {{0}, {0}};
    int64_t j = 0;

    for (; j + 2 * SL_VL <= n; j += 2 * SL_VL) {
        s[0] += vf_load(x + j);
        s[1] += vf_load(x + j + SL_VL);
    }
    for (; j < n; j += SL_VL)
        s[0] += n - j < SL_VL ? vf_load_part(x + j, n - j) : vf_load(x + j);
    return vf_sum(s[0] + s[1]);
}

static float variance(const float *x, int64_t n, float mean)
{
    vf s[2] = {{0}, {0}}, m = vf_set(mean);
    int64_t j = 0;
    float rest = 0;

    for (; j + 2 * SL_VL <= n; j += 2 * SL_VL) {
        vf d = vf_load(x + j) - m, e = vf_load(x + j + SL_VL) - m;

        s[0] = vf_fma(d, d, s[0]);
        s[1] = vf_fma(e, e, s[1]);
    }
    for (; j + SL_VL <= n; j += SL_VL) {
        vf d = vf_load(x + j) - m;

        s[0] = vf_fma(d, d, s[0]);
    }
    for (; j < n; j++)
        rest += (x[j] - mean) * (x[j] - mean);
    return (vf_sum(s[0] + s[1]) + rest) / (float)n;
}

static void rows_of(void *arg, int64_t from, int64_t to, int thread)
{
    const struct sl_k_layernorm *a = arg;
    int64_t n = a->width;

    (void)thread;
    for (int64_t i = from; i < to; i++) {
        const float *x = a->x + i * n;
        float *y = a->y + i * n, mean = sum(x, n) / (float)n;
        float rstd = 1 / sqrtf(variance(x, n, mean) + a->eps);
        int64_t j = 0;

        for (; j < body(n); j += SL_VL)
            vf_store(y + j, vf_fma((vf_load(x + j) - mean) * rstd, vf_load(a->gain + j),
                                   vf_load(a->bias + j)));
        for (; j < n; j++)
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

/* Columns [c, c + GROUP * SL_VL) over the rows [r, end). */
static void group(const struct sl_k_layernorm_bwd *a, int64_t c, int64_t r, int64_t end)
{
    int64_t n = a->width;
    vf g[GROUP] = {{0}}, b[GROUP] = {{0}};

    for (int64_t i = r; i < end; i++)
        for (int k = 0; k < GROUP; k++) {
            vf dy = vf_load(a->dy + i * n + c + k * SL_VL), x = vf_load(a->x + i * n + c + k * SL_VL);

            g[k] = vf_fma(dy, (x - a->stat[2 * i]) * a->stat[2 * i + 1], g[k]);
            b[k] += dy;
        }
    for (int k = 0; k < GROUP; k++) {
        vf_store(a->dgain + c + k * SL_VL, vf_load(a->dgain + c + k * SL_VL) + g[k]);
        vf_store(a->dbias + c + k * SL_VL, vf_load(a->dbias + c + k * SL_VL) + b[k]);
    }
}

static void column(const struct sl_k_layernorm_bwd *a, int64_t c, int64_t r, int64_t end)
{
    int64_t n = a->width;
    float g = 0, b = 0;

    for (int64_t i = r; i < end; i++) {
        g += a->dy[i * n + c] * ((a->x[i * n + c] - a->stat[2 * i]) * a->stat[2 * i + 1]);
        b += a->dy[i * n + c];
    }
    a->dgain[c] += g;
    a->dbias[c] += b;
}

/* Threads' ranges begin at multiples of COLUMNS, a multiple of a group: the groups do not move. */
static void columns_of(void *arg, int64_t from, int64_t to, int thread)
{
    const struct sl_k_layernorm_bwd *a = arg;

    (void)thread;
    for (int64_t r = 0; r < a->rows; r += ROWS) {
        int64_t end = r + ROWS < a->rows ? r + ROWS : a->rows, c = from;

        for (; c + GROUP * SL_VL <= to; c += GROUP * SL_VL)
            group(a, c, r, end);
        for (; c < to; c++)
            column(a, c, r, end);
    }
}

static void dx_rows_of(void *arg, int64_t from, int64_t to, int thread)
{
    const struct sl_k_layernorm_bwd *a = arg;
    int64_t n = a->width;

    (void)thread;
    for (int64_t i = from; i < to; i++) {
        const float *dy = a->dy + i * n, *x = a->x + i * n;
        float *dx = a->dx + i * n, mean = a->stat[2 * i], rstd = a->stat[2 * i + 1], r1 = 0, r2 = 0;
        vf s1 = {0}, s2 = {0};
        int64_t j = 0;

        for (; j < body(n); j += SL_VL) {
            vf g = vf_load(dy + j) * vf_load(a->gain + j);

            s1 += g;
            s2 = vf_fma(g, (vf_load(x + j) - mean) * rstd, s2);
        }
        for (; j < n; j++) {
            float g = dy[j] * a->gain[j];

            r1 += g;
            r2 += g * ((x[j] - mean) * rstd);
        }
        r1 = (vf_sum(s1) + r1) / (float)n;
        r2 = (vf_sum(s2) + r2) / (float)n;
        for (j = 0; j < body(n); j += SL_VL) {
            vf g = vf_load(dy + j) * vf_load(a->gain + j), xh = (vf_load(x + j) - mean) * rstd;

            vf_store(dx + j, rstd * (g - r1 - xh * r2));
        }
        for (; j < n; j++)
            dx[j] = rstd * (dy[j] * a->gain[j] - r1 - (x[j] - mean) * rstd * r2);
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
