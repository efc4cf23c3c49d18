#include "kernels/convert/convert.h"

#include "kernels/check.h"

int sl_k_convert(struct sl_dev *dev, const struct sl_k_convert *a, struct sl_err *err)
{
    if (sl_k_check_size("convert: elements", a->n, 0, err) < 0
        || sl_k_check_float("convert: the source's type", a->xtype, err) < 0
        || sl_k_check_float("convert: the result's type", a->ytype, err) < 0)
        return -1;
    return dev->k->convert(dev, a, err);
}
