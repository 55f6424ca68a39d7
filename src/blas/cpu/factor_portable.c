/* SPDX-License-Identifier: Apache-2.0 */
/* factor_portable.c - batched factorisations, portable. */
#define TABLE st_factor_portable
#include "blas/cpu/factor_types.h"
