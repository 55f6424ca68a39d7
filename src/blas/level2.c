/* SPDX-License-Identifier: Apache-2.0 */
/* level2.c - BLAS level 2 on tensors: checks and rules here, work in the pointwise engine's matvec family. What a matrix is comes from its view, so there is
 * one product for general, symmetric, hermitian, triangular, packed and banded ones. */
#include "blas/level2.h"
#include <string.h>

strata_status st_blas_type(strata_handle *h, const char *who, const char *name, const strata_tensor *t)
{
    if (st_type_part(t->type) == STRATA_F32 || st_type_part(t->type) == STRATA_F64) return STRATA_OK;
    return st_fail(&h->err, STRATA_ERROR_TYPE, "%s: %s is %s; f32, f64, c64 and c128 are supported", who,
                   name, strata_type_name((strata_type)t->type));
}

strata_status st_blas_vector(strata_handle *h, const char *who, const char *name, const strata_tensor *t,
                             int type, int64_t n, const char *reason, bool output)
{
    strata_status s = output ? st_tensor_check_output(&h->err, who, name, t)
                             : st_tensor_check_flags(&h->err, who, name, t, STRATA_TENSOR_CONJ);
    if (s) return s;
    if (t->rank != 1)
        return st_fail(&h->err, STRATA_ERROR_SHAPE,
                       "%s: %s has rank %d (%s); a vector has rank 1 (strata_vector, or strata_reshape)", who,
                       name, t->rank, t->rank ? ST_DIMS(*t) : "one element");
    if (t->type != type)
        return st_fail(&h->err, STRATA_ERROR_TYPE, "%s: A is %s and %s is %s; all operands have one type",
                       who, strata_type_name((strata_type)type), name,
                       strata_type_name((strata_type)t->type));
    if (t->dim[0] == n) return STRATA_OK;
    return st_fail(&h->err, STRATA_ERROR_SHAPE, "%s: %s has %lld elements; it needs %lld, as many as %s", who,
                   name, (long long)t->dim[0], (long long)n, reason);
}

strata_status st_blas_apart(strata_handle *h, const char *who, const char *out, const strata_tensor *o,
                            const char *in, const strata_tensor *i)
{
    if (!st_tensor_overlap(o, i)) return STRATA_OK;
    return st_fail(&h->err, STRATA_ERROR_ALIAS,
                   "%s: %s overlaps %s in memory; what is written needs a place of its own", who, out, in);
}

strata_status st_blas_factor(strata_handle *h, const char *who, const char *name, strata_scalar s, int type,
                             bool real, double v[2])
{
    if (!st_scalar_now(h, who, name, s, &v[0], &v[1])) return h->err.status;
    if (st_type_part(type) == STRATA_F32) v[0] = (double)(float)v[0], v[1] = (double)(float)v[1];
    if (v[1] == 0 || (st_type_is_complex(type) && !real)) return STRATA_OK;
    if (real && st_type_is_complex(type))
        return st_fail(&h->err, STRATA_ERROR_TYPE, "%s: %s is %g%+gi; it must be real", who, name, v[0],
                       v[1]);
    return st_fail(&h->err, STRATA_ERROR_TYPE,
                   "%s: %s is %g%+gi and the operands are %s, which have no imaginary part", who, name, v[0],
                   v[1], strata_type_name((strata_type)type));
}

static strata_status check_matrix(strata_handle *h, const char *who, const strata_tensor *A, uint32_t flags,
                                  bool output)
{
    strata_status s = output ? st_tensor_check_output_flags(&h->err, who, "A", A, flags)
                             : st_tensor_check_flags(&h->err, who, "A", A, flags);
    if (s || (s = st_blas_type(h, who, "A", A))) return s;
    if (A->rank == 2) return STRATA_OK;
    return st_fail(&h->err, STRATA_ERROR_SHAPE, "%s: A has rank %d (%s); a matrix has rank 2", who, A->rank,
                   A->rank ? ST_DIMS(*A) : "one element");
}

/* What of a view a problem says; x and y are added by the caller. */
static st_matvec describe(st_matvec_op op, const strata_tensor *A)
{
    const uint32_t f = A->flags;
    st_matvec v;
    memset(&v, 0, sizeof v);
    v.op = op;
    v.type = A->type;
    v.m = A->dim[0], v.n = A->dim[1];
    v.row = A->stride[0], v.col = A->stride[1];
    v.store = f & STRATA_TENSOR_PACKED ? ST_STORE_PACKED : ST_STORE_STRIDED;
    v.half = st_half_of(f);
    v.kl = v.half == 2 ? 0 : f & STRATA_TENSOR_BAND ? st_min64(v.m, st_band_width(A, false)) : v.m;
    v.ku = v.half == 1 ? 0 : f & STRATA_TENSOR_BAND ? st_min64(v.n, st_band_width(A, true)) : v.n;
    v.mirror = f & STRATA_TENSOR_HERMITIAN ? 2 : f & STRATA_TENSOR_SYMMETRIC ? 1 : 0;
    v.unit = (f & STRATA_TENSOR_UNIT) != 0;
    v.conj = (f & STRATA_TENSOR_CONJ) != 0;
    return v;
}

/* Most calls: strided matrices that are plainly fine, seen with few comparisons. Whatever is not goes the long way, which finds the words. A, x and y by their
 * addresses; `out` is what is written: 0 A, 1 x, 2 y (y may be NULL); flags: what A may be beyond its strides. */
static bool plain(const strata_handle *h, const strata_tensor *A, uint32_t flags, const strata_tensor *x,
                  const strata_tensor *y, int out)
{
    const char *lo[3], *hi[3];
    const strata_tensor *t[3] = {A, x, y};
    if (!h || h->magic != ST_HANDLE_MAGIC || h->gpu || (A->flags & ~flags) || A->rank != 2) return false;
    if (A->type != STRATA_F32 && A->type != STRATA_F64 && !st_type_is_complex(A->type)) return false;
    const uint32_t half = A->flags & ST_HALVES, mirror = A->flags & ST_MIRRORS;
    if (half == ST_HALVES || mirror == ST_MIRRORS || (mirror && !half) ||
        (A->flags & STRATA_TENSOR_UNIT && (!half || mirror)) || (half && A->dim[0] != A->dim[1]))
        return false;
    const int64_t es = A->type == STRATA_F32 ? 4 : A->type == STRATA_C128 ? 16 : 8;
    for (int i = 0; i < 3; i++) {
        if (!t[i]) continue;
        if (t[i]->error || t[i]->reserved || t[i]->type != A->type ||
            !st_blas_reach(t[i], es, &lo[i], &hi[i]))
            return false;
        if (i && (t[i]->flags || t[i]->rank != 1)) return false;
    }
    if (out == 0) { /* rows or columns that step over each other */
        const int64_t r = A->stride[0], c = A->stride[1];
        if (!((r == 1 && c >= A->dim[0]) || (c == 1 && r >= A->dim[1]))) return false;
    } else if (t[out]->stride[0] == 0) {
        return false;
    }
    for (int i = 0; i < 3; i++)
        if (t[i] && i != out && !(hi[out] <= lo[i] || hi[i] <= lo[out])) return false;
    return true;
}

/* A factor that is plainly a number, rounded to the type. */
ST_INLINE bool plain_factor(const strata_scalar *s, int type, bool real, double v[2])
{
    if (s->ptr || s->type || s->reserved || (s->im != 0 && (real || !st_type_is_complex(type)))) return false;
    const bool f32 = st_type_part(type) == STRATA_F32;
    v[0] = f32 ? (double)(float)s->re : s->re;
    v[1] = f32 ? (double)(float)s->im : s->im;
    return true;
}

strata_status strata_gemv(strata_handle *h, strata_scalar alpha, strata_tensor A, strata_tensor x,
                          strata_scalar beta, strata_tensor y)
{
    double va[2], vb[2];
    if (ST_LIKELY(plain(h, &A, ST_HALVES | ST_MIRRORS | STRATA_TENSOR_UNIT | STRATA_TENSOR_CONJ, &x, &y, 2) &&
                  A.dim[1] == x.dim[0] && A.dim[0] == y.dim[0] && plain_factor(&alpha, A.type, false, va) &&
                  plain_factor(&beta, A.type, false, vb))) {
        if (va[0] == 0 && va[1] == 0 && vb[0] == 1 && vb[1] == 0) return STRATA_OK;
        st_matvec v = describe(ST_MATVEC_PRODUCT, &A);
        v.x = x.stride[0], v.y = y.stride[0];
        return st_matvec_run(h, "strata_gemv", &v, va, vb, (void *[]){A.data, x.data, y.data});
    }
    static const char who[] = "strata_gemv";
    double a[2], b[2];
    strata_status s = st_handle_check(h, who);
    if (s ||
        (s = check_matrix(h, who, &A,
                          ST_HALVES | ST_MIRRORS | ST_STORES | STRATA_TENSOR_UNIT | STRATA_TENSOR_CONJ,
                          false)) ||
        (s = st_blas_vector(h, who, "x", &x, A.type, A.dim[1], "A has columns", false)) ||
        (s = st_blas_vector(h, who, "y", &y, A.type, A.dim[0], "A has rows", true)) ||
        (s = st_blas_factor(h, who, "alpha", alpha, A.type, false, a)) ||
        (s = st_blas_factor(h, who, "beta", beta, A.type, false, b)) ||
        (s = st_blas_apart(h, who, "y", &y, "A", &A)) || (s = st_blas_apart(h, who, "y", &y, "x", &x)))
        return s;
    if (A.dim[0] == 0) return STRATA_OK;
    if (A.dim[1] == 0) a[0] = a[1] = 0;
    if (a[0] == 0 && a[1] == 0 && b[0] == 1 && b[1] == 0) return STRATA_OK;
    st_matvec v = describe(ST_MATVEC_PRODUCT, &A);
    v.x = x.stride[0], v.y = y.stride[0];
    v.conj_x = (x.flags & STRATA_TENSOR_CONJ) != 0;
    return st_matvec_run(h, who, &v, a, b, (void *[]){A.data, x.data, y.data});
}

static strata_status in_place(strata_handle *h, const char *who, st_matvec_op op, const strata_tensor *A,
                              const strata_tensor *x)
{
    static const double one[2] = {1, 0};
    strata_status s = st_handle_check(h, who);
    if (s ||
        (s = check_matrix(h, who, A, ST_HALVES | ST_STORES | STRATA_TENSOR_UNIT | STRATA_TENSOR_CONJ, false)))
        return s;
    if (!(A->flags & ST_HALVES))
        return st_fail(
            &h->err, STRATA_ERROR_ARGUMENT,
            "%s: A is not triangular; say which triangle is meant: strata_triangular(A, STRATA_LOWER, "
            "STRATA_NON_UNIT)",
            who);
    if ((s = st_blas_vector(h, who, "x", x, A->type, A->dim[1], "A has columns", true)) ||
        (s = st_blas_apart(h, who, "x", x, "A", A)) || A->dim[0] == 0)
        return s;
    st_matvec v = describe(op, A);
    v.x = x->stride[0];
    return st_matvec_run(h, who, &v, one, one, (void *[]){A->data, x->data, NULL});
}

strata_status strata_trmv(strata_handle *h, strata_tensor A, strata_tensor x)
{
    return in_place(h, "strata_trmv", ST_MATVEC_MULTIPLY, &A, &x);
}
strata_status strata_trsv(strata_handle *h, strata_tensor A, strata_tensor x)
{
    return in_place(h, "strata_trsv", ST_MATVEC_SOLVE, &A, &x);
}

/* mirror: 0: ger, 1: syr, syr2, 2: her, her2. y NULL: x again. */
static strata_status update(strata_handle *h, const char *who, int mirror, strata_scalar alpha,
                            const strata_tensor *x, const strata_tensor *y, const strata_tensor *A)
{
    static const double zero[2];
    double a[2];
    strata_status s = st_handle_check(h, who);
    const uint32_t mine = mirror == 0   ? 0
                          : mirror == 1 ? ST_HALVES | STRATA_TENSOR_PACKED | STRATA_TENSOR_SYMMETRIC
                                        : ST_HALVES | STRATA_TENSOR_PACKED | ST_MIRRORS;
    if (ST_LIKELY(!s && !mirror && plain(h, A, 0, x, y, 0) && A->dim[0] == x->dim[0] &&
                  A->dim[1] == y->dim[0] && plain_factor(&alpha, A->type, false, a))) {
        if (a[0] == 0 && a[1] == 0) return STRATA_OK;
        st_matvec v = describe(ST_MATVEC_UPDATE, A);
        v.x = x->stride[0], v.y = y->stride[0];
        return st_matvec_run(h, who, &v, a, zero, (void *[]){A->data, x->data, y->data});
    }
    if (s || (s = check_matrix(h, who, A, mine, true))) return s;
    if (mirror && !(A->flags & ST_HALVES))
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "%s: A does not say which triangle is stored; make it with strata_%s(A, STRATA_LOWER)",
                       who, mirror == 1 ? "symmetric" : "hermitian");
    const char *columns = mirror ? "A has rows" : "A has columns";
    if ((s = st_blas_vector(h, who, "x", x, A->type, A->dim[0], "A has rows", false)) ||
        (y && (s = st_blas_vector(h, who, "y", y, A->type, A->dim[1], columns, false))) ||
        (s = st_blas_factor(h, who, "alpha", alpha, A->type, mirror == 2 && !y, a)) ||
        (s = st_blas_apart(h, who, "A", A, "x", x)) || (y && (s = st_blas_apart(h, who, "A", A, "y", y))))
        return s;
    if (A->dim[0] == 0 || A->dim[1] == 0 || (a[0] == 0 && a[1] == 0)) return STRATA_OK;
    st_matvec v = describe(mirror && y ? ST_MATVEC_UPDATE2 : ST_MATVEC_UPDATE, A);
    const strata_tensor *second = y ? y : x;
    v.mirror = mirror == 2 && !st_type_is_complex(A->type) ? 1 : mirror;
    v.x = x->stride[0], v.y = second->stride[0];
    v.conj_x = (x->flags & STRATA_TENSOR_CONJ) != 0;
    v.conj_y = ((second->flags & STRATA_TENSOR_CONJ) != 0) != (!y && v.mirror == 2);
    return st_matvec_run(h, who, &v, a, zero, (void *[]){A->data, x->data, second->data});
}

strata_status strata_ger(strata_handle *h, strata_scalar alpha, strata_tensor x, strata_tensor y,
                         strata_tensor A)
{
    return update(h, "strata_ger", 0, alpha, &x, &y, &A);
}
strata_status strata_syr(strata_handle *h, strata_scalar alpha, strata_tensor x, strata_tensor A)
{
    return update(h, "strata_syr", 1, alpha, &x, NULL, &A);
}
strata_status strata_her(strata_handle *h, strata_scalar alpha, strata_tensor x, strata_tensor A)
{
    return update(h, "strata_her", 2, alpha, &x, NULL, &A);
}
strata_status strata_syr2(strata_handle *h, strata_scalar alpha, strata_tensor x, strata_tensor y,
                          strata_tensor A)
{
    return update(h, "strata_syr2", 1, alpha, &x, &y, &A);
}
strata_status strata_her2(strata_handle *h, strata_scalar alpha, strata_tensor x, strata_tensor y,
                          strata_tensor A)
{
    return update(h, "strata_her2", 2, alpha, &x, &y, &A);
}
