/* SPDX-License-Identifier: Apache-2.0 */
/* extensions.c - sums and copies of matrices, and batches of products. Wrong arguments are counted as in the routines' own argument lists. */
#include "compat/blas/extensions.h"
#include "compat/blas/level3.h"

void st_blas_geadd(st_caller who, int type, int64_t m, int64_t n, const void *alpha, const void *a,
                   int64_t lda, const void *beta, void *c, int64_t ldc)
{
    const int info = m < 0 ? 1 : n < 0 ? 2 : lda < st_blas_max1(m) ? 5 : ldc < st_blas_max1(m) ? 8 : 0;
    if (info) {
        st_blas_bad(who, info);
        return;
    }
    if (m == 0 || n == 0) return;
    strata_tensor A = st_blas_matrix(a, type, 0, m, n, lda);
    const strata_tensor C = st_blas_matrix(c, type, 0, m, n, ldc);
    ST_RUN(who,
           strata_geam(st_blas_handle(), st_blas_number(type, alpha), A, st_blas_number(type, beta), C, C),
           &A, NULL);
}

void st_blas_matcopy(st_caller who, int type, bool order_known, int op, int64_t rows, int64_t cols,
                     const void *alpha, const void *a, int64_t lda, void *b, int64_t ldb)
{
    /* as column-major: m x n becomes m x n, or n x m when transposed */
    const int64_t m = who.row ? cols : rows, n = who.row ? rows : cols;
    const bool turned = op >= 0 && op & OP_TRANS, in_place = a == b;
    const int info = !order_known                         ? 1
                     : op < 0                             ? 2
                     : rows < 0                           ? 3
                     : cols < 0                           ? 4
                     : lda < st_blas_max1(m)              ? 7
                     : ldb < st_blas_max1(turned ? n : m) ? (in_place ? 8 : 9)
                                                          : 0;
    if (info) {
        st_blas_bad(who, who.c ? info - 1 : info); /* Fortran's has the order too */
        return;
    }
    if (m == 0 || n == 0) return;
    strata_tensor A = st_blas_matrix(a, type, op, turned ? n : m, turned ? m : n, lda);
    const strata_tensor B = st_blas_matrix(b, type, 0, turned ? n : m, turned ? m : n, ldb);
    const strata_scalar factor = st_blas_number(type, alpha);
    if (in_place)
        ST_RUN(who, strata_imatcopy(st_blas_handle(), factor, A, B), NULL, NULL);
    else
        ST_RUN(who, strata_geam(st_blas_handle(), factor, A, STRATA_ZERO, B, B), &A, NULL);
}

int st_blas_group_info(const st_group *g)
{
    const int info = st_blas_gemm_info(g->op_a, g->op_b, g->m, g->n, g->k, g->lda, g->ldb, g->ldc);
    return info ? info : g->size < 0 ? 15 : 0;
}

void st_blas_group(st_caller who, int type, const st_group *g)
{
    const strata_scalar alpha = st_blas_number(type, g->alpha), beta = st_blas_number(type, g->beta);
    if (g->size == 0 || g->m == 0 || g->n == 0 ||
        ((g->k == 0 || st_blas_is(alpha, 0)) && st_blas_is(beta, 1)))
        return;
    /* where matrices of a group overlap each other is for the caller to know: addresses are not compared */
    const strata_tensor A =
        strata_pointers(st_blas_matrix(NULL, type, g->op_a, g->m, g->k, g->lda), g->a, g->size);
    const strata_tensor B =
        strata_pointers(st_blas_matrix(NULL, type, g->op_b, g->k, g->n, g->ldb), g->b, g->size);
    const strata_tensor C = strata_pointers(st_blas_matrix(NULL, type, 0, g->m, g->n, g->ldc),
                                            (const void *const *)g->c, g->size);
    st_blas_done(who.name, strata_gemm_run(st_blas_handle(), &alpha, &A, &B, &beta, &C, NULL));
}

void st_blas_strided(st_caller who, int type, int op_a, int op_b, int64_t m, int64_t n, int64_t k,
                     const void *alpha, const void *a, int64_t lda, int64_t stride_a, const void *b,
                     int64_t ldb, int64_t stride_b, const void *beta, void *c, int64_t ldc, int64_t stride_c,
                     int64_t count)
{
    static const int position[] = {0, 1, 2, 3, 4, 5, 0, 0, 8, 0, 11, 0, 0, 15}; /* of gemm's arguments */
    int info = position[st_blas_gemm_info(op_a, op_b, m, n, k, lda, ldb, ldc)];
    if (!info && count < 0) info = 17;
    if (info) {
        st_blas_bad(who, info);
        return;
    }
    const strata_scalar va = st_blas_number(type, alpha), vb = st_blas_number(type, beta);
    if (count == 0 || m == 0 || n == 0 || ((k == 0 || st_blas_is(va, 0)) && st_blas_is(vb, 1))) return;
    strata_tensor t[3] = {st_blas_matrix(a, type, op_a, m, k, lda), st_blas_matrix(b, type, op_b, k, n, ldb),
                          st_blas_matrix(c, type, 0, m, n, ldc)};
    const int64_t stride[3] = {stride_a, stride_b, stride_c};
    for (int i = 0; i < 3; i++) { /* a stride of 0 is one matrix for all products */
        t[i].rank = 3;
        t[i].dim[2] = t[i].dim[1], t[i].stride[2] = t[i].stride[1];
        t[i].dim[1] = t[i].dim[0], t[i].stride[1] = t[i].stride[0];
        t[i].dim[0] = count, t[i].stride[0] = stride[i];
    }
    st_blas_done(who.name, strata_gemm_run(st_blas_handle(), &va, &t[0], &t[1], &vb, &t[2], NULL));
}
