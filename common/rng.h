#ifndef SL_RNG_H
#define SL_RNG_H

/*
 * rng.h - random numbers without state: the value at a place, from a seed
 *
 * Philox4x32-10: the same (seed, a, b, c) gives the same bits on every machine and in any order,
 * so data order and dropout need not know how many ranks there are. Two places of one (seed, a)
 * never share a counter. sl_rng_normal also depends on the C library's log and cos, so its last
 * bits are the same only between equal libraries.
 *
 * Source  Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
 */

#include <stdint.h>

/* One block of Philox4x32-10: 128 random bits from a 128-bit counter and a 64-bit key. */
static inline void sl_philox(const uint32_t ctr[4], const uint32_t key[2], uint32_t ret[4])
{
    uint32_t c0 = ctr[0], c1 = ctr[1], c2 = ctr[2], c3 = ctr[3], k0 = key[0], k1 = key[1];

    for (int i = 0; i < 10; i++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;

        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    ret[0] = c0;
    ret[1] = c1;
    ret[2] = c2;
    ret[3] = c3;
}

/* A well-mixed 64-bit word from two (the finalizer of SplitMix64): for keys, not for streams. */
static inline uint64_t sl_rng_mix(uint64_t a, uint64_t b)
{
    uint64_t z = a * 0x9E3779B97F4A7C15u + b + 0x632BE59BD9B4E019u;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* The block at (b, c) under the key made of (seed, a). */
static inline void sl_rng_block(uint64_t seed, uint64_t a, uint64_t b, uint64_t c,
                                uint32_t ret[4])
{
    uint64_t k = sl_rng_mix(sl_rng_mix(0, seed), a);
    const uint32_t key[2] = {(uint32_t)k, (uint32_t)(k >> 32)};
    const uint32_t ctr[4] = {(uint32_t)c, (uint32_t)(c >> 32), (uint32_t)b, (uint32_t)(b >> 32)};

    sl_philox(ctr, key, ret);
}

uint64_t sl_rng_u64(uint64_t seed, uint64_t a, uint64_t b, uint64_t c);
double sl_rng_uniform(uint64_t seed, uint64_t a, uint64_t b, uint64_t c); /* [0, 1), 53 bits */
double sl_rng_normal(uint64_t seed, uint64_t a, uint64_t b, uint64_t c);  /* mean 0, variance 1 */

/* 0..n-1, n >= 1; no value is likelier than another by more than n / 2^64. */
uint64_t sl_rng_below(uint64_t seed, uint64_t a, uint64_t b, uint64_t c, uint64_t n);

#endif
