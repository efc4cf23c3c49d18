#include "kernels/adamw/adamw.h"

#include "kernels/check.h"

int sl_k_adamw(struct sl_dev *dev, const struct sl_k_adamw *a, struct sl_err *err)
{
    if (sl_k_check_size("adamw: elements", a->n, 0, err) < 0
        || sl_k_check_float("adamw: the gradient's type", a->gtype, err) < 0)
        return -1;
    if (a->t < 1) {
        sl_fail(err, SL_USAGE, "adamw: step %" PRId64 " is below 1", a->t);
        return sl_hint(err, "Steps count from 1, so that 1 - b1^t is not zero.");
    }
    if (!(a->b1 >= 0 && a->b1 < 1 && a->b2 >= 0 && a->b2 < 1))
        return sl_fail(err, SL_USAGE, "adamw: betas %g, %g are outside [0, 1)", a->b1, a->b2);
    return dev->k->adamw(dev, a, err);
}
