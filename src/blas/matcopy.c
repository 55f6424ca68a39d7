/* SPDX-License-Identifier: Apache-2.0 */
/* matcopy.c - matrices element by element: sums with factors, copies in place into another layout, scaled rows, copies of triangles between storages. */
#include "blas/level2.h"
#include <string.h>

static const double one[2] = {1, 0}, zero[2];

/* A matrix or a batch of them of C's type and dims (C NULL: any). */
static strata_status check(strata_handle *h, const char *who, const char *name, const strata_tensor *t,
                           uint32_t flags, bool output, const char *other, const strata_tensor *C)
{
    strata_status s = output ? st_tensor_check_output_flags(&h->err, who, name, t, flags)
                             : st_tensor_check_flags(&h->err, who, name, t, flags);
    if (s || (s = st_blas_type(h, who, name, t))) return s;
    if (t->rank < 2)
        return st_fail(
            &h->err, STRATA_ERROR_SHAPE,
            "%s: %s has rank %d; a matrix has rank 2, a batch of matrices one more for every batch dim", who,
            name, t->rank);
    if (!C) return STRATA_OK;
    if (t->type != C->type)
        return st_fail(&h->err, STRATA_ERROR_TYPE, "%s: %s is %s and %s is %s; all operands have one type",
                       who, name, strata_type_name((strata_type)t->type), other,
                       strata_type_name((strata_type)C->type));
    bool same = t->rank == C->rank, turned = t->rank == C->rank;
    for (int d = 0; same && d < t->rank; d++) same = t->dim[d] == C->dim[d];
    if (same) return STRATA_OK;
    if (turned)
        turned = t->dim[t->rank - 1] == C->dim[t->rank - 2] && t->dim[t->rank - 2] == C->dim[t->rank - 1];
    return st_fail(&h->err, STRATA_ERROR_SHAPE, "%s: %s is %s and %s is %s; their dims must agree.%s%s%s",
                   who, name, ST_DIMS(*t), other, ST_DIMS(*C),
                   turned ? " Did you mean strata_transpose(" : "", turned ? name : "", turned ? ")?" : "");
}

/* C apart from t, or the identical view. */
static strata_status apart_or_same(strata_handle *h, const char *who, const char *out, const strata_tensor *C,
                                   const char *name, const strata_tensor *t)
{
    if (st_tensor_same_view(C, t) || !st_tensor_overlap(C, t)) return STRATA_OK;
    return st_fail(&h->err, STRATA_ERROR_ALIAS, "%s: %s overlaps %s in memory without being the same view",
                   who, out, name);
}

static st_matcopy describe(st_matcopy_op op, const strata_tensor *A, const strata_tensor *B,
                           const strata_tensor *C)
{
    const strata_tensor *t[] = {A, B, C};
    st_matcopy c;
    memset(&c, 0, sizeof c);
    c.op = op;
    c.type = C->type;
    c.batches = C->rank - 2;
    memcpy(c.dim, C->dim, sizeof(int64_t) * (size_t)C->rank);
    for (int i = 0; i < 3; i++) {
        if (!t[i] || t[i]->rank != C->rank) continue;
        memcpy(c.stride[i], t[i]->stride, sizeof(int64_t) * (size_t)C->rank);
        c.packed[i] = (t[i]->flags & STRATA_TENSOR_PACKED) != 0;
        if (i < 2) c.conj[i] = (t[i]->flags & STRATA_TENSOR_CONJ) != 0;
    }
    return c;
}

strata_status strata_geam(strata_handle *h, strata_scalar alpha, strata_tensor A, strata_scalar beta,
                          strata_tensor B, strata_tensor C)
{
    static const char who[] = "strata_geam";
    double a[2], b[2];
    strata_status s = st_handle_check(h, who);
    if (s || (s = check(h, who, "C", &C, 0, true, NULL, NULL)) ||
        (s = st_blas_factor(h, who, "alpha", alpha, C.type, false, a)) ||
        (s = st_blas_factor(h, who, "beta", beta, C.type, false, b)))
        return s;
    /* what is not read need not be there */
    const bool no_a = a[0] == 0 && a[1] == 0, no_b = b[0] == 0 && b[1] == 0;
    if ((!no_a && ((s = check(h, who, "A", &A, STRATA_TENSOR_CONJ, false, "C", &C)) ||
                   (s = apart_or_same(h, who, "C", &C, "A", &A)))) ||
        (!no_b && ((s = check(h, who, "B", &B, STRATA_TENSOR_CONJ, false, "C", &C)) ||
                   (s = apart_or_same(h, who, "C", &C, "B", &B)))))
        return s;
    if (strata_count(C) == 0) return STRATA_OK;
    const st_matcopy c = describe(ST_MATCOPY_SUM, no_a ? NULL : &A, no_b ? NULL : &B, &C);
    return st_matcopy_run(h, who, &c, a, b, (void *[]){no_a ? NULL : A.data, no_b ? NULL : B.data, C.data});
}

strata_status strata_imatcopy(strata_handle *h, strata_scalar alpha, strata_tensor from, strata_tensor to)
{
    static const char who[] = "strata_imatcopy";
    double a[2];
    void *room;
    strata_status s = st_handle_check(h, who);
    if (s || (s = check(h, who, "to", &to, 0, true, NULL, NULL)) ||
        (s = check(h, who, "from", &from, STRATA_TENSOR_CONJ, false, "to", &to)) ||
        (s = st_blas_factor(h, who, "alpha", alpha, to.type, false, a)))
        return s;
    const int64_t n = strata_count(to);
    if (n == 0) return STRATA_OK;
    const bool nothing = a[0] == 0 && a[1] == 0;
    st_matcopy c = describe(ST_MATCOPY_SUM, nothing ? NULL : &from, NULL, &to);
    if (nothing || st_tensor_same_view(&from, &to) || !st_tensor_overlap(&from, &to))
        return st_matcopy_run(h, who, &c, a, zero, (void *[]){nothing ? NULL : from.data, NULL, to.data});
    if ((s = strata_alloc(h, (size_t)n * strata_type_bits((strata_type)to.type) / 8, &room))) return s;
    const strata_tensor between = strata_array(room, (strata_type)to.type, to.rank, to.dim, NULL);
    c = describe(ST_MATCOPY_SUM, &from, NULL, &between);
    s = st_matcopy_run(h, who, &c, a, zero, (void *[]){from.data, NULL, room});
    if (!s) {
        c = describe(ST_MATCOPY_SUM, &between, NULL, &to);
        s = st_matcopy_run(h, who, &c, one, zero, (void *[]){room, NULL, to.data});
    }
    const strata_status freed = strata_free(h, room);
    return s ? s : freed;
}

strata_status strata_dgmm(strata_handle *h, strata_tensor x, strata_tensor A, strata_tensor C)
{
    static const char who[] = "strata_dgmm";
    strata_status s = st_handle_check(h, who);
    if (s || (s = check(h, who, "C", &C, 0, true, NULL, NULL)) ||
        (s = check(h, who, "A", &A, STRATA_TENSOR_CONJ, false, "C", &C)) ||
        (s = st_blas_vector(h, who, "x", &x, C.type, C.dim[C.rank - 2], "C has rows", false)) ||
        (s = apart_or_same(h, who, "C", &C, "A", &A)) || (s = st_blas_apart(h, who, "C", &C, "x", &x)))
        return s;
    if (strata_count(C) == 0) return STRATA_OK;
    st_matcopy c = describe(ST_MATCOPY_ROWS, &A, &x, &C);
    memset(c.stride[1], 0, sizeof c.stride[1]);
    c.stride[1][C.rank - 2] = x.stride[0];
    c.conj[1] = (x.flags & STRATA_TENSOR_CONJ) != 0;
    return st_matcopy_run(h, who, &c, one, one, (void *[]){A.data, x.data, C.data});
}

strata_status strata_trcopy(strata_handle *h, strata_tensor from, strata_tensor to)
{
    static const char who[] = "strata_trcopy";
    const uint32_t flags = ST_HALVES | ST_MIRRORS | STRATA_TENSOR_PACKED;
    strata_status s = st_handle_check(h, who);
    if (s || (s = check(h, who, "to", &to, flags, true, NULL, NULL)) ||
        (s = check(h, who, "from", &from, flags | STRATA_TENSOR_CONJ, false, "to", &to)))
        return s;
    if (!(from.flags & ST_HALVES) || (from.flags & ST_HALVES) != (to.flags & ST_HALVES))
        return st_fail(
            &h->err, STRATA_ERROR_ARGUMENT,
            "%s: from and to must be triangles of the same side (strata_triangular, strata_packed); "
            "strata_transpose turns one round",
            who);
    if ((s = st_blas_apart(h, who, "to", &to, "from", &from)) || strata_count(to) == 0) return s;
    st_matcopy c = describe(ST_MATCOPY_SUM, &from, NULL, &to);
    c.half = st_half_of(to.flags);
    c.hermitian = (to.flags & STRATA_TENSOR_HERMITIAN) != 0;
    return st_matcopy_run(h, who, &c, one, zero, (void *[]){from.data, NULL, to.data});
}
