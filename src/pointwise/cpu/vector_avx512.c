/* SPDX-License-Identifier: Apache-2.0 */
/* vector_avx512.c - the kernels of vector_body.h for avx512. */
#define ARCH avx512
#include "pointwise/cpu/vector_types.h"
