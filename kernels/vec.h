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
typedef uint32_t vu __attribute__((vector_size(SL_VL * 4)));

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

/* x, or 0 where `test` is below `least`; x where test is a NaN. */
static inline vf vf_zero_below(vf test, float least, vf x)
{
#if defined(__AVX512F__)
    __mmask16 keep = _mm512_cmp_ps_mask((__m512)test, _mm512_set1_ps(least), _CMP_NLT_UQ);

    return (vf)_mm512_maskz_mov_ps(keep, (__m512)x);
#else
    return (vf)(~(test < vf_set(least)) & (vi)x);
#endif
}

/* The larger; b where one is a NaN. */
static inline vf vf_max(vf a, vf b)
{
#if defined(__AVX512F__)
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return vf_select(a > b, a, b);
#endif
}

static inline float vf_sum(vf v)
{
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)v);
#elif defined(__AVX2__)
    __m128 s = _mm_add_ps(_mm256_castps256_ps128((__m256)v), _mm256_extractf128_ps((__m256)v, 1));

    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
#else
    return (v[0] + v[2]) + (v[1] + v[3]);
#endif
}

static inline float vf_top(vf v) /* the largest lane; no lane is a NaN */
{
#if defined(__AVX512F__)
    return _mm512_reduce_max_ps((__m512)v);
#else
    float top = v[0];

    for (int i = 1; i < SL_VL; i++)
        top = v[i] > top ? v[i] : top;
    return top;
#endif
}

/* sum of a_i b_i */
static inline float vf_dot(const float *a, const float *b, int64_t n)
{
    vf s[2] = {{0}, {0}};
    int64_t i = 0;

    for (; i + 2 * SL_VL <= n; i += 2 * SL_VL) {
        s[0] = vf_fma(vf_load(a + i), vf_load(b + i), s[0]);
        s[1] = vf_fma(vf_load(a + i + SL_VL), vf_load(b + i + SL_VL), s[1]);
    }
    for (; i < n; i += SL_VL)
        s[0] = n - i < SL_VL ? vf_fma(vf_load_part(a + i, n - i), vf_load_part(b + i, n - i), s[0])
                             : vf_fma(vf_load(a + i), vf_load(b + i), s[0]);
    return vf_sum(s[0] + s[1]);
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
    return p * (vf)(((vu)t + 127u) << 23); /* 2^n; the upper bits of t fall out, also a NaN's */
}

/* e^x within 2 units in the last place for -87.3 <= x <= 88.3; 0 below, infinity above, NaN for a NaN */
static inline vf vf_exp(vf x)
{
    vf p = vf_zero_below(x, -87.3f, vf_exp_inside(x));

    return vf_select(x > vf_set(88.3f), vf_set(__builtin_inff()), p);
}

/*
 * e^x as a weight of a softmax, x at most a little above 0: 0 below -60, which no f32 sum of weights
 * notices, so that products with a weight stay out of the slow range of subnormal numbers.
 */
static inline vf vf_weight(vf x)
{
    return vf_zero_below(x, -60, vf_exp_inside(x));
}

#endif
