/* SPDX-License-Identifier: Apache-2.0 */
/* level1.h - the operations of level1.c. n, increments and addresses as in BLAS; `type` is the vectors' strata_type. */
#ifndef ST_COMPAT_BLAS_LEVEL1_H
#define ST_COMPAT_BLAS_LEVEL1_H
#include "compat/blas/blas.h"
void st_blas_axpy(const char *name, int type, int64_t n, const void *alpha, const void *x, int64_t incx,
                  void *y, int64_t incy);
void st_blas_axpby(const char *name, int type, int64_t n, const void *alpha, const void *x, int64_t incx,
                   const void *beta, void *y, int64_t incy);
void st_blas_copy(const char *name, int type, int64_t n, const void *x, int64_t incx, void *y, int64_t incy);
void st_blas_swap(const char *name, int type, int64_t n, void *x, int64_t incx, void *y, int64_t incy);
void st_blas_scal(const char *name, int type, int64_t n, strata_scalar alpha, void *x, int64_t incx);
void st_blas_dot(const char *name, int type, int64_t n, const void *x, int64_t incx, const void *y,
                 int64_t incy, bool conjugate, bool wide, void *result);
double st_blas_nrm2(const char *name, int type, int64_t n, const void *x, int64_t incx);
double st_blas_asum(const char *name, int type, int64_t n, const void *x, int64_t incx);
int64_t st_blas_iamax(const char *name, int type, int64_t n, const void *x, int64_t incx, bool least);
void st_blas_rot(const char *name, int type, int64_t n, void *x, int64_t incx, void *y, int64_t incy,
                 double c, double s);
void st_blas_rotg(const char *name, int type, void *a, void *b, void *c,
                  void *s); /* complex: b is left as it is */
void st_blas_rotm(const char *name, int type, int64_t n, void *x, int64_t incx, void *y, int64_t incy,
                  const void *param);
void st_blas_rotmg(const char *name, int type, void *d1, void *d2, void *x1, const void *y1, void *param);

/* ---- short vectors ---------------------------------------------------------------------------------------------------------
 * A call on a short vector takes as long as a few comparisons and the kernel: it goes there straight from the name that was called, where that is plainly right, and
 * else to the function above. The type is a constant wherever these are used. */
static inline const strata_vectors *st_short(int type, int64_t n)
{
    const strata_vectors *k =
        atomic_load_explicit(&st_blas_vectors[st_blas_index(type)], memory_order_acquire);
    return __builtin_expect(k && n > 0 && n <= k->most, 1) ? k : NULL;
}
/* element 0: with a negative increment the last one comes first in memory */
static inline const void *st_first(int type, int64_t n, const void *x, int64_t inc)
{
    return inc >= 0 ? x : (const char *)x + (1 - n) * inc * (int64_t)st_blas_size(type);
}
static inline void *st_first_out(int type, int64_t n, void *x, int64_t inc)
{
    return inc >= 0 ? x : (char *)x + (1 - n) * inc * (int64_t)st_blas_size(type);
}
/* Vectors with neither an increment of 0 nor a common byte (n fits in 32 bits here). */
static inline bool st_apart(int type, int64_t n, const void *x, int64_t incx, const void *y, int64_t incy)
{
    const uint64_t size = st_blas_size(type), ax = (uint64_t)(incx < 0 ? -incx : incx),
                   ay = (uint64_t)(incy < 0 ? -incy : incy), far = UINT64_C(1) << 24;
    const uintptr_t px = (uintptr_t)x, py = (uintptr_t)y;
    if (ax - 1 >= far || ay - 1 >= far) return false;
    return px <= py ? py - px >= ((uint64_t)(n - 1) * ax + 1) * size
                    : px - py >= ((uint64_t)(n - 1) * ay + 1) * size;
}
static inline void st_axpy(int type, int64_t n, const void *alpha, const void *x, int64_t incx, void *y,
                           int64_t incy)
{
    const strata_vectors *k = st_short(type, n);
    const strata_scalar s = st_blas_number(type, alpha);
    if (__builtin_expect(k && st_apart(type, n, x, incx, y, incy), 1)) {
        const double a[2] = {s.re, s.im};
        if (a[0] != 0 || a[1] != 0)
            k->axpy(n, a, st_first(type, n, x, incx), incx, st_first_out(type, n, y, incy), incy);
        return;
    }
    st_blas_axpy("axpy", type, n, alpha, x, incx, y, incy);
}
static inline void st_scal(int type, int64_t n, strata_scalar s, void *x, int64_t incx)
{
    const strata_vectors *k = st_short(type, n);
    if (__builtin_expect(k && incx > 0, 1)) {
        const double a[2] = {s.re, s.im};
        if (a[0] != 1 || a[1] != 0) k->scal(n, a, x, incx);
        return;
    }
    st_blas_scal("scal", type, n, s, x, incx);
}
static inline void st_copy(int type, int64_t n, const void *x, int64_t incx, void *y, int64_t incy)
{
    const strata_vectors *k = st_short(type, n);
    if (__builtin_expect(k && st_apart(type, n, x, incx, y, incy), 1))
        k->copy(n, st_first(type, n, x, incx), incx, st_first_out(type, n, y, incy), incy);
    else
        st_blas_copy("copy", type, n, x, incx, y, incy);
}
static inline void st_swap(int type, int64_t n, void *x, int64_t incx, void *y, int64_t incy)
{
    const strata_vectors *k = st_short(type, n);
    if (__builtin_expect(k && st_apart(type, n, x, incx, y, incy), 1))
        k->swap(n, st_first_out(type, n, x, incx), incx, st_first_out(type, n, y, incy), incy);
    else
        st_blas_swap("swap", type, n, x, incx, y, incy);
}
static inline void st_rot(int type, int64_t n, void *x, int64_t incx, void *y, int64_t incy, double c,
                          double s)
{
    const strata_vectors *k = st_short(type, n);
    if (__builtin_expect(k && st_apart(type, n, x, incx, y, incy), 1)) {
        const double vs[2] = {s, 0};
        k->rot(n, c, vs, st_first_out(type, n, x, incx), incx, st_first_out(type, n, y, incy), incy);
    } else {
        st_blas_rot("rot", type, n, x, incx, y, incy, c, s);
    }
}
/* f32 and f64 */
static inline double st_dot(int type, int64_t n, const void *x, int64_t incx, const void *y, int64_t incy)
{
    union {
        float f;
        double d;
    } r;
    const strata_vectors *k = st_short(type, n);
    if (__builtin_expect(k != NULL, 1))
        return k->dot(n, st_first(type, n, x, incx), incx, st_first(type, n, y, incy), incy);
    st_blas_dot("dot", type, n, x, incx, y, incy, false, false, &r);
    return type == STRATA_F32 ? (double)r.f : r.d;
}
/* c64 and c128 */
static inline void st_dots(int type, const char *name, int64_t n, const void *x, int64_t incx, const void *y,
                           int64_t incy, bool conjugate, void *result)
{
    const strata_vectors *k = st_short(type, n);
    if (__builtin_expect(k != NULL, 1)) {
        double r[2];
        k->dots(n, conjugate, st_first(type, n, x, incx), incx, st_first(type, n, y, incy), incy, r);
        if (type == STRATA_C64)
            ((float *)result)[0] = (float)r[0], ((float *)result)[1] = (float)r[1];
        else
            ((double *)result)[0] = r[0], ((double *)result)[1] = r[1];
        return;
    }
    st_blas_dot(name, type, n, x, incx, y, incy, conjugate, false, result);
}
static inline double st_nrm2(int type, int64_t n, const void *x, int64_t incx)
{
    const strata_vectors *k = st_short(type, n);
    if (__builtin_expect(k != NULL, 1)) return k->nrm2(n, st_first(type, n, x, incx), incx);
    return st_blas_nrm2("nrm2", type, n, x, incx);
}
static inline double st_asum(int type, int64_t n, const void *x, int64_t incx)
{
    const strata_vectors *k = st_short(type, n);
    if (__builtin_expect(k && incx > 0, 1)) return k->asum(n, x, incx);
    return st_blas_asum("asum", type, n, x, incx);
}
static inline int64_t st_iamax(int type, int64_t n, const void *x, int64_t incx, bool least)
{
    const strata_vectors *k = st_short(type, n);
    if (__builtin_expect(k && incx > 0, 1)) return (least ? k->iamin : k->iamax)(n, x, incx) + 1;
    return st_blas_iamax(least ? "iamin" : "iamax", type, n, x, incx, least);
}
#endif
