#include "kernels/copy/copy.h"

#include "kernels/check.h"

int sl_k_copy(struct sl_dev *dev, const struct sl_k_copy *a, struct sl_err *err)
{
    if (sl_k_check_size("copy: bytes", a->bytes, 0, err) < 0)
        return -1;
    return dev->k->copy(dev, a, err);
}
