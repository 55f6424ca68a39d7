/* SPDX-License-Identifier: Apache-2.0 */
/* libm_avx2.c - libm.inc for AVX2. */
#define VF64 __m256d
#define VF32 __m256
#define SLEEF_F64(f, u) Sleef_##f##d4_##u##avx2
#define SLEEF_F32(f, u) Sleef_##f##f8_##u##avx2
#include "compat/blas/libm.inc"
