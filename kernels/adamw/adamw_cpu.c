#include "kernels/adamw/adamw_math.h"

#include "kernels/cpu.h"

enum { GRAIN = 1 << 14, TILE = 1 << 11 /* still in the first-level cache when it is rounded */ };

struct job {
    const struct sl_k_adamw *a;
    struct sl_adamw_step s;
};

static void tile(const struct job *job, int64_t from, int64_t to)
{
    const struct sl_k_adamw *a = job->a;
    const struct sl_adamw_step s = job->s;
    float *restrict w = a->w, *restrict m = a->m, *restrict v = a->v;
    uint16_t *restrict copy = a->copy;

    if (a->gtype == SL_F32) {
        const float *restrict g = a->g;
        for (int64_t i = from; i < to; i++)
            w[i] = sl_adamw_at(&s, w[i], m + i, v + i, g[i]);
    } else {
        const uint16_t *restrict g = a->g;
        for (int64_t i = from; i < to; i++)
            w[i] = sl_adamw_at(&s, w[i], m + i, v + i, sl_bf16_f32(g[i]));
    }
    if (copy)
        for (int64_t i = from; i < to; i++)
            copy[i] = sl_f32_bf16(w[i]);
}

static void part(void *arg, int64_t from, int64_t to, int thread)
{
    (void)thread;
    for (; from < to; from += TILE)
        tile(arg, from, from + TILE < to ? from + TILE : to);
}

int SL_CPU(adamw)(struct sl_dev *dev, const struct sl_k_adamw *a, struct sl_err *err)
{
    struct job job = {.a = a, .s = sl_adamw_begin(a)};

    (void)err;
    sl_par_range(dev, a->n, GRAIN, part, &job);
    return 0;
}
