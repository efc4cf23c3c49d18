#ifndef KT_H
#define KT_H

/* kt.h - what the kernels' tests share: devices, numbers, comparison, central differences */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/bf16.h"
#include "kernels/dev.h"

/* Run f on every instruction set that this machine has, with `threads` threads. */
static inline void kt_each(void (*f)(struct sl_dev *dev), int threads)
{
    static const char *const names[] = {"cpu:base", "cpu:v3", "cpu:v4"};

    for (int i = 0; i < 3; i++) {
        struct sl_err err = {0};
        struct sl_dev *dev = sl_dev_open(names[i], threads, &err);

        if (!dev) {
            assert_int_equal(err.code, SL_USAGE);
            assert_int_not_equal(i, 0); /* the baseline is always there */
            print_message("# %s\n", err.msg);
            continue;
        }
        f(dev);
        sl_dev_close(dev);
    }
}

static inline struct sl_dev *kt_open(int threads)
{
    struct sl_dev *dev = sl_dev_open("cpu", threads, NULL);

    assert_non_null(dev);
    return dev;
}

static inline void *kt_alloc(int64_t bytes) /* 64-byte aligned, filled with NaNs; free() it */
{
    void *p = NULL;

    assert_int_equal(posix_memalign(&p, 64, (size_t)bytes + 64), 0);
    memset(p, 0xff, (size_t)bytes + 64);
    return p;
}

static inline float *kt_floats(int64_t n)
{
    return kt_alloc(n * (int64_t)sizeof(float));
}

static inline double *kt_doubles(int64_t n)
{
    return kt_alloc(n * (int64_t)sizeof(double));
}

static inline double kt_uniform(uint64_t *seed) /* in [-1, 1) */
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(int32_t)(*seed >> 32) / 2147483648.0;
}

static inline float *kt_random(int64_t n, uint64_t seed, double scale)
{
    float *x = kt_floats(n);

    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(scale * kt_uniform(&seed));
    return x;
}

static inline double *kt_double_of(const float *x, int64_t n)
{
    double *d = kt_doubles(n);

    for (int64_t i = 0; i < n; i++)
        d[i] = (double)x[i];
    return d;
}

static inline uint16_t *kt_bf16_of(float *x, int64_t n) /* rounds x, too */
{
    uint16_t *h = kt_alloc(2 * n);

    for (int64_t i = 0; i < n; i++) {
        h[i] = sl_f32_bf16(x[i]);
        x[i] = sl_bf16_f32(h[i]);
    }
    return h;
}

#define kt_near(got, want, n, abs, rel) kt_near_(got, want, n, abs, rel, __FILE__, __LINE__)
static inline void kt_near_(const float *got, const double *want, int64_t n, double abs, double rel,
                            const char *file, int line)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) <= abs + rel * fabs(want[i]))) { /* a NaN, too */
            print_error("# element %lld of %lld: got %.9g, want %.9g\n", (long long)i, (long long)n,
                        (double)got[i], want[i]);
            _fail(file, line);
        }
}

#define kt_same(a, b, bytes) kt_same_(a, b, bytes, __FILE__, __LINE__)
static inline void kt_same_(const void *a, const void *b, int64_t bytes, const char *file, int line)
{
    for (int64_t i = 0; i < bytes; i++)
        if (((const char *)a)[i] != ((const char *)b)[i]) {
            print_error("# byte %lld of %lld differs\n", (long long)i, (long long)bytes);
            _fail(file, line);
        }
}

/* Central differences of f (which reads x through ctx) by each of x's n elements. */
static inline double *kt_gradient(double (*f)(const void *ctx), const void *ctx, double *x, int64_t n)
{
    double *g = kt_doubles(n), h = 1e-5;

    for (int64_t i = 0; i < n; i++) {
        double at = x[i], up;

        x[i] = at + h;
        up = f(ctx);
        x[i] = at - h;
        g[i] = (up - f(ctx)) / (2 * h);
        x[i] = at;
    }
    return g;
}

static inline double kt_dot(const double *a, const double *b, int64_t n)
{
    double s = 0;

    for (int64_t i = 0; i < n; i++)
        s += a[i] * b[i];
    return s;
}

#define kt_usage(call)                                                                             \
    do {                                                                                           \
        memset(&err, 0, sizeof err);                                                               \
        assert_int_equal(call, -1);                                                                \
        assert_int_equal(err.code, SL_USAGE);                                                      \
        assert_true(err.msg[0] != '\0');                                                           \
    } while (0)

#endif
