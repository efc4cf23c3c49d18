/* vec_isa.c - vec.h's exponentials on arrays, compiled once per instruction set for test_vec.c */
#include "tests/unit/kernels/vec_isa.h"

#include "kernels/vec.h"

#define JOIN_(name, isa) name##_##isa
#define JOIN(name, isa) JOIN_(name, isa)

void JOIN(vt_exp, SL_ISA)(const float *x, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i += SL_VL)
        vf_store_part(y + i, vf_exp(vf_load_part(x + i, n - i < SL_VL ? n - i : SL_VL)),
                      n - i < SL_VL ? n - i : SL_VL);
}

void JOIN(vt_weight, SL_ISA)(const float *x, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i += SL_VL)
        vf_store_part(y + i, vf_weight(vf_load_part(x + i, n - i < SL_VL ? n - i : SL_VL)),
                      n - i < SL_VL ? n - i : SL_VL);
}
