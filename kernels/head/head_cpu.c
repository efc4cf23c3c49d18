#include "kernels/head/head.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu.h"
#include "kernels/gemm.h"
#include "kernels/head/head_tile.h"
#include "kernels/vec.h"

enum { GRAIN = 1 << 15, COLUMNS = 256 /* summed in f32 */ };

/* A chunk of rows in flight. */
struct job {
    const struct sl_k_head *a;
    struct sl_head_tile t;
    float *logits, *xs, *dxs, *ws; /* ws: a block of w as f32, then of dw */
    double *sums;
    const int32_t *targets;
    const float *x; /* the chunk as f32 */
    float *dx;
    int64_t rows;
    struct { /* a conversion for the threads */
        const void *src;
        void *dst;
    } c;
};

static int targets_fit(const struct sl_k_head *a, struct sl_err *err)
{
    for (int64_t i = 0; i < a->rows; i++)
        if (a->targets[i] < -1 || a->targets[i] >= a->vocab)
            return sl_fail(err, SL_USAGE,
                           "head: target %" PRId32 " at row %" PRId64 " is not in -1 .. %" PRId64,
                           a->targets[i], i, a->vocab - 1);
    return 0;
}

/* The largest of a row; a NaN is skipped here and shows in the sum of exponentials. */
static float largest(const float *l, int64_t n)
{
    vf top[2] = {vf_set(-INFINITY), vf_set(-INFINITY)};
    int64_t j = 0;
    float max;

    for (; j + 2 * SL_VL <= n; j += 2 * SL_VL) {
        top[0] = vf_max(vf_load(l + j), top[0]);
        top[1] = vf_max(vf_load(l + j + SL_VL), top[1]);
    }
    max = vf_top(vf_max(top[0], top[1]));
    for (; j < n; j++)
        max = l[j] > max ? l[j] : max;
    return max;
}

/* l <- exp(l - max); returns the sum. */
static double exponentials(float *l, int64_t n, float max)
{
    double sum = 0;

    for (int64_t c = 0; c < n; c += COLUMNS) {
        int64_t end = c + COLUMNS < n ? c + COLUMNS : n, j = c;
        vf part = {0}, e;

        for (; j + SL_VL <= end; j += SL_VL) {
            e = vf_weight(vf_load(l + j) - max);
            part += e;
            vf_store(l + j, e);
        }
        if (j < end) {
            e = vf_weight(vf_load_part(l + j, end - j) - max);
            vf_store_part(l + j, e, end - j);
            part += vf_load_part(l + j, end - j); /* without the padding */
        }
        sum += (double)vf_sum(part);
    }
    return sum;
}

/* Rows' losses; the logits become the gradient of the logits when it is wanted. */
static void softmax(void *arg, int64_t from, int64_t to, int thread)
{
    struct job *job = arg;
    int64_t n = job->a->vocab;

    (void)thread;
    for (int64_t i = from; i < to; i++) {
        float *l = job->logits + i * job->t.stride, max, f;
        int32_t target = job->targets[i];
        double sum, at;

        job->sums[i] = 0;
        if (target < 0) {
            memset(l, 0, (size_t)n * sizeof *l);
            continue;
        }
        max = largest(l, n);
        at = (double)l[target] - (double)max;
        sum = exponentials(l, n, max);
        job->sums[i] = log(sum) - at;
        if (!job->a->dx)
            continue;
        f = (float)(job->a->scale / sum);
        for (int64_t j = 0; j < n; j++)
            l[j] *= f;
        l[target] -= (float)job->a->scale;
    }
}

static void widen(void *arg, int64_t from, int64_t to, int thread)
{
    struct job *job = arg;
    const uint16_t *src = job->c.src;
    float *dst = job->c.dst;

    (void)thread;
    for (int64_t i = from; i < to; i++)
        dst[i] = sl_bf16_f32(src[i]);
}

static void narrow(void *arg, int64_t from, int64_t to, int thread)
{
    struct job *job = arg;
    const float *src = job->c.src;
    uint16_t *dst = job->c.dst;

    (void)thread;
    for (int64_t i = from; i < to; i++)
        dst[i] = sl_f32_bf16(src[i]);
}

/* Rows [v, v + n) of w as f32. */
static const float *weight(struct sl_dev *dev, struct job *job, int64_t v, int64_t n)
{
    const struct sl_k_head *a = job->a;

    if (a->wtype == SL_F32)
        return (const float *)a->w + v * a->width;
    job->c.src = (const uint16_t *)a->w + v * a->width;
    job->c.dst = job->ws;
    sl_par_range(dev, n * a->width, GRAIN, widen, job);
    return job->ws;
}

static int add_dw(struct sl_dev *dev, struct job *job, int64_t v, int64_t n, struct sl_err *err)
{
    const struct sl_k_head *a = job->a;
    float *dw = a->wtype == SL_F32 ? (float *)a->dw + v * a->width : job->ws;
    uint16_t *rounded = (uint16_t *)a->dw + v * a->width;

    if (a->wtype == SL_BF16) {
        job->c.src = rounded;
        job->c.dst = dw;
        sl_par_range(dev, n * a->width, GRAIN, widen, job);
    }
    if (sl_gemm(&(struct sl_gemm){.ta = 1, .m = n, .n = a->width, .k = job->rows, .a = job->logits + v,
                                  .lda = job->t.stride, .b = job->x, .ldb = a->width, .beta = 1, .c = dw,
                                  .ldc = a->width}, err) < 0)
        return -1;
    if (a->wtype == SL_BF16) {
        job->c.src = dw;
        job->c.dst = rounded;
        sl_par_range(dev, n * a->width, GRAIN, narrow, job);
    }
    return 0;
}

static int chunk(struct sl_dev *dev, struct job *job, struct sl_err *err)
{
    const struct sl_k_head *a = job->a;

    for (int64_t v = 0; v < a->vocab; v += job->t.block) {
        int64_t n = a->vocab - v < job->t.block ? a->vocab - v : job->t.block;

        if (sl_gemm(&(struct sl_gemm){.tb = 1, .m = job->rows, .n = n, .k = a->width, .a = job->x,
                                      .lda = a->width, .b = weight(dev, job, v, n), .ldb = a->width,
                                      .c = job->logits + v, .ldc = job->t.stride}, err) < 0)
            return -1;
    }
    sl_par_range(dev, job->rows, GRAIN / a->vocab + 1, softmax, job);
    if (!a->dx)
        return 0;
    for (int64_t v = 0; v < a->vocab; v += job->t.block)
        if (add_dw(dev, job, v, a->vocab - v < job->t.block ? a->vocab - v : job->t.block, err) < 0)
            return -1;
    for (int64_t v = 0; v < a->vocab; v += job->t.block) {
        int64_t n = a->vocab - v < job->t.block ? a->vocab - v : job->t.block;

        if (sl_gemm(&(struct sl_gemm){.m = job->rows, .n = a->width, .k = n, .a = job->logits + v,
                                      .lda = job->t.stride, .b = weight(dev, job, v, n), .ldb = a->width,
                                      .beta = v ? 1 : 0, .c = job->dx, .ldc = a->width}, err) < 0)
            return -1;
    }
    return 0;
}

int SL_CPU(head)(struct sl_dev *dev, const struct sl_k_head *a, struct sl_err *err)
{
    struct job job = {.a = a};
    float *f = a->scratch;
    double loss = 0;

    if (targets_fit(a, err) < 0)
        return -1;
    sl_head_cut(&job.t, a->rows, a->width, a->vocab, a->xtype, a->wtype);
    job.logits = f;
    job.sums = (double *)(f + job.t.sums);
    job.xs = f + job.t.x;
    job.dxs = f + job.t.dx;
    job.ws = f + job.t.w;
    for (int64_t r = 0; r < a->rows; r += job.t.chunk) {
        int64_t at = r * a->width;

        job.rows = a->rows - r < job.t.chunk ? a->rows - r : job.t.chunk;
        job.targets = a->targets + r;
        if (a->xtype == SL_F32) {
            job.x = (const float *)a->x + at;
            job.dx = a->dx ? (float *)a->dx + at : NULL;
        } else {
            job.c.src = (const uint16_t *)a->x + at;
            job.c.dst = job.xs;
            sl_par_range(dev, job.rows * a->width, GRAIN, widen, &job);
            job.x = job.xs;
            job.dx = job.dxs;
        }
        if (chunk(dev, &job, err) < 0)
            return -1;
        for (int64_t i = 0; i < job.rows; i++)
            loss += job.sums[i];
        if (a->dx && a->xtype == SL_BF16) {
            job.c.src = job.dxs;
            job.c.dst = (uint16_t *)a->dx + at;
            sl_par_range(dev, job.rows * a->width, GRAIN, narrow, &job);
        }
    }
    *a->loss = (float)(loss * a->scale);
    return 0;
}
