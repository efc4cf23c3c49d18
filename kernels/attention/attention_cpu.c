#include "kernels/attention/attention.h"

#include <math.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "kernels/attention/attention_tile.h"
#include "kernels/cpu.h"
#include "kernels/gemm.h"
#include "kernels/vec.h"

struct job {
    const void *a;
    int64_t blocks; /* of queries, in a sample */
    atomic_int failed;
};

/* Scores of queries [q0, q0 + nq) against keys [0, q0 + nq); row length is ld. */
static int scores(const float *q, const float *k, int64_t stride, int64_t d, int64_t nq, int64_t nk,
                  float *s, int64_t ld)
{
    return sl_gemm(&(struct sl_gemm){.tb = 1, .m = nq, .n = nk, .k = d, .a = q, .lda = stride, .b = k,
                                     .ldb = stride, .c = s, .ldc = ld}, NULL);
}

/* A row of n scores becomes weights, followed by zeros up to nk; *ret is their sum. Returns the lse. */
static float softmax(float *p, int64_t n, int64_t nk, float scale, float *ret)
{
    vf top = vf_set(-INFINITY), sums = {0}, e;
    int64_t j;
    float max, sum;

    for (j = 0; j + SL_VL <= n; j += SL_VL)
        top = vf_max(vf_load(p + j), top);
    max = vf_top(top);
    for (; j < n; j++)
        max = p[j] > max ? p[j] : max;
    for (j = 0; j + SL_VL <= n; j += SL_VL) {
        e = vf_weight((vf_load(p + j) - max) * scale);
        sums += e;
        vf_store(p + j, e);
    }
    if (j < n) {
        vf_store_part(p + j, vf_weight((vf_load_part(p + j, n - j) - max) * scale), n - j);
        sums += vf_load_part(p + j, n - j);
    }
    sum = vf_sum(sums);
    memset(p + n, 0, (size_t)(nk - n) * sizeof *p);
    *ret = sum;
    return max * scale + logf(sum);
}

/* One (sample, head, block of queries). */
static void block_of(void *arg, int64_t from, int64_t to, int thread)
{
    struct job *job = arg;
    const struct sl_k_attention *a = job->a;
    int64_t d = a->width / a->heads, stride = 3 * a->width, ld = sl_att_row(a->context);
    int64_t pair = from / job->blocks, block = job->blocks - 1 - from % job->blocks;
    int64_t sample = pair / a->heads, head = pair % a->heads;
    int64_t q0 = block * SL_ATT_QUERIES;
    int64_t nq = a->context - q0 < SL_ATT_QUERIES ? a->context - q0 : SL_ATT_QUERIES, nk = q0 + nq;
    int64_t row0 = sample * a->context;
    const float *q = a->qkv + row0 * stride + head * d, *k = q + a->width, *v = k + a->width;
    float *s = (float *)a->scratch + thread * sl_att_fwd_floats(a->context);
    float *y = a->y + (row0 + q0) * a->width + head * d, sum[SL_ATT_QUERIES];
    float scale = (float)(1 / sqrt((double)d));

    (void)to;
    if (scores(q + q0 * stride, k, stride, d, nq, nk, s, ld) < 0)
        job->failed = 1;
    for (int64_t i = 0; i < nq; i++)
        a->lse[(row0 + q0 + i) * a->heads + head] = softmax(s + i * ld, q0 + i + 1, nk, scale, sum + i);
    if (sl_gemm(&(struct sl_gemm){.m = nq, .n = d, .k = nk, .a = s, .lda = ld, .b = v, .ldb = stride,
                                  .c = y, .ldc = a->width}, NULL) < 0)
        job->failed = 1;
    for (int64_t i = 0; i < nq; i++)
        for (int64_t c = 0; c < d; c++)
            y[i * a->width + c] *= 1 / sum[i];
}

int SL_CPU(attention)(struct sl_dev *dev, const struct sl_k_attention *a, struct sl_err *err)
{
    struct job job = {.a = a};

    job.blocks = (a->context + SL_ATT_QUERIES - 1) / SL_ATT_QUERIES;
    sl_par_each(dev, a->samples * a->heads * job.blocks, block_of, &job);
    if (job.failed)
        return sl_fail(err, SL_SYSTEM, "attention: oneDNN refused a matrix product");
    return 0;
}

/* p <- exp(s scale - lse), then ds (holding dy . v) <- p (ds - D) scale, for nq rows. */
static void probabilities(const struct sl_k_attention_bwd *a, int64_t row, int64_t head, int64_t q0,
                          int64_t nq, float *s, float *ds, int64_t ld)
{
    int64_t d = a->width / a->heads, nk = q0 + nq;
    float scale = (float)(1 / sqrt((double)d));

    for (int64_t i = 0; i < nq; i++) {
        const float *y = a->y + (row + q0 + i) * a->width + head * d;
        const float *dy = a->dy + (row + q0 + i) * a->width + head * d;
        float *p = s + i * ld, *g = ds + i * ld, dot = vf_dot(y, dy, d);
        float lse = a->lse[(row + q0 + i) * a->heads + head];
        int64_t n = q0 + i + 1, j = 0;

        for (; j + SL_VL <= n; j += SL_VL) {
            vf e = vf_weight(vf_fma(vf_load(p + j), vf_set(scale), vf_set(-lse)));

            vf_store(p + j, e);
            vf_store(g + j, e * (vf_load(g + j) - dot) * scale);
        }
        if (j < n) {
            vf e = vf_weight(vf_fma(vf_load_part(p + j, n - j), vf_set(scale), vf_set(-lse)));

            vf_store_part(p + j, e, n - j);
            vf_store_part(g + j, e * (vf_load_part(g + j, n - j) - dot) * scale, n - j);
        }
        memset(p + n, 0, (size_t)(nk - n) * sizeof *p);
        memset(g + n, 0, (size_t)(nk - n) * sizeof *g);
    }
}

/* One (sample, head): blocks of queries from the last, which reaches every key, to the first. */
static void pair_of(void *arg, int64_t from, int64_t to, int thread)
{
    struct job *job = arg;
    const struct sl_k_attention_bwd *a = job->a;
    int64_t d = a->width / a->heads, w = a->width, stride = 3 * w, ld = sl_att_row(a->context);
    int64_t head = from % a->heads, row0 = from / a->heads * a->context;
    const float *q = a->qkv + row0 * stride + head * d, *k = q + w, *v = k + w;
    float *dq = a->dqkv + row0 * stride + head * d, *dk = dq + w, *dv = dk + w;
    float *s = (float *)a->scratch + thread * sl_att_bwd_floats(a->context);
    float *ds = s + SL_ATT_QUERIES * ld, beta = 0;
    int bad = 0;

    (void)to;
    for (int64_t b = job->blocks - 1; b >= 0; b--, beta = 1) {
        int64_t q0 = b * SL_ATT_QUERIES;
        int64_t nq = a->context - q0 < SL_ATT_QUERIES ? a->context - q0 : SL_ATT_QUERIES;
        int64_t nk = q0 + nq;
        const float *dy = a->dy + (row0 + q0) * w + head * d, *qb = q + q0 * stride;

        bad |= scores(qb, k, stride, d, nq, nk, s, ld);
        bad |= sl_gemm(&(struct sl_gemm){.tb = 1, .m = nq, .n = nk, .k = d, .a = dy, .lda = w, .b = v,
                                         .ldb = stride, .c = ds, .ldc = ld}, NULL);
        probabilities(a, row0, head, q0, nq, s, ds, ld);
        bad |= sl_gemm(&(struct sl_gemm){.ta = 1, .m = nk, .n = d, .k = nq, .a = s, .lda = ld, .b = dy,
                                         .ldb = w, .beta = beta, .c = dv, .ldc = stride}, NULL);
        bad |= sl_gemm(&(struct sl_gemm){.ta = 1, .m = nk, .n = d, .k = nq, .a = ds, .lda = ld,
                                         .b = qb, .ldb = stride, .beta = beta, .c = dk,
                                         .ldc = stride}, NULL);
        bad |= sl_gemm(&(struct sl_gemm){.m = nq, .n = d, .k = nk, .a = ds, .lda = ld, .b = k,
                                         .ldb = stride, .c = dq + q0 * stride, .ldc = stride}, NULL);
    }
    if (bad)
        job->failed = 1;
}

int SL_CPU(attention_bwd)(struct sl_dev *dev, const struct sl_k_attention_bwd *a, struct sl_err *err)
{
    struct job job = {.a = a};

    job.blocks = (a->context + SL_ATT_QUERIES - 1) / SL_ATT_QUERIES;
    sl_par_each(dev, a->samples * a->heads, pair_of, &job);
    if (job.failed)
        return sl_fail(err, SL_SYSTEM, "attention_bwd: oneDNN refused a matrix product");
    return 0;
}
