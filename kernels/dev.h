#ifndef SL_DEV_H
#define SL_DEV_H

/*
 * dev.h - a device: a kernel for every operation, behind one vtable
 *
 * A device is chosen at run time, so one binary trains on any of them and one test compares them.
 * What differs per instruction set, element type or tile is fixed at compile time inside a kernel
 * file and never shows here. Every operation has a folder with its contract (NAME/NAME.h) and a
 * front function sl_k_NAME(dev, &args, err) that checks the arguments and calls dev->k->NAME.
 *
 * Memory is the caller's, scratch too; nothing is kept between calls. Where a contract does not say
 * otherwise, outputs overlap no input, except that an element-wise output may be exactly its input.
 */

#include <stdint.h>

#include "common/err.h"
#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sl_dev;

/* X(name): one line per operation; struct sl_k_NAME holds its arguments. */
#define SL_KERNELS(X)                                                                              \
    X(embed)                                                                                       \
    X(embed_bwd)                                                                                   \
    X(position)                                                                                    \
    X(position_bwd)                                                                                \
    X(layernorm)                                                                                   \
    X(layernorm_bwd)                                                                               \
    X(linear)                                                                                      \
    X(linear_dx)                                                                                   \
    X(linear_dw)                                                                                   \
    X(gelu)                                                                                        \
    X(gelu_bwd)                                                                                    \
    X(add)                                                                                         \
    X(dropout)                                                                                     \
    X(normal)                                                                                      \
    X(attention)                                                                                   \
    X(attention_bwd)                                                                               \
    X(head)                                                                                        \
    X(adamw)                                                                                       \
    X(sumsq)                                                                                       \
    X(zero)                                                                                        \
    X(convert)                                                                                     \
    X(reduce)                                                                                      \
    X(copy)

#define X(name) struct sl_k_##name;
SL_KERNELS(X)
#undef X

struct sl_kernels { /* the arguments were checked before the call */
#define X(name) int (*name)(struct sl_dev * dev, const struct sl_k_##name *a, struct sl_err *err);
    SL_KERNELS(X)
#undef X
};

struct sl_dev {
    const char *name; /* as opened, with the instruction set: "cpu:v3" */
    const struct sl_kernels *k;
    int threads; /* that a kernel call uses */
};

/*
 * Open a device: "cpu" takes the best instruction set that the processor and this build have,
 * "cpu:base", "cpu:v3" (AVX2, FMA) and "cpu:v4" (AVX-512) name one. Numbers differ between them
 * by rounding, so all ranks of a job use the same. `threads` >= 1 is what every kernel call may
 * use; 1 without OpenMP. Open it in the thread that will call kernels: it sets that thread's
 * OpenMP team size, which oneDNN takes too. SL_USAGE: unknown or unusable device, threads < 1.
 */
struct sl_dev *sl_dev_open(const char *spec, int threads, struct sl_err *err); /* caller closes */
void sl_dev_close(struct sl_dev *dev);                                         /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
