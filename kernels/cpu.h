#ifndef SL_CPU_H
#define SL_CPU_H

/*
 * cpu.h - what every *_cpu.c starts with
 *
 * These files are compiled once per instruction set, with SL_ISA naming it: base, v3 or v4. Their
 * public functions are SL_CPU(name), so that the sets live in one program side by side.
 */

#include <stdint.h>

#include "kernels/bf16.h"
#include "kernels/dev.h"
#include "kernels/par.h"

#ifndef SL_ISA
#error "SL_ISA is not defined: compile through kernels/local.mk"
#endif

#define SL_CPU_JOIN_(name, isa) sl_cpu_##name##_##isa
#define SL_CPU_JOIN(name, isa) SL_CPU_JOIN_(name, isa)
#define SL_CPU(name) SL_CPU_JOIN(name, SL_ISA)

/* Iterations of the next loop are independent although its pointers may be equal: vectorise it. */
#if defined(__clang__)
#define SL_SIMD _Pragma("clang loop vectorize(assume_safety)")
#else
#define SL_SIMD _Pragma("GCC ivdep")
#endif

#define X(name) int SL_CPU(name)(struct sl_dev * dev, const struct sl_k_##name *a, struct sl_err *err);
SL_KERNELS(X)
#undef X

extern const struct sl_kernels SL_CPU(table);

#endif
