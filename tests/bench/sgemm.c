/*
 * sgemm.c - the machine's ceiling: the best rate of dnnl_sgemm over the shapes of a training step
 *
 * usage: sgemm THREADS. Prints one number, GFLOP/s: the best single call over all shapes, each timed
 * for at least 0.15 s after a warm-up. It is the denominator of tests/bench/ceiling.sh.
 */
#include <dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* c[m,n] = a[m,k] b[n,k]^T */
static double rate(int64_t m, int64_t n, int64_t k)
{
    float *a = calloc((size_t)(m * k), sizeof *a), *b = calloc((size_t)(n * k), sizeof *b),
          *c = calloc((size_t)(m * n), sizeof *c);
    double best = 0, start;

    if (!a || !b || !c)
        exit(5);
    for (int64_t i = 0; i < m * k; i++)
        a[i] = (float)(i % 13) - 6;
    for (int64_t i = 0; i < n * k; i++)
        b[i] = (float)(i % 7) - 3;
    dnnl_sgemm('N', 'T', m, n, k, 1, a, k, b, k, 0, c, n);
    start = now();
    while (now() - start < 0.15) {
        double t = now(), r;
        dnnl_sgemm('N', 'T', m, n, k, 1, a, k, b, k, 0, c, n);
        r = 2e-9 * (double)m * (double)n * (double)k / (now() - t);
        if (r > best)
            best = r;
    }
    free(a);
    free(b);
    free(c);
    return best;
}

int main(int argc, char **argv)
{
    static const int64_t shape[][3] = {
        {1024, 1152, 384}, {1024, 384, 384},  {1024, 1536, 384}, {1024, 384, 1536},
        {384, 1536, 1024}, {1024, 8192, 384}, {2048, 2048, 2048},
    };
    double best = 0;

    if (argc != 2 || atoi(argv[1]) < 1) {
        fprintf(stderr, "usage: sgemm THREADS\n");
        return 2;
    }
#ifdef _OPENMP
    omp_set_num_threads(atoi(argv[1]));
#endif
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        double r = rate(shape[i][0], shape[i][1], shape[i][2]);
        if (r > best)
            best = r;
    }
    printf("%.1f\n", best);
    return 0;
}
