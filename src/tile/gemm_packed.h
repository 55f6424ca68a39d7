/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_packed.h - the plan of the packed product and how its threads share the work. */
#ifndef ST_TILE_GEMM_PACKED_H
#define ST_TILE_GEMM_PACKED_H
#include "tile/gemm.h"

typedef struct st_packed_plan {
    st_contract_plan head;
    st_gemm g;
    const st_packed_kernel *kernel;
    st_pack_fn pack_a, pack_b;       /* of this problem's types */
    st_ukr_fn first, first_in_place; /* NULL where B is packed before */
    int32_t move_a, move_b;          /* bytes are moved into the other sign's range: a + move_a, b - move_b */
    int64_t kc, mc, nc;              /* block sizes: even parts of at most these */
    bool
        aside; /* sums are kept beside C, because C is of a shorter type or strided; else they go straight to C */
    int64_t aside_rows; /* rows whose sums are kept at a time */
    bool in_place;      /* A is read where it is, not packed */
    bool fused;         /* B is packed by the first row of tiles, not before */
    int threads;        /* the most that the workspace is for */
    double us;          /* one thread's estimated time, for the team */
    size_t scratch;     /* of the epilogue, a thread */
    size_t sync;        /* bytes of flags to zero before a run */
} st_packed_plan;

/* How n threads share a product: a grid of tm parts of the rows by tn groups of the columns. The threads of a group share packed B.
 * Batch items are shared out whole when there are many. Nothing of it changes the order of a sum. */
typedef struct st_packed_layout {
    int tm, tn;
    bool by_item;
    int slots;      /* B buffers of a group */
    int64_t panels; /* of a B buffer */
    size_t sync, a, b,
        scratch; /* bytes: flags of a group and progress; A of a thread; B buffer; tile and epilogue of a thread */
    size_t aside; /* of a thread: sums that are kept */
    size_t total;
} st_packed_layout;
/* apart: the n bodies may run one after the other (a caller's parallel_for), so that none may wait: each packs all of its B itself. */
void st_packed_layout_for(const st_packed_plan *p, int n, bool apart, st_packed_layout *l);
size_t st_packed_sync_bytes(
    const st_packed_plan *p); /* at the start of the workspace, to be zeroed, for any number of threads */

void st_packed_run_thread(void *job, int id, int n);
typedef struct st_packed_job {
    const st_packed_plan *p;
    void *const *data;
    const char *a, *b;
    char *c;
    st_factors f;
    char *workspace;
    bool apart;
    bool aside;                    /* of this run */
    const char *ready_a, *ready_b; /* NULL, or the operand as strata_prepare packed it */
} st_packed_job;

/* Bytes of `lines` lines (whole panels) of k steps, packed. */
ST_INLINE int64_t st_packed_bytes(const st_packed_kernel *kr, int64_t lines, int64_t k)
{
    return lines * (kr->head + st_ceil_div(k, kr->unit) * kr->size);
}
/* Lines i0.. (w of them) x steps k0.. of A ('a': rows, src is the item's A) or B ('b': columns) into panels. k0 is a multiple of the unit. */
void st_packed_pack(const st_packed_plan *p, int which, char *dst, const char *src, int64_t i0, int64_t w,
                    int64_t k0, int64_t kc);
/* Sums of a rectangle, `ld` apart, to C or through the epilogue. They are overwritten. */
void st_packed_finish(const st_packed_job *j, void *sums, int64_t ld, char *c, int64_t item, int64_t i0,
                      int64_t rows, int64_t j0, int64_t cols, void *scratch);

/* Candidate c (row, arg) for the problem: prediction, workspace, order, tile. False: refused, with c->why. */
bool st_packed_consider(strata_handle *h, const st_problem *pr, st_candidate *c);

/* gemm_prepared.c: tiles, and operands that are packed once. */
void st_packed_describe(const st_packed_plan *p, const st_kernel_row *row, st_candidate *c);
void st_packed_preparable(st_packed_plan *p); /* fills in the plan's fields for strata_prepare */
/* Operands of this run that are prepared, into the job; fails when they were prepared for another layout. */
strata_status st_packed_prepared(strata_handle *h, const st_packed_plan *p, const strata_run *r,
                                 st_packed_job *job);
/* A prepared operand is every item's blocks of k one after the other, each block all panels. Length of a block of k; where item `item`'s panel of
 * line `line` in the block that begins at k0 (of kc steps) lies. */
int64_t st_packed_k_block(const st_packed_plan *p);
const char *st_packed_ready_at(const st_packed_plan *p, int which, const char *ready, int64_t item,
                               int64_t line, int64_t k0, int64_t kc);
#endif
