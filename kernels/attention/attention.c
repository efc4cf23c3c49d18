#include "kernels/attention/attention.h"

#include "kernels/attention/attention_tile.h"
#include "kernels/check.h"

int64_t sl_k_attention_scratch(int64_t context, int64_t width, int64_t heads, int threads)
{
    (void)width;
    (void)heads;
    return threads * sl_att_fwd_floats(context) * (int64_t)sizeof(float);
}

int64_t sl_k_attention_bwd_scratch(int64_t context, int64_t width, int64_t heads, int threads)
{
    (void)width;
    (void)heads;
    return threads * sl_att_bwd_floats(context) * (int64_t)sizeof(float);
}

static int check(int64_t samples, int64_t context, int64_t width, int64_t heads, struct sl_err *err)
{
    if (sl_k_check_size("attention: samples", samples, 0, err) < 0
        || sl_k_check_size("attention: context", context, 1, err) < 0
        || sl_k_check_size("attention: width", width, 1, err) < 0
        || sl_k_check_size("attention: heads", heads, 1, err) < 0)
        return -1;
    if (width % heads)
        return sl_fail(err, SL_USAGE,
                       "attention: %" PRId64 " heads do not divide width %" PRId64, heads, width);
    return 0;
}

int sl_k_attention(struct sl_dev *dev, const struct sl_k_attention *a, struct sl_err *err)
{
    if (check(a->samples, a->context, a->width, a->heads, err) < 0
        || sl_k_check_scratch(
               "attention", a->scratch, a->scratch_bytes,
               sl_k_attention_scratch(a->context, a->width, a->heads, dev->threads), err) < 0)
        return -1;
    return dev->k->attention(dev, a, err);
}

int sl_k_attention_bwd(struct sl_dev *dev, const struct sl_k_attention_bwd *a, struct sl_err *err)
{
    if (check(a->samples, a->context, a->width, a->heads, err) < 0
        || sl_k_check_scratch(
               "attention_bwd", a->scratch, a->scratch_bytes,
               sl_k_attention_bwd_scratch(a->context, a->width, a->heads, dev->threads), err) < 0)
        return -1;
    return dev->k->attention_bwd(dev, a, err);
}
