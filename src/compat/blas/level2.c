/* SPDX-License-Identifier: Apache-2.0 */
/* level2.c - level 2: the reference's checks in the reference's order, what it returns from at once, and views for the native operators. */
#include "compat/blas/level2.h"

/* Diagonals beyond the matrix are storage that is skipped. */
static strata_tensor band(const void *a, int type, int op, int64_t m, int64_t n, int64_t kl, int64_t ku,
                          int64_t lda)
{
    const int64_t last_l = m > 1 ? m - 1 : 0, last_u = n > 1 ? n - 1 : 0;
    if (kl > last_l) kl = last_l;
    if (ku > last_u) {
        a = (const char *)a + (ku - last_u) * (int64_t)st_blas_size(type);
        ku = last_u;
    }
    strata_tensor t = strata_band(a, (strata_type)type, m, n, kl, ku, STRATA_COL_MAJOR, lda);
    if (op & OP_TRANS) t = strata_transpose(t);
    if (op & OP_CONJ) t = strata_conj(t);
    return t;
}

/* op(A) of a matrix of which one triangle is stored */
static strata_tensor triangle(const void *a, int type, st_form form, int uplo, int op, int64_t n, int64_t k,
                              int64_t lda, uint32_t structure)
{
    const strata_uplo stored = uplo == IS_LOWER ? STRATA_LOWER : STRATA_UPPER;
    strata_tensor t;
    if (form == FORM_FULL) return st_blas_triangle(a, type, op, uplo, n, lda, structure);
    if (form == FORM_BAND) {
        t = strata_triangular(band(a, type, 0, n, n, uplo == IS_LOWER ? k : 0, uplo == IS_LOWER ? 0 : k, lda),
                              stored, STRATA_NON_UNIT);
    } else {
        t = strata_packed(a, (strata_type)type, n, stored, STRATA_COL_MAJOR);
    }
    t.flags |= structure;
    if (op & OP_TRANS) t = strata_transpose(t);
    if (op & OP_CONJ) t = strata_conj(t);
    return t;
}
static uint32_t mirrored(int type)
{
    return st_blas_complex(type) ? STRATA_TENSOR_HERMITIAN : STRATA_TENSOR_SYMMETRIC;
}
static strata_tensor vector(const void *x, int type, bool conj, int64_t n, int64_t inc)
{
    strata_tensor t = st_blas_vector(x, type, n, inc);
    if (conj && st_blas_complex(type)) t.flags = STRATA_TENSOR_CONJ;
    return t;
}

/* y := beta y: with alpha = 0 the matrix and x are not read, and need not be there */
static void scaled(st_caller who, int type, int64_t n, strata_scalar beta, void *y, int64_t incy)
{
    st_blas_done_by(who,
                    strata_gemv(st_blas_handle(), strata_real(0), st_blas_matrix(NULL, type, 0, n, 0, n),
                                st_blas_vector(NULL, type, 0, 1), beta, st_blas_vector(y, type, n, incy)));
}

/* ---- short matrices ---- the numbers go to the kernels at once; false: the long way, which sees what is wrong too */
static bool brief(strata_matvec_plain *p, int type, int64_t n, const void *x, int64_t incx, int64_t my,
                  const void *y, int64_t incy)
{
    const int64_t es = (int64_t)st_blas_size(type);
    if (!atomic_load_explicit(&st_blas_vectors[st_blas_index(type)], memory_order_acquire)) return false;
    p->type = type;
    p->x = (char *)(uintptr_t)x + (incx < 0 ? (1 - n) * incx * es : 0), p->incx = incx;
    p->y = y ? (char *)(uintptr_t)y + (incy < 0 ? (1 - my) * incy * es : 0) : NULL, p->incy = incy;
    return strata_matvec_run_plain(p) == STRATA_OK;
}
/* a column-major array, or a packed triangle (lda 0), transposed by `op` */
static void brief_matrix(strata_matvec_plain *p, int type, const void *a, int op, int64_t m, int64_t n,
                         int64_t lda)
{
    const bool t = op & OP_TRANS;
    p->a = (void *)(uintptr_t)a;
    p->m = m, p->n = n;
    p->row = t ? lda : 1, p->col = t ? 1 : lda;
    p->kl = m, p->ku = n;
    p->conj = op & OP_CONJ && st_blas_complex(type);
    p->packed = lda == 0;
}
static void brief_triangle(strata_matvec_plain *p, int uplo, int op)
{
    p->half = (uplo == IS_LOWER) != ((op & OP_TRANS) != 0) ? 1 : 2;
    *(p->half == 1 ? &p->ku : &p->kl) = 0;
}
static void factors(strata_matvec_plain *p, strata_scalar alpha, strata_scalar beta)
{
    p->alpha[0] = alpha.re, p->alpha[1] = alpha.im, p->beta[0] = beta.re, p->beta[1] = beta.im;
}
static int mirror(int type) { return st_blas_complex(type) ? 2 : 1; }
enum { BRIEF = 512 };

void st_blas_gemv(st_caller who, int type, int op, int64_t m, int64_t n, const void *alpha, const void *a,
                  int64_t lda, const void *x, int64_t incx, const void *beta, void *y, int64_t incy)
{
    const int info = op < 0                  ? 1
                     : m < 0                 ? 2
                     : n < 0                 ? 3
                     : lda < st_blas_max1(m) ? 6
                     : incx == 0             ? 8
                     : incy == 0             ? 11
                                             : 0;
    if (info) {
        st_blas_bad(who, info);
        return;
    }
    const strata_scalar va = st_blas_number(type, alpha), vb = st_blas_number(type, beta);
    if (m == 0 || n == 0 || (st_blas_is(va, 0) && st_blas_is(vb, 1))) return;
    const int64_t rows = op & OP_TRANS ? n : m, cols = op & OP_TRANS ? m : n;
    if (st_blas_is(va, 0)) {
        scaled(who, type, rows, vb, y, incy);
        return;
    }
    if (m <= BRIEF && n <= BRIEF) {
        strata_matvec_plain p = {.op = STRATA_MATVEC_PRODUCT};
        brief_matrix(&p, type, a, op, rows, cols, lda);
        factors(&p, va, vb);
        if (brief(&p, type, cols, x, incx, rows, y, incy)) return;
    }
    strata_tensor A = st_blas_matrix(a, type, op, rows, cols, lda), vx = st_blas_vector(x, type, cols, incx);
    const strata_tensor vy = st_blas_vector(y, type, rows, incy);
    ST_RUN(who, strata_gemv(st_blas_handle(), va, A, vx, vb, vy), &A, &vx);
}

void st_blas_gbmv(st_caller who, int type, int op, int64_t m, int64_t n, int64_t kl, int64_t ku,
                  const void *alpha, const void *a, int64_t lda, const void *x, int64_t incx,
                  const void *beta, void *y, int64_t incy)
{
    const int info = op < 0              ? 1
                     : m < 0             ? 2
                     : n < 0             ? 3
                     : kl < 0            ? 4
                     : ku < 0            ? 5
                     : lda < kl + ku + 1 ? 8
                     : incx == 0         ? 10
                     : incy == 0         ? 13
                                         : 0;
    if (info) {
        st_blas_bad(who, info);
        return;
    }
    const strata_scalar va = st_blas_number(type, alpha), vb = st_blas_number(type, beta);
    if (m == 0 || n == 0 || (st_blas_is(va, 0) && st_blas_is(vb, 1))) return;
    const int64_t rows = op & OP_TRANS ? n : m, cols = op & OP_TRANS ? m : n;
    if (st_blas_is(va, 0)) {
        scaled(who, type, rows, vb, y, incy);
        return;
    }
    if (m <= BRIEF && n <= BRIEF && lda > 1) {
        strata_matvec_plain p = {.op = STRATA_MATVEC_PRODUCT};
        const bool t = op & OP_TRANS;
        brief_matrix(&p, type, (const char *)a + ku * (int64_t)st_blas_size(type), op, rows, cols, lda - 1);
        p.packed = 0;
        p.kl = t ? ku : kl, p.ku = t ? kl : ku;
        factors(&p, va, vb);
        if (brief(&p, type, cols, x, incx, rows, y, incy)) return;
    }
    strata_tensor A = band(a, type, op, m, n, kl, ku, lda), vx = st_blas_vector(x, type, cols, incx);
    const strata_tensor vy = st_blas_vector(y, type, rows, incy);
    ST_RUN(who, strata_gemv(st_blas_handle(), va, A, vx, vb, vy), &A, &vx);
}

void st_blas_symv(st_caller who, int type, st_form form, int uplo, bool conj, int64_t n, int64_t k,
                  const void *alpha, const void *a, int64_t lda, const void *x, int64_t incx,
                  const void *beta, void *y, int64_t incy)
{
    const bool banded = form == FORM_BAND, full = form == FORM_FULL;
    const int info = uplo < 0                        ? 1
                     : n < 0                         ? 2
                     : banded && k < 0               ? 3
                     : banded && lda < k + 1         ? 6
                     : full && lda < st_blas_max1(n) ? 5
                     : incx == 0                     ? (banded ? 8
                                                        : full ? 7
                                                               : 6)
                     : incy == 0                     ? (banded ? 11
                                                        : full ? 10
                                                               : 9)
                                                     : 0;
    if (info) {
        st_blas_bad(who, info);
        return;
    }
    const strata_scalar va = st_blas_number(type, alpha), vb = st_blas_number(type, beta);
    if (n == 0 || (st_blas_is(va, 0) && st_blas_is(vb, 1))) return;
    if (st_blas_is(va, 0)) {
        scaled(who, type, n, vb, y, incy);
        return;
    }
    if (n <= BRIEF && !banded) {
        strata_matvec_plain p = {.op = STRATA_MATVEC_PRODUCT, .mirror = mirror(type)};
        brief_matrix(&p, type, a, conj ? OP_CONJ : 0, n, n, full ? lda : 0);
        brief_triangle(&p, uplo, 0);
        factors(&p, va, vb);
        if (brief(&p, type, n, x, incx, n, y, incy)) return;
    }
    strata_tensor A = triangle(a, type, form, uplo, conj ? OP_CONJ : 0, n, k, lda, mirrored(type)),
                  vx = st_blas_vector(x, type, n, incx);
    const strata_tensor vy = st_blas_vector(y, type, n, incy);
    ST_RUN(who, strata_gemv(st_blas_handle(), va, A, vx, vb, vy), &A, &vx);
}

void st_blas_trmv(st_caller who, int type, st_form form, bool solve, int uplo, int op, int unit, int64_t n,
                  int64_t k, const void *a, int64_t lda, void *x, int64_t incx)
{
    const bool banded = form == FORM_BAND, full = form == FORM_FULL;
    const int info = uplo < 0                        ? 1
                     : op < 0                        ? 2
                     : unit < 0                      ? 3
                     : n < 0                         ? 4
                     : banded && k < 0               ? 5
                     : banded && lda < k + 1         ? 7
                     : full && lda < st_blas_max1(n) ? 6
                     : incx == 0                     ? (banded ? 9
                                                        : full ? 8
                                                               : 7)
                                                     : 0;
    if (info) {
        st_blas_bad(who, info);
        return;
    }
    if (n == 0) return;
    if (n <= BRIEF && !banded) {
        strata_matvec_plain p = {.op = solve ? STRATA_MATVEC_SOLVE : STRATA_MATVEC_MULTIPLY, .unit = unit};
        brief_matrix(&p, type, a, op, n, n, full ? lda : 0);
        brief_triangle(&p, uplo, op);
        if (brief(&p, type, n, x, incx, 0, NULL, 0)) return;
    }
    strata_tensor A = triangle(a, type, form, uplo, op, n, k, lda, unit ? STRATA_TENSOR_UNIT : 0);
    const strata_tensor vx = st_blas_vector(x, type, n, incx);
    ST_RUN(who, (solve ? strata_trsv : strata_trmv)(st_blas_handle(), A, vx), &A, NULL);
}

void st_blas_ger(st_caller who, int type, bool conj_x, bool conj_y, int64_t m, int64_t n, const void *alpha,
                 const void *x, int64_t incx, const void *y, int64_t incy, void *a, int64_t lda)
{
    const int info = m < 0 ? 1 : n < 0 ? 2 : incx == 0 ? 5 : incy == 0 ? 7 : lda < st_blas_max1(m) ? 9 : 0;
    if (info) {
        st_blas_bad(who, info);
        return;
    }
    const strata_scalar va = st_blas_number(type, alpha);
    if (m == 0 || n == 0 || st_blas_is(va, 0)) return;
    if (m <= BRIEF && n <= BRIEF) {
        strata_matvec_plain p = {.op = STRATA_MATVEC_UPDATE, .conj_x = conj_x, .conj_y = conj_y};
        brief_matrix(&p, type, a, 0, m, n, lda);
        factors(&p, va, strata_real(0));
        if (brief(&p, type, m, x, incx, n, y, incy)) return;
    }
    strata_tensor vx = vector(x, type, conj_x, m, incx), vy = vector(y, type, conj_y, n, incy);
    const strata_tensor A = st_blas_matrix(a, type, 0, m, n, lda);
    ST_RUN(who, strata_ger(st_blas_handle(), va, vx, vy, A), &vx, &vy);
}

void st_blas_syr(st_caller who, int type, st_form form, int uplo, bool conj, int64_t n, strata_scalar alpha,
                 const void *x, int64_t incx, void *a, int64_t lda)
{
    const int info = uplo < 0                                     ? 1
                     : n < 0                                      ? 2
                     : incx == 0                                  ? 5
                     : form == FORM_FULL && lda < st_blas_max1(n) ? 7
                                                                  : 0;
    if (info) {
        st_blas_bad(who, info);
        return;
    }
    if (n == 0 || st_blas_is(alpha, 0)) return;
    if (n <= BRIEF) {
        strata_matvec_plain p = {.op = STRATA_MATVEC_UPDATE,
                                 .mirror = mirror(type),
                                 .conj_x = conj,
                                 .conj_y = conj != st_blas_complex(type)};
        brief_matrix(&p, type, a, 0, n, n, form == FORM_FULL ? lda : 0);
        brief_triangle(&p, uplo, 0);
        factors(&p, alpha, strata_real(0));
        if (brief(&p, type, n, x, incx, n, x, incx)) return;
    }
    strata_tensor vx = vector(x, type, conj, n, incx);
    const strata_tensor A = triangle(a, type, form, uplo, 0, n, 0, lda, 0);
    ST_RUN(who, (st_blas_complex(type) ? strata_her : strata_syr)(st_blas_handle(), alpha, vx, A), &vx, NULL);
}

void st_blas_syr2(st_caller who, int type, st_form form, int uplo, bool conj, int64_t n, const void *alpha,
                  const void *x, int64_t incx, const void *y, int64_t incy, void *a, int64_t lda)
{
    const int info = uplo < 0                                     ? 1
                     : n < 0                                      ? 2
                     : incx == 0                                  ? 5
                     : incy == 0                                  ? 7
                     : form == FORM_FULL && lda < st_blas_max1(n) ? 9
                                                                  : 0;
    if (info) {
        st_blas_bad(who, info);
        return;
    }
    const strata_scalar va = st_blas_number(type, alpha);
    if (n == 0 || st_blas_is(va, 0)) return;
    if (n <= BRIEF) {
        strata_matvec_plain p = {
            .op = STRATA_MATVEC_UPDATE2, .mirror = mirror(type), .conj_x = conj, .conj_y = conj};
        brief_matrix(&p, type, a, 0, n, n, form == FORM_FULL ? lda : 0);
        brief_triangle(&p, uplo, 0);
        factors(&p, va, strata_real(0));
        if (brief(&p, type, n, x, incx, n, y, incy)) return;
    }
    strata_tensor vx = vector(x, type, conj, n, incx), vy = vector(y, type, conj, n, incy);
    const strata_tensor A = triangle(a, type, form, uplo, 0, n, 0, lda, 0);
    ST_RUN(who, (st_blas_complex(type) ? strata_her2 : strata_syr2)(st_blas_handle(), va, vx, vy, A), &vx,
           &vy);
}
