/* SPDX-License-Identifier: Apache-2.0 */
/* level3.h - level 3 as Fortran has it (column-major, arguments in its order), with the letters decoded as blas.h says. Row-major callers give
 * the transposed problem. `hermitian`: hemm, herk, her2k, whose alpha and beta are numbers already since their types differ. */
#ifndef ST_COMPAT_BLAS_LEVEL3_H
#define ST_COMPAT_BLAS_LEVEL3_H
#include "compat/blas/blas.h"
void st_blas_gemm(st_caller who, int type, int op_a, int op_b, int64_t m, int64_t n, int64_t k,
                  const void *alpha, const void *a, int64_t lda, const void *b, int64_t ldb, const void *beta,
                  void *c, int64_t ldc, strata_math math);
void st_blas_gemmt(st_caller who, int type, int uplo, int op_a, int op_b, int64_t n, int64_t k,
                   const void *alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                   const void *beta, void *c, int64_t ldc);
void st_blas_symm(st_caller who, int type, bool hermitian, int side, int uplo, int64_t m, int64_t n,
                  const void *alpha, const void *a, int64_t lda, const void *b, int64_t ldb, const void *beta,
                  void *c, int64_t ldc);
void st_blas_syrk(st_caller who, int type, bool hermitian, int uplo, int op, int64_t n, int64_t k,
                  strata_scalar alpha, const void *a, int64_t lda, strata_scalar beta, void *c, int64_t ldc);
void st_blas_syr2k(st_caller who, int type, bool hermitian, int uplo, int op, int64_t n, int64_t k,
                   strata_scalar alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                   strata_scalar beta, void *c, int64_t ldc);
void st_blas_trmm(st_caller who, int type, bool solve, int side, int uplo, int op, int unit, int64_t m,
                  int64_t n, const void *alpha, const void *a, int64_t lda, void *b, int64_t ldb);
/* the checks of gemm, for those that run it many times; 0 or the number of the wrong argument */
int st_blas_gemm_info(int op_a, int op_b, int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb,
                      int64_t ldc);
#endif
