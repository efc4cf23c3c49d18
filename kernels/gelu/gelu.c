#include "kernels/gelu/gelu.h"

#include "kernels/check.h"

int sl_k_gelu(struct sl_dev *dev, const struct sl_k_gelu *a, struct sl_err *err)
{
    if (sl_k_check_size("gelu: elements", a->n, 0, err) < 0)
        return -1;
    return dev->k->gelu(dev, a, err);
}

int sl_k_gelu_bwd(struct sl_dev *dev, const struct sl_k_gelu_bwd *a, struct sl_err *err)
{
    if (sl_k_check_size("gelu_bwd: elements", a->n, 0, err) < 0)
        return -1;
    return dev->k->gelu_bwd(dev, a, err);
}
