/* SPDX-License-Identifier: Apache-2.0 */
/* level3_triangle.c - strata_trmm and strata_trsm: checks, then tile's triangles. */
#include "blas/product.h"
#include "tile/contract.h"
#include "tile/triangular.h"
#include <strata/blas.h>
#include <string.h>

enum {
    TRIANGLE = STRATA_TENSOR_LOWER | STRATA_TENSOR_UPPER,
    FACTOR = TRIANGLE | STRATA_TENSOR_UNIT | STRATA_TENSOR_CONJ | STRATA_TENSOR_POINTERS
};

static strata_status check(strata_handle *h, const char *who, const strata_tensor *A, const strata_tensor *B)
{
    st_err *e = &h->err;
    strata_status s = st_tensor_check_flags(e, who, "A", A, FACTOR);
    if (s || (s = st_tensor_check_output_flags(e, who, "B", B, STRATA_TENSOR_POINTERS))) return s;
    if (B->rank < 2)
        return st_fail(
            e, STRATA_ERROR_SHAPE,
            "%s: B has rank %d; a matrix has rank 2, a batch of matrices one more for every batch dim", who,
            B->rank);
    if (!(A->flags & TRIANGLE))
        return st_fail(e, STRATA_ERROR_ARGUMENT,
                       "%s: A is %s and does not say which triangle is meant; use strata_triangular(A, "
                       "STRATA_LOWER or STRATA_UPPER, diagonal)",
                       who, A->rank ? ST_DIMS(*A) : "one element");
    if (A->type != B->type ||
        (B->type != STRATA_F32 && B->type != STRATA_F64 && !st_type_is_complex(B->type)))
        return st_fail(e, STRATA_ERROR_TYPE,
                       "%s: A is %s and B is %s; supported are f32, f64, c64 or c128 for both", who,
                       strata_type_name((strata_type)A->type), strata_type_name((strata_type)B->type));
    const int64_t n = A->dim[A->rank - 1], rows = B->dim[B->rank - 2];
    if (n != rows)
        return st_fail(e, STRATA_ERROR_SHAPE,
                       "%s: A is %lldx%lld and B is %lldx%lld: A's order and B's rows (%lld) must agree.%s",
                       who, (long long)n, (long long)n, (long long)rows, (long long)B->dim[B->rank - 1],
                       (long long)rows,
                       n == B->dim[B->rank - 1] ? " From the right: transposed views of both" : "");
    if (B->rank - 2 > ST_AXES)
        return st_fail(e, STRATA_ERROR_UNSUPPORTED, "%s: B has %d batch dims; at most %d are supported", who,
                       B->rank - 2, ST_AXES);
    if ((s = st_product_check_batch(h, who, "A", A, "B", B)) ||
        (s = st_product_check_batch(h, who, "B", B, "B", B)))
        return s;
    if (st_tensor_overlap(A, B)) return st_fail(e, STRATA_ERROR_ALIAS, "%s: B overlaps A in memory", who);
    return STRATA_OK;
}

static strata_status run(strata_handle *h, const char *who, bool solve, const strata_scalar *alpha,
                         const strata_tensor *A, const strata_tensor *B)
{
    double va[2];
    strata_status s = st_handle_check(h, who);
    const uint64_t t0 = st_trace_begin();
    if (s || (s = check(h, who, A, B)) || (s = st_contract_scalar(h, who, "alpha", alpha, B->type, va)))
        return s;
    if (st_addresses_any(A, B, B) &&
        (s = st_addresses_check(h, who, (const strata_tensor *[]){B, A}, (const char *[]){"B", "A"}, 1, 2)))
        return s;
    const int ra = A->rank, rb = B->rank;
    st_triangle t = {.type = B->type,
                     .solve = solve,
                     .rule = st_product_rule(A),
                     .n = B->dim[rb - 2],
                     .cols = B->dim[rb - 1],
                     .a = A->data,
                     .b = B->data,
                     .ars = A->stride[ra - 2],
                     .acs = A->stride[ra - 1],
                     .brs = B->stride[rb - 2],
                     .bcs = B->stride[rb - 1]};
    if (rb > 2) {
        st_contract c;
        st_product_describe(A, B, B, &c);
        t.batch = c.batch;
        t.pointers = c.pointers & 3;
    }
    s = st_tile_triangle(h, who, &t, va);
    if (ST_UNLIKELY(t0)) st_trace_end(t0, "blas", who, "A %s, B %s", ST_DIMS(*A), ST_DIMS(*B));
    return s;
}

strata_status strata_trmm(strata_handle *h, strata_scalar alpha, strata_tensor A, strata_tensor B)
{
    return run(h, "strata_trmm", false, &alpha, &A, &B);
}

strata_status strata_trsm(strata_handle *h, strata_scalar alpha, strata_tensor A, strata_tensor B)
{
    return run(h, "strata_trsm", true, &alpha, &A, &B);
}
