/*
 * kernels_bench.c - every operation of a GPT step alone, against the best matrix product
 *
 * usage: kernels_bench [THREADS [DEVICE [VOCAB]]]
 *
 * The shape is the reference one: 6 layers, 6 heads, width 384, context 256, batch 4, fp32. For
 * each operation: calls a step, microseconds a call (the fastest of at least seven, as for the
 * ceiling), GFLOP/s, GB/s that must move at least, and its share of the step, which is the sum over
 * all calls. The last lines give the rate of the whole step, as 6 N tokens + 12 L C T tokens, over
 * the best sgemm rate. With one thread its processor time is measured, which a busy machine
 * disturbs less.
 */
#include <dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/adamw/adamw.h"
#include "kernels/add/add.h"
#include "kernels/attention/attention.h"
#include "kernels/convert/convert.h"
#include "kernels/dropout/dropout.h"
#include "kernels/embed/embed.h"
#include "kernels/gelu/gelu.h"
#include "kernels/head/head.h"
#include "kernels/layernorm/layernorm.h"
#include "kernels/linear/linear.h"
#include "kernels/position/position.h"
#include "kernels/reduce/reduce.h"
#include "kernels/sumsq/sumsq.h"
#include "kernels/zero/zero.h"

enum { L = 6, H = 6, W = 384, T = 256, B = 4, ROWS = B * T, F = 4 * W };

struct line {
    const char *name;
    int calls;         /* a step */
    double flops, bytes;
    double us;
    int gemm;
    int extra; /* not part of the step that is summed */
};

static struct sl_dev *dev;
static int64_t vocab = 8192, params;
static struct line lines[64];
static int nlines;

static double now(void)
{
    struct timespec t;

    clock_gettime(dev->threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *get(int64_t bytes)
{
    void *p;

    if (posix_memalign(&p, 64, (size_t)bytes)) {
        fprintf(stderr, "kernels_bench: no memory for %lld bytes\n", (long long)bytes);
        exit(5);
    }
    memset(p, 0, (size_t)bytes);
    return p;
}

static float *numbers(int64_t n, double scale)
{
    static uint64_t seed = 1;
    float *x = get(n * 4);

    for (int64_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = (float)(scale * (double)(int32_t)(seed >> 32) / 2147483648.0);
    }
    return x;
}

static int order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* X must be an expression that calls the operation: 0 on success. */
#define RUN(out, X)                                                                                \
    do {                                                                                           \
        double took[2000], begin = now();                                                          \
        int reps = 0;                                                                              \
        struct sl_err err = {0};                                                                   \
        for (int warm = 0; warm < 2; warm++)                                                                \
            if ((X) < 0) {                                                                         \
                fprintf(stderr, "kernels_bench: %s\n", err.msg);                                   \
                exit(1);                                                                           \
            }                                                                                      \
        while (reps < 7 || (reps < 2000 && now() - begin < 0.25)) {                                \
            double t = now();                                                                      \
            (void)(X);                                                                             \
            took[reps++] = now() - t;                                                              \
        }                                                                                          \
        qsort(took, (size_t)reps, sizeof *took, order);                                            \
        (out) = took[0] * 1e6;                                                                     \
    } while (0)

static struct line *add(const char *name, int calls, double flops, double bytes)
{
    lines[nlines] = (struct line){.name = name, .calls = calls, .flops = flops, .bytes = bytes};
    return &lines[nlines++];
}

static double best_sgemm(void)
{
    static const int64_t shape[][3] = {{2048, 2048, 2048}, {1024, 8192, 384}, {1024, 384, 1536},
                                       {1024, 1536, 384}};
    double best = 0;

    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        int64_t m = shape[i][0], n = shape[i][1], k = shape[i][2];
        float *a = numbers(m * k, 1), *b = numbers(n * k, 1), *c = get(m * n * 4);

        for (int r = 0; r < 8; r++) {
            double t = now(), rate;

            dnnl_sgemm('N', 'T', m, n, k, 1, a, k, b, k, 0, c, n);
            rate = 2e-9 * (double)m * (double)n * (double)k / (now() - t);
            best = rate > best ? rate : best;
        }
        free(a), free(b), free(c);
    }
    return best;
}

static void linear(const char *name, int64_t in, int64_t out)
{
    static char names[16][32];
    static int at;
    float *x = numbers(ROWS * in, 1), *w = numbers(out * in, 0.1), *b = numbers(out, 1);
    float *y = numbers(ROWS * out, 1), *dx = get(ROWS * in * 4), *dw = get(out * in * 4), *db = get(out * 4);
    double flops = 2.0 * ROWS * (double)in * (double)out;
    double bytes = 4.0 * ((double)ROWS * (double)(in + out) + (double)(in * out));
    struct line *l;

    snprintf(names[at], sizeof *names, "linear %s", name);
    l = add(names[at++], L, flops, bytes), l->gemm = 1;
    RUN(l->us, sl_k_linear(dev, &(struct sl_k_linear){x, w, b, y, ROWS, in, out}, &err));
    snprintf(names[at], sizeof *names, "linear_dx %s", name);
    l = add(names[at++], L, flops, bytes), l->gemm = 1;
    RUN(l->us, sl_k_linear_dx(dev, &(struct sl_k_linear_dx){y, w, dx, ROWS, in, out}, &err));
    snprintf(names[at], sizeof *names, "linear_dw %s", name);
    l = add(names[at++], L, flops, bytes), l->gemm = 1;
    RUN(l->us, sl_k_linear_dw(dev, &(struct sl_k_linear_dw){y, x, dw, db, ROWS, in, out}, &err));
    free(x), free(w), free(b), free(y), free(dx), free(dw), free(db);
}

static void rows(void)
{
    int64_t n = (int64_t)ROWS * W;
    float *x = numbers(n, 1), *y = get(n * 4), *dx = get(n * 4), *g = numbers(W, 1), *dg = get(W * 4);
    float *db = get(W * 4), *stat = get(ROWS * 8), *w = numbers(vocab * W, 0.1), *dw = get(vocab * W * 4);
    int32_t *ids = get(ROWS * 4);
    double one = 4.0 * (double)n;
    struct line *l;

    for (int i = 0; i < ROWS; i++)
        ids[i] = (int32_t)((uint32_t)i * 2654435761u % (uint32_t)vocab);
    l = add("embed", 1, 0, 2 * one);
    RUN(l->us, sl_k_embed(dev, &(struct sl_k_embed){ids, w, y, SL_F32, SL_F32, ROWS, W, vocab}, &err));
    l = add("embed_bwd", 1, 0, 3 * one);
    RUN(l->us, sl_k_embed_bwd(dev, &(struct sl_k_embed_bwd){ids, x, dw, SL_F32, SL_F32, ROWS, W, vocab}, &err));
    l = add("position", 1, 0, 2 * one);
    RUN(l->us, sl_k_position(dev, &(struct sl_k_position){x, w, y, ROWS, W, T}, &err));
    l = add("position_bwd", 1, 0, 1.5 * one);
    RUN(l->us, sl_k_position_bwd(dev, &(struct sl_k_position_bwd){x, dw, ROWS, W, T}, &err));
    l = add("layernorm", 2 * L + 1, 0, 2 * one);
    RUN(l->us, sl_k_layernorm(dev, &(struct sl_k_layernorm){x, g, g, y, stat, ROWS, W, 1e-5f}, &err));
    l = add("layernorm_bwd", 2 * L + 1, 0, 3 * one);
    RUN(l->us, sl_k_layernorm_bwd(dev, &(struct sl_k_layernorm_bwd){y, x, g, stat, dx, dg, db, ROWS, W}, &err));
    l = add("add", 4 * L, 0, 3 * one);
    RUN(l->us, sl_k_add(dev, &(struct sl_k_add){x, y, dx, n}, &err));
    l = add("dropout", 2 * (2 * L + 1), 0, 2 * one);
    l->extra = 1;
    RUN(l->us, sl_k_dropout(dev, &(struct sl_k_dropout){x, y, n, (int64_t)T * W, 0, 1, 1, 1, 0.1}, &err));
    free(x), free(y), free(dx), free(g), free(dg), free(db), free(stat), free(w), free(dw), free(ids);
}

static void gelu(void)
{
    int64_t n = (int64_t)ROWS * F;
    float *x = numbers(n, 3), *y = get(n * 4), *dx = get(n * 4);
    struct line *l = add("gelu", L, 0, 8.0 * (double)n);

    RUN(l->us, sl_k_gelu(dev, &(struct sl_k_gelu){x, y, n}, &err));
    l = add("gelu_bwd", L, 0, 12.0 * (double)n);
    RUN(l->us, sl_k_gelu_bwd(dev, &(struct sl_k_gelu_bwd){y, x, dx, n}, &err));
    free(x), free(y), free(dx);
}

static void attention(void)
{
    int64_t n = (int64_t)ROWS * W, fwd = sl_k_attention_scratch(T, W, H, dev->threads);
    int64_t bwd = sl_k_attention_bwd_scratch(T, W, H, dev->threads);
    float *qkv = numbers(3 * n, 1), *y = get(n * 4), *lse = get(ROWS * H * 4), *dy = numbers(n, 1);
    float *dqkv = get(12 * n);
    void *scratch = get(fwd > bwd ? fwd : bwd);
    double flops = 2.0 * B * T * T * W; /* 4 T^2 W a sample, of which half is needed */
    struct line *l = add("attention", L, flops, 16.0 * (double)n);

    RUN(l->us, sl_k_attention(dev, &(struct sl_k_attention){qkv, y, lse, B, T, W, H, scratch, fwd}, &err));
    l = add("attention_bwd", L, 2.5 * flops, 36.0 * (double)n);
    RUN(l->us, sl_k_attention_bwd(dev, &(struct sl_k_attention_bwd){dy, qkv, y, lse, dqkv, B, T, W, H,
                                  scratch, bwd}, &err));
    free(qkv), free(y), free(lse), free(dy), free(dqkv), free(scratch);
}

static void head(void)
{
    int64_t n = (int64_t)ROWS * W, bytes = sl_k_head_scratch(ROWS, W, vocab, SL_F32, SL_F32);
    float *x = numbers(n, 1), *w = numbers(vocab * W, 0.1), *dx = get(n * 4), *dw = get(vocab * W * 4), loss;
    int32_t *targets = get(ROWS * 4);
    void *scratch = get(bytes);
    struct sl_k_head a = {x, w, targets, &loss, dx, dw, SL_F32, SL_F32, ROWS, W, vocab, 1e-3, scratch, bytes};
    struct line *l = add("head", 1, 6.0 * ROWS * W * (double)vocab, 4.0 * (double)(2 * n + 3 * vocab * W));

    l->gemm = 1;
    RUN(l->us, sl_k_head(dev, &a, &err));
    a.dx = NULL, a.dw = NULL;
    l = add("head (evaluation)", 1, 2.0 * ROWS * W * (double)vocab, 4.0 * (double)(n + vocab * W));
    l->gemm = l->extra = 1;
    RUN(l->us, sl_k_head(dev, &a, &err));
    free(x), free(w), free(dx), free(dw), free(targets), free(scratch);
}

static void update(void)
{
    int64_t n = params;
    float *w = numbers(n, 0.1), *m = get(n * 4), *v = get(n * 4), *g = numbers(n, 1e-3);
    uint16_t *h = get(n * 2);
    double sum, one = 4.0 * (double)n;
    const void *src[2] = {w, g};
    struct sl_k_adamw a = {w, m, v, g, NULL, SL_F32, n, 10, 1e-4, 0.9, 0.95, 1e-8, 0.1, 1};
    struct line *l = add("adamw", 1, 0, 7 * one);

    RUN(l->us, sl_k_adamw(dev, &a, &err));
    l = add("sumsq", 1, 0, one);
    RUN(l->us, sl_k_sumsq(dev, &(struct sl_k_sumsq){g, SL_F32, n, &sum}, &err));
    l = add("zero", 1, 0, one);
    RUN(l->us, sl_k_zero(dev, &(struct sl_k_zero){v, n * 4}, &err));
    l = add("reduce of 2", 1, 0, 3 * one), l->extra = 1;
    RUN(l->us, sl_k_reduce(dev, &(struct sl_k_reduce){src, m, SL_F32, SL_F32, 2, n, 0}, &err));
    l = add("convert to bf16", 1, 0, 1.5 * one), l->extra = 1;
    RUN(l->us, sl_k_convert(dev, &(struct sl_k_convert){w, h, SL_F32, SL_BF16, n}, &err));
    l = add("convert to f32", 1, 0, 1.5 * one), l->extra = 1;
    RUN(l->us, sl_k_convert(dev, &(struct sl_k_convert){h, w, SL_BF16, SL_F32, n}, &err));
    a.copy = h;
    l = add("adamw with copy", 1, 0, 7.5 * one), l->extra = 1;
    RUN(l->us, sl_k_adamw(dev, &a, &err));
    free(w), free(m), free(v), free(g), free(h);
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 2;
    struct sl_err err = {0};
    double best, total = 0, products = 0, flops;

    vocab = argc > 3 ? atoll(argv[3]) : 8192;
    params = vocab * W + T * W + L * (12 * W * W + 13 * W) + 2 * W;
    dev = sl_dev_open(argc > 2 ? argv[2] : "cpu", threads, &err);
    if (!dev) {
        fprintf(stderr, "kernels_bench: %s\n", err.msg);
        return 2;
    }
    best = best_sgemm();
    linear("qkv", W, 3 * W);
    linear("proj", W, W);
    linear("up", W, F);
    linear("down", F, W);
    attention();
    head();
    rows();
    gelu();
    update();
    for (int i = 0; i < nlines; i++) {
        if (lines[i].extra)
            continue;
        total += lines[i].us * lines[i].calls;
        products += lines[i].gemm ? lines[i].us * lines[i].calls : 0;
    }
    printf("%s, %d threads, vocabulary %lld, %lld parameters; best sgemm %.0f GFLOP/s\n\n", dev->name,
           dev->threads, (long long)vocab, (long long)params, best);
    printf("%-18s %5s %9s %8s %6s %7s %6s\n", "operation", "calls", "us", "GFLOP/s", "of max", "GB/s",
           "share");
    for (int i = 0; i < nlines; i++) {
        struct line *l = &lines[i];

        printf("%-18s %5d %9.0f", l->name, l->calls, l->us);
        if (l->flops > 0)
            printf(" %8.1f %6.2f", l->flops / l->us * 1e-3, l->flops / l->us * 1e-3 / best);
        else
            printf(" %8s %6s", "", "");
        printf(" %7.1f", l->bytes / l->us * 1e-3);
        if (l->extra)
            printf(" %6s\n", "-");
        else
            printf(" %5.1f%%\n", 100 * l->us * l->calls / total);
    }
    flops = 6.0 * (double)(params - T * W) * ROWS + 12.0 * L * W * T * ROWS;
    printf("\nstep %.1f ms, of which linear layers and head %.1f ms (%.1f %%)\n", total * 1e-3,
           products * 1e-3, 100 * products / total);
    printf("%.1f GFLOP a step: %.1f GFLOP/s, %.3f of the best sgemm\n", flops * 1e-9,
           flops / total * 1e-3, flops / total * 1e-3 / best);
    sl_dev_close(dev);
    return 0;
}
