#include "kernels/position/position.h"

#include "kernels/check.h"

static int check(int64_t rows, int64_t width, int64_t context, struct sl_err *err)
{
    if (sl_k_check_size("position: rows", rows, 0, err) < 0
        || sl_k_check_size("position: width", width, 1, err) < 0)
        return -1;
    return sl_k_check_size("position: context", context, 1, err);
}

int sl_k_position(struct sl_dev *dev, const struct sl_k_position *a, struct sl_err *err)
{
    if (check(a->rows, a->width, a->context, err) < 0)
        return -1;
    return dev->k->position(dev, a, err);
}

int sl_k_position_bwd(struct sl_dev *dev, const struct sl_k_position_bwd *a, struct sl_err *err)
{
    if (check(a->rows, a->width, a->context, err) < 0)
        return -1;
    return dev->k->position_bwd(dev, a, err);
}
