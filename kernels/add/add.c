#include "kernels/add/add.h"

#include "kernels/check.h"

int sl_k_add(struct sl_dev *dev, const struct sl_k_add *a, struct sl_err *err)
{
    if (sl_k_check_size("add: elements", a->n, 0, err) < 0)
        return -1;
    return dev->k->add(dev, a, err);
}
