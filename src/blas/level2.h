/* SPDX-License-Identifier: Apache-2.0 */
/* level2.h - what level 2 and the copies of matrices share: checks of vectors and factors. */
#ifndef ST_BLAS_LEVEL2_H
#define ST_BLAS_LEVEL2_H
#include "pointwise/matvec.h"
#include "runtime/gpu.h"
#include <strata/blas.h>

enum {
    ST_HALVES = STRATA_TENSOR_LOWER | STRATA_TENSOR_UPPER,
    ST_MIRRORS = STRATA_TENSOR_SYMMETRIC | STRATA_TENSOR_HERMITIAN,
    ST_STORES = STRATA_TENSOR_PACKED | STRATA_TENSOR_BAND
};
ST_INLINE int64_t st_half_of(uint32_t flags)
{
    return flags & STRATA_TENSOR_LOWER ? 1 : flags & STRATA_TENSOR_UPPER ? 2 : 0;
}
/* The bytes that the elements of a view reach over; false where that is not plain. */
ST_INLINE bool st_blas_reach(const strata_tensor *t, int64_t es, const char **lo, const char **hi)
{
    int64_t a = 0, b = 1;
    for (int d = 0; d < t->rank; d++) {
        int64_t s;
        if (t->dim[d] <= 0 || st_mul_over(t->dim[d] - 1, t->stride[d], &s)) return false;
        *(s < 0 ? &a : &b) += s;
    }
    if (a < -(INT64_MAX >> 8) || b > INT64_MAX >> 8) return false;
    *lo = (const char *)t->data + a * es, *hi = (const char *)t->data + b * es;
    return *lo && true;
}
/* f32, f64, c64 or c128 */
strata_status st_blas_type(strata_handle *h, const char *who, const char *name, const strata_tensor *t);
/* A vector of `type`, of n elements; `reason` says what n is ("A's columns"). Inputs may be conjugated. */
strata_status st_blas_vector(strata_handle *h, const char *who, const char *name, const strata_tensor *t,
                             int type, int64_t n, const char *reason, bool output);
strata_status st_blas_apart(strata_handle *h, const char *who, const char *out, const strata_tensor *o,
                            const char *in, const strata_tensor *i);
/* A factor's value; its imaginary part is 0 for real types and where `real`. */
strata_status st_blas_factor(strata_handle *h, const char *who, const char *name, strata_scalar s, int type,
                             bool real, double v[2]);
#endif
