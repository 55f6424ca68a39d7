/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_f64_avx2.c - packed product in f64, tiles of 6x8: gemm_body.h with this file's instruction set. */
#define VEC_F64 1
#define VEC_BITS 256
#define MR 6
#define NV 2
#define KERNEL gemm_f64f64f64_6x8_avx2
#include "tile/cpu/gemm_body.h"
