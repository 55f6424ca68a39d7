/* SPDX-License-Identifier: Apache-2.0 */
/* level2_names.c - the names of level 2, four times from level2.inc. */
#include "compat/blas/level2.h"

/* arguments, by address in Fortran and by value in C; O: written */
#define FN const blas_int *n
#define FMN const blas_int *m, const blas_int *n
#define FK const blas_int *k
#define FA const void *a, const blas_int *lda
#define FAO void *a, const blas_int *lda
#define FX const void *x, const blas_int *incx
#define FXO void *x, const blas_int *incx
#define FY const void *y, const blas_int *incy
#define FYO void *y, const blas_int *incy
#define N blas_int n
#define MN blas_int m, blas_int n
#define K blas_int k
#define A const void *a, blas_int lda
#define AO void *a, blas_int lda
#define X const void *x, blas_int incx
#define XO void *x, blas_int incx
#define Y const void *y, blas_int incy
#define YO void *y, blas_int incy

/* FULL(x) BANDED(x) PACKED(x): names of the symmetric or Hermitian routines */
#define BODY "compat/blas/level2.inc"
#include "compat/blas/every_type.inc"
