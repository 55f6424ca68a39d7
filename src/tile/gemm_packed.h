/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_packed.h - the plan of the packed product and how its threads share the work. */
#ifndef ST_TILE_GEMM_PACKED_H
#define ST_TILE_GEMM_PACKED_H
#include "tile/gemm.h"

typedef struct st_packed_plan {
    st_contract_plan head;
    st_gemm g;
    const st_packed_kernel *kernel;
    int64_t kc, mc, nc; /* block sizes: even parts of at most these */
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
    double alpha, beta;
    char *workspace;
    bool apart;
} st_packed_job;
#endif
