#include "kernels/linear/linear.h"

#include "kernels/check.h"

static int check(int64_t rows, int64_t in, int64_t out, struct sl_err *err)
{
    if (sl_k_check_size("linear: rows", rows, 0, err) < 0
        || sl_k_check_size("linear: inputs", in, 1, err) < 0)
        return -1;
    return sl_k_check_size("linear: outputs", out, 1, err);
}

int sl_k_linear(struct sl_dev *dev, const struct sl_k_linear *a, struct sl_err *err)
{
    if (check(a->rows, a->in, a->out, err) < 0)
        return -1;
    return dev->k->linear(dev, a, err);
}

int sl_k_linear_dx(struct sl_dev *dev, const struct sl_k_linear_dx *a, struct sl_err *err)
{
    if (check(a->rows, a->in, a->out, err) < 0)
        return -1;
    return dev->k->linear_dx(dev, a, err);
}

int sl_k_linear_dw(struct sl_dev *dev, const struct sl_k_linear_dw *a, struct sl_err *err)
{
    if (check(a->rows, a->in, a->out, err) < 0)
        return -1;
    return dev->k->linear_dw(dev, a, err);
}
