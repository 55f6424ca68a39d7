/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_mixed_plan.h - the plan of gemm_mixed.h: how the work is shared, and the room of a thread. */
#ifndef ST_TILE_GEMM_MIXED_PLAN_H
#define ST_TILE_GEMM_MIXED_PLAN_H
#include "tile/gemm_mixed.h"
#include "tile/gemm_packed.h"

typedef struct st_mix_plan {
    strata_plan base;
    st_mix *x;
    const st_packed_kernel *kernel;
    st_pack_fn pack_a[ST_MIX_PRODUCTS], pack_b[ST_MIX_PRODUCTS];
    int move_a[ST_MIX_PRODUCTS], move_b[ST_MIX_PRODUCTS];
    int type;       /* of sums */
    int64_t es, kc; /* bytes of a sum; steps of a block of k, at most */
    bool
        by_columns; /* few rows: threads share the columns, and B is packed a panel at a time; else B is packed once for nc columns */
    int64_t mc, nc;
    int slots; /* of threads */
    double us;
    size_t a, b, sums, values,
        scratch; /* bytes of a slot; a is shared by all where threads share the columns, b where they share the rows */
    size_t all_sums; /* shared: where columns are shared and the program goes by rows */
} st_mix_plan;

/* gemm_mixed_pack.c: lines i0.. (w of them) and all of k between k0 and k0 + kc of a factor into panels. */
typedef struct st_mix_room {
    char *values, *scratch;
} st_mix_room;
void st_mix_pack(const st_mix_plan *p, bool a, int factor, void *const data[], int64_t item, char *dst,
                 int64_t i0, int64_t w, int64_t k0, int64_t kc, const st_mix_room *room);
/* elements that an expression makes at a time */
enum { ST_MIX_VALUES = 8192 };
/* Lists that pick rows name rows that exist; else a failure that names the list, the place and the number. */
strata_status st_mix_check_picks(strata_handle *h, const char *who, const st_mix_plan *p, void *const data[]);
/* where term t of item `item` begins, in elements */
int64_t st_mix_offset(const st_mix *x, const st_mix_term *t, int64_t item);
strata_status st_mix_run(strata_handle *h, const strata_plan *plan, void *const data[], const strata_run *r);
#endif
