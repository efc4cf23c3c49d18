#ifndef SL_K_EMBED_H
#define SL_K_EMBED_H

/*
 * embed.h - rows of a table by token id, and the gradient of the table
 *
 *   y[i] = w[ids[i]]                dw[ids[i]] += dy[i], rows in order
 *
 * Shapes   w, dw: [vocab, width]; ids: [rows] i32; y, dy: [rows, width].
 * Types    w, dw and y, dy: f32 or bf16 each. A bf16 dw is summed in f32 and rounded once per token
 *          and 256 rows.
 * Order    results do not depend on the number of threads.
 * Errors   SL_USAGE: a size below 1 (rows: below 0), another type, an id outside the table.
 */

#include "kernels/dev.h"

struct sl_k_embed {
    const int32_t *ids;
    const void *w;
    void *y;
    enum sl_dtype wtype, ytype;
    int64_t rows, width, vocab;
};

struct sl_k_embed_bwd {
    const int32_t *ids;
    const void *dy;
    void *dw;
    enum sl_dtype wtype, ytype; /* of dw, of dy */
    int64_t rows, width, vocab;
};

int sl_k_embed(struct sl_dev *dev, const struct sl_k_embed *a, struct sl_err *err);
int sl_k_embed_bwd(struct sl_dev *dev, const struct sl_k_embed_bwd *a, struct sl_err *err);

#endif
