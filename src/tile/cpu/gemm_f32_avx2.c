/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_f32_avx2.c - packed product in f32, tiles of 6x16: gemm_body.h with this file's instruction set. */
#define VEC_F64 0
#define VEC_BITS 256
#define MR 6
#define NV 2
#define KERNEL gemm_f32f32f32_6x16_avx2
#include "tile/cpu/gemm_body.h"
#define WIDE_ROW(type) st_kernel_gemm_##type##_6x16_avx2
#include "tile/cpu/gemm_widen.h"
