#ifndef SL_GEMM_H
#define SL_GEMM_H

/*
 * gemm.h - row-major matrix product c = a b + beta c through oneDNN
 *
 * a is m x k (stored k x m with ta), b is k x n (stored n x k with tb); lda, ldb and ldc are the
 * stored rows' lengths. beta is 0 (c is not read) or 1. Called outside a parallel region it uses
 * the thread's OpenMP team, inside one the calling thread alone. An empty product is allowed:
 * k = 0 gives beta c.
 */

#include <stdint.h>

#include "common/err.h"

struct sl_gemm {
    int ta, tb;
    int64_t m, n, k;
    const float *a, *b;
    int64_t lda, ldb;
    float beta;
    float *c;
    int64_t ldc;
};

/* SL_SYSTEM: the library refused. */
int sl_gemm(const struct sl_gemm *g, struct sl_err *err);

#endif
