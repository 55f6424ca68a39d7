/* SPDX-License-Identifier: Apache-2.0 */
/* extensions.h - what OpenBLAS and MKL have beyond the standard, under their names and with their arguments. */
#ifndef ST_COMPAT_BLAS_EXTENSIONS_H
#define ST_COMPAT_BLAS_EXTENSIONS_H
#include "compat/blas/blas.h"
/* C := alpha A + beta C, column-major */
void st_blas_geadd(st_caller who, int type, int64_t m, int64_t n, const void *alpha, const void *a,
                   int64_t lda, const void *beta, void *c, int64_t ldc);
/* B := alpha op(A), rows x cols being A's size in the order that `who` has; in_place: imatcopy, b is a */
void st_blas_matcopy(st_caller who, int type, bool order_known, bool in_place, int op, int64_t rows,
                     int64_t cols, const void *alpha, const void *a, int64_t lda, void *b, int64_t ldb);
/* One product for each of group_count groups, each of group_size[i] matrices given by their addresses (MKL's gemm_batch). Column-major. */
typedef struct st_group {
    int op_a, op_b;
    int64_t m, n, k, lda, ldb, ldc, size;
    const void *alpha, *beta;
    const void *const *a, *const *b;
    void *const *c;
} st_group;
int st_blas_group_info(int type,
                       const st_group *g); /* 0 or the number of the wrong argument of the Fortran routine */
void st_blas_group(st_caller who, int type, const st_group *g);
void st_blas_strided(st_caller who, int type, int op_a, int op_b, int64_t m, int64_t n, int64_t k,
                     const void *alpha, const void *a, int64_t lda, int64_t stride_a, const void *b,
                     int64_t ldb, int64_t stride_b, const void *beta, void *c, int64_t ldc, int64_t stride_c,
                     int64_t count);
#endif
