#include "kernels/normal/normal.h"

#include <math.h>

#include "common/rng.h"
#include "kernels/cpu.h"
#include "kernels/vec.h"

/* Vectors of 64-bit lanes: a lane makes a pair of numbers. */
enum { LANES = SL_VL / 2, GRAIN = 1 << 12 };

typedef double vd __attribute__((vector_size(LANES * 8)));
typedef uint64_t vq __attribute__((vector_size(LANES * 8)));

static inline vq low(vq x)
{
    return x & 0xffffffffu;
}

/* The product of the low halves. */
static inline vq times(vq a, uint32_t b)
{
#if defined(__AVX512F__)
    return (vq)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64(b));
#elif defined(__AVX2__)
    return (vq)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(b));
#else
    return low(a) * b;
#endif
}

static inline vd root(vd x)
{
#if defined(__AVX512F__)
    return (vd)_mm512_sqrt_pd((__m512d)x);
#elif defined(__AVX2__)
    return (vd)_mm256_sqrt_pd((__m256d)x);
#else
    for (int k = 0; k < LANES; k++)
        x[k] = sqrt(x[k]);
    return x;
#endif
}

/* An integer below 2^52 as a number: it becomes the mantissa of 2^52 + x. */
static inline vd small(vq x)
{
    return (vd)(x | 0x4330000000000000u) - 0x1p52;
}

/* The upper 53 bits of (hi, lo) as a number below 2^53. */
static inline vd number(vq hi, vq lo)
{
    vq x = (hi << 32 | lo) >> 11;

    return small(x >> 32) * 0x1p32 + small(low(x));
}

/* ln x for positive normal x = 2^k m, m in [sqrt 1/2, sqrt 2): 2 artanh s, s = (m - 1) / (m + 1). */
static inline vd logarithm(vd x)
{
    const uint64_t half = 0x3fe6a09e667f3bcd; /* sqrt 1/2 */
    vq bits = (vq)x + (0x3ff0000000000000 - half);
    vd k = small(bits >> 52) - 1023.0, m = (vd)((bits & 0xfffffffffffff) + half);
    vd s = (m - 1.0) / (m + 1.0), z = s * s, p;

    p = z * (1 / 15.0) + 1 / 13.0;
    p = z * p + 1 / 11.0;
    p = z * p + 1 / 9.0;
    p = z * p + 1 / 7.0;
    p = z * p + 1 / 5.0;
    p = z * p + 1 / 3.0;
    return k * 0.693147180559945309 + 2.0 * (s + s * (z * p));
}

/* cos and sin of 2 pi v, 0 <= v < 1, by Taylor's series around the nearest quarter of the circle. */
static inline void circle(vd v, vd *c, vd *s)
{
    const double magic = 0x1.8p52; /* adding it rounds to an integer, which the low bits hold */
    vd t = 4.0 * v + magic, x = (4.0 * v - (t - magic)) * 1.57079632679489662, z = x * x, p, q;
    vq k = (vq)t, odd = -(k & 1);

    p = z * (1 / 6227020800.0) - 1 / 39916800.0;
    p = z * p + 1 / 362880.0;
    p = z * p - 1 / 5040.0;
    p = z * p + 1 / 120.0;
    p = z * p - 1 / 6.0;
    p = x + x * (z * p);
    q = z * (1 / 479001600.0) - 1 / 3628800.0;
    q = z * q + 1 / 40320.0;
    q = z * q - 1 / 720.0;
    q = z * q + 1 / 24.0;
    q = z * q - 0.5;
    q = 1.0 + z * q;
    *c = (vd)((odd & (vq)p) | (~odd & (vq)q));
    *s = (vd)((odd & (vq)q) | (~odd & (vq)p));
    *c = (vd)((vq)*c ^ ((k + 1) & 2) << 62); /* minus in quarters 1 and 2 */
    *s = (vd)((vq)*s ^ (k & 2) << 62);       /* minus in quarters 2 and 3 */
}

/* Pairs i, i + 1, ... one a lane: philox as in rng.h, the counter's upper half being i. */
static void pairs(uint64_t key, int64_t i, double scale, double *c, double *s)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    vq c0 = {0}, c1 = {0}, c2, c3;
    vd radius, x, y;

    for (int k = 0; k < LANES; k++)
        c2[k] = (uint64_t)(i + k);
    c3 = c2 >> 32;
    c2 = low(c2);
    for (int r = 0; r < 10; r++) {
        vq p0 = times(c0, 0xD2511F53u), p1 = times(c2, 0xCD9E8D57u);

        c0 = (p1 >> 32) ^ c1 ^ k0;
        c1 = low(p1);
        c2 = (p0 >> 32) ^ c3 ^ k1;
        c3 = low(p0);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    radius = scale * root(-2.0 * logarithm((number(c1, c0) + 1.0) * 0x1p-53));
    circle(number(c3, c2) * 0x1p-53, &x, &y);
    x *= radius;
    y *= radius;
    memcpy(c, &x, sizeof x);
    memcpy(s, &y, sizeof y);
}

static void part(void *arg, int64_t from, int64_t to, int thread)
{
    const struct sl_k_normal *a = arg;
    uint64_t key = sl_rng_mix(sl_rng_mix(0, a->seed), a->stream);
    int64_t lo = a->first + from, hi = a->first + to;
    double c[LANES], s[LANES];

    (void)thread;
    for (int64_t i = lo / 2; 2 * i < hi; i += LANES) {
        int64_t at = 2 * i - a->first; /* -1 where a range begins inside a pair */

        pairs(key, i, a->scale, c, s);
        if (2 * i >= lo && 2 * (i + LANES) <= hi) {
            for (int k = 0; k < LANES; k++) {
                a->y[at + 2 * k] = (float)c[k];
                a->y[at + 2 * k + 1] = (float)s[k];
            }
            continue;
        }
        for (int k = 0; k < LANES; k++) {
            if (2 * (i + k) >= lo && 2 * (i + k) < hi)
                a->y[at + 2 * k] = (float)c[k];
            if (2 * (i + k) + 1 >= lo && 2 * (i + k) + 1 < hi)
                a->y[at + 2 * k + 1] = (float)s[k];
        }
    }
}

int SL_CPU(normal)(struct sl_dev *dev, const struct sl_k_normal *a, struct sl_err *err)
{
    (void)err;
    sl_par_range(dev, a->n, GRAIN, part, (void *)a);
    return 0;
}
