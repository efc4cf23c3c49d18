#include "kernels/cpu.h"

const struct sl_kernels SL_CPU(table) = {
#define X(name) .name = SL_CPU(name),
    SL_KERNELS(X)
#undef X
};
