#include "kernels/gelu/gelu.h"

#include "kernels/cpu.h"
#include "kernels/vec.h"

/*
 * 0.5 (1 + tanh u) is s = 1 / (1 + exp(-2 u)), so y = x s and dx = dy (s + 2 x s (1 - s) u'). Beyond
 * |x| = 10, s is 0 or 1 in f32: cutting x there keeps the exponential in range.
 */

enum { GRAIN = 1 << 13 };

#define C0 0.7978845608028654f /* sqrt(2 / pi) */
#define C1 0.044715f

static inline vf cut(vf x)
{
    x = vf_select(x > vf_set(10), vf_set(10), x);
    return vf_select(x < vf_set(-10), vf_set(-10), x);
}

static inline vf sigmoid_2u(vf x)
{
    vf u = x * vf_fma(x * x, vf_set(-2 * C0 * C1), vf_set(-2 * C0));

    return 1.0f / (1.0f + vf_exp(u));
}

static inline vf forward(vf x)
{
    return x * sigmoid_2u(cut(x));
}

static inline vf backward(vf dy, vf x)
{
    vf c = cut(x), s = sigmoid_2u(c);
    vf slope = vf_fma(c * c, vf_set(2 * C0 * 3 * C1), vf_set(2 * C0)); /* 2 u' */

    return dy * vf_fma(c * slope, s * (1.0f - s), s);
}

static void part(void *arg, int64_t from, int64_t to, int thread)
{
    const struct sl_k_gelu *a = arg;
    int64_t i = from;

    (void)thread;
    for (; i + SL_VL <= to; i += SL_VL)
        vf_store(a->y + i, forward(vf_load(a->x + i)));
    if (i < to)
        vf_store_part(a->y + i, forward(vf_load_part(a->x + i, to - i)), to - i);
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
    int64_t i = from, n;

    (void)thread;
    for (; i + SL_VL <= to; i += SL_VL)
        vf_store(a->dx + i, backward(vf_load(a->dy + i), vf_load(a->x + i)));
    n = to - i;
    if (n > 0)
        vf_store_part(a->dx + i, backward(vf_load_part(a->dy + i, n), vf_load_part(a->x + i, n)), n);
}

int SL_CPU(gelu_bwd)(struct sl_dev *dev, const struct sl_k_gelu_bwd *a, struct sl_err *err)
{
    (void)err;
    sl_par_range(dev, a->n, GRAIN, part_bwd, (void *)a);
    return 0;
}
