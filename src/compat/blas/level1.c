/* SPDX-License-Identifier: Apache-2.0 */
/* level1.c - BLAS level 1: one function here for each operation, type at run time, and its names from level1.inc.
 *
 * Increments of 0 and vectors that overlap are outside what the native operators take (an output's elements must be apart), yet programs
 * use them and the reference loops define what happens: `pair_loop` is that loop, element after element. */
#include "compat/blas/level1.h"
#include <math.h>
#include <string.h>

static void load(int type, const char *p, double v[2])
{
    const strata_scalar s = st_blas_number(type, p);
    v[0] = s.re, v[1] = s.im;
}
static void store(int type, char *p, const double v[2])
{
    const bool complex = st_blas_complex(type);
    if (st_blas_size(type) >> complex == 4) {
        ((float *)p)[0] = (float)v[0];
        if (complex) ((float *)p)[1] = (float)v[1];
    } else {
        ((double *)p)[0] = v[0];
        if (complex) ((double *)p)[1] = v[1];
    }
}
static void add_product(double v[2], const double *f, const double x[2], bool complex)
{
    if (!f) return;
    v[0] += complex ? f[0] * x[0] - f[1] * x[1] : f[0] * x[0];
    v[1] += complex ? f[0] * x[1] + f[1] * x[0] : f[0] * x[1];
}

/* x_i := xx x_i + xy y_i and y_i := yx x_i + yy y_i one i after the other; a factor of NULL is no term, two of them leave the vector alone.
 * Factors are complex where the type is and `complex` says so. */
typedef struct pair_map {
    const double *xx, *xy, *yx, *yy;
    bool complex;
} pair_map;
static void pair_loop(const pair_map *f, int type, int64_t n, void *x, int64_t incx, void *y, int64_t incy)
{
    const int64_t size = (int64_t)st_blas_size(type);
    char *px = (char *)x + (incx < 0 ? (1 - n) * incx * size : 0),
         *py = (char *)y + (incy < 0 ? (1 - n) * incy * size : 0);
    for (int64_t i = 0; i < n; i++, px += incx * size, py += incy * size) {
        double vx[2], vy[2], rx[2] = {0, 0}, ry[2] = {0, 0};
        load(type, px, vx), load(type, py, vy);
        add_product(rx, f->xx, vx, f->complex), add_product(rx, f->xy, vy, f->complex);
        add_product(ry, f->yx, vx, f->complex), add_product(ry, f->yy, vy, f->complex);
        if (f->xx || f->xy) store(type, px, rx);
        if (f->yx || f->yy) store(type, py, ry);
    }
}
static const double one[2] = {1, 0};

/* Runs the native call unless an increment is 0; true when it did all. */
#define NATIVE(name, usual, call)                                                    \
    ({                                                                               \
        strata_status native_s = (usual) ? (call) : STRATA_ERROR_ALIAS;              \
        if (native_s && native_s != STRATA_ERROR_ALIAS) st_blas_failed(name, false); \
        native_s == STRATA_OK;                                                       \
    })

void st_blas_axpy(const char *name, int type, int64_t n, const void *alpha, const void *x, int64_t incx,
                  void *y, int64_t incy)
{
    const strata_scalar a = st_blas_number(type, alpha);
    if (n <= 0 || st_blas_is(a, 0)) return;
    if (NATIVE(name, incx && incy,
               strata_axpy(st_blas_handle(), a, st_blas_vector(x, type, n, incx),
                           st_blas_vector(y, type, n, incy))))
        return;
    const double f[2] = {a.re, a.im};
    pair_loop(&(pair_map){.yx = f, .yy = one, .complex = st_blas_complex(type)}, type, n,
              (void *)(uintptr_t)x, incx, y, incy);
}

void st_blas_axpby(const char *name, int type, int64_t n, const void *alpha, const void *x, int64_t incx,
                   const void *beta, void *y, int64_t incy)
{
    const strata_scalar a = st_blas_number(type, alpha), b = st_blas_number(type, beta);
    if (n <= 0) return;
    if (st_blas_is(a, 0)) x = y, incx = incy; /* it is not read, and need not be there */
    if (NATIVE(name, incx && incy,
               strata_axpby(st_blas_handle(), a, st_blas_vector(x, type, n, incx), b,
                            st_blas_vector(y, type, n, incy))))
        return;
    const double fa[2] = {a.re, a.im}, fb[2] = {b.re, b.im}, zero[2] = {0, 0};
    const bool no_x = st_blas_is(a, 0), no_y = st_blas_is(b, 0);
    pair_map f = {.yx = no_x ? NULL : fa, .yy = no_y ? NULL : fb, .complex = st_blas_complex(type)};
    if (no_x && no_y) {
        for (int64_t i = 0; i < (incy ? n : 1); i++)
            store(type, (char *)y + i * (incy < 0 ? -incy : incy) * (int64_t)st_blas_size(type), zero);
        return;
    }
    pair_loop(&f, type, n, (void *)(uintptr_t)x, incx, y, incy);
}

void st_blas_copy(const char *name, int type, int64_t n, const void *x, int64_t incx, void *y, int64_t incy)
{
    if (n <= 0) return;
    if (NATIVE(name, incx && incy,
               strata_copy(st_blas_handle(), st_blas_vector(x, type, n, incx),
                           st_blas_vector(y, type, n, incy))))
        return;
    pair_loop(&(pair_map){.yx = one}, type, n, (void *)(uintptr_t)x, incx, y, incy);
}

void st_blas_swap(const char *name, int type, int64_t n, void *x, int64_t incx, void *y, int64_t incy)
{
    if (n <= 0) return;
    if (NATIVE(name, incx && incy,
               strata_swap(st_blas_handle(), st_blas_vector(x, type, n, incx),
                           st_blas_vector(y, type, n, incy))))
        return;
    pair_loop(&(pair_map){.xy = one, .yx = one}, type, n, x, incx, y, incy);
}

void st_blas_scal(const char *name, int type, int64_t n, strata_scalar alpha, void *x, int64_t incx)
{
    if (n <= 0 || incx <= 0) return;
    st_blas_done(name, strata_scal(st_blas_handle(), alpha, st_blas_vector(x, type, n, incx)));
}

/* `result` has the vectors' type, or the wider one when `wide`. */
void st_blas_dot(const char *name, int type, int64_t n, const void *x, int64_t incx, const void *y,
                 int64_t incy, bool conjugate, bool wide, void *result)
{
    const int to = !wide ? type : st_blas_complex(type) ? STRATA_C128 : STRATA_F64;
    const strata_tensor vx = st_blas_vector(x, type, n > 0 ? n : 0, incx),
                        vy = st_blas_vector(y, type, n > 0 ? n : 0, incy);
    if (n <= 0) {
        store(to, result, (double[2]){0, 0});
        return;
    }
    _Alignas(16) char r[16]; /* the result may lie inside a vector */
    st_blas_done(name,
                 (conjugate ? strata_dotc : strata_dot)(st_blas_handle(), vx, vy, st_blas_point(r, to)));
    memcpy(result, r, st_blas_size(to));
}

typedef union real_number {
    float f;
    double d;
} real_number;
static int part_of(int type) { return type == STRATA_F32 || type == STRATA_C64 ? STRATA_F32 : STRATA_F64; }
static double value_of(int type, const real_number *r)
{
    return part_of(type) == STRATA_F32 ? (double)r->f : r->d;
}

/* In LAPACK 3.10 and later nrm2 takes increments below 1 as they are; in all versions asum answers 0 to them. */
double st_blas_nrm2(const char *name, int type, int64_t n, const void *x, int64_t incx)
{
    real_number r;
    if (n <= 0) return 0;
    st_blas_done(name, strata_nrm2(st_blas_handle(), st_blas_vector(x, type, n, incx),
                                   st_blas_point(&r, part_of(type))));
    return value_of(type, &r);
}
double st_blas_asum(const char *name, int type, int64_t n, const void *x, int64_t incx)
{
    real_number r;
    if (n <= 0 || incx <= 0) return 0;
    st_blas_done(name, strata_asum(st_blas_handle(), st_blas_vector(x, type, n, incx),
                                   st_blas_point(&r, part_of(type))));
    return value_of(type, &r);
}

/* Counted from 1; 0 for no elements. */
int64_t st_blas_iamax(const char *name, int type, int64_t n, const void *x, int64_t incx, bool least)
{
    int64_t at = -1;
    if (n <= 0 || incx <= 0) return 0;
    st_blas_done(name,
                 (least ? strata_iamin : strata_iamax)(st_blas_handle(), st_blas_vector(x, type, n, incx),
                                                       st_blas_point(&at, STRATA_I64)));
    return at + 1;
}

void st_blas_rot(const char *name, int type, int64_t n, void *x, int64_t incx, void *y, int64_t incy,
                 double c, double s)
{
    if (n <= 0) return;
    if (NATIVE(name, incx && incy,
               strata_rot(st_blas_handle(), st_blas_vector(x, type, n, incx),
                          st_blas_vector(y, type, n, incy), strata_real(c), strata_real(s))))
        return;
    const double minus = -s;
    pair_loop(&(pair_map){.xx = &c, .xy = &s, .yx = &minus, .yy = &c}, type, n, x, incx, y, incy);
}

void st_blas_rotg(const char *name, int type, void *a, void *b, void *c, void *s)
{
    const int part = type == STRATA_C64 ? STRATA_F32 : type == STRATA_C128 ? STRATA_F64 : type;
    const size_t size = st_blas_size(type);
    _Alignas(16) char room[4][16]; /* numbers of the caller's may share a place */
    memcpy(room[0], a, size), memcpy(room[1], b, size);
    st_blas_done(name,
                 strata_rotg(st_blas_handle(), st_blas_point(room[0], type), st_blas_point(room[1], type),
                             st_blas_point(room[2], part), st_blas_point(room[3], type)));
    memcpy(a, room[0], size);
    if (!st_blas_complex(type)) memcpy(b, room[1], size);
    memcpy(c, room[2], st_blas_size(part)), memcpy(s, room[3], size);
}

void st_blas_rotm(const char *name, int type, int64_t n, void *x, int64_t incx, void *y, int64_t incy,
                  const void *param)
{
    double p[5], h[4];
    float single[5];
    for (int i = 0; i < 5; i++)
        p[i] = type == STRATA_F32 ? (double)((const float *)param)[i] : ((const double *)param)[i];
    if (n <= 0 || p[0] == -2) return;
    /* any other flag means what its sign says */
    p[0] = p[0] < 0 ? -1 : p[0] == 0 ? 0 : 1;
    for (int i = 0; i < 5; i++) single[i] = (float)p[i];
    if (NATIVE(name, incx && incy,
               strata_rotm(st_blas_handle(), st_blas_vector(x, type, n, incx),
                           st_blas_vector(y, type, n, incy),
                           st_blas_vector(type == STRATA_F32 ? (void *)single : (void *)p, type, 5, 1))))
        return;
    h[0] = p[0] == 0 ? 1 : p[1], h[1] = p[0] == 1 ? -1 : p[2];
    h[2] = p[0] == 1 ? 1 : p[3], h[3] = p[0] == 0 ? 1 : p[4];
    pair_loop(&(pair_map){.xx = &h[0], .xy = &h[2], .yx = &h[1], .yy = &h[3]}, type, n, x, incx, y, incy);
}

void st_blas_rotmg(const char *name, int type, void *d1, void *d2, void *x1, const void *y1, void *param)
{
    const size_t size = st_blas_size(type);
    void *const number[] = {d1, d2, x1, (void *)(uintptr_t)y1};
    _Alignas(8) char room[4][8], h[5 * 8];
    for (int i = 0; i < 4; i++) memcpy(room[i], number[i], size);
    memcpy(h, param, 5 * size);
    st_blas_done(name, strata_rotmg(st_blas_handle(), st_blas_point(room[0], type),
                                    st_blas_point(room[1], type), st_blas_point(room[2], type),
                                    st_blas_point(room[3], type), st_blas_vector(h, type, 5, 1)));
    for (int i = 0; i < 3; i++) memcpy(number[i], room[i], size);
    memcpy(param, h, 5 * size);
}
