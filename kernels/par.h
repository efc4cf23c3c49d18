#ifndef SL_PAR_H
#define SL_PAR_H

/*
 * par.h - split a kernel's work over the device's threads; the only place that knows OpenMP
 *
 * Kernels give every output element to one piece of work, so no result depends on the split.
 */

#include <stdint.h>

struct sl_dev;

typedef void (*sl_par_f)(void *arg, int64_t from, int64_t to, int thread);

/*
 * Call f on [0, n) cut into at most dev->threads ranges, each (but the last) a multiple of
 * `grain` long: nothing is split below that, so small work stays in the calling thread.
 */
void sl_par_range(const struct sl_dev *dev, int64_t n, int64_t grain, sl_par_f f, void *arg);

/* Call f(arg, i, i + 1, thread) for all i below n, each thread taking the next one when free. */
void sl_par_each(const struct sl_dev *dev, int64_t n, sl_par_f f, void *arg);

#endif
