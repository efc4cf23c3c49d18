#include "kernels/dev.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#ifdef _OPENMP
#include <omp.h>
#endif

extern const struct sl_kernels sl_cpu_table_base;
#ifdef SL_HAVE_V3
extern const struct sl_kernels sl_cpu_table_v3;
#endif
#ifdef SL_HAVE_V4
extern const struct sl_kernels sl_cpu_table_v4;
#endif

/* The instruction sets of this build, best first. */
static const struct isa {
    const char *name;
    const struct sl_kernels *k;
} isas[] = {
#ifdef SL_HAVE_V4
    {"cpu:v4", &sl_cpu_table_v4},
#endif
#ifdef SL_HAVE_V3
    {"cpu:v3", &sl_cpu_table_v3},
#endif
    {"cpu:base", &sl_cpu_table_base},
};

static int usable(const char *name)
{
#if defined(__x86_64__)
    if (strcmp(name, "cpu:v3") == 0)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
               && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    if (strcmp(name, "cpu:v4") == 0)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
               && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq")
               && __builtin_cpu_supports("avx512vl");
#endif
    return strcmp(name, "cpu:base") == 0;
}

static const struct isa *choose(const char *spec, struct sl_err *err)
{
    size_t n = sizeof isas / sizeof *isas;

    for (size_t i = 0; i < n; i++)
        if (strcmp(spec, "cpu") == 0 ? usable(isas[i].name) : strcmp(spec, isas[i].name) == 0) {
            if (usable(isas[i].name))
                return &isas[i];
            sl_fail(err, SL_USAGE, "device \"%s\": this processor lacks its instructions", spec);
            sl_hint(err, "Write \"cpu\": the best set that the processor has is taken.");
            return NULL;
        }
    sl_fail(err, SL_USAGE, "device \"%s\" is not known to this build", spec);
    sl_hint(err, "Write \"cpu\", or \"cpu:base\", \"cpu:v3\" or \"cpu:v4\" for one instruction set.");
    return NULL;
}

struct sl_dev *sl_dev_open(const char *spec, int threads, struct sl_err *err)
{
    const struct isa *isa = choose(spec, err);
    struct sl_dev *dev;

    if (!isa)
        return NULL;
    if (threads < 1 || threads > 4096) {
        sl_fail(err, SL_USAGE, "device \"%s\": %d threads are not in 1 .. 4096", spec, threads);
        return NULL;
    }
    dev = sl_calloc(1, sizeof *dev);
    if (!dev) {
        sl_fail(err, SL_SYSTEM, "cannot open device \"%s\": %s", spec, strerror(errno));
        return NULL;
    }
#ifdef _OPENMP
    omp_set_num_threads(threads);
#else
    threads = 1;
#endif
    *dev = (struct sl_dev){.name = isa->name, .k = isa->k, .threads = threads};
    return dev;
}

void sl_dev_close(struct sl_dev *dev)
{
    free(dev);
}
