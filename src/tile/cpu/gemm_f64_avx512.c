/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_f64_avx512.c - packed product in f64, tiles of 6x32: gemm_body.h with this file's instruction set. */
#define VEC_F64 1
#define VEC_BITS 512
#define MR 6
#define NV 4
#define KERNEL gemm_f64f64f64_6x32_avx512
#include "tile/cpu/gemm_body.h"
