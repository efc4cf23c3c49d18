#include "kernels/reduce/reduce.h"

#include "kernels/check.h"

int sl_k_reduce(struct sl_dev *dev, const struct sl_k_reduce *a, struct sl_err *err)
{
    if (sl_k_check_size("reduce: elements", a->n, 0, err) < 0
        || sl_k_check_float("reduce: the sources' type", a->xtype, err) < 0
        || sl_k_check_float("reduce: the result's type", a->ytype, err) < 0)
        return -1;
    if (a->k < 1 || a->k > SL_K_REDUCE_MAX)
        return sl_fail(err, SL_USAGE, "reduce: %" PRId64 " sources are not in 1 .. %d", a->k,
                       SL_K_REDUCE_MAX);
    return dev->k->reduce(dev, a, err);
}
