#include "kernels/embed/embed.h"

#include "kernels/check.h"

int sl_k_embed(struct sl_dev *dev, const struct sl_k_embed *a, struct sl_err *err)
{
    if (sl_k_check_size("embed: rows", a->rows, 0, err) < 0
        || sl_k_check_size("embed: width", a->width, 1, err) < 0
        || sl_k_check_size("embed: vocab", a->vocab, 1, err) < 0
        || sl_k_check_float("embed: the table's type", a->wtype, err) < 0
        || sl_k_check_float("embed: the output's type", a->ytype, err) < 0)
        return -1;
    return dev->k->embed(dev, a, err);
}

int sl_k_embed_bwd(struct sl_dev *dev, const struct sl_k_embed_bwd *a, struct sl_err *err)
{
    if (sl_k_check_size("embed_bwd: rows", a->rows, 0, err) < 0
        || sl_k_check_size("embed_bwd: width", a->width, 1, err) < 0
        || sl_k_check_size("embed_bwd: vocab", a->vocab, 1, err) < 0
        || sl_k_check_float("embed_bwd: the table's type", a->wtype, err) < 0
        || sl_k_check_float("embed_bwd: the gradient's type", a->ytype, err) < 0)
        return -1;
    return dev->k->embed_bwd(dev, a, err);
}
