/* SPDX-License-Identifier: Apache-2.0 */
/* tile.h - the contraction engine: C = epilogue(alpha * sum_k A(m,k) * B(k,n) + beta * C).
 *
 * m, n, k and batch are each a list of strided axes (outermost first), as in einsum; an axis gives its length and the stride
 * it has in A, B and C (in elements; 0 where the operand does not have it). Transposed, batched, broadcast and windowed operands
 * are such views; nothing is materialised. A bounds rule makes an operand read as zero outside an image. */
#ifndef ST_TILE_TILE_H
#define ST_TILE_TILE_H
#include "base/base.h"
#include "runtime/handle.h"
#include "plan/plan.h"
#include "expr/expr.h"

enum { ST_AXES = 4, ST_BOUNDS = 2, ST_EPI_OPERANDS = 8 };

typedef struct st_axis {
    int64_t len, a, b, c;
} st_axis;
typedef struct st_axes {
    int64_t count; /* 0: one element */
    st_axis ax[ST_AXES];
} st_axes;

/* coordinate = offset + im * (index of m axis `m`) + ik * (index of k axis `k`) must lie in [0, limit); else the A element reads as
 * zero. An axis number of -1 is absent. (The windowed operand is always A: callers swap the product where it is not.) */
typedef struct st_bound {
    int64_t limit, offset;
    int64_t m, im;
    int64_t k, ik;
} st_bound;

/* An operand of the epilogue: strides along every m, n and batch axis. */
typedef struct st_epi_operand {
    char name[ST_EXPR_NAME];
    int64_t type;
    int64_t sm[ST_AXES], sn[ST_AXES], sb[ST_AXES];
} st_epi_operand;

/* What a matrix is beyond its strides, by the flattened row and column index: of A m and k, of B k and n, of C m and n. Zero: nothing.
 * A half of A or B: `lower` keeps elements with row - column + offset >= 0, `upper` those with <= 0; the others are not read: they are zero, or the
 * mirror image (the stored element at (column, row), conjugated for hermitian; then m and k have one axis each and the matrix is square).
 * A half of C: the others are neither read nor written. */
enum { ST_HALF_NONE = 0, ST_HALF_LOWER = 1, ST_HALF_UPPER = 2 };
enum { ST_MIRROR_NONE = 0, ST_MIRROR_SYMMETRIC = 1, ST_MIRROR_HERMITIAN = 2 };
typedef struct st_rule {
    int32_t conj;   /* inputs: elements are read conjugated (after mirroring) */
    int32_t half;   /* ST_HALF_ */
    int32_t mirror; /* ST_MIRROR_; C: HERMITIAN sets the diagonal's imaginary parts to 0 */
    int32_t unit;   /* a triangular input's diagonal is 1 and not read */
    int64_t offset; /* of the element at (0, 0): its row minus its column in the whole matrix */
} st_rule;
/* Does it change what is read or stored at all? */
ST_INLINE bool st_rule_any(const st_rule *r) { return (r->conj | r->half | r->mirror | r->unit) != 0; }
/* The rule of the transposed matrix. */
ST_INLINE st_rule st_rule_transposed(st_rule r)
{
    r.half = r.half == ST_HALF_LOWER ? ST_HALF_UPPER : r.half == ST_HALF_UPPER ? ST_HALF_LOWER : ST_HALF_NONE;
    r.offset = -r.offset;
    return r;
}
/* Words for a provider that knows no rules: "A is triangular" into buf; NULL when there is nothing but plain elements. */
struct st_contract;
const char *st_contract_rules(const struct st_contract *c, char *buf, size_t n);

/* The problem: plain data, zero-padded, no pointers; compared by bytes. data[] of its plans: A, B, C, then the epilogue's. */
typedef struct st_contract {
    int64_t ta, tb, tc; /* strata_type */
    st_axes m, n, k, batch;
    int64_t bounds;
    st_bound bound[ST_BOUNDS];
    int64_t epi_operands;
    st_epi_operand epi[ST_EPI_OPERANDS];
    int64_t math; /* strata_math: what arithmetic the caller allows */
    int64_t
        unaligned; /* 1: addresses have the alignment of their elements alone (a CUDA plan makes itself such a twin) */
    st_rule rule_a, rule_b, rule_c;
    int64_t
        pointers; /* bits 0, 1, 2: A, B, C are arrays of addresses, one for every index of the first batch axis (whose stride is then 0) */
} st_contract;

/* The same problem in fewer axes: lengths of 1 dropped, neighbours merged, bounds that always hold dropped. */
void st_tile_simplify(st_contract *c);
/* Runs at once through the plan cache. `epilogue` may be NULL. alpha and beta are the values (f32/f64 contractions). */
strata_status st_tile_contract(strata_handle *h, const char *who, const st_contract *c, const char *epilogue,
                               double alpha, double beta, void *const data[]);
/* An owned plan; alpha and beta are what a run without its own uses. */
strata_status st_tile_plan(strata_handle *h, const char *who, const st_contract *c, const char *epilogue,
                           double alpha, double beta, const strata_choice *choice, strata_plan **plan);
/* The same for complex factors, {re, im}. */
strata_status st_tile_contract_complex(strata_handle *h, const char *who, const st_contract *c,
                                       const char *epilogue, const double alpha[2], const double beta[2],
                                       void *const data[]);
strata_status st_tile_plan_complex(strata_handle *h, const char *who, const st_contract *c,
                                   const char *epilogue, const double alpha[2], const double beta[2],
                                   const strata_choice *choice, strata_plan **plan);
/* Scales (f32) of a factor's blocks of `rows` rows (of B: columns) by 128 of k; strides in elements from block to block. rows 0: it has none. */
typedef struct st_block_scale {
    int64_t rows, row, k;
} st_block_scale;
/* A plan that multiplies the sums of every 128 of k by the scales of A and of B. data[] of its runs: A, B, C, the epilogue's, A's scales, B's (NULL where
 * there are none). STRATA_ERROR_UNSUPPORTED where the device has no kernel that does so: then the factors are to be multiplied out before. */
strata_status st_tile_scaled_plan(strata_handle *h, const char *who, const st_contract *c,
                                  const char *epilogue, const st_block_scale scale[2], strata_plan **plan);
/* Can there be such a plan? With its predicted time and workspace. */
bool st_tile_scaled_fits(strata_handle *h, const st_contract *c, const char *epilogue,
                         const st_block_scale scale[2], double *us, size_t *workspace, char *why, size_t n);
/* How an epilogue's text uses a name, by its letters alone: it is parsed when a plan is made, not on every call. */
typedef struct st_epi_use {
    bool used, written, called; /* called: followed by a parenthesis, as functions are */
    st_index index;
} st_epi_use;
st_epi_use st_tile_epilogue_use(const char *text, const char *name);
/* A factor of a product, read where it lies. `who` is the public function, `name` the argument. An imaginary part that is not 0 is refused
 * unless `type`, that of C, is complex. */
strata_status st_contract_scalar(strata_handle *h, const char *who, const char *name, const strata_scalar *s,
                                 int type, double value[2]);
void st_tile_init(void); /* registers providers; idempotent, thread-safe */

/* The direct path for small plain products: checks what it needs (f32 or f64; sizes, strides and addresses that are plainly fine; C with rows
 * or columns of unit stride, apart from A and B). What is not for it is left to `otherwise`. No plan, no allocation; the bits are those of
 * the plan. */
struct strata_gemm_plain;
typedef strata_status (*st_gemm_otherwise)(strata_handle *h, const struct strata_gemm_plain *p);
strata_status st_tile_gemm_small(strata_handle *h, const struct strata_gemm_plain *p,
                                 st_gemm_otherwise otherwise);
#endif
