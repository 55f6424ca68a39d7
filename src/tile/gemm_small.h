/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_small.h - how a small product is cut into calls of its kernels. */
#ifndef ST_TILE_GEMM_SMALL_H
#define ST_TILE_GEMM_SMALL_H
#include "tile/gemm.h"
#include "tile/cpu/small_kernel.h"

/* Strides in elements; C has unit column stride. panel > 0: B is packed in panels of that many columns (a row stride of `panel`). */
typedef struct st_small_view {
    int64_t m, n, k, ars, acs, brs, crs, panel;
} st_small_view;

/* One kernel on tiles of one height and one width: `across` times, `step` columns further each time. Offsets in bytes. */
typedef struct st_small_part {
    st_small_fn fn;
    st_small_shape s;
    int64_t across, bstep, cstep;
    int64_t a, b, c;
} st_small_part;
enum { ST_SMALL_PARTS = 6 };
typedef struct st_small_split {
    int parts;
    st_small_part part[ST_SMALL_PARTS];
} st_small_split;

/* The kernels of this processor for f32, f64, c64 or c128. */
const st_small_kernel *st_small_kernel_of(const st_cpu *cpu, int type);
/* Tiles of one product whose B has unit column stride, no plan: s has k, the strides and pairs; its tiles and last are scratch. */
void st_small_in_place(const st_small_kernel *kr, int64_t es, int64_t m, int64_t n, st_small_shape *s,
                       const char *a, const char *b, char *c, double alpha, double beta);
void st_small_divide(const st_small_kernel *kr, int64_t es, const st_small_view *v, st_small_split *out);

/* pairs: NULL for real products */
ST_INLINE void st_small_part_run(const st_small_part *p, const char *a, const char *b, char *c, double alpha,
                                 double beta, const st_small_pairs *pairs)
{
    const st_small_shape *s = &p->s;
    st_small_shape with;
    if (pairs) {
        with = p->s;
        with.pairs = pairs;
        s = &with;
    }
    a += p->a;
    b += p->b;
    c += p->c;
    for (int64_t j = p->across; j > 0; j--, b += p->bstep, c += p->cstep) p->fn(s, a, b, c, alpha, beta);
}
#endif
