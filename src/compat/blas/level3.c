/* SPDX-License-Identifier: Apache-2.0 */
/* level3.c - level 3: the reference's checks in the reference's order, what it returns from at once, and views for the native operators.
 *
 * The side of symm and trmm is the operand's place: B A from the right is A^T B^T on transposed views. */
#include "compat/blas/level3.h"

int st_blas_gemm_info(int op_a, int op_b, int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb,
                      int64_t ldc)
{
    return op_a < 0                                      ? 1
           : op_b < 0                                    ? 2
           : m < 0                                       ? 3
           : n < 0                                       ? 4
           : k < 0                                       ? 5
           : lda < st_blas_max1(op_a & OP_TRANS ? k : m) ? 8
           : ldb < st_blas_max1(op_b & OP_TRANS ? n : k) ? 10
           : ldc < st_blas_max1(m)                       ? 13
                                                         : 0;
}

/* All that is not a product of two plain or conjugated matrices, and what the short way refuses. */
static __attribute__((noinline)) void product(st_caller who, strata_scalar alpha, strata_tensor A,
                                              strata_tensor B, strata_scalar beta, strata_tensor C,
                                              strata_math math)
{
    const strata_gemm_options o = {.math = math};
    ST_RUN(who, strata_gemm_run(st_blas_handle(), &alpha, &A, &B, &beta, &C, math ? &o : NULL), &A, &B);
}

void st_blas_gemm(st_caller who, int type, int op_a, int op_b, int64_t m, int64_t n, int64_t k,
                  const void *alpha, const void *a, int64_t lda, const void *b, int64_t ldb, const void *beta,
                  void *c, int64_t ldc, strata_math math)
{
    const int info = st_blas_gemm_info(op_a, op_b, m, n, k, lda, ldb, ldc);
    if (__builtin_expect(info, 0)) {
        st_blas_bad(who, info);
        return;
    }
    const strata_scalar va = st_blas_number(type, alpha), vb = st_blas_number(type, beta);
    if (m == 0 || n == 0 || ((k == 0 || st_blas_is(va, 0)) && st_blas_is(vb, 1))) return;
    if (st_blas_is(va, 0)) k = 0; /* A and B are not read, and need not be there */
    if (math == STRATA_MATH_EXACT) {
        const bool ta = op_a & OP_TRANS, tb = op_b & OP_TRANS;
        const int conj = st_blas_complex(type) ? (op_a & OP_CONJ ? 1 : 0) | (op_b & OP_CONJ ? 2 : 0) : 0;
        const strata_gemm_plain p = {
            m,   k,     n,     a,    b,    c,     ta ? lda : 1, tb ? ldb : 1, 1, ta ? 1 : lda, tb ? 1 : ldb,
            ldc, va.re, vb.re, type, conj, va.im, vb.im};
        if (__builtin_expect(strata_gemm_run_plain(st_blas_handle(), &p) == STRATA_OK, 1)) return;
    }
    product(who, va, st_blas_matrix(a, type, op_a, m, k, lda), st_blas_matrix(b, type, op_b, k, n, ldb), vb,
            st_blas_matrix(c, type, 0, m, n, ldc), math);
}

void st_blas_gemmt(st_caller who, int type, int uplo, int op_a, int op_b, int64_t n, int64_t k,
                   const void *alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                   const void *beta, void *c, int64_t ldc)
{
    const int info = uplo < 0                                      ? 1
                     : op_a < 0                                    ? 2
                     : op_b < 0                                    ? 3
                     : n < 0                                       ? 4
                     : k < 0                                       ? 5
                     : lda < st_blas_max1(op_a & OP_TRANS ? k : n) ? 8
                     : ldb < st_blas_max1(op_b & OP_TRANS ? n : k) ? 10
                     : ldc < st_blas_max1(n)                       ? 13
                                                                   : 0;
    if (info) {
        st_blas_bad(who, info);
        return;
    }
    const strata_scalar va = st_blas_number(type, alpha), vb = st_blas_number(type, beta);
    if (n == 0 || ((k == 0 || st_blas_is(va, 0)) && st_blas_is(vb, 1))) return;
    if (st_blas_is(va, 0)) k = 0;
    product(who, va, st_blas_matrix(a, type, op_a, n, k, lda), st_blas_matrix(b, type, op_b, k, n, ldb), vb,
            st_blas_triangle(c, type, 0, uplo, n, ldc, 0), STRATA_MATH_EXACT);
}

void st_blas_symm(st_caller who, int type, bool hermitian, int side, int uplo, int64_t m, int64_t n,
                  const void *alpha, const void *a, int64_t lda, const void *b, int64_t ldb, const void *beta,
                  void *c, int64_t ldc)
{
    const int64_t order = side == IS_RIGHT ? n : m;
    const int info = side < 0                    ? 1
                     : uplo < 0                  ? 2
                     : m < 0                     ? 3
                     : n < 0                     ? 4
                     : lda < st_blas_max1(order) ? 7
                     : ldb < st_blas_max1(m)     ? 9
                     : ldc < st_blas_max1(m)     ? 12
                                                 : 0;
    if (info) {
        st_blas_bad(who, info);
        return;
    }
    const strata_scalar va = st_blas_number(type, alpha), vb = st_blas_number(type, beta);
    if (m == 0 || n == 0 || (st_blas_is(va, 0) && st_blas_is(vb, 1))) return;
    if (st_blas_is(va, 0)) {
        product(who, va, st_blas_matrix(NULL, type, 0, m, 0, m), st_blas_matrix(NULL, type, 0, 0, n, 1), vb,
                st_blas_matrix(c, type, 0, m, n, ldc), STRATA_MATH_EXACT);
        return;
    }
    const strata_tensor A = st_blas_triangle(a, type, 0, uplo, order, lda,
                                             hermitian ? STRATA_TENSOR_HERMITIAN : STRATA_TENSOR_SYMMETRIC),
                        B = st_blas_matrix(b, type, 0, m, n, ldb), C = st_blas_matrix(c, type, 0, m, n, ldc);
    if (side == IS_RIGHT)
        product(who, va, B, A, vb, C, STRATA_MATH_EXACT);
    else
        product(who, va, A, B, vb, C, STRATA_MATH_EXACT);
}

/* A of syrk and its kin: op(A) is n x k, and the product is op(A) with its own transpose. Of complex types syrk takes N and T, herk N and C. */
static int rank_k_info(int type, bool hermitian, int uplo, int op, int64_t n, int64_t k, int64_t lda,
                       const int64_t *ldb, int64_t ldc)
{
    const bool fits = op == 0 || op == (hermitian ? OP_TRANS | OP_CONJ : OP_TRANS) ||
                      (!st_blas_complex(type) && op == (OP_TRANS | OP_CONJ));
    const int64_t rows = st_blas_max1(op == 0 ? n : k);
    return uplo < 0                ? 1
           : !fits                 ? 2
           : n < 0                 ? 3
           : k < 0                 ? 4
           : lda < rows            ? 7
           : ldb && *ldb < rows    ? 9
           : ldc < st_blas_max1(n) ? (ldb ? 12 : 10)
                                   : 0;
}

void st_blas_syrk(st_caller who, int type, bool hermitian, int uplo, int op, int64_t n, int64_t k,
                  strata_scalar alpha, const void *a, int64_t lda, strata_scalar beta, void *c, int64_t ldc)
{
    const int info = rank_k_info(type, hermitian, uplo, op, n, k, lda, NULL, ldc);
    if (info) {
        st_blas_bad(who, info);
        return;
    }
    if (n == 0 || ((k == 0 || st_blas_is(alpha, 0)) && st_blas_is(beta, 1))) return;
    if (st_blas_is(alpha, 0)) k = 0;
    strata_tensor A = st_blas_matrix(a, type, op, n, k, lda);
    const strata_tensor C =
        st_blas_triangle(c, type, 0, uplo, n, ldc, hermitian ? STRATA_TENSOR_HERMITIAN : 0);
    ST_RUN(who, (hermitian ? strata_herk : strata_syrk)(st_blas_handle(), alpha, A, beta, C), &A, NULL);
}

void st_blas_syr2k(st_caller who, int type, bool hermitian, int uplo, int op, int64_t n, int64_t k,
                   strata_scalar alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                   strata_scalar beta, void *c, int64_t ldc)
{
    const int info = rank_k_info(type, hermitian, uplo, op, n, k, lda, &ldb, ldc);
    if (info) {
        st_blas_bad(who, info);
        return;
    }
    if (n == 0 || ((k == 0 || st_blas_is(alpha, 0)) && st_blas_is(beta, 1))) return;
    if (st_blas_is(alpha, 0)) k = 0;
    strata_tensor A = st_blas_matrix(a, type, op, n, k, lda), B = st_blas_matrix(b, type, op, n, k, ldb);
    const strata_tensor C =
        st_blas_triangle(c, type, 0, uplo, n, ldc, hermitian ? STRATA_TENSOR_HERMITIAN : 0);
    ST_RUN(who, (hermitian ? strata_her2k : strata_syr2k)(st_blas_handle(), alpha, A, B, beta, C), &A, &B);
}

void st_blas_trmm(st_caller who, int type, bool solve, int side, int uplo, int op, int unit, int64_t m,
                  int64_t n, const void *alpha, const void *a, int64_t lda, void *b, int64_t ldb)
{
    const bool right = side == IS_RIGHT;
    const int64_t order = right ? n : m;
    const int info = side < 0                    ? 1
                     : uplo < 0                  ? 2
                     : op < 0                    ? 3
                     : unit < 0                  ? 4
                     : m < 0                     ? 5
                     : n < 0                     ? 6
                     : lda < st_blas_max1(order) ? 9
                     : ldb < st_blas_max1(m)     ? 11
                                                 : 0;
    if (info) {
        st_blas_bad(who, info);
        return;
    }
    if (m == 0 || n == 0) return;
    const strata_scalar va = st_blas_number(type, alpha);
    strata_tensor A = st_blas_triangle(a, type, right ? op ^ OP_TRANS : op, uplo, order, lda,
                                       unit ? STRATA_TENSOR_UNIT : 0);
    const strata_tensor B =
        right ? st_blas_matrix(b, type, OP_TRANS, n, m, ldb) : st_blas_matrix(b, type, 0, m, n, ldb);
    if (st_blas_is(va, 0)) {
        st_blas_done_by(who, strata_fill(st_blas_handle(), B, strata_real(0)));
        return;
    }
    ST_RUN(who, (solve ? strata_trsm : strata_trmm)(st_blas_handle(), va, A, B), &A, NULL);
}
