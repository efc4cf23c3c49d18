#ifndef SL_PACK_H
#define SL_PACK_H

/*
 * pack.h - offsets for intervals: what lives at the same time must not share bytes
 *
 * Dynamic storage allocation: items with a size and a life [first, last] get offsets from 0 such
 * that the top is low. No packing is below the largest sum of items alive at one time (the bound).
 * Five greedy best-fit orders, then, only where none meets the bound, a seeded local search with a
 * work limit. The same input gives the same answer everywhere (every order is total).
 */

#include <stdint.h>

#include "common/err.h"

struct sl_pack_item {
    int64_t bytes;
    int first, last;
};

/* Returns the top, or -1 (SL_SYSTEM: no memory). off: [n], written. */
int64_t sl_pack(const struct sl_pack_item *item, int n, int64_t bound, int64_t *off,
                struct sl_err *err);

#endif
