#ifndef SL_K_HEAD_H
#define SL_K_HEAD_H

/*
 * head.h - output layer and cross-entropy in one, by chunks of rows
 *
 *   l = x w^T        loss = scale sum_i (log sum_j exp(l_ij) - l_i,target)
 *   dl = scale (softmax(l) - onehot(target)),  dx = dl w,  dw += dl^T x
 *
 * Only a chunk's logits exist at a time. A training call (dx given) yields loss, dx and dw in the
 * same pass, so the backward pass needs no second product; an evaluation call (dx and dw NULL)
 * yields the loss alone. A row with target -1 is ignored: no loss, a zero row in dx, nothing in dw.
 *
 * Shapes   x, dx: [rows, width] xtype; w, dw: [vocab, width] wtype; targets: [rows] i32;
 *          loss: [1] f32, written. dx may be x.
 * Types    f32 or bf16. A bf16 dw is summed in f32 and rounded once per chunk of rows.
 * Scratch  the caller's, 64-byte aligned, of sl_k_head_scratch() bytes.
 * Order    a row's exponentials are summed in f32 within 256 words, in double above, rows in order in
 *          double; products as in linear.h.
 * Errors   SL_USAGE: a size below 1 (rows: below 0), a target outside -1 .. vocab - 1, only one of
 *          dx and dw, too little scratch, another type. SL_SYSTEM: the matrix library refused.
 */

#include "kernels/dev.h"

struct sl_k_head {
    const void *x, *w;
    const int32_t *targets;
    float *loss;
    void *dx, *dw; /* both NULL: evaluation */
    enum sl_dtype xtype, wtype;
    int64_t rows, width, vocab;
    double scale; /* e.g. 1 / tokens of the global batch */
    void *scratch;
    int64_t scratch_bytes;
};

/*
 * Rows of a chunk: at most 512 and at most 64 MiB of logits (but 64 rows), fewer for few rows, so
 * that a micro-batch takes several chunks, all of about one size.
 */
int64_t sl_k_head_chunk(int64_t rows, int64_t vocab);

/* Bytes, a multiple of 64. */
int64_t sl_k_head_scratch(int64_t rows, int64_t width, int64_t vocab, enum sl_dtype xtype,
                          enum sl_dtype wtype);

int sl_k_head(struct sl_dev *dev, const struct sl_k_head *a, struct sl_err *err);

#endif
