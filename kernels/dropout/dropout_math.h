#ifndef SL_DROPOUT_MATH_H
#define SL_DROPOUT_MATH_H

/* dropout_math.h - the random word of an element; 32-bit, so that eight or sixteen run at once */

#include <stdint.h>

/* splitmix64's finaliser */
static inline uint64_t sl_dropout_mix64(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* MurmurHash3's finaliser */
static inline uint32_t sl_dropout_mix32(uint32_t x)
{
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return x ^ (x >> 16);
}

static inline uint64_t sl_dropout_key(uint64_t seed, uint64_t step, uint64_t sample, uint64_t op)
{
    return sl_dropout_mix64(
        sl_dropout_mix64(sl_dropout_mix64(sl_dropout_mix64(seed) ^ step) ^ sample) ^ op);
}

static inline uint32_t sl_dropout_word(uint64_t key, uint32_t element)
{
    return sl_dropout_mix32(sl_dropout_mix32(element ^ (uint32_t)key) ^ (uint32_t)(key >> 32));
}

#endif
