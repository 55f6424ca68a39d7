/* SPDX-License-Identifier: Apache-2.0 */
/* libm_avx512.c - libm.inc for AVX-512. */
#define VF64 __m512d
#define VF32 __m512
#define SLEEF_F64(f, u) Sleef_##f##d8_##u##avx512f
#define SLEEF_F32(f, u) Sleef_##f##f16_##u##avx512f
#include "compat/blas/libm.inc"
