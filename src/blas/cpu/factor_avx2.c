/* SPDX-License-Identifier: Apache-2.0 */
/* factor_avx2.c - batched factorisations, avx2. */
#define TABLE st_factor_avx2
#include "blas/cpu/factor_types.h"
