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
#endif
