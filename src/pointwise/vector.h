/* SPDX-License-Identifier: Apache-2.0 */
/* vector.h - kernels on vectors: what BLAS level 1 is made of, for f32, f64, c64 and c128, on the CPU.
 *
 * Long vectors are cut in pieces that depend on the length alone; a kernel takes a piece. Sums run in lanes inside chunks of ST_VEC_CHUNK elements,
 * strided ones gathered first; lanes of chunks, then pieces, are added in f64 in ascending order. So a result does not depend on the number of threads, nor on
 * strides. */
#ifndef ST_POINTWISE_VECTOR_H
#define ST_POINTWISE_VECTOR_H
#include "base/base.h"
#include "runtime/handle.h"
#include <math.h>
#include <strata/blas.h>
#include <strata/plan.h>

enum { ST_VEC_CHUNK = 1024, ST_VEC_PIECE = 32768, ST_VEC_PIECES = 512 };

/* What callers see (blas.h), and what only the walk over pieces needs. */
typedef struct st_vec_kernels {
    strata_vectors shorts;
    /* adds to the four sums of st_vec_norm */
    void (*norm)(int64_t n, const void *x, int64_t incx, double out[4]);
    /* iamax and iamin, with what stands there (its negative for iamin), NaN for a NaN */
    int64_t (*most_at)(int64_t n, const void *x, int64_t incx, double *value);
    int64_t (*least_at)(int64_t n, const void *x, int64_t incx, double *value);
} st_vec_kernels;
const st_vec_kernels *st_vec_kernels_of(int type, unsigned isa);

/* Squares go to one of three sums, as Anderson's "Algorithm 978: safe scaling in the level 1 BLAS" (TOMS 44, 2017) has it: out[0] as they are, out[1] of
 * numbers so large that they are scaled down by 2^-538, out[2] of ones so small that they are scaled up by 2^537; out[3] keeps what is no number.
 * The parts of f32 have squares well inside f64. */
ST_INLINE double st_vec_norm(const double s[4])
{
    if (s[3] != 0) return s[3]; /* NaN, or Inf */
    if (s[1] > 0) return sqrt(s[1] + (s[0] * 0x1p-538) * 0x1p-538) * 0x1p+538;
    if (s[2] > 0 && s[0] < 1e-250) return sqrt(s[2] + (s[0] * 0x1p+537) * 0x1p+537) * 0x1p-537;
    return sqrt(s[0]);
}

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
