/* SPDX-License-Identifier: Apache-2.0 */
/* conv_f32_avx2.c - windowed contractions in f32, tiles of up to 6x16: conv_body.h with this file's instruction set. */
#define VEC_F64 0
#define VEC_BITS 256
#define NV 2
#define KERNEL(form) st_kernel_conv_f32f32f32_##form##_6x16_avx2
#include "tile/cpu/conv_body.h"
