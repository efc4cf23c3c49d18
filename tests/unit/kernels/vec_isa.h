#ifndef VEC_ISA_H
#define VEC_ISA_H

#include <stdint.h>

void vt_exp_base(const float *x, float *y, int64_t n);
void vt_weight_base(const float *x, float *y, int64_t n);
void vt_exp_v3(const float *x, float *y, int64_t n);
void vt_weight_v3(const float *x, float *y, int64_t n);
void vt_exp_v4(const float *x, float *y, int64_t n);
void vt_weight_v4(const float *x, float *y, int64_t n);

#endif
