#include "kernels/head/head.h"

#include "kernels/check.h"
#include "kernels/head/head_tile.h"

int64_t sl_k_head_chunk(int64_t rows, int64_t vocab)
{
    return sl_head_chunk(rows, vocab);
}

int64_t sl_k_head_scratch(int64_t rows, int64_t width, int64_t vocab, enum sl_dtype xtype,
                          enum sl_dtype wtype)
{
    struct sl_head_tile t;

    sl_head_cut(&t, rows, width, vocab, xtype, wtype);
    return t.floats * (int64_t)sizeof(float);
}

int sl_k_head(struct sl_dev *dev, const struct sl_k_head *a, struct sl_err *err)
{
    if (sl_k_check_size("head: rows", a->rows, 0, err) < 0
        || sl_k_check_size("head: width", a->width, 1, err) < 0
        || sl_k_check_size("head: vocab", a->vocab, 1, err) < 0
        || sl_k_check_float("head: the input's type", a->xtype, err) < 0
        || sl_k_check_float("head: the weight's type", a->wtype, err) < 0
        || sl_k_check_scratch("head", a->scratch, a->scratch_bytes,
                              sl_k_head_scratch(a->rows, a->width, a->vocab, a->xtype, a->wtype),
                              err) < 0)
        return -1;
    if (!a->dx != !a->dw)
        return sl_fail(err, SL_USAGE, "head: only one of dx and dw is given");
    return dev->k->head(dev, a, err);
}
