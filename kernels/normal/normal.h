#ifndef SL_K_NORMAL_H
#define SL_K_NORMAL_H

/*
 * normal.h - normally distributed numbers at places of a stream: the first values of parameters
 *
 *   y_j = scale z_(first + j),   z_2i = sqrt(-2 ln u) cos(2 pi v),   z_2i+1 = sqrt(-2 ln u) sin(2 pi v)
 *   u in (0, 1] and v in [0, 1), 53 bits each, from sl_rng_block(seed, stream, i, 0)
 *
 * Shapes   y: [n] f32, written; places count from 0.
 * Agrees   computed in f64 to about 2^-43 of the formula, each operation rounded once, then rounded
 *          to f32: a result depends neither on where a range is cut nor on the instruction set or
 *          the C library.
 * Errors   SL_USAGE: n or first below 0.
 * Source   Box and Muller, "A note on the generation of random normal deviates", 1958; common/rng.h.
 */

#include "kernels/dev.h"

struct sl_k_normal {
    float *y;
    int64_t first, n;
    uint64_t seed, stream;
    double scale;
};

int sl_k_normal(struct sl_dev *dev, const struct sl_k_normal *a, struct sl_err *err);

#endif
