#include "kernels/dropout/dropout.h"

#include "kernels/cpu.h"
#include "kernels/dropout/dropout_math.h"

enum { GRAIN = 1 << 14 };

/* Elements [from, to) of one sample; x and y point at the sample. */
static void inside(const float *x, float *y, uint64_t key, uint32_t cut, float keep, int64_t from,
                   int64_t to)
{
    SL_SIMD
    for (int64_t e = from; e < to; e++) {
        float v = x[e] * keep;

        y[e] = sl_dropout_word(key, (uint32_t)e) < cut ? 0 : v;
    }
}

static void part(void *arg, int64_t from, int64_t to, int thread)
{
    const struct sl_k_dropout *a = arg;
    uint32_t cut = (uint32_t)(a->p * 4294967296.0);
    float keep = (float)(1 / (1 - a->p));

    (void)thread;
    while (from < to) {
        int64_t s = from / a->per_sample, base = s * a->per_sample;
        int64_t end = base + a->per_sample < to ? base + a->per_sample : to;
        uint64_t key = sl_dropout_key(a->seed, (uint64_t)a->step, (uint64_t)(a->sample0 + s),
                                      (uint64_t)a->op);

        inside(a->x + base, a->y + base, key, cut, keep, from - base, end - base);
        from = end;
    }
}

int SL_CPU(dropout)(struct sl_dev *dev, const struct sl_k_dropout *a, struct sl_err *err)
{
    (void)err;
    sl_par_range(dev, a->n, GRAIN, part, (void *)a);
    return 0;
}
