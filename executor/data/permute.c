#include "executor/data/permute.h"

/* SplitMix64's finaliser (Steele, Lea, Flood, OOPSLA 2014): every input bit reaches every output
 * bit. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

int64_t sl_permute(int64_t n, uint64_t seed, int64_t epoch, int64_t i)
{
    uint64_t key = mix(mix(seed + 0x9e3779b97f4a7c15u) + (uint64_t)epoch), x = (uint64_t)i;
    int half = 1;

    while (half < 31 && (uint64_t)1 << 2 * half < (uint64_t)n)
        half++;
    uint64_t mask = ((uint64_t)1 << half) - 1;
    /* The domain holds less than 4 n values (4 for n = 1), so few walks are long. */
    do {
        uint64_t left = x >> half, right = x & mask;

        for (uint64_t round = 1; round <= 6; round++) {
            uint64_t f = mix(key + round * 0x9e3779b97f4a7c15u + right) & mask, was = left;

            left = right;
            right = was ^ f;
        }
        x = left << half | right;
    } while (x >= (uint64_t)n);
    return (int64_t)x;
}
