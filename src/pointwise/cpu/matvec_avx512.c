/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_avx512.c - the kernels of matvec_body.h for avx512. */
#define ARCH avx512
#define GROUP 8
#include "pointwise/cpu/matvec_types.h"
