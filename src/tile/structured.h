/* SPDX-License-Identifier: Apache-2.0 */
/* structured.h - packing of operands that are more than their elements: halves, mirrors, unit diagonals.
 *
 * A side is an operand seen as lines (rows of A, columns of B) and steps of k, its rule turned likewise: `row` of the rule is the line. */
#ifndef ST_TILE_STRUCTURED_H
#define ST_TILE_STRUCTURED_H
#include "tile/contract.h"
#include "tile/cpu/gemm_kernel.h"

typedef struct st_side {
    st_rule rule;
    int64_t ls, ks; /* strides in elements */
    st_pack_fn pack;
    int64_t width; /* lines of a panel */
} st_side;

/* Steps of k in which any of the lines i0.. (w of them) is not zero: [lo, hi) within [0, K). */
void st_side_range(const st_side *s, int64_t i0, int64_t w, int64_t K, int64_t *lo, int64_t *hi);
/* One panel: lines i0.. (w of them, at most s->width; any number, in panels, of an operand without a half) x steps k0.. (kc of them). Steps in which all lines are zero are left as they are. */
void st_side_pack(const st_side *s, int type, char *dst, const char *src, int64_t i0, int64_t w, int64_t k0,
                  int64_t kc);
/* The diagonal's places in a panel: steps that begin at line + offset. Inverts its elements; false where one is not a normal number. */
bool st_side_invert(int type, char *panel, int64_t width, int64_t first_step, int64_t w);

/* The packed product's and the triangles' kernels of a type (f32, f64, c64, c128) and level (ST_LEVEL_): what st_kernel_best finds, without the search. */
struct st_tri_kernel;
const st_packed_kernel *st_side_packed(int level, int type);
const struct st_tri_kernel *st_side_tri(int level, int type);

/* structured_small.c: C := alpha A B + beta C in which one of the three is a half. C has unit column stride. In place, C may be the operand without a half
 * (of the same strides) when the other is a triangle. False: not done, for it is not small or of a form that others do. */
typedef struct st_small_structured {
    int type, conj; /* conj: bit 0 A, bit 1 B */
    int64_t M, N, K, crs;
    st_side a, b; /* rules and strides; nothing is packed */
    st_rule rule_c;
    const char *a_data, *b_data;
    char *c;
} st_small_structured;
bool st_structured_small(const st_cpu *cpu, const st_small_structured *p, const double alpha[2],
                         const double beta[2]);
#endif
