#include "kernels/embed/embed.h"

#include <inttypes.h>
#include <string.h>

#include "kernels/cpu.h"

enum {
    GRAIN = 1 << 15, /* elements that are worth a thread */
    COLUMNS = 64,    /* of dw that one piece of work owns: whole cache lines */
    ROWS = 256       /* of dy between two roundings of a bf16 dw */
};

static int ids_fit(const int32_t *ids, int64_t rows, int64_t vocab, struct sl_err *err)
{
    for (int64_t i = 0; i < rows; i++)
        if (ids[i] < 0 || ids[i] >= vocab)
            return sl_fail(err, SL_USAGE,
                           "embed: id %" PRId32 " at row %" PRId64 " is not in 0 .. %" PRId64,
                           ids[i], i, vocab - 1);
    return 0;
}

static float load(const void *p, enum sl_dtype type, int64_t i)
{
    return type == SL_F32 ? ((const float *)p)[i] : sl_bf16_f32(((const uint16_t *)p)[i]);
}

static void rows_of(void *arg, int64_t from, int64_t to, int thread)
{
    const struct sl_k_embed *a = arg;
    int64_t n = a->width, size = sl_dtype_size(a->ytype);

    (void)thread;
    for (int64_t i = from; i < to; i++) {
        int64_t src = a->ids[i] * n;

        if (a->wtype == a->ytype)
            memcpy((char *)a->y + i * n * size, (const char *)a->w + src * size, (size_t)(n * size));
        else if (a->ytype == SL_F32)
            for (int64_t j = 0; j < n; j++)
                ((float *)a->y)[i * n + j] = sl_bf16_f32(((const uint16_t *)a->w)[src + j]);
        else
            for (int64_t j = 0; j < n; j++)
                ((uint16_t *)a->y)[i * n + j] = sl_f32_bf16(((const float *)a->w)[src + j]);
    }
}

int SL_CPU(embed)(struct sl_dev *dev, const struct sl_k_embed *a, struct sl_err *err)
{
    if (ids_fit(a->ids, a->rows, a->vocab, err) < 0)
        return -1;
    sl_par_range(dev, a->rows, GRAIN / a->width + 1, rows_of, (void *)a);
    return 0;
}

/* The columns [from, to) of dw in f32: tokens repeat, so rows stay in order. */
static void add_rows(const struct sl_k_embed_bwd *a, int64_t from, int64_t to)
{
    int64_t n = a->width;

    for (int64_t i = 0; i < a->rows; i++) {
        float *w = (float *)a->dw + a->ids[i] * n;

        if (a->ytype == SL_F32) {
            const float *dy = (const float *)a->dy + i * n;
            SL_SIMD
            for (int64_t j = from; j < to; j++)
                w[j] += dy[j];
        } else {
            const uint16_t *dy = (const uint16_t *)a->dy + i * n;
            SL_SIMD
            for (int64_t j = from; j < to; j++)
                w[j] += sl_bf16_f32(dy[j]);
        }
    }
}

/* The same for bf16: the rows of a block that share a token are summed before the one rounding. */
static void add_rows_rounded(const struct sl_k_embed_bwd *a, int64_t from, int64_t to)
{
    int64_t n = a->width;
    uint16_t *dw = a->dw;
    float sum[COLUMNS];
    int16_t next[ROWS], last[ROWS]; /* the chain of a token's rows; at its first row, the chain's end */

    for (int64_t r = 0; r < a->rows; r += ROWS) {
        const int32_t *id = a->ids + r;
        int rows = (int)(a->rows - r < ROWS ? a->rows - r : ROWS);

        for (int i = 0; i < rows; i++) {
            int first = 0;

            while (id[first] != id[i])
                first++;
            next[i] = -1;
            if (first < i)
                next[last[first]] = (int16_t)i;
            last[first] = (int16_t)i;
            if (first < i)
                last[i] = -1; /* not the first of its token */
        }
        for (int i = 0; i < rows; i++) {
            uint16_t *w = dw + id[i] * n;

            if (last[i] < 0)
                continue;
            for (int64_t j = from; j < to; j++)
                sum[j - from] = sl_bf16_f32(w[j]);
            for (int k = i; k >= 0; k = next[k])
                for (int64_t j = from; j < to; j++)
                    sum[j - from] += load(a->dy, a->ytype, (r + k) * n + j);
            for (int64_t j = from; j < to; j++)
                w[j] = sl_f32_bf16(sum[j - from]);
        }
    }
}

static void columns_of(void *arg, int64_t from, int64_t to, int thread)
{
    const struct sl_k_embed_bwd *a = arg;

    (void)thread;
    if (a->wtype == SL_F32) {
        add_rows(a, from, to);
        return;
    }
    for (int64_t j = from; j < to; j += COLUMNS)
        add_rows_rounded(a, j, j + COLUMNS < to ? j + COLUMNS : to);
}

int SL_CPU(embed_bwd)(struct sl_dev *dev, const struct sl_k_embed_bwd *a, struct sl_err *err)
{
    int64_t grain = GRAIN / (a->rows + 1) / COLUMNS * COLUMNS + COLUMNS;

    if (ids_fit(a->ids, a->rows, a->vocab, err) < 0)
        return -1;
    sl_par_range(dev, a->width, grain, columns_of, (void *)a);
    return 0;
}
