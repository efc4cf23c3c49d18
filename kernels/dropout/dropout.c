#include "kernels/dropout/dropout.h"

#include "kernels/check.h"

int sl_k_dropout(struct sl_dev *dev, const struct sl_k_dropout *a, struct sl_err *err)
{
    if (sl_k_check_size("dropout: elements", a->n, 0, err) < 0
        || sl_k_check_size("dropout: first sample", a->sample0, 0, err) < 0
        || sl_k_check_size("dropout: step", a->step, 0, err) < 0)
        return -1;
    if (a->per_sample < 1 || a->per_sample > (int64_t)UINT32_MAX || a->n % a->per_sample)
        return sl_fail(err, SL_USAGE,
                       "dropout: %" PRId64 " elements are not whole samples of %" PRId64
                       " (1 .. 2^32 - 1)", a->n, a->per_sample);
    if (!(a->p >= 0 && a->p < 1))
        return sl_fail(err, SL_USAGE, "dropout: probability %g is outside [0, 1)", a->p);
    return dev->k->dropout(dev, a, err);
}
