#include "kernels/normal/normal.h"

#include "kernels/check.h"

int sl_k_normal(struct sl_dev *dev, const struct sl_k_normal *a, struct sl_err *err)
{
    if (sl_k_check_size("normal: elements", a->n, 0, err) < 0
        || sl_k_check_size("normal: first place", a->first, 0, err) < 0)
        return -1;
    return dev->k->normal(dev, a, err);
}
