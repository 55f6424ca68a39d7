/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_cuda.h - level 2, matrices element by element, and sums over vectors on CUDA devices: their registration and its rows of strata_kernels(). */
#ifndef ST_POINTWISE_MATVEC_CUDA_H
#define ST_POINTWISE_MATVEC_CUDA_H
#include "pointwise/engine.h"

void st_pw_matvec_cuda_init(void);
int st_pw_matvec_cuda_kernels(int i, strata_kernel_info *info);
void st_pw_matcopy_cuda_init(void);
int st_pw_matcopy_cuda_kernels(int i, strata_kernel_info *info);
void st_pw_vecsum_cuda_init(void);
int st_pw_vecsum_cuda_kernels(int i, strata_kernel_info *info);
#endif
