/* SPDX-License-Identifier: Apache-2.0 */
/* product.c - views into axes and rules; batch dims and arrays of addresses. */
#include "blas/product.h"
#include <string.h>

st_rule st_product_rule(const strata_tensor *t)
{
    const uint32_t f = t->flags;
    return (st_rule){.conj = (f & STRATA_TENSOR_CONJ) != 0,
                     .half = f & STRATA_TENSOR_LOWER   ? ST_HALF_LOWER
                             : f & STRATA_TENSOR_UPPER ? ST_HALF_UPPER
                                                       : ST_HALF_NONE,
                     .mirror = f & STRATA_TENSOR_HERMITIAN   ? ST_MIRROR_HERMITIAN
                               : f & STRATA_TENSOR_SYMMETRIC ? ST_MIRROR_SYMMETRIC
                                                             : ST_MIRROR_NONE,
                     .unit = (f & STRATA_TENSOR_UNIT) != 0};
}

void st_product_describe(const strata_tensor *A, const strata_tensor *B, const strata_tensor *C,
                         st_contract *c)
{
    memset(c, 0, sizeof *c);
    c->ta = A->type;
    c->tb = B->type;
    c->tc = C->type;
    int ra = A->rank, rb = B->rank, rc = C->rank;
    c->m = (st_axes){1, {{C->dim[rc - 2], A->stride[ra - 2], 0, C->stride[rc - 2]}}};
    c->n = (st_axes){1, {{C->dim[rc - 1], 0, B->stride[rb - 1], C->stride[rc - 1]}}};
    c->k = (st_axes){1, {{A->dim[ra - 1], A->stride[ra - 1], B->stride[rb - 2], 0}}};
    c->batch.count = rc - 2;
    for (int d = 0; d < rc - 2; d++) {
        int da = d - (rc - ra), db = d - (rc - rb);
        st_axis *x = &c->batch.ax[d];
        x->len = C->dim[d];
        x->a = da >= 0 && A->dim[da] != 1 ? A->stride[da] : 0;
        x->b = db >= 0 && B->dim[db] != 1 ? B->stride[db] : 0;
        x->c = C->stride[d];
    }
    c->rule_a = st_product_rule(A);
    c->rule_b = st_product_rule(B);
    c->rule_c = st_product_rule(C);
    const strata_tensor *t[] = {A, B, C};
    for (int i = 0; i < 3; i++) c->pointers |= (int64_t)((t[i]->flags & STRATA_TENSOR_POINTERS) != 0) << i;
}

static strata_status check_dims(strata_handle *h, const char *who, const char *name, const strata_tensor *t,
                                const char *out, const strata_tensor *C)
{
    if (t->rank > C->rank)
        return st_fail(&h->err, STRATA_ERROR_SHAPE,
                       "%s: %s has %d batch dims and %s has %d: %s must have every batch dim", who, name,
                       t->rank - 2, out, C->rank - 2, out);
    for (int d = 0; d < t->rank - 2; d++) {
        int64_t want = C->dim[C->rank - t->rank + d], got = t->dim[d];
        if (got != want && got != 1)
            return st_fail(
                &h->err, STRATA_ERROR_SHAPE,
                "%s: %s is %s and %s is %s: batch dim %d of %s is %lld, but %s's is %lld (1 would repeat)",
                who, name, ST_DIMS(*t), out, ST_DIMS(*C), d, name, (long long)got, out, (long long)want);
    }
    return STRATA_OK;
}

/* An array of addresses is one batch dim, and the only one. */
static strata_status check_pointers(strata_handle *h, const char *who, const char *name,
                                    const strata_tensor *t, const char *out, const strata_tensor *C)
{
    if (!(t->flags & STRATA_TENSOR_POINTERS) || (t->rank == 3 && C->rank == 3)) return STRATA_OK;
    return st_fail(&h->err, STRATA_ERROR_SHAPE,
                   "%s: %s is an array of addresses, which is one batch dim and the only one; it has rank %d "
                   "and %s has %d, both must be 3",
                   who, name, t->rank, out, C->rank);
}

strata_status st_product_check_batch(strata_handle *h, const char *who, const char *name,
                                     const strata_tensor *t, const char *out, const strata_tensor *C)
{
    const strata_status s = t == C ? STRATA_OK : check_dims(h, who, name, t, out, C);
    return s ? s : check_pointers(h, who, name, t, out, C);
}
