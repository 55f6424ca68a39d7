/* SPDX-License-Identifier: Apache-2.0 */
/* vector_avx2.c - the kernels of vector_body.h for avx2. */
#define ARCH avx2
#include "pointwise/cpu/vector_types.h"
