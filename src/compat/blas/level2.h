/* SPDX-License-Identifier: Apache-2.0 */
/* level2.h - level 2 as Fortran has it (column-major, arguments in its order), with the letters decoded as blas.h says and two additions that row-major
 * callers need: op may be OP_CONJ alone, and `conj` flags read an operand conjugated. */
#ifndef ST_COMPAT_BLAS_LEVEL2_H
#define ST_COMPAT_BLAS_LEVEL2_H
#include "compat/blas/blas.h"
/* how a matrix is stored; the sizes in the positions that a form does not have are ignored */
typedef enum st_form { FORM_FULL, FORM_BAND, FORM_PACKED } st_form;

void st_blas_gemv(st_caller who, int type, int op, int64_t m, int64_t n, const void *alpha, const void *a,
                  int64_t lda, const void *x, int64_t incx, const void *beta, void *y, int64_t incy);
void st_blas_gbmv(st_caller who, int type, int op, int64_t m, int64_t n, int64_t kl, int64_t ku,
                  const void *alpha, const void *a, int64_t lda, const void *x, int64_t incx,
                  const void *beta, void *y, int64_t incy);
/* symv sbmv spmv; for complex types hemv hbmv hpmv */
void st_blas_symv(st_caller who, int type, st_form form, int uplo, bool conj, int64_t n, int64_t k,
                  const void *alpha, const void *a, int64_t lda, const void *x, int64_t incx,
                  const void *beta, void *y, int64_t incy);
/* trmv tbmv tpmv, and with `solve` trsv tbsv tpsv */
void st_blas_trmv(st_caller who, int type, st_form form, bool solve, int uplo, int op, int unit, int64_t n,
                  int64_t k, const void *a, int64_t lda, void *x, int64_t incx);
void st_blas_ger(st_caller who, int type, bool conj_x, bool conj_y, int64_t m, int64_t n, const void *alpha,
                 const void *x, int64_t incx, const void *y, int64_t incy, void *a, int64_t lda);
/* syr spr her hpr: `alpha` is real. syr2 spr2 her2 hpr2: y is not NULL */
void st_blas_syr(st_caller who, int type, st_form form, int uplo, bool conj, int64_t n, strata_scalar alpha,
                 const void *x, int64_t incx, void *a, int64_t lda);
void st_blas_syr2(st_caller who, int type, st_form form, int uplo, bool conj, int64_t n, const void *alpha,
                  const void *x, int64_t incx, const void *y, int64_t incy, void *a, int64_t lda);
#endif
