/* SPDX-License-Identifier: Apache-2.0 */
/* level3.c - products whose result is a triangle: syrk, herk, syr2k, her2k. Each is one contraction (two for the 2k forms, the second added)
 * with views of A and B on both sides and a store rule for C. */
#include "blas/product.h"
#include <strata/blas.h>
#include <stdio.h>
#include <string.h>

enum {
    INPUT = STRATA_TENSOR_CONJ | STRATA_TENSOR_POINTERS,
    TRIANGLE = STRATA_TENSOR_LOWER | STRATA_TENSOR_UPPER,
    RESULT = TRIANGLE | STRATA_TENSOR_SYMMETRIC | STRATA_TENSOR_HERMITIAN | STRATA_TENSOR_POINTERS
};

typedef struct update {
    const char *who;
    bool hermitian;                 /* conjugates the second factor; real factors */
    const strata_tensor *A, *B, *C; /* B is A in the forms with one factor */
    double alpha[2], beta[2];
} update;

static bool linear(int type) { return type == STRATA_F32 || type == STRATA_F64 || st_type_is_complex(type); }

/* A (or B) against C: n x k beside n x n. */
static strata_status check_factor(strata_handle *h, const update *u, const char *name, const strata_tensor *t)
{
    const strata_tensor *C = u->C;
    const char *who = u->who;
    strata_status s = st_tensor_check_flags(&h->err, who, name, t, INPUT);
    if (s) return s;
    if (t->rank < 2)
        return st_fail(
            &h->err, STRATA_ERROR_SHAPE,
            "%s: %s has rank %d; a matrix has rank 2, a batch of matrices one more for every batch dim", who,
            name, t->rank);
    if (t->type != C->type)
        return st_fail(&h->err, STRATA_ERROR_TYPE, "%s: %s is %s and C is %s; all have one type", who, name,
                       strata_type_name((strata_type)t->type), strata_type_name((strata_type)C->type));
    const int64_t n = C->dim[C->rank - 1], rows = t->dim[t->rank - 2], k = t->dim[t->rank - 1];
    if (rows != n)
        return st_fail(
            &h->err, STRATA_ERROR_SHAPE,
            "%s: %s is %lldx%lld and C is %lldx%lld: %s's rows (%lld) and C's (%lld) must agree.%s", who,
            name, (long long)rows, (long long)k, (long long)n, (long long)n, name, (long long)rows,
            (long long)n,
            k != n                      ? ""
            : t == u->B && u->A != u->B ? " Did you mean strata_transpose(B)?"
                                        : " Did you mean strata_transpose(A)?");
    if (k != u->A->dim[u->A->rank - 1])
        return st_fail(&h->err, STRATA_ERROR_SHAPE, "%s: A has %lld columns and B has %lld; they must agree",
                       who, (long long)u->A->dim[u->A->rank - 1], (long long)k);
    if ((s = st_product_check_batch(h, who, name, t, "C", C))) return s;
    if (st_tensor_overlap(t, C))
        return st_fail(&h->err, STRATA_ERROR_ALIAS,
                       "%s: C overlaps %s in memory; the product needs a C of its own", who, name);
    return STRATA_OK;
}

static strata_status check_result(strata_handle *h, const update *u)
{
    const strata_tensor *C = u->C;
    const char *who = u->who;
    strata_status s = st_tensor_check_output_flags(&h->err, who, "C", C, RESULT);
    if (s) return s;
    if (!linear(C->type))
        return st_fail(&h->err, STRATA_ERROR_TYPE, "%s: C is %s; f32, f64, c64 and c128 are supported", who,
                       strata_type_name((strata_type)C->type));
    if (C->rank < 2 || !(C->flags & TRIANGLE))
        return st_fail(
            &h->err, STRATA_ERROR_ARGUMENT,
            "%s: C is %s and does not say which triangle is meant; use %s(C, STRATA_LOWER) or STRATA_UPPER",
            who, C->rank ? ST_DIMS(*C) : "one element",
            u->hermitian ? "strata_hermitian" : "strata_symmetric");
    const bool complex = st_type_is_complex(C->type);
    if (complex && C->flags & (u->hermitian ? STRATA_TENSOR_SYMMETRIC : STRATA_TENSOR_HERMITIAN))
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "%s: C is a %s view, but this product is %s; %s is the other one", who,
                       u->hermitian ? "symmetric" : "hermitian", u->hermitian ? "hermitian" : "symmetric",
                       strstr(who, "2k") ? (u->hermitian ? "strata_syr2k" : "strata_her2k")
                                         : (u->hermitian ? "strata_syrk" : "strata_herk"));
    if (C->rank - 2 > ST_AXES)
        return st_fail(&h->err, STRATA_ERROR_UNSUPPORTED, "%s: C has %d batch dims; at most %d are supported",
                       who, C->rank - 2, ST_AXES);
    return st_product_check_batch(h, who, "C", C, "C", C);
}

static strata_status factors(strata_handle *h, update *u, const strata_scalar *alpha,
                             const strata_scalar *beta)
{
    const int type = u->C->type;
    strata_status s = st_contract_scalar(h, u->who, "alpha", alpha, type, u->alpha);
    if (s || (s = st_contract_scalar(h, u->who, "beta", beta, type, u->beta))) return s;
    const bool two = u->A != u->B;
    if (u->hermitian && ((u->alpha[1] != 0 && !two) || u->beta[1] != 0))
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "%s: %s has the imaginary part %g, but %s real for the result to be hermitian", u->who,
                       u->beta[1] != 0 ? "beta" : "alpha", u->beta[1] != 0 ? u->beta[1] : u->alpha[1],
                       two ? "beta must be" : "alpha and beta must be");
    return STRATA_OK;
}

/* C := alpha X op(Y) + beta C */
static strata_status one(strata_handle *h, const update *u, const strata_tensor *X, const strata_tensor *Y,
                         const double alpha[2], const double beta[2])
{
    st_contract c;
    strata_tensor op = strata_transpose(*Y);
    if (u->hermitian) op = strata_conj(op);
    st_product_describe(X, &op, u->C, &c);
    c.rule_c.mirror = u->hermitian && st_type_is_complex(u->C->type) ? ST_MIRROR_HERMITIAN : ST_MIRROR_NONE;
    return st_tile_contract_complex(h, u->who, &c, NULL, alpha, beta,
                                    (void *[]){X->data, op.data, u->C->data});
}

static strata_status run(strata_handle *h, update *u, const strata_scalar *alpha, const strata_scalar *beta)
{
    strata_status s = st_handle_check(h, u->who);
    const bool two = u->A != u->B;
    const uint64_t t0 = st_trace_begin();
    if (s || (s = check_result(h, u)) || (s = check_factor(h, u, "A", u->A)) ||
        (two && (s = check_factor(h, u, "B", u->B))) || (s = factors(h, u, alpha, beta)))
        return s;
    if (st_addresses_any(u->A, u->B, u->C) &&
        (s = st_addresses_check(h, u->who, (const strata_tensor *[]){u->C, u->A, two ? u->B : NULL},
                                (const char *[]){"C", "A", "B"}, 1, 3)))
        return s;
    s = one(h, u, u->A, u->B, u->alpha, u->beta);
    const double swapped[2] = {u->alpha[0], u->hermitian ? -u->alpha[1] : u->alpha[1]}, add[2] = {1, 0};
    if (!s && two && (u->alpha[0] != 0 || u->alpha[1] != 0)) s = one(h, u, u->B, u->A, swapped, add);
    if (ST_UNLIKELY(t0)) st_trace_end(t0, "blas", u->who, "A %s, C %s", ST_DIMS(*u->A), ST_DIMS(*u->C));
    return s;
}

strata_status strata_syrk(strata_handle *h, strata_scalar alpha, strata_tensor A, strata_scalar beta,
                          strata_tensor C)
{
    return run(h, &(update){"strata_syrk", false, &A, &A, &C, {0}, {0}}, &alpha, &beta);
}
strata_status strata_herk(strata_handle *h, strata_scalar alpha, strata_tensor A, strata_scalar beta,
                          strata_tensor C)
{
    return run(h, &(update){"strata_herk", true, &A, &A, &C, {0}, {0}}, &alpha, &beta);
}
strata_status strata_syr2k(strata_handle *h, strata_scalar alpha, strata_tensor A, strata_tensor B,
                           strata_scalar beta, strata_tensor C)
{
    return run(h, &(update){"strata_syr2k", false, &A, &B, &C, {0}, {0}}, &alpha, &beta);
}
strata_status strata_her2k(strata_handle *h, strata_scalar alpha, strata_tensor A, strata_tensor B,
                           strata_scalar beta, strata_tensor C)
{
    return run(h, &(update){"strata_her2k", true, &A, &B, &C, {0}, {0}}, &alpha, &beta);
}
