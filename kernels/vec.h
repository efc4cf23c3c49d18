#ifndef SL_VEC_H
#define SL_VEC_H

/*
 * vec.h - vectors of f32 as wide as the instruction set, and what kernels compute on them
 *
 * For *_cpu.c files only. SL_VL lanes; vf_fma is one rounding where the set has it. A function acts
 * on each lane alone, so a tail in a padded vector gives the bits that it gives in the middle.
 */

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define SL_VL 16
#elif defined(__AVX2__)
#define SL_VL 8
#else
#define SL_VL 4
#endif

typedef float vf __attribute__((vector_size(SL_VL * 4)));
typedef int32_t vi __attribute__((vector_size(SL_VL * 4)));

static inline vf vf_load(const float *p)
{
    vf v;

    memcpy(&v, p, sizeof v);
    return v;
}

static inline void vf_store(float *p, vf v)
{
    memcpy(p, &v, sizeof v);
}

/* The first n lanes, 0 <= n < SL_VL; the others are 0. */
static inline vf vf_load_part(const float *p, int64_t n)
{
    vf v = {0};

    memcpy(&v, p, (size_t)n * sizeof *p);
    return v;
}

static inline void vf_store_part(float *p, vf v, int64_t n)
{
    memcpy(p, &v, (size_t)n * sizeof *p);
}

static inline vf vf_set(float x)
{
    return x - (vf){0};
}

/* a b + c */
static inline vf vf_fma(vf a, vf b, vf c)
{
#if defined(__AVX512F__)
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__)
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}

/* Lanes of a where the mask is -1, of b where it is 0. */
static inline vf vf_select(vi mask, vf a, vf b)
{
    return (vf)((mask & (vi)a) | (~mask & (vi)b));
}

/* The larger; b where one is a NaN. */
static inline vf vf_max(vf a, vf b)
{
    return vf_select(a > b, a, b);
}

static inline float vf_sum(vf v)
{
    float s[SL_VL];

    memcpy(s, &v, sizeof s);
    for (int k = SL_VL / 2; k > 0; k /= 2)
        for (int i = 0; i < k; i++)
            s[i] += s[i + k];
    return s[0];
}

static inline float vf_top(vf v) /* the largest lane; NaNs are skipped */
{
    float s[SL_VL], top;

    memcpy(s, &v, sizeof s);
    top = s[0];
    for (int i = 1; i < SL_VL; i++)
        top = s[i] > top || top != top ? s[i] : top;
    return top;
}

/* e^x for -87.3 <= x <= 88.3: x = n ln 2 + r, |r| <= ln 2 / 2; the polynomial is that of Cephes' expf */
static inline vf vf_exp_inside(vf x)
{
    const vf magic = vf_set(12582912.0f); /* 1.5 2^23: adding it rounds to an integer */
    vf t = vf_fma(x, vf_set(1.44269504088896341f), magic), n = t - magic;
    vf r = vf_fma(n, vf_set(-0.693359375f), x), p;

    r = vf_fma(n, vf_set(2.12194440e-4f), r);
    p = vf_fma(vf_set(1.9875691500e-4f), r, vf_set(1.3981999507e-3f));
    p = vf_fma(p, r, vf_set(8.3334519073e-3f));
    p = vf_fma(p, r, vf_set(4.1665795894e-2f));
    p = vf_fma(p, r, vf_set(1.6666665459e-1f));
    p = vf_fma(p, r, vf_set(5.0000001201e-1f));
    p = vf_fma(p, r * r, r) + 1.0f;
    return p * (vf)(((vi)t + 127) << 23); /* 2^n; the upper bits of t fall out */
}

/* e^x within 2 units in the last place for -87.3 <= x <= 88.3; 0 below, infinity above, NaN for a NaN */
static inline vf vf_exp(vf x)
{
    vf p = vf_select(x < vf_set(-87.3f), (vf){0}, vf_exp_inside(x));

    return vf_select(x > vf_set(88.3f), vf_set(__builtin_inff()), p);
}

/*
 * e^x as a weight of a softmax, x at most a little above 0: 0 below -60, which no f32 sum of weights
 * notices, so that products with a weight stay out of the slow range of subnormal numbers.
 */
static inline vf vf_weight(vf x)
{
    return vf_select(x < vf_set(-60), (vf){0}, vf_exp_inside(x));
}

#endif
