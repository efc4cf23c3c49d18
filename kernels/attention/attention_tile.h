#ifndef SL_ATTENTION_TILE_H
#define SL_ATTENTION_TILE_H

/* attention_tile.h - how attention cuts its work; the scratch sizes follow from it */

#include <stdint.h>

enum { SL_ATT_QUERIES = 64 }; /* queries of a block */

/* Floats of one row of scores, of one thread's scratch forward and backward. */
static inline int64_t sl_att_row(int64_t context)
{
    return (context + 15) / 16 * 16;
}

static inline int64_t sl_att_fwd_floats(int64_t context)
{
    return SL_ATT_QUERIES * sl_att_row(context);
}

static inline int64_t sl_att_bwd_floats(int64_t context)
{
    return 2 * SL_ATT_QUERIES * sl_att_row(context) + SL_ATT_QUERIES;
}

#endif
