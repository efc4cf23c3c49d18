#include "kernels/sumsq/sumsq.h"

#include "kernels/cpu.h"

enum { BLOCK = 4096, LANES = 8, BLOCKS = 256 /* whose sums are kept at a time */ };

struct job {
    const struct sl_k_sumsq *a;
    int64_t first; /* block */
    double sum[BLOCKS];
};

static double merge(const double *s)
{
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

static double block_f32(const float *x, int64_t n)
{
    double s[LANES] = {0};
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            s[k] += (double)x[i + k] * (double)x[i + k];
    for (int k = 0; i < n; i++, k++)
        s[k] += (double)x[i] * (double)x[i];
    return merge(s);
}

static double block_bf16(const uint16_t *x, int64_t n)
{
    double s[LANES] = {0};

    for (int64_t i = 0; i < n; i += LANES)
        for (int k = 0; k < LANES && i + k < n; k++) {
            double v = (double)sl_bf16_f32(x[i + k]);

            s[k] += v * v;
        }
    return merge(s);
}

static void part(void *arg, int64_t from, int64_t to, int thread)
{
    struct job *job = arg;
    const struct sl_k_sumsq *a = job->a;

    (void)thread;
    for (int64_t b = from; b < to; b++) {
        int64_t at = (job->first + b) * BLOCK, n = a->n - at < BLOCK ? a->n - at : BLOCK;

        job->sum[b] = a->type == SL_F32 ? block_f32((const float *)a->x + at, n)
                                        : block_bf16((const uint16_t *)a->x + at, n);
    }
}

int SL_CPU(sumsq)(struct sl_dev *dev, const struct sl_k_sumsq *a, struct sl_err *err)
{
    int64_t blocks = a->n / BLOCK + (a->n % BLOCK != 0);
    struct job job;
    double total = 0;

    (void)err;
    job.a = a;
    for (job.first = 0; job.first < blocks; job.first += BLOCKS) {
        int64_t n = blocks - job.first < BLOCKS ? blocks - job.first : BLOCKS;

        sl_par_range(dev, n, 8, part, &job);
        for (int64_t b = 0; b < n; b++)
            total += job.sum[b];
    }
    *a->ret = total;
    return 0;
}
