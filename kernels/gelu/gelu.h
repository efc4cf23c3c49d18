#ifndef SL_K_GELU_H
#define SL_K_GELU_H

/*
 * gelu.h - the Gaussian error linear unit by its tanh approximation, as GPT-2's gelu_new
 *
 *   u = sqrt(2 / pi) (x + 0.044715 x^3)        y = 0.5 x (1 + tanh u)
 *   dx = dy (0.5 (1 + tanh u) + 0.5 x (1 - tanh^2 u) u'),  u' = sqrt(2 / pi) (1 + 0.134145 x^2)
 *
 * Shapes   x, y, dy, dx: [n] f32; y may be x, dx may be dy or x.
 * Agrees   y within 4e-7 (1 + |y|) of the exact formula, dx within 1e-6 |dy|. NaN stays NaN.
 * Order    element-wise: a result does not depend on where a range is cut.
 * Errors   SL_USAGE: n < 0.
 * Source   arXiv 1606.08415, section 2.
 */

#include "kernels/dev.h"

struct sl_k_gelu {
    const float *x;
    float *y;
    int64_t n;
};

struct sl_k_gelu_bwd {
    const float *dy, *x;
    float *dx;
    int64_t n;
};

int sl_k_gelu(struct sl_dev *dev, const struct sl_k_gelu *a, struct sl_err *err);
int sl_k_gelu_bwd(struct sl_dev *dev, const struct sl_k_gelu_bwd *a, struct sl_err *err);

#endif
