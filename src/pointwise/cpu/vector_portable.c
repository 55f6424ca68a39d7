/* SPDX-License-Identifier: Apache-2.0 */
/* vector_portable.c - the kernels of vector_body.h for portable. */
#define ARCH portable
#include "pointwise/cpu/vector_types.h"
