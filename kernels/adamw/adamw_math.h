#ifndef SL_ADAMW_MATH_H
#define SL_ADAMW_MATH_H

/* adamw_math.h - what an AdamW step computes for one element; devices only differ in how they loop */

#include <math.h>

#include "kernels/adamw/adamw.h"

/* The step's factors, rounded to f32 once. */
struct sl_adamw_step {
    float gscale, shrink /* 1 - lr decay */, b1, nb1 /* 1 - b1 */, b2, nb2, rate /* lr / (1 - b1^t) */,
        root /* 1 / sqrt(1 - b2^t) */, eps;
};

static inline struct sl_adamw_step sl_adamw_begin(const struct sl_k_adamw *a)
{
    return (struct sl_adamw_step){
        .gscale = (float)a->gscale,
        .shrink = (float)(1 - a->lr * a->decay),
        .b1 = (float)a->b1,
        .nb1 = (float)(1 - a->b1),
        .b2 = (float)a->b2,
        .nb2 = (float)(1 - a->b2),
        .rate = (float)(a->lr / (1 - pow(a->b1, (double)a->t))),
        .root = (float)(1 / sqrt(1 - pow(a->b2, (double)a->t))),
        .eps = (float)a->eps,
    };
}

/* A subnormal moment, as a row that is never used decays to, would be slow on every later step. */
static inline float sl_adamw_flush(float x)
{
    return fabsf(x) < 0x1p-126f ? 0 : x;
}

static inline float sl_adamw_at(const struct sl_adamw_step *s, float w, float *m, float *v, float g)
{
    g *= s->gscale;
    *m = sl_adamw_flush(s->b1 * *m + s->nb1 * g);
    *v = sl_adamw_flush(s->b2 * *v + s->nb2 * g * g);
    return w * s->shrink - s->rate * *m / (sqrtf(*v) * s->root + s->eps);
}

#endif
