#include "kernels/head/head.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu.h"
#include "kernels/gemm.h"
#include "kernels/head/head_tile.h"
#include "kernels/vec.h"

enum { GRAIN = 1 << 15, WORDS = 256 /* whose exponentials are summed in f32 */ };

/*
 * A chunk of rows in flight. Its logits are kept with a word's side by side, one for each row: then
 * the large operand of every product is read as it lies, and the softmax works on many rows at once.
 */
struct job {
    const struct sl_k_head *a;
    struct sl_head_tile t;
    float *logits; /* [vocab, rows], stride apart; later e^(l - max), less the sum at the target */
    float *max, *f; /* [rows]; f: scale over the row's sum, 0 where it is masked */
    double *sums;   /* [rows] of exponentials, then losses */
    float *xs, *dxs, *ws; /* xs: x as f32, then times f; ws: a block of w as f32, then of dw */
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

/* The largest of each row; a NaN is skipped here and shows in the sum of exponentials. */
static void largest(const struct job *job, int64_t from, int64_t to)
{
    float *max = job->max;

    for (int64_t i = from; i < to; i++)
        max[i] = -INFINITY;
    for (int64_t v = 0; v < job->a->vocab; v++) {
        const float *l = job->logits + v * job->t.stride;
        int64_t i = from;

        for (; i + SL_VL <= to; i += SL_VL)
            vf_store(max + i, vf_max(vf_load(l + i), vf_load(max + i)));
        for (; i < to; i++)
            max[i] = l[i] > max[i] ? l[i] : max[i];
    }
}

/* l <- exp(l - max), and each row's sum. */
static void exponentials(const struct job *job, int64_t from, int64_t to)
{
    int64_t vocab = job->a->vocab;
    const float *max = job->max;
    float part[SL_HEAD_ROWS + SL_VL];

    for (int64_t i = from; i < to; i++)
        job->sums[i] = 0;
    for (int64_t first = 0; first < vocab; first += WORDS) {
        int64_t end = first + WORDS < vocab ? first + WORDS : vocab;

        memset(part, 0, (size_t)(to - from) * sizeof *part);
        for (int64_t v = first; v < end; v++) {
            float *l = job->logits + v * job->t.stride;
            int64_t i = from;

            for (; i + SL_VL <= to; i += SL_VL) {
                vf e = vf_weight(vf_load(l + i) - vf_load(max + i));

                vf_store(l + i, e);
                vf_store(part + i - from, vf_load(part + i - from) + e);
            }
            if (i < to) {
                vf e = vf_weight(vf_load_part(l + i, to - i) - vf_load_part(max + i, to - i));

                vf_store_part(l + i, e, to - i);
                vf_store_part(part + i - from, vf_load_part(part + i - from, to - i) + e, to - i);
            }
        }
        for (int64_t i = from; i < to; i++)
            job->sums[i] += (double)part[i - from];
    }
}

static void mask(const struct job *job, int64_t row)
{
    job->f[row] = 0;
    job->sums[row] = 0;
    for (int64_t v = 0; v < job->a->vocab && job->a->dx; v++)
        job->logits[v * job->t.stride + row] = 0;
}

/*
 * Rows' losses. With f = scale / sum the gradient of the logits is f (e^(l - max) - sum onehot): what
 * stands in the brackets is left in the logits, and f goes to the narrow operands, x and dx.
 */
static void softmax(void *arg, int64_t from, int64_t to, int thread)
{
    struct job *job = arg;
    int64_t width = job->a->width;

    (void)thread;
    largest(job, from, to);
    for (int64_t i = from; i < to; i++) /* the target's own, before it is overwritten */
        if (job->targets[i] >= 0)
            job->f[i] = job->logits[job->targets[i] * job->t.stride + i];
    exponentials(job, from, to);
    for (int64_t i = from; i < to; i++) {
        int32_t target = job->targets[i];
        double sum = job->sums[i];
        float *xs = job->xs + i * width;

        if (target < 0) {
            mask(job, i);
            memset(xs, 0, (size_t)width * sizeof *xs);
            continue;
        }
        job->sums[i] = log(sum) - ((double)job->f[i] - (double)job->max[i]);
        if (!job->a->dx)
            continue;
        job->f[i] = (float)(job->a->scale / sum);
        job->logits[target * job->t.stride + i] -= (float)sum;
        for (int64_t c = 0; c < width; c++)
            xs[c] = job->f[i] * job->x[i * width + c];
    }
}

static void scale_dx(void *arg, int64_t from, int64_t to, int thread)
{
    struct job *job = arg;
    int64_t width = job->a->width;

    (void)thread;
    for (int64_t i = from; i < to; i++)
        for (int64_t c = 0; c < width; c++)
            job->dx[i * width + c] *= job->f[i];
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
    if (sl_gemm(&(struct sl_gemm){.m = n, .n = a->width, .k = job->rows,
                                  .a = job->logits + v * job->t.stride, .lda = job->t.stride,
                                  .b = job->xs, .ldb = a->width, .beta = 1, .c = dw,
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

        if (sl_gemm(&(struct sl_gemm){.tb = 1, .m = n, .n = job->rows, .k = a->width,
                                      .a = weight(dev, job, v, n), .lda = a->width, .b = job->x,
                                      .ldb = a->width, .c = job->logits + v * job->t.stride,
                                      .ldc = job->t.stride}, err) < 0)
            return -1;
    }
    sl_par_range(dev, job->rows, sl_head_line(GRAIN / a->vocab + 1), softmax, job);
    if (!a->dx)
        return 0;
    for (int64_t v = 0; v < a->vocab; v += job->t.block)
        if (add_dw(dev, job, v, a->vocab - v < job->t.block ? a->vocab - v : job->t.block, err) < 0)
            return -1;
    for (int64_t v = 0; v < a->vocab; v += job->t.block) {
        int64_t n = a->vocab - v < job->t.block ? a->vocab - v : job->t.block;

        if (sl_gemm(&(struct sl_gemm){.ta = 1, .m = job->rows, .n = a->width, .k = n,
                                      .a = job->logits + v * job->t.stride, .lda = job->t.stride,
                                      .b = weight(dev, job, v, n), .ldb = a->width,
                                      .beta = v ? 1 : 0, .c = job->dx, .ldc = a->width}, err) < 0)
            return -1;
    }
    sl_par_range(dev, job->rows, GRAIN / a->width + 1, scale_dx, job);
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
    job.max = f + job.t.max;
    job.f = f + job.t.f;
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
