/* SPDX-License-Identifier: Apache-2.0 */
/* factor_body.h - one item of a batched factorisation, for one element type: included once a type with T (element), R (its real type), COMPLEX and NAME(x).
 *
 * The item is copied into the scratch by columns, padded so that columns begin on 64 bytes, worked on there, and copied back: the loops run down columns, which
 * the compiler turns into vectors. LU is right-looking in blocks of BLOCK columns, the update of the rest four columns at a time. QR is LAPACK's geqr2
 * (reflectors I - tau v v^H, v_0 = 1). Sources: Golub and Van Loan, "Matrix computations", 4th ed., 3.4 and 5.2; LAPACK Users' Guide for the storage. */

#ifndef ST_FACTOR_SHARED
#    define ST_FACTOR_SHARED
enum { BLOCK = 16 };
#endif

#if COMPLEX
#    define ABS1(x) (NAME(abs)(__real__(x)) + NAME(abs)(__imag__(x)))
#    define CONJ(x) (~(x))
#    define ABS2(x) (__real__(x) * __real__(x) + __imag__(x) * __imag__(x))
#    define RE(x) (__real__(x))
#else
#    define ABS1(x) (NAME(abs)(x))
#    define CONJ(x) (x)
#    define ABS2(x) ((x) * (x))
#    define RE(x) (x)
#endif

static inline R NAME(abs)(R x) { return x < 0 ? -x : x; }

static void NAME(take)(const st_factor_view *v, const char *from, int64_t m, int64_t n, T *restrict a,
                       int64_t ld)
{
    const T *p = (const T *)(const void *)from;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) a[j * ld + i] = p[i * v->rs + j * v->cs];
}
static void NAME(give)(const st_factor_view *v, char *to, int64_t m, int64_t n, const T *restrict a,
                       int64_t ld)
{
    T *p = (T *)(void *)to;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) p[i * v->rs + j * v->cs] = a[j * ld + i];
}

/* c[0..m) -= a x, and four columns of c at once */
static inline void NAME(axpy)(int64_t m, T x, const T *restrict a, T *restrict c)
{
    for (int64_t i = 0; i < m; i++) c[i] -= a[i] * x;
}
static inline void NAME(axpy4)(int64_t m, const T x[4], const T *restrict a, T *restrict c0, T *restrict c1,
                               T *restrict c2, T *restrict c3)
{
    for (int64_t i = 0; i < m; i++) {
        const T v = a[i];
        c0[i] -= v * x[0];
        c1[i] -= v * x[1];
        c2[i] -= v * x[2];
        c3[i] -= v * x[3];
    }
}

static void NAME(swap_rows)(T *a, int64_t ld, int64_t n, int64_t i, int64_t k)
{
    if (i == k) return;
    for (int64_t j = 0; j < n; j++) {
        const T t = a[j * ld + i];
        a[j * ld + i] = a[j * ld + k];
        a[j * ld + k] = t;
    }
}

/* Row of the largest |re| + |im| from row k on; the first NaN counts as largest. */
static int64_t NAME(pivot)(const T *col, int64_t k, int64_t m)
{
    int64_t at = k;
    R most = ABS1(col[k]);
    for (int64_t i = k + 1; i < m && most == most; i++) {
        const R x = ABS1(col[i]);
        if (x > most || x != x) most = x, at = i;
    }
    return at;
}

/* LU of m x n; piv NULL: without exchanges. Returns 0, or 1 + the first column whose pivot is 0. */
static int64_t NAME(lu)(T *a, int64_t ld, int64_t m, int64_t n, int64_t *piv)
{
    const int64_t least = m < n ? m : n;
    int64_t info = 0;
    for (int64_t k0 = 0; k0 < least; k0 += BLOCK) {
        const int64_t kb = least - k0 < BLOCK ? least - k0 : BLOCK, k1 = k0 + kb;
        for (int64_t k = k0; k < k1; k++) {
            T *col = a + k * ld;
            const int64_t p = piv ? NAME(pivot)(col, k, m) : k;
            if (piv) {
                piv[k] = p;
                NAME(swap_rows)(a, ld, n, k, p);
            }
            if (col[k] == 0) {
                if (!info) info = k + 1;
                continue;
            }
            const T d = col[k];
            for (int64_t i = k + 1; i < m; i++) col[i] /= d;
            for (int64_t j = k + 1; j < k1; j++)
                NAME(axpy)(m - k - 1, a[j * ld + k], col + k + 1, a + j * ld + k + 1);
        }
        /* U12, then the rest, four columns at a time */
        int64_t j = k1;
        for (; j + 4 <= n; j += 4) {
            T *c = a + j * ld;
            for (int64_t k = k0; k < k1; k++) NAME(axpy4)
            (m - k - 1, (T[4]){c[k], c[ld + k], c[2 * ld + k], c[3 * ld + k]}, a + k * ld + k + 1, c + k + 1,
             c + ld + k + 1, c + 2 * ld + k + 1, c + 3 * ld + k + 1);
        }
        for (; j < n; j++)
            for (int64_t k = k0; k < k1; k++)
                NAME(axpy)(m - k - 1, a[j * ld + k], a + k * ld + k + 1, a + j * ld + k + 1);
    }
    return info;
}

/* b := (P^T L U)^-1 b for every column; piv NULL: no exchanges */
static void NAME(solve)(const T *a, int64_t ld, int64_t n, const int64_t *piv, T *b, int64_t ldb,
                        int64_t nrhs)
{
    for (int64_t k = 0; piv && k < n; k++) NAME(swap_rows)(b, ldb, nrhs, k, piv[k]);
    for (int64_t j = 0; j < nrhs; j++) {
        T *x = b + j * ldb;
        for (int64_t k = 0; k < n; k++) NAME(axpy)(n - k - 1, x[k], a + k * ld + k + 1, x + k + 1);
        for (int64_t k = n - 1; k >= 0; k--) {
            x[k] /= a[k * ld + k];
            NAME(axpy)(k, x[k], a + k * ld, x);
        }
    }
}
/* the same with the transposed (conj: conjugate transposed) matrix: U^T, then L^T, then the exchanges backwards */
static void NAME(solve_transposed)(const T *a, int64_t ld, int64_t n, const int64_t *piv, T *b, int64_t ldb,
                                   int64_t nrhs, bool conj)
{
    for (int64_t j = 0; j < nrhs; j++) {
        T *x = b + j * ldb;
        if (conj)
            for (int64_t i = 0; i < n; i++) x[i] = CONJ(x[i]);
        for (int64_t k = 0; k < n; k++) {
            T s = x[k];
            for (int64_t i = 0; i < k; i++) s -= a[k * ld + i] * x[i];
            x[k] = s / a[k * ld + k];
        }
        for (int64_t k = n - 1; k >= 0; k--) {
            T s = x[k];
            for (int64_t i = k + 1; i < n; i++) s -= a[k * ld + i] * x[i];
            x[k] = s;
        }
        if (conj)
            for (int64_t i = 0; i < n; i++) x[i] = CONJ(x[i]);
    }
    for (int64_t k = n - 1; piv && k >= 0; k--) NAME(swap_rows)(b, ldb, nrhs, k, piv[k]);
}

/* sqrt(sum |x|^2), scaled by the largest part so that squares neither overflow nor vanish */
static R NAME(norm)(const T *x, int64_t n)
{
    R top = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const R v = ABS1(x[i]);
        if (v > top || v != v) top = v;
        if (v != v) return v;
    }
    if (top == 0 || top > R_MAX) return top;
    const R f = 1 / top;
    if (f > R_MAX) return top; /* denormal: the largest part is within a factor of sqrt(2 n) */
    for (int64_t i = 0; i < n; i++) {
        const T v = x[i] * f;
        sum += ABS2(v);
    }
    return top * R_SQRT(sum);
}

/* The reflector that turns x (length n) into (beta, 0, ...): x[0] := beta, x[1..] := v. */
static T NAME(reflector)(T *x, int64_t n)
{
    const R below = n > 1 ? NAME(norm)(x + 1, n - 1) : 0;
    const T alpha = x[0];
    if (below == 0 && alpha == RE(alpha)) return 0;
    const R whole = NAME(norm)((T[2]){NAME(norm)(&alpha, 1), below}, 2),
            beta = RE(alpha) >= 0 ? -whole : whole;
    const T tau = (beta - alpha) / beta, f = (T)1 / (alpha - beta);
    for (int64_t i = 1; i < n; i++) x[i] *= f;
    x[0] = beta;
    return tau;
}

/* c := (I - conj(tau) v v^H) c, v[0] taken as 1: what Q^H does */
static void NAME(reflect)(const T *v, T tau, int64_t n, T *c)
{
    T s = c[0];
    for (int64_t i = 1; i < n; i++) s += CONJ(v[i]) * c[i];
    s *= CONJ(tau);
    c[0] -= s;
    for (int64_t i = 1; i < n; i++) c[i] -= v[i] * s;
}

static void NAME(qr)(T *a, int64_t ld, int64_t m, int64_t n, T *tau)
{
    const int64_t least = m < n ? m : n;
    for (int64_t k = 0; k < least; k++) {
        T *col = a + k * ld + k;
        tau[k] = NAME(reflector)(col, m - k);
        for (int64_t j = k + 1; j < n && tau[k] != 0; j++) NAME(reflect)(col, tau[k], m - k, a + j * ld + k);
    }
}

static void NAME(put_index)(const st_factor *f, int o, int64_t item, int64_t i, int64_t value)
{
    char *p = st_factor_at(f, o, item, f->index);
    if (!p) return;
    p += i * f->view[o].rs * f->index;
    if (f->index == 4)
        *(int32_t *)(void *)p = (int32_t)value;
    else
        *(int64_t *)(void *)p = value;
}

static void NAME(item)(const st_factor *f, int64_t item, char *scratch)
{
    const int64_t m = f->m, n = f->n, step = 64 / (int64_t)sizeof(T), ld = (m + step - 1) / step * step,
                  least = m < n ? m : n, rows = m > n ? m : n, ldb = (rows + step - 1) / step * step;
    T *a = (T *)(void *)scratch, *b = a + ld * n, *tau = b + ldb * f->nrhs;
    int64_t *piv = (int64_t *)(void *)(tau + least + step), info = 0;
    const st_factor_view *A = &f->view[ST_FACTOR_A], *B = &f->view[ST_FACTOR_B], *P = &f->view[ST_FACTOR_P];
    char *pa = st_factor_at(f, ST_FACTOR_A, item, sizeof(T)),
         *pb = st_factor_at(f, ST_FACTOR_B, item, sizeof(T));
    NAME(take)(A, pa, m, n, a, ld);
    const char *pp =
        f->op == ST_GETRS || f->op == ST_GETRI ? st_factor_at(f, ST_FACTOR_P, item, f->index) : NULL;
    for (int64_t k = 0; pp && k < n; k++)
        piv[k] = f->index == 4 ? ((const int32_t *)(const void *)pp)[k * P->rs]
                               : ((const int64_t *)(const void *)pp)[k * P->rs];
    switch ((st_factor_op)f->op) {
    case ST_GETRF:
        info = NAME(lu)(a, ld, m, n, P->ptr ? piv : NULL);
        NAME(give)(A, pa, m, n, a, ld);
        for (int64_t k = 0; P->ptr && k < least; k++) NAME(put_index)(f, ST_FACTOR_P, item, k, piv[k]);
        break;
    case ST_GETRS:
        NAME(take)(B, pb, n, f->nrhs, b, ldb);
        if (f->transpose)
            NAME(solve_transposed)(a, ld, n, pp ? piv : NULL, b, ldb, f->nrhs, f->conjugate != 0);
        else
            NAME(solve)(a, ld, n, pp ? piv : NULL, b, ldb, f->nrhs);
        NAME(give)(B, pb, n, f->nrhs, b, ldb);
        break;
    case ST_GETRI:
    case ST_MATINV:
        if (f->op == ST_MATINV) info = NAME(lu)(a, ld, n, n, piv);
        for (int64_t k = n - 1; k >= 0 && f->op == ST_GETRI; k--)
            if (a[k * ld + k] == 0) info = k + 1;
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = 0; i < n; i++) b[j * ldb + i] = i == j;
        if (!info) {
            NAME(solve)(a, ld, n, f->op == ST_MATINV || pp ? piv : NULL, b, ldb, n);
            NAME(give)(B, pb, n, n, b, ldb);
        }
        break;
    case ST_GEQRF:
    case ST_GELS:
        NAME(qr)(a, ld, m, n, tau);
        NAME(give)(A, pa, m, n, a, ld);
        if (f->op == ST_GEQRF) {
            T *out = (T *)(void *)st_factor_at(f, ST_FACTOR_P, item, sizeof(T));
            for (int64_t k = 0; k < least; k++) out[k * P->rs] = tau[k];
            break;
        }
        for (int64_t k = n - 1; k >= 0; k--)
            if (a[k * ld + k] == 0) info = k + 1;
        if (info) break;
        NAME(take)(B, pb, m, f->nrhs, b, ldb);
        for (int64_t j = 0; j < f->nrhs; j++) {
            T *x = b + j * ldb;
            for (int64_t k = 0; k < n; k++) NAME(reflect)(a + k * ld + k, tau[k], m - k, x + k);
            for (int64_t k = n - 1; k >= 0; k--) {
                x[k] /= a[k * ld + k];
                NAME(axpy)(k, x[k], a + k * ld, x);
            }
        }
        NAME(give)(B, pb, m, f->nrhs, b, ldb);
        break;
    case ST_FACTOR_OPS: break;
    }
    if (f->view[ST_FACTOR_I].ptr) NAME(put_index)(f, ST_FACTOR_I, item, 0, info);
}

#undef ABS1
#undef CONJ
#undef ABS2
#undef RE
