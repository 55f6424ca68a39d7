/* SPDX-License-Identifier: Apache-2.0 */
/* conv_f64_avx512.c - windowed contractions in f64, tiles of up to 6x32: conv_body.h with this file's instruction set. */
#define VEC_F64 1
#define VEC_BITS 512
#define NV 4
#define KERNEL(form) st_kernel_conv_f64f64f64_##form##_6x32_avx512
#include "tile/cpu/conv_body.h"
