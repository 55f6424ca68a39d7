/* SPDX-License-Identifier: Apache-2.0 */
/* factor_avx512.c - batched factorisations, avx512. */
#define TABLE st_factor_avx512
#include "blas/cpu/factor_types.h"
