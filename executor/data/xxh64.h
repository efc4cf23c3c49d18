#ifndef SL_XXH64_H
#define SL_XXH64_H

/*
 * xxh64.h - the XXH64 hash with seed 0, in pieces: finds changed and damaged data, no secrets
 *
 * Source: xxHash fast digest algorithm, specification 0.1.1. Bytes are read as little endian.
 */

#include <stddef.h>
#include <stdint.h>

struct sl_xxh64 {
    uint64_t acc[4], total;
    unsigned char rest[32]; /* total % 32 bytes that wait for more */
};

void sl_xxh64_start(struct sl_xxh64 *h);
void sl_xxh64_add(struct sl_xxh64 *h, const void *data, size_t n);
uint64_t sl_xxh64_end(const struct sl_xxh64 *h); /* of all so far; more may follow */

uint64_t sl_xxh64(const void *data, size_t n);

#endif
