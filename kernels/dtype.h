#ifndef SL_DTYPE_H
#define SL_DTYPE_H

/* dtype.h - the element types of tensors, as graphs and kernels name them */

enum sl_dtype {
    SL_F32,
    SL_BF16, /* the upper half of an f32 in a uint16_t; storage only, arithmetic is in f32 */
    SL_I32,
    SL_DTYPES
};

static inline int sl_dtype_size(enum sl_dtype t)
{
    return t == SL_BF16 ? 2 : 4;
}

#endif
