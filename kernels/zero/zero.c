#include "kernels/zero/zero.h"

#include "kernels/check.h"

int sl_k_zero(struct sl_dev *dev, const struct sl_k_zero *a, struct sl_err *err)
{
    if (sl_k_check_size("zero: bytes", a->bytes, 0, err) < 0)
        return -1;
    return dev->k->zero(dev, a, err);
}
