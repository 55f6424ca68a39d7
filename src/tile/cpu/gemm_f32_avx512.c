/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_f32_avx512.c - packed product in f32, tiles of 6x64: gemm_body.h with this file's instruction set. */
#define VEC_F64 0
#define VEC_BITS 512
#define MR 6
#define NV 4
#define KERNEL gemm_f32f32f32_6x64_avx512
#include "tile/cpu/gemm_body.h"
#define WIDE_ROW(type) st_kernel_gemm_##type##_6x64_avx512
#include "tile/cpu/gemm_widen.h"
