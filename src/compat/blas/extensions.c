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

void st_blas_matcopy(st_caller who, int type, bool order_known, bool in_place, int op, int64_t rows,
                     int64_t cols, const void *alpha, const void *a, int64_t lda, void *b, int64_t ldb)
{
    /* as column-major: m x n becomes m x n, or n x m when transposed */
    const int64_t m = who.row ? cols : rows, n = who.row ? rows : cols;
    const bool turned = op >= 0 && op & OP_TRANS;
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

static bool holes(const void *const *address, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!address[i]) return true;
    return false;
}

static bool nothing_to_do(int type, const st_group *g)
{
    return g->size == 0 || g->m == 0 || g->n == 0 ||
           ((g->k == 0 || st_blas_is(st_blas_number(type, g->alpha), 0)) &&
            st_blas_is(st_blas_number(type, g->beta), 1));
}
static bool factors_read(int type, const st_group *g)
{
    return g->k > 0 && !st_blas_is(st_blas_number(type, g->alpha), 0);
}

int st_blas_group_info(int type, const st_group *g)
{
    const int info = st_blas_gemm_info(g->op_a, g->op_b, g->m, g->n, g->k, g->lda, g->ldb, g->ldc);
    if (info) return info;
    if (g->size < 0) return 15;
    if (nothing_to_do(type, g)) return 0;
    const bool reads = factors_read(type, g);
    return reads && (!g->a || holes(g->a, g->size))                           ? 7
           : reads && (!g->b || holes(g->b, g->size))                         ? 9
           : !g->c || holes((const void *const *)(const void *)g->c, g->size) ? 12
                                                                              : 0;
}

void st_blas_group(st_caller who, int type, const st_group *g)
{
    const strata_scalar alpha = st_blas_number(type, g->alpha), beta = st_blas_number(type, g->beta);
    if (nothing_to_do(type, g)) return;
    const int64_t k = factors_read(type, g) ? g->k : 0; /* 0: A and B need not be there */
    const strata_tensor mA = st_blas_matrix(NULL, type, g->op_a, g->m, k, g->lda),
                        mB = st_blas_matrix(NULL, type, g->op_b, k, g->n, g->ldb);
    const strata_tensor A = k ? strata_pointers(mA, g->a, g->size) : mA,
                        B = k ? strata_pointers(mB, g->b, g->size) : mB,
                        C = strata_pointers(st_blas_matrix(NULL, type, 0, g->m, g->n, g->ldc),
                                            (const void *const *)(const void *)g->c, g->size);
    const strata_status s = strata_gemm_run(st_blas_handle(), &alpha, &A, &B, &beta, &C, NULL);
    if (s != STRATA_ERROR_ALIAS) {
        st_blas_done_by(who, s);
        return;
    }
    /* matrices overlap: one product after another, as a loop over gemm has it */
    for (int64_t i = 0; i < g->size; i++) {
        strata_tensor Ai = mA, Bi = mB;
        const strata_tensor Ci = st_blas_matrix(g->c[i], type, 0, g->m, g->n, g->ldc);
        if (k) Ai.data = (void *)(uintptr_t)g->a[i], Bi.data = (void *)(uintptr_t)g->b[i];
        ST_RUN(who, strata_gemm_run(st_blas_handle(), &alpha, &Ai, &Bi, &beta, &Ci, NULL), &Ai, &Bi);
    }
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
    if (st_blas_is(va, 0)) k = 0; /* A and B are not read, and need not be there */
    strata_tensor t[3] = {st_blas_matrix(a, type, op_a, m, k, lda), st_blas_matrix(b, type, op_b, k, n, ldb),
                          st_blas_matrix(c, type, 0, m, n, ldc)};
    const int64_t stride[3] = {stride_a, stride_b, stride_c};
    for (int i = 0; i < 3; i++) { /* a stride of 0 is one matrix for all products */
        t[i].rank = 3;
        t[i].dim[2] = t[i].dim[1], t[i].stride[2] = t[i].stride[1];
        t[i].dim[1] = t[i].dim[0], t[i].stride[1] = t[i].stride[0];
        t[i].dim[0] = count, t[i].stride[0] = stride[i];
    }
    strata_status s = strata_gemm_run(st_blas_handle(), &va, &t[0], &t[1], &vb, &t[2], NULL);
    if (s == STRATA_ERROR_LAYOUT) { /* the distance that puts elements of two results in one place */
        st_blas_bad(who, 16);
        return;
    }
    if (s == STRATA_ERROR_ALIAS)
        ST_RUN(who, strata_gemm_run(st_blas_handle(), &va, &t[0], &t[1], &vb, &t[2], NULL), &t[0], &t[1]);
    else
        st_blas_done_by(who, s);
}
