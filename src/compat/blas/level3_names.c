/* SPDX-License-Identifier: Apache-2.0 */
/* level3_names.c - the names of level 3, four times from level3.inc. */
#include "compat/blas/level3.h"

/* arguments, by address in Fortran and by value in C; O: written */
#define FMN const blas_int *m, const blas_int *n
#define FNK const blas_int *n, const blas_int *k
#define FMNK const blas_int *m, const blas_int *n, const blas_int *k
#define FA const void *a, const blas_int *lda
#define FB const void *b, const blas_int *ldb
#define FBO void *b, const blas_int *ldb
#define FCO void *c, const blas_int *ldc
#define MN blas_int m, blas_int n
#define NK blas_int n, blas_int k
#define MNK blas_int m, blas_int n, blas_int k
#define A const void *a, blas_int lda
#define B const void *b, blas_int ldb
#define BO void *b, blas_int ldb
#define CO void *c, blas_int ldc

#define BODY "compat/blas/level3.inc"
#include "compat/blas/every_type.inc"
