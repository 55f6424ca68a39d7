/* SPDX-License-Identifier: Apache-2.0 */
/* vector.h - kernels on vectors: what BLAS level 1 is made of, for f32, f64, c64 and c128, on the CPU.
 *
 * Kernels see dense vectors (a complex one is pairs of parts); strided ones are gathered by blocks. Long vectors are cut in pieces that
 * depend on the length alone, pieces in chunks of ST_VEC_CHUNK elements; sums run in lanes inside a chunk, chunks and pieces are added
 * in f64 in ascending order. So a result does not depend on the number of threads, nor on strides. */
#ifndef ST_POINTWISE_VECTOR_H
#define ST_POINTWISE_VECTOR_H
#include "base/base.h"
#include "runtime/handle.h"
#include <strata/plan.h>

enum { ST_VEC_CHUNK = 1024, ST_VEC_PIECE = 32768, ST_VEC_PIECES = 512 };

/* a, b: {re, im} of a factor. n counts elements of the family's type; `parts` kernels count parts (2n for complex). */
typedef struct st_vec_kernels {
    /* real arithmetic on parts */
    void (*axpby)(int64_t parts, double a, const void *x, double b,
                  void *y); /* b = 0: y is not read; b = 1: no multiplication */
    void (*scal)(int64_t parts, double a, void *x);
    void (*swap)(int64_t parts, void *x, void *y);
    void (*rot)(int64_t parts, double c, double s, void *x, void *y); /* x, y := c x + s y, c y - s x */
    void (*rotm)(int64_t parts, const double h[4], void *x, void *y); /* h11 h21 h12 h22 */
    double (*dot)(int64_t parts, const void *x, const void *y);
    double (*sumsq)(int64_t parts, const void *x);
    double (*asum)(int64_t parts, const void *x);
    double (*amax)(int64_t parts, const void *x); /* largest absolute value; NaN when there is a NaN */
    /* complex */
    void (*caxpby)(int64_t n, const double a[2], const void *x, const double b[2], void *y);
    void (*cscal)(int64_t n, const double a[2], void *x);
    void (*cdot)(int64_t n, const void *x, const void *y,
                 double out[4]);               /* sums of xr yr, xi yi, xr yi, xi yr */
    double (*camax)(int64_t n, const void *x); /* of |re| + |im| */
} st_vec_kernels;
const st_vec_kernels *st_vec_kernels_of(int part, unsigned isa); /* part: STRATA_F32 or STRATA_F64 */

/* A vector: n elements of a type, `step` elements apart (negative allowed). */
typedef struct st_vec {
    char *p;
    int64_t step;
} st_vec;
void st_vec_axpby(strata_handle *h, int type, int64_t n, const double a[2], st_vec x, const double b[2],
                  st_vec y);
void st_vec_scal(strata_handle *h, int type, int64_t n, const double a[2], st_vec x);
void st_vec_swap(strata_handle *h, int type, int64_t n, st_vec x, st_vec y);
void st_vec_rot(strata_handle *h, int type, int64_t n, double c, const double s[2], st_vec x, st_vec y);
void st_vec_rotm(strata_handle *h, int type, int64_t n, const double m[4], st_vec x, st_vec y);
/* wide: f32 and c64 elements are made f64 first, so that products and sums are f64's (the results go to an f64 or c128) */
void st_vec_dot(strata_handle *h, int type, int64_t n, bool conjugate, bool wide, st_vec x, st_vec y,
                double out[2]);
double st_vec_nrm2(strata_handle *h, int type, int64_t n, bool wide, st_vec x);
double st_vec_asum(strata_handle *h, int type, int64_t n, bool wide, st_vec x);
int64_t st_vec_iamax(strata_handle *h, int type, int64_t n, bool least, st_vec x); /* -1 for n = 0 */
int st_vec_list(int i, strata_kernel_info *info);
#endif
