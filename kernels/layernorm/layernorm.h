#ifndef SL_K_LAYERNORM_H
#define SL_K_LAYERNORM_H

/*
 * layernorm.h - normalise every row to mean 0 and variance 1, then scale and shift
 *
 *   xh = (x - mean) rstd,  rstd = 1 / sqrt(var + eps)        y = xh gain + bias
 *   a = dy gain,  dx = rstd (a - avg(a) - xh avg(a xh))      dgain += sum dy xh,  dbias += sum dy
 *
 * Shapes   x, y, dy, dx: [rows, width] f32; gain, bias, dgain, dbias: [width] f32;
 *          stat: [rows, 2] f32, a row's mean and rstd. dx may be dy or x.
 * Units    eps is added to the variance (1e-5 in GPT-2); var divides by width.
 * Order    results do not depend on the number of threads; dgain and dbias sum rows in blocks of 32,
 *          blocks in order.
 * Errors   SL_USAGE: a size below 1 (rows: below 0), eps not above 0.
 * Source   arXiv 1607.06450, equation 4.
 */

#include "kernels/dev.h"

struct sl_k_layernorm {
    const float *x, *gain, *bias;
    float *y, *stat;
    int64_t rows, width;
    float eps;
};

struct sl_k_layernorm_bwd {
    const float *dy, *x, *gain, *stat;
    float *dx, *dgain, *dbias;
    int64_t rows, width;
};

int sl_k_layernorm(struct sl_dev *dev, const struct sl_k_layernorm *a, struct sl_err *err);
int sl_k_layernorm_bwd(struct sl_dev *dev, const struct sl_k_layernorm_bwd *a, struct sl_err *err);

#endif
