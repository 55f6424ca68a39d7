/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_portable.c - the kernels of matvec_body.h for portable. */
#define ARCH portable
#define GROUP 4
#include "pointwise/cpu/matvec_types.h"
