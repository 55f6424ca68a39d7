/* SPDX-License-Identifier: Apache-2.0 */
/* extensions_names.c - the names of the extensions, four times from extensions.inc. */
#include "compat/blas/extensions.h"

#define P s
#define REAL float
#define TYPE STRATA_F32
#include "compat/blas/extensions.inc"
#define P d
#define REAL double
#define TYPE STRATA_F64
#include "compat/blas/extensions.inc"
#define COMPLEX
#define P c
#define REAL float
#define TYPE STRATA_C64
#include "compat/blas/extensions.inc"
#define P z
#define REAL double
#define TYPE STRATA_C128
#include "compat/blas/extensions.inc"
