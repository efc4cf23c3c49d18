#ifndef SL_K_ATTENTION_H
#define SL_K_ATTENTION_H

/*
 * attention.h - causal multi-head self-attention that never holds a context x context matrix
 *
 *   for each sample and head:  s_ij = q_i . k_j / sqrt(d), j <= i,  p_i = softmax(s_i),  y_i = p_i v
 *   lse_i = log sum_j exp(s_ij)
 *   backward: p_ij = exp(s_ij - lse_i) again;  dv_j = sum p_ij dy_i;  D_i = dy_i . y_i
 *             ds_ij = p_ij (dy_i . v_j - D_i);  dq_i = sum ds_ij k_j / sqrt(d),  dk_j likewise
 *
 * Shapes   qkv, dqkv: [rows, 3 width] f32: q, then k, then v, each head by head (GPT-2's c_attn);
 *          y, dy: [rows, width] f32; lse: [rows, heads] f32; rows = samples * context,
 *          d = width / heads.
 * Scratch  the caller's, 64-byte aligned, of the size the functions below give; contents are
 *          unspecified before and after.
 * Order    one thread works on one (sample, head, block of queries) forward and one (sample, head)
 *          backward: results do not depend on the number of threads.
 * Errors   SL_USAGE: a size below 1 (samples: below 0), heads not dividing width, too little scratch.
 *          SL_SYSTEM: the matrix library refused.
 * Source   arXiv 1706.03762, equation 1; tiling and lse as arXiv 2307.08691, algorithms 1 and 2.
 */

#include "kernels/dev.h"

struct sl_k_attention {
    const float *qkv;
    float *y, *lse;
    int64_t samples, context, width, heads;
    void *scratch;
    int64_t scratch_bytes;
};

struct sl_k_attention_bwd {
    const float *dy, *qkv, *y, *lse;
    float *dqkv;
    int64_t samples, context, width, heads;
    void *scratch;
    int64_t scratch_bytes;
};

/* Bytes, a multiple of 64, for a device with that many threads; grows as threads * context. */
int64_t sl_k_attention_scratch(int64_t context, int64_t width, int64_t heads, int threads);
int64_t sl_k_attention_bwd_scratch(int64_t context, int64_t width, int64_t heads, int threads);

int sl_k_attention(struct sl_dev *dev, const struct sl_k_attention *a, struct sl_err *err);
int sl_k_attention_bwd(struct sl_dev *dev, const struct sl_k_attention_bwd *a, struct sl_err *err);

#endif
