/* SPDX-License-Identifier: Apache-2.0 */
/* level1.c - BLAS level 1 on tensors: checks and rules here, loops in the pointwise engine's vector family. On a GPU the same operators are
 * programs of that engine, or its kernels for sums; complex vectors are views of their parts there (level1_cuda.c). */
#include "blas/level1.h"
#include "blas/level2.h"
#include "pointwise/pointwise.h"
#include "pointwise/vecsum.h"
#include "pointwise/vector.h"
#include "runtime/gpu.h"
#include <math.h>
#include <stdio.h>
#include <strata/blas.h>
#include <string.h>

static strata_status check_vector(strata_handle *h, const char *who, const char *name, const strata_tensor *t,
                                  bool output)
{
    strata_status s =
        output ? st_tensor_check_output(&h->err, who, name, t) : st_tensor_check(&h->err, who, name, t);
    if (s) return s;
    if (t->rank != 1)
        return st_fail(&h->err, STRATA_ERROR_SHAPE,
                       "%s: %s has rank %d (%s); a vector has rank 1 (strata_vector, or strata_reshape)", who,
                       name, t->rank, t->rank ? ST_DIMS(*t) : "one element");
    if (t->flags || (st_type_part(t->type) != STRATA_F32 && st_type_part(t->type) != STRATA_F64))
        return st_fail(&h->err, STRATA_ERROR_TYPE, "%s: %s is %s%s; f32, f64, c64 and c128 are supported",
                       who, name, strata_type_name((strata_type)t->type), t->flags ? " with flags" : "");
    return STRATA_OK;
}

static strata_status check_pair(strata_handle *h, const char *who, const strata_tensor *x, bool x_output,
                                const strata_tensor *y, bool y_output)
{
    strata_status s = st_handle_check(h, who);
    if (s || (s = check_vector(h, who, "x", x, x_output)) || (s = check_vector(h, who, "y", y, y_output)))
        return s;
    if (x->type != y->type)
        return st_fail(&h->err, STRATA_ERROR_TYPE, "%s: x is %s and y is %s; both must have one type", who,
                       strata_type_name((strata_type)x->type), strata_type_name((strata_type)y->type));
    if (x->dim[0] != y->dim[0])
        return st_fail(&h->err, STRATA_ERROR_SHAPE,
                       "%s: x has %lld elements and y has %lld; the lengths must agree", who,
                       (long long)x->dim[0], (long long)y->dim[0]);
    if ((x_output || y_output) && st_tensor_overlap(x, y) &&
        !(st_tensor_same_view(x, y) && !(x_output && y_output)))
        return st_fail(&h->err, STRATA_ERROR_ALIAS, "%s: x and y overlap in memory%s", who,
                       x_output && y_output ? "" : " without being the same view");
    return STRATA_OK;
}

static strata_status check_result(strata_handle *h, const char *who, const strata_tensor *r,
                                  const char *takes, const int *types, int count)
{
    strata_status s = st_tensor_check_output(&h->err, who, "result", r);
    if (s) return s;
    if (strata_count(*r) != 1)
        return st_fail(&h->err, STRATA_ERROR_SHAPE, "%s: result is %s; one element is written (strata_point)",
                       who, ST_DIMS(*r));
    for (int i = 0; i < count; i++)
        if (r->type == types[i]) return STRATA_OK;
    return st_fail(&h->err, STRATA_ERROR_TYPE, "%s: result is %s; it must be %s", who,
                   strata_type_name((strata_type)r->type), takes);
}

static strata_status apart(strata_handle *h, const char *who, const strata_tensor *r, const char *name,
                           const strata_tensor *x)
{
    if (!st_tensor_overlap(r, x)) return STRATA_OK;
    return st_fail(&h->err, STRATA_ERROR_ALIAS, "%s: result lies inside %s; it needs a place of its own", who,
                   name);
}

/* Most calls: short vectors that are plainly fine, seen with few comparisons; what is not goes the long way, which finds the words. y may be NULL.
 * `outputs`: bits 1 x, 2 y. The kernels to call, or NULL. */
static const strata_vectors *plain(const strata_handle *h, const strata_tensor *x, const strata_tensor *y,
                                   int outputs)
{
    const char *lo[2], *hi[2];
    const int type = (int)x->type;
    if (!h || h->magic != ST_HANDLE_MAGIC || h->gpu || x->rank != 1 || (x->flags | x->error) || x->reserved ||
        (type != STRATA_F32 && type != STRATA_F64 && !st_type_is_complex(type)) ||
        (uint64_t)x->dim[0] - 1 >= ST_VEC_PIECE)
        return NULL;
    const int64_t es = type == STRATA_F32 ? 4 : type == STRATA_C128 ? 16 : 8;
    if (!st_blas_reach(x, es, &lo[0], &hi[0]) || (outputs & 1 && x->stride[0] == 0)) return NULL;
    if (y && (y->rank != 1 || (y->flags | y->error) || y->reserved || y->type != x->type ||
              y->dim[0] != x->dim[0] || !st_blas_reach(y, es, &lo[1], &hi[1]) ||
              (outputs & 2 && y->stride[0] == 0) || (outputs && !(hi[0] <= lo[1] || hi[1] <= lo[0]))))
        return NULL;
    return &st_vec_kernels_of(type, h->cpu->isa)->shorts;
}
/* A factor that is plainly a number. */
ST_INLINE bool plain_factor(const strata_scalar *s, uint32_t type, double v[2])
{
    if (s->ptr || s->type || s->reserved || (s->im != 0 && !st_type_is_complex((int)type))) return false;
    v[0] = s->re, v[1] = s->im;
    return true;
}
/* A result of `type` outside of x (and y). */
ST_INLINE bool plain_result(const strata_tensor *r, int type, const strata_tensor *x, const strata_tensor *y)
{
    const char *lo, *hi, *p = r->data;
    if (r->rank || (r->flags | r->error) || r->reserved || (int)r->type != type || !p) return false;
    for (int i = 0; i < 2; i++, x = y)
        if (x &&
            st_blas_reach(x,
                          x->type == STRATA_F32    ? 4
                          : x->type == STRATA_C128 ? 16
                                                   : 8,
                          &lo, &hi) &&
            p < hi && p + 16 > lo)
            return false;
    return true;
}

static st_vec vec(const strata_tensor *t) { return (st_vec){t->data, t->stride[0]}; }

/* A factor now; the imaginary part must be 0 for real vectors. */
static strata_status factor(strata_handle *h, const char *who, const char *name, strata_scalar s, int type,
                            double v[2])
{
    const bool ok = st_scalar_now(h, who, name, s, &v[0], &v[1]);
    if (!ok) return h->err.status;
    if (v[1] != 0 && !st_type_is_complex(type))
        return st_fail(&h->err, STRATA_ERROR_TYPE,
                       "%s: %s is %g%+gi and the vectors are %s, which have no imaginary part", who, name,
                       v[0], v[1], strata_type_name((strata_type)type));
    return STRATA_OK;
}

static strata_status real_factor(strata_handle *h, const char *who, const char *name, strata_scalar s,
                                 double v[2])
{
    if (!st_scalar_now(h, who, name, s, &v[0], &v[1])) return h->err.status;
    if (v[1] == 0) return STRATA_OK;
    return st_fail(&h->err, STRATA_ERROR_TYPE, "%s: %s is %g%+gi; it must be real", who, name, v[0], v[1]);
}

/* ---- programs for a GPU: factors are numbers of the vectors' type in host memory ---- */
static strata_operand number(const char *name, int type, double v, void *room)
{
    st_store_f64(type, room, v);
    return (strata_operand){name, strata_point(room, (strata_type)type)};
}

/* ---- operators ------------------------------------------------------------------------------------------------------------------ */
static strata_status axpby(strata_handle *h, const char *who, strata_scalar alpha, const strata_tensor *x,
                           const double *one, strata_scalar beta, const strata_tensor *y)
{
    double a[2], b[2], ra, rb;
    const strata_vectors *k = plain(h, x, y, 2);
    if (ST_LIKELY(k && plain_factor(&alpha, x->type, a) && (a[0] != 0 || a[1] != 0))) {
        if (one) {
            k->axpy(x->dim[0], a, x->data, x->stride[0], y->data, y->stride[0]);
            return STRATA_OK;
        }
        if (plain_factor(&beta, x->type, b)) {
            k->axpby(x->dim[0], a, x->data, x->stride[0], b, y->data, y->stride[0]);
            return STRATA_OK;
        }
    }
    strata_status s = check_pair(h, who, x, false, y, true);
    if (s || (s = factor(h, who, "alpha", alpha, y->type, a))) return s;
    if (one)
        b[0] = one[0], b[1] = 0;
    else if ((s = factor(h, who, "beta", beta, y->type, b)))
        return s;
    const int64_t n = y->dim[0];
    if (n == 0) return STRATA_OK;
    const bool none = a[0] == 0 && a[1] == 0;
    if (none && b[0] == 1 && b[1] == 0) return STRATA_OK;
    if (h->gpu && none && b[0] == 0 && b[1] == 0) return strata_fill(h, *y, STRATA_ZERO);
    if (h->gpu && st_type_is_complex(y->type)) return st_level1_axpby(h, who, a, none ? NULL : x, b, y);
    if (h->gpu) {
        strata_operand o[] = {
            {"y", *y}, number("b", y->type, b[0], &rb), {"x", *x}, number("a", y->type, a[0], &ra), {0}};
        const char *program = none        ? (b[0] == 0 ? "y = 0 * b" : "y = b * y")
                              : b[0] == 0 ? "y = a * x + 0 * b"
                                          : "y = a * x + b * y";
        if (none) o[2] = (strata_operand){0};
        return st_pw_run(h, who, program, o, 0);
    }
    if (none && b[0] == 0 && b[1] == 0) return strata_fill(h, *y, STRATA_ZERO);
    if (none)
        st_vec_scal(h, y->type, n, b, vec(y));
    else
        st_vec_axpby(h, y->type, n, a, vec(x), b, vec(y));
    return STRATA_OK;
}

strata_status strata_axpy(strata_handle *h, strata_scalar alpha, strata_tensor x, strata_tensor y)
{
    const double one = 1;
    return axpby(h, "strata_axpy", alpha, &x, &one, STRATA_ONE, &y);
}

strata_status strata_axpby(strata_handle *h, strata_scalar alpha, strata_tensor x, strata_scalar beta,
                           strata_tensor y)
{
    return axpby(h, "strata_axpby", alpha, &x, NULL, beta, &y);
}

strata_status strata_scal(strata_handle *h, strata_scalar alpha, strata_tensor x)
{
    static const char who[] = "strata_scal";
    double a[2], room;
    const strata_vectors *k = plain(h, &x, NULL, 1);
    if (ST_LIKELY(k && plain_factor(&alpha, x.type, a))) {
        if (a[0] != 1 || a[1] != 0) k->scal(x.dim[0], a, x.data, x.stride[0]);
        return STRATA_OK;
    }
    strata_status s = st_handle_check(h, who);
    if (s || (s = check_vector(h, who, "x", &x, true)) || (s = factor(h, who, "alpha", alpha, x.type, a)))
        return s;
    if (x.dim[0] == 0 || (a[0] == 1 && a[1] == 0)) return STRATA_OK;
    if (h->gpu && st_type_is_complex(x.type)) return st_level1_axpby(h, who, a, NULL, a, &x);
    if (h->gpu) {
        strata_operand o[] = {{"x", x}, number("a", x.type, a[0], &room), {0}};
        return st_pw_run(h, who, "x = a * x", o, 0);
    }
    st_vec_scal(h, x.type, x.dim[0], a, vec(&x));
    return STRATA_OK;
}

strata_status strata_swap(strata_handle *h, strata_tensor x, strata_tensor y)
{
    static const char who[] = "strata_swap";
    const strata_vectors *k = plain(h, &x, &y, 3);
    if (ST_LIKELY(k)) {
        k->swap(x.dim[0], x.data, x.stride[0], y.data, y.stride[0]);
        return STRATA_OK;
    }
    strata_status s = check_pair(h, who, &x, true, &y, true);
    if (s || x.dim[0] == 0) return s;
    if (h->gpu) {
        strata_operand o[] = {{"x", st_level1_parts(&x)}, {"y", st_level1_parts(&y)}, {0}};
        return st_pw_run(h, who, "a = x; b = y; x = b; y = a", o, 0);
    }
    st_vec_swap(h, x.type, x.dim[0], vec(&x), vec(&y));
    return STRATA_OK;
}

static void store_complex(const strata_tensor *r, const double v[2])
{
    const int part = st_type_part(r->type);
    st_store_f64(part, r->data, v[0]);
    if (st_type_is_complex(r->type)) st_store_f64(part, (char *)r->data + (part == STRATA_F32 ? 4 : 8), v[1]);
}

static strata_status dot(strata_handle *h, const char *who, bool conjugate, const strata_tensor *x,
                         const strata_tensor *y, const strata_tensor *r)
{
    const strata_vectors *k = plain(h, x, y, 0);
    if (ST_LIKELY(k && plain_result(r, (int)x->type, x, y))) {
        double v[2];
        if (k->dot)
            v[0] = k->dot(x->dim[0], x->data, x->stride[0], y->data, y->stride[0]);
        else
            k->dots(x->dim[0], conjugate, x->data, x->stride[0], y->data, y->stride[0], v);
        store_complex(r, v);
        return STRATA_OK;
    }
    strata_status s = check_pair(h, who, x, false, y, false);
    if (s) return s;
    const int wide = st_type_is_complex(x->type) ? STRATA_C128 : STRATA_F64, types[] = {x->type, wide};
    static const char *const takes[] = {"f32 or f64", "f64", "c64 or c128", "c128"};
    const int which = x->type == STRATA_F32 ? 0 : x->type == STRATA_F64 ? 1 : x->type == STRATA_C64 ? 2 : 3;
    if ((s = check_result(h, who, r, takes[which], types, 2)) || (s = apart(h, who, r, "x", x)) ||
        (s = apart(h, who, r, "y", y)))
        return s;
    if (h->gpu && x->dim[0] && r->type == x->type) {
        const st_vecsum v = {.op = ST_VECSUM_DOT,
                             .type = x->type,
                             .n = x->dim[0],
                             .x = x->stride[0],
                             .y = y->stride[0],
                             .conjugate = conjugate};
        return st_vecsum_run(h, who, &v, (void *[]){x->data, y->data, r->data});
    }
    if (h->gpu && st_type_is_complex(x->type)) return st_level1_dot(h, who, conjugate, x, y, r);
    if (h->gpu) {
        strata_operand o[] = {{"x", *x}, {"y", *y}, {"r", strata_point(r->data, (strata_type)r->type)}, {0}};
        return st_pw_run(h, who, "r = sum(x * y)", o, 0);
    }
    double v[2] = {0, 0};
    if (x->dim[0]) st_vec_dot(h, x->type, x->dim[0], conjugate, r->type != x->type, vec(x), vec(y), v);
    store_complex(r, v);
    return STRATA_OK;
}

strata_status strata_dot(strata_handle *h, strata_tensor x, strata_tensor y, strata_tensor result)
{
    return dot(h, "strata_dot", false, &x, &y, &result);
}
strata_status strata_dotc(strata_handle *h, strata_tensor x, strata_tensor y, strata_tensor result)
{
    return dot(h, "strata_dotc", true, &x, &y, &result);
}

/* nrm2 and asum: one real number from one vector */
static strata_status reduce(strata_handle *h, const char *who, const strata_tensor *x, const strata_tensor *r,
                            double (*f)(strata_handle *, int, int64_t, bool, st_vec), bool squares)
{
    const strata_vectors *k = plain(h, x, NULL, 0);
    if (ST_LIKELY(k && plain_result(r, st_type_part(x->type), x, NULL))) {
        st_store_f64(r->type, r->data, (squares ? k->nrm2 : k->asum)(x->dim[0], x->data, x->stride[0]));
        return STRATA_OK;
    }
    strata_status s = st_handle_check(h, who);
    if (s || (s = check_vector(h, who, "x", x, false))) return s;
    const int types[] = {st_type_part(x->type), STRATA_F64};
    if ((s = check_result(h, who, r, st_type_part(x->type) == STRATA_F64 ? "f64" : "f32 or f64", types, 2)) ||
        (s = apart(h, who, r, "x", x)))
        return s;
    if (h->gpu && x->dim[0] && r->type == st_type_part(x->type)) {
        const st_vecsum v = {.op = squares ? ST_VECSUM_NRM2 : ST_VECSUM_ASUM,
                             .type = x->type,
                             .n = x->dim[0],
                             .x = x->stride[0]};
        return st_vecsum_run(h, who, &v, (void *[]){x->data, NULL, r->data});
    }
    if (h->gpu) return st_level1_sum(h, who, squares, x, r);
    st_store_f64(r->type, r->data, x->dim[0] ? f(h, x->type, x->dim[0], r->type == STRATA_F64, vec(x)) : 0);
    return STRATA_OK;
}

strata_status strata_nrm2(strata_handle *h, strata_tensor x, strata_tensor result)
{
    return reduce(h, "strata_nrm2", &x, &result, st_vec_nrm2, true);
}
strata_status strata_asum(strata_handle *h, strata_tensor x, strata_tensor result)
{
    return reduce(h, "strata_asum", &x, &result, st_vec_asum, false);
}

static strata_status position(strata_handle *h, const char *who, bool least, const strata_tensor *x,
                              const strata_tensor *r)
{
    const strata_vectors *k = plain(h, x, NULL, 0);
    if (ST_LIKELY(k && plain_result(r, STRATA_I64, x, NULL))) {
        *(int64_t *)r->data = (least ? k->iamin : k->iamax)(x->dim[0], x->data, x->stride[0]);
        return STRATA_OK;
    }
    strata_status s = st_handle_check(h, who);
    if (s || (s = check_vector(h, who, "x", x, false))) return s;
    const int types[] = {STRATA_I64, STRATA_I32};
    if ((s = check_result(h, who, r, "i64 or i32", types, 2)) || (s = apart(h, who, r, "x", x))) return s;
    if (h->gpu && x->dim[0]) {
        const st_vecsum v = {.op = ST_VECSUM_EXTREME,
                             .type = x->type,
                             .n = x->dim[0],
                             .x = x->stride[0],
                             .least = least,
                             .wide = r->type == STRATA_I64};
        return st_vecsum_run(h, who, &v, (void *[]){x->data, NULL, r->data});
    }
    const double at = (double)st_vec_iamax(h, x->type, x->dim[0], least, vec(x));
    if (h->gpu) return strata_fill(h, strata_point(r->data, (strata_type)r->type), strata_real(at));
    st_store_f64(r->type, r->data, at);
    return STRATA_OK;
}

strata_status strata_iamax(strata_handle *h, strata_tensor x, strata_tensor result)
{
    return position(h, "strata_iamax", false, &x, &result);
}
strata_status strata_iamin(strata_handle *h, strata_tensor x, strata_tensor result)
{
    return position(h, "strata_iamin", true, &x, &result);
}

strata_status strata_rot(strata_handle *h, strata_tensor x, strata_tensor y, strata_scalar c, strata_scalar s)
{
    static const char who[] = "strata_rot";
    double vc[2], vs[2], rc, rs;
    const strata_vectors *k = plain(h, &x, &y, 3);
    if (ST_LIKELY(k && plain_factor(&c, STRATA_F64, vc) && plain_factor(&s, x.type, vs))) {
        k->rot(x.dim[0], vc[0], vs, x.data, x.stride[0], y.data, y.stride[0]);
        return STRATA_OK;
    }
    strata_status e = check_pair(h, who, &x, true, &y, true);
    if (e || (e = real_factor(h, who, "c", c, vc)) || (e = factor(h, who, "s", s, x.type, vs)) ||
        x.dim[0] == 0)
        return e;
    if (h->gpu && vs[1] != 0) return st_level1_rot(h, who, vc[0], vs, &x, &y);
    if (h->gpu) {
        const int part = st_type_part(x.type);
        strata_operand o[] = {{"x", st_level1_parts(&x)},
                              {"y", st_level1_parts(&y)},
                              number("c", part, vc[0], &rc),
                              number("s", part, vs[0], &rs),
                              {0}};
        return st_pw_run(h, who, "a = c * x + s * y; b = c * y - s * x; x = a; y = b", o, 0);
    }
    st_vec_rot(h, x.type, x.dim[0], vc[0], vs, vec(&x), vec(&y));
    return STRATA_OK;
}
