/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_avx2.c - the kernels of matvec_body.h for avx2. */
#define ARCH avx2
#define GROUP 4
#include "pointwise/cpu/matvec_types.h"
