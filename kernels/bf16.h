#ifndef SL_BF16_H
#define SL_BF16_H

/*
 * bf16.h - one element between bf16 and f32
 *
 * Rounding is to nearest, ties to even: add half of the last kept place, less one when that place
 * is even, and cut. A NaN could carry into infinity that way, so it is cut with its quiet bit set.
 */

#include <stdint.h>
#include <string.h>

static inline float sl_bf16_f32(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;

    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint16_t sl_f32_bf16(float f)
{
    uint32_t u, up, nan;

    memcpy(&u, &f, sizeof u);
    up = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    nan = (u >> 16) | 0x40u;
    return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? nan : up);
}

#endif
