/* SPDX-License-Identifier: Apache-2.0 */
/* conv_f64_portable.c - windowed contractions in f64, tiles of up to 6x4: conv_body.h with this file's instruction set. */
#define VEC_F64 1
#define VEC_BITS 128
#define NV 2
#define KERNEL(form) st_kernel_conv_f64f64f64_##form##_6x4_portable
#include "tile/cpu/conv_body.h"
