#include "kt.h"

#include "kernels/embed/embed.h"
#include "kernels/position/position.h"

static void rows_come_by_id_in_every_type(void **state)
{
    enum { VOCAB = 11, WIDTH = 7, ROWS = 5 };
    static const int32_t ids[ROWS] = {10, 0, 3, 3, 7};
    float *w = kt_random(VOCAB * WIDTH, 1, 1), y[ROWS * WIDTH];
    uint16_t *h = kt_bf16_of(w, VOCAB * WIDTH), yh[ROWS * WIDTH];
    struct sl_dev *dev = kt_open(2);

    (void)state;
    for (int from = SL_F32; from <= SL_BF16; from++)
        for (int to = SL_F32; to <= SL_BF16; to++) {
            memset(y, 0xff, sizeof y);
            memset(yh, 0xff, sizeof yh);
            assert_int_equal(sl_k_embed(dev, &(struct sl_k_embed){ids,
                                        from == SL_F32 ? (void *)w : (void *)h,
                                        to == SL_F32 ? (void *)y : (void *)yh, from, to, ROWS, WIDTH,
                                        VOCAB}, NULL), 0);
            for (int i = 0; i < ROWS * WIDTH; i++) {
                float want = w[ids[i / WIDTH] * WIDTH + i % WIDTH];

                assert_true((to == SL_F32 ? y[i] : sl_bf16_f32(yh[i])) == want);
            }
        }
    sl_dev_close(dev);
    free(w), free(h);
}

/* d/dw of sum dy y: a token's row is the sum of dy over the rows where it stands. */
static void a_repeated_token_sums_its_rows(struct sl_dev *dev, int64_t rows, int64_t width,
                                           int64_t vocab, enum sl_dtype wtype, enum sl_dtype ytype)
{
    float *dy = kt_random(rows * width, 1, 1), *dw = kt_random(vocab * width, 2, 1);
    uint16_t *hy = kt_bf16_of(dy, rows * width), *hw = kt_bf16_of(dw, vocab * width);
    double *want = kt_double_of(dw, vocab * width);
    int32_t *ids = kt_alloc(rows * 4);
    uint64_t seed = 3;

    for (int64_t i = 0; i < rows; i++) {
        ids[i] = (int32_t)((kt_uniform(&seed) + 1) / 2 * (double)vocab);
        for (int64_t j = 0; j < width; j++)
            want[ids[i] * width + j] += (double)dy[i * width + j];
    }
    assert_int_equal(sl_k_embed_bwd(dev, &(struct sl_k_embed_bwd){ids,
                                    ytype == SL_F32 ? (void *)dy : (void *)hy,
                                    wtype == SL_F32 ? (void *)dw : (void *)hw, wtype, ytype, rows,
                                    width, vocab}, NULL), 0);
    if (wtype == SL_BF16)
        for (int64_t i = 0; i < vocab * width; i++)
            dw[i] = sl_bf16_f32(hw[i]);
    /* bf16: one rounding (2^-9) for each of at most 3 blocks of 256 rows; partial sums below 16 */
    kt_near(dw, want, vocab * width, wtype == SL_F32 ? 1e-5 : 3 * 16 * 0.002, 1e-6);
    if (wtype == SL_BF16 && rows <= 256)
        for (int64_t i = 0; i < vocab * width; i++) /* one rounding of an f32 sum, no more */
            assert_true(fabs((double)dw[i] - want[i]) <= fabs(want[i]) / 256 + 1e-4);
    free(dy), free(dw), free(hy), free(hw), free(want), free(ids);
}

static void every_type(struct sl_dev *dev)
{
    for (int w = SL_F32; w <= SL_BF16; w++)
        for (int y = SL_F32; y <= SL_BF16; y++) {
            a_repeated_token_sums_its_rows(dev, 1, 1, 1, w, y);
            a_repeated_token_sums_its_rows(dev, 17, 7, 5, w, y);
            a_repeated_token_sums_its_rows(dev, 250, 131, 3, w, y);
            a_repeated_token_sums_its_rows(dev, 601, 131, 97, w, y);
        }
}

static void gradients_sum_over_the_rows_of_a_token(void **state)
{
    (void)state;
    kt_each(every_type, 1);
    kt_each(every_type, 2);
}

static void two_threads_give_the_same_bits(void **state)
{
    int64_t rows = 1000, width = 131, vocab = 13;
    float *dy = kt_random(rows * width, 1, 1), *dw[2];
    uint16_t *hw[2];
    int32_t *ids = kt_alloc(rows * 4);

    (void)state;
    for (int64_t i = 0; i < rows; i++)
        ids[i] = (int32_t)(i * i % vocab);
    for (int t = 0; t < 2; t++) {
        struct sl_dev *dev = kt_open(t + 1);

        dw[t] = kt_random(vocab * width, 2, 1);
        hw[t] = kt_bf16_of(dw[t], vocab * width);
        assert_int_equal(sl_k_embed_bwd(dev, &(struct sl_k_embed_bwd){ids, dy, dw[t], SL_F32, SL_F32,
                                        rows, width, vocab}, NULL), 0);
        assert_int_equal(sl_k_embed_bwd(dev, &(struct sl_k_embed_bwd){ids, dy, hw[t], SL_BF16, SL_F32,
                                        rows, width, vocab}, NULL), 0);
        sl_dev_close(dev);
    }
    kt_same(dw[0], dw[1], vocab * width * 4);
    kt_same(hw[0], hw[1], vocab * width * 2);
    for (int t = 0; t < 2; t++)
        free(dw[t]), free(hw[t]);
    free(dy), free(ids);
}

static void positions(struct sl_dev *dev)
{
    int64_t context = 17, width = 131, samples = 19, rows = samples * context;
    float *x = kt_random(rows * width, 1, 1), *w = kt_random(context * width, 2, 1);
    float *y = kt_floats(rows * width), *dw = kt_random(context * width, 3, 1);
    double *want = kt_double_of(dw, context * width);

    assert_int_equal(sl_k_position(dev, &(struct sl_k_position){x, w, y, rows, width, context}, NULL), 0);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < width; j++) {
            assert_true(y[i * width + j] == x[i * width + j] + w[i % context * width + j]);
            want[i % context * width + j] += (double)x[i * width + j];
        }
    assert_int_equal(sl_k_position_bwd(dev, &(struct sl_k_position_bwd){x, dw, rows, width, context},
                                       NULL), 0);
    kt_near(dw, want, context * width, 1e-5, 1e-6);
    assert_int_equal(sl_k_position(dev, &(struct sl_k_position){x, w, x, rows, width, context}, NULL), 0);
    kt_same(x, y, rows * width * 4);
    free(x), free(w), free(y), free(dw), free(want);
}

static void positions_repeat_with_every_sample(void **state)
{
    (void)state;
    kt_each(positions, 1);
    kt_each(positions, 2);
}

static void wrong_arguments_are_refused(void **state)
{
    static const int32_t low[2] = {0, -1}, high[2] = {4, 0};
    struct sl_dev *dev = kt_open(1);
    struct sl_err err;
    float w[4] = {0}, y[4] = {0};

    (void)state;
    kt_usage(sl_k_embed(dev, &(struct sl_k_embed){low, w, y, SL_F32, SL_F32, 2, 1, 4}, &err));
    kt_usage(sl_k_embed(dev, &(struct sl_k_embed){high, w, y, SL_F32, SL_F32, 2, 1, 4}, &err));
    assert_non_null(strstr(err.msg, "id 4 at row 0"));
    kt_usage(sl_k_embed_bwd(dev, &(struct sl_k_embed_bwd){high, y, w, SL_F32, SL_F32, 2, 1, 4}, &err));
    kt_usage(sl_k_embed(dev, &(struct sl_k_embed){low, w, y, SL_I32, SL_F32, 1, 1, 4}, &err));
    kt_usage(sl_k_embed(dev, &(struct sl_k_embed){low, w, y, SL_F32, SL_I32, 1, 1, 4}, &err));
    kt_usage(sl_k_embed(dev, &(struct sl_k_embed){low, w, y, SL_F32, SL_F32, 1, 0, 4}, &err));
    kt_usage(sl_k_embed_bwd(dev, &(struct sl_k_embed_bwd){low, y, w, SL_F32, SL_F32, -2, 1, 4}, &err));
    kt_usage(sl_k_position(dev, &(struct sl_k_position){w, w, y, 1, 1, 0}, &err));
    kt_usage(sl_k_position_bwd(dev, &(struct sl_k_position_bwd){w, y, -1, 1, 1}, &err));
    sl_dev_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_by_id_in_every_type),
        cmocka_unit_test(gradients_sum_over_the_rows_of_a_token),
        cmocka_unit_test(two_threads_give_the_same_bits),
        cmocka_unit_test(positions_repeat_with_every_sample),
        cmocka_unit_test(wrong_arguments_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
