#ifndef SL_HEAD_TILE_H
#define SL_HEAD_TILE_H

/* head_tile.h - how the output layer cuts its work, and where in the scratch each piece lies */

#include <stdint.h>

#include "kernels/dtype.h"

enum {
    SL_HEAD_ROWS = 512, /* of a chunk, at most */
    SL_HEAD_LOGITS = 1 << 24, /* of a chunk, unless that is less than 64 rows */
    SL_HEAD_VOCAB = 1024 /* rows of a bf16 weight that are held as f32 at a time */
};

struct sl_head_tile {
    int64_t chunk, block;          /* rows of x, rows of w at a time */
    int64_t stride;                /* of the logits, which lie at 0: [vocab, chunk] */
    int64_t sums, max, f, x, dx, w; /* offsets in floats */
    int64_t floats;
};

static inline int64_t sl_head_line(int64_t n) /* whole cache lines */
{
    return (n + 15) / 16 * 16;
}

/* At least two chunks from 32 rows on, of about one size: the logits are never held whole. */
static inline int64_t sl_head_chunk(int64_t rows, int64_t vocab)
{
    int64_t most = SL_HEAD_LOGITS / vocab / 16 * 16, chunks;

    if (most < 64)
        most = 64;
    if (most > SL_HEAD_ROWS)
        most = SL_HEAD_ROWS;
    chunks = (rows + most - 1) / most;
    return sl_head_line(chunks < 2 ? (rows + 1) / 2 : (rows + chunks - 1) / chunks);
}

/* Floats from a word's logits to the next word's: no multiple of 1 KiB, which would share cache sets. */
static inline int64_t sl_head_stride(int64_t chunk)
{
    return chunk % 256 ? chunk : chunk + 16;
}

static inline void sl_head_cut(struct sl_head_tile *t, int64_t rows, int64_t width, int64_t vocab,
                               enum sl_dtype xtype, enum sl_dtype wtype)
{
    int64_t at;

    t->chunk = sl_head_chunk(rows > 0 ? rows : 1, vocab);
    t->block = wtype == SL_F32 || vocab < SL_HEAD_VOCAB ? vocab : SL_HEAD_VOCAB;
    t->stride = sl_head_stride(t->chunk);
    at = sl_head_line(vocab * t->stride);
    t->sums = at; /* doubles: a row's sum of exponentials, then its loss */
    at += sl_head_line(2 * t->chunk);
    t->max = at;
    at += t->chunk;
    t->f = at; /* a row's factor of the gradient */
    at += t->chunk;
    t->x = at;
    at += sl_head_line(t->chunk * width);
    t->dx = at;
    at += xtype == SL_F32 ? 0 : sl_head_line(t->chunk * width);
    t->w = at;
    at += wtype == SL_F32 ? 0 : sl_head_line(t->block * width);
    t->floats = at;
}

#endif
