#ifndef SL_HEAD_TILE_H
#define SL_HEAD_TILE_H

/* head_tile.h - how the output layer cuts its work, and where in the scratch each piece lies */

#include <stdint.h>

#include "kernels/dtype.h"

enum {
    SL_HEAD_ROWS = 256, /* of a chunk, at most */
    SL_HEAD_LOGITS = 1 << 23, /* of a chunk, unless that is less than 64 rows */
    SL_HEAD_VOCAB = 1024 /* rows of a bf16 weight that are held as f32 at a time */
};

struct sl_head_tile {
    int64_t chunk, block;      /* rows of x, rows of w at a time */
    int64_t stride;            /* of the logits */
    int64_t sums, x, dx, w;    /* offsets in floats; logits lie at 0 */
    int64_t floats;
};

/* At least two chunks from 32 rows on: a micro-batch's logits are never held whole. */
static inline int64_t sl_head_chunk(int64_t rows, int64_t vocab)
{
    int64_t half = (rows / 2 + 15) / 16 * 16, most = SL_HEAD_LOGITS / vocab / 16 * 16;

    if (most < 64)
        most = 64;
    if (most > SL_HEAD_ROWS)
        most = SL_HEAD_ROWS;
    if (half < 16)
        half = 16;
    return half < most ? half : most;
}

static inline int64_t sl_head_line(int64_t n) /* whole cache lines */
{
    return (n + 15) / 16 * 16;
}

/* Floats from one row of logits to the next: no multiple of 4 KiB, which would share cache sets. */
static inline int64_t sl_head_stride(int64_t vocab)
{
    int64_t line = sl_head_line(vocab);

    return line % 1024 ? line : line + 16;
}

static inline void sl_head_cut(struct sl_head_tile *t, int64_t rows, int64_t width, int64_t vocab,
                               enum sl_dtype xtype, enum sl_dtype wtype)
{
    int64_t at;

    t->chunk = sl_head_chunk(rows, vocab);
    t->block = wtype == SL_F32 || vocab < SL_HEAD_VOCAB ? vocab : SL_HEAD_VOCAB;
    t->stride = sl_head_stride(vocab);
    at = t->chunk * t->stride;
    t->sums = at;
    at += sl_head_line(2 * t->chunk); /* doubles: a row's loss */
    t->x = at;
    at += xtype == SL_F32 ? 0 : sl_head_line(t->chunk * width);
    t->dx = at;
    at += xtype == SL_F32 ? 0 : sl_head_line(t->chunk * width);
    t->w = at;
    at += wtype == SL_F32 ? 0 : sl_head_line(t->block * width);
    t->floats = at;
}

#endif
