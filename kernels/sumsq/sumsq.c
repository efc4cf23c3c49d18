#include "kernels/sumsq/sumsq.h"

#include "kernels/check.h"

int sl_k_sumsq(struct sl_dev *dev, const struct sl_k_sumsq *a, struct sl_err *err)
{
    if (sl_k_check_size("sumsq: elements", a->n, 0, err) < 0
        || sl_k_check_float("sumsq: the type", a->type, err) < 0)
        return -1;
    return dev->k->sumsq(dev, a, err);
}
