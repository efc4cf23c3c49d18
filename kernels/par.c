#include "kernels/par.h"

#include "kernels/dev.h"

#ifdef _OPENMP
#include <omp.h>
#endif

/* The team always has the same size: libgomp ends threads when one is smaller than the last was. */
void sl_par_range(const struct sl_dev *dev, int64_t n, int64_t grain, sl_par_f f, void *arg)
{
    int64_t units = n / grain + (n % grain != 0);
    int64_t pieces = units < dev->threads ? units : dev->threads;

    if (n <= 0)
        return;
    if (pieces < 2) {
        f(arg, 0, n, 0);
        return;
    }
#ifdef _OPENMP
#pragma omp parallel for num_threads(dev->threads) schedule(static, 1)
#endif
    for (int64_t p = 0; p < pieces; p++) {
        int64_t from = units * p / pieces * grain, to = units * (p + 1) / pieces * grain;

        f(arg, from, to < n ? to : n, (int)p);
    }
}

void sl_par_each(const struct sl_dev *dev, int64_t n, sl_par_f f, void *arg)
{
    if (n < 2 || dev->threads < 2) {
        for (int64_t i = 0; i < n; i++)
            f(arg, i, i + 1, 0);
        return;
    }
#ifdef _OPENMP
#pragma omp parallel for num_threads(dev->threads) schedule(dynamic, 1)
    for (int64_t i = 0; i < n; i++)
        f(arg, i, i + 1, omp_get_thread_num());
#else
    for (int64_t i = 0; i < n; i++)
        f(arg, i, i + 1, 0);
#endif
}
