/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_f32_portable.c - packed product in f32, tiles of 4x8: gemm_body.h with this file's instruction set. */
#define VEC_F64 0
#define VEC_BITS 128
#define MR 4
#define NV 2
#define KERNEL gemm_f32f32f32_4x8_portable
#include "tile/cpu/gemm_body.h"
#define WIDE_ROW(type) st_kernel_gemm_##type##_4x8_portable
#include "tile/cpu/gemm_widen.h"
