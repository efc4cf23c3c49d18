#include "kernels/layernorm/layernorm.h"

#include "kernels/check.h"

int sl_k_layernorm(struct sl_dev *dev, const struct sl_k_layernorm *a, struct sl_err *err)
{
    if (sl_k_check_size("layernorm: rows", a->rows, 0, err) < 0
        || sl_k_check_size("layernorm: width", a->width, 1, err) < 0)
        return -1;
    if (!(a->eps > 0))
        return sl_fail(err, SL_USAGE, "layernorm: eps %g is not above 0", (double)a->eps);
    return dev->k->layernorm(dev, a, err);
}

int sl_k_layernorm_bwd(struct sl_dev *dev, const struct sl_k_layernorm_bwd *a, struct sl_err *err)
{
    if (sl_k_check_size("layernorm_bwd: rows", a->rows, 0, err) < 0
        || sl_k_check_size("layernorm_bwd: width", a->width, 1, err) < 0)
        return -1;
    return dev->k->layernorm_bwd(dev, a, err);
}
