#ifndef SL_PERMUTE_H
#define SL_PERMUTE_H

/*
 * permute.h - a shuffled order that is computed, not stored
 *
 * A keyed bijection of 0..n-1: a balanced Feistel network of six rounds on the next even number of
 * bits, walked along its cycle until it lands below n (Black and Rogaway, "Ciphers with arbitrary
 * finite domains", CT-RSA 2002). No state, so every rank and every restart sees the same order.
 */

#include <stdint.h>

/* Element i of the order that (seed, epoch) names. n in 1..2^62, i in 0..n-1. */
int64_t sl_permute(int64_t n, uint64_t seed, int64_t epoch, int64_t i);

#endif
