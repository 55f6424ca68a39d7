/* SPDX-License-Identifier: Apache-2.0 */
/* conv_f64_avx2.c - windowed contractions in f64, tiles of up to 6x8: conv_body.h with this file's instruction set. */
#define VEC_F64 1
#define VEC_BITS 256
#define NV 2
#define KERNEL(form) st_kernel_conv_f64f64f64_##form##_6x8_avx2
#include "tile/cpu/conv_body.h"
