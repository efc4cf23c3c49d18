#include "common/rng.h"

#include <math.h>

static const double two_pi = 6.283185307179586476925;

uint64_t sl_rng_u64(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
    uint32_t r[4];

    sl_rng_block(seed, a, b, c, r);
    return (uint64_t)r[1] << 32 | r[0];
}

double sl_rng_uniform(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
    return (double)(sl_rng_u64(seed, a, b, c) >> 11) * 0x1p-53;
}

/* Box-Muller: sqrt(-2 ln u) cos(2 pi v), u in (0, 1]. */
double sl_rng_normal(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
    uint32_t r[4];

    sl_rng_block(seed, a, b, c, r);
    double u = ((double)(((uint64_t)r[1] << 32 | r[0]) >> 11) + 1) * 0x1p-53;
    double v = (double)(((uint64_t)r[3] << 32 | r[2]) >> 11) * 0x1p-53;
    return sqrt(-2 * log(u)) * cos(two_pi * v);
}

uint64_t sl_rng_below(uint64_t seed, uint64_t a, uint64_t b, uint64_t c, uint64_t n)
{
    __extension__ typedef unsigned __int128 wide;

    return (uint64_t)((wide)sl_rng_u64(seed, a, b, c) * n >> 64);
}
