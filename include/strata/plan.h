/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - plans: an operator bound to shapes, types and a device. A plan is immutable, may be shared between threads
 * (each with its own handle on the same device) and run any number of times. */
#ifndef STRATA_PLAN_H
#define STRATA_PLAN_H
#include <strata/base.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct strata_plan strata_plan;

/* A tile in three levels, in elements; 0 leaves a number to the library. On a GPU: what a thread block (or cluster member), a warp (group) and an
 * instruction compute. On a CPU: the blocks kept in caches (m x k of A in L2, k x n of B beyond it), the tile kept in registers, the lanes
 * of a vector. */
typedef struct strata_tile {
    int32_t block_m, block_n, block_k;
    int32_t warp_m, warp_n, warp_k;
    int32_t instruction_m, instruction_n, instruction_k;
    int32_t stages;               /* of the pipeline through shared memory */
    int32_t cluster_m, cluster_n; /* thread blocks that share loads */
    int32_t split_k;              /* parts of k that are summed apart */
    int32_t raster;               /* tiles of a column taken before the next column */
    int32_t reserved[2];          /* zero */
} strata_tile;

/* What the caller demands of the choice. The zero value means "the usual": the kernel of least predicted time, or, where measurements of the
 * problem are known (docs/tuning.md), the fastest measured one among those that sum in that kernel's order. */
typedef struct strata_choice {
    size_t
        workspace_limit; /* bytes; used when limit_workspace is set. 0 always works: the scratch in which one thread evaluates an
                              * expression (less than 1 MiB) is not counted; strata_plan_workspace says it */
    bool limit_workspace;
    bool deterministic; /* every kernel of this version is; kept so that programs can say it */
    bool
        batch_invariant; /* a row of the result has the same bits however many rows, and items of a batch, there are */
    bool
        allow_reordering; /* the fastest measured kernel may be taken although it sums in another order; the plan's text says when it is */
    const char *kernel;   /* force the kernel of this id (strata_kernels lists them); NULL: choose */
    const char *order; /* only kernels that sum in this order, in the words of strata_plan_order; NULL: any */
    const char *code;  /* rebuild what strata_plan_code described; NULL: choose */
    const strata_tile *tile; /* only this tile; impossible ones are refused with the reason; NULL: choose */
    uint64_t reserved[1];    /* zero */
} strata_choice;

/* Per-run values; the zero value (or NULL) uses what the plan was made with. */
typedef struct strata_run {
    const strata_scalar *alpha, *beta; /* where the operator has them */
    void *workspace;                   /* NULL: the handle's */
    size_t workspace_bytes;
    uint64_t prepared; /* bit i: data[i] is the data of what strata_prepare made for this plan and operand */
    uint64_t reserved[3]; /* zero */
} strata_run;

/* data[] are the addresses of the operands in the order in which the plan's maker takes them. That they overlap no more than the maker allows
 * is the caller's duty: a run does not look. */
STRATA_API strata_status strata_plan_run(strata_handle *h, const strata_plan *p, void *const data[],
                                         const strata_run *r);
STRATA_API size_t strata_plan_workspace(const strata_plan *p);
/* The problem, the choice with predicted and floor time, why it won, the alternatives and why each was refused. Owned by the plan. */
STRATA_API const char *strata_plan_describe(const strata_plan *p);
STRATA_API const char *strata_plan_kernel(const strata_plan *p); /* id of the main kernel */
STRATA_API const char *strata_plan_order(
    const strata_plan *p);                           /* its order of summation in words; owned by the plan */
STRATA_API void strata_plan_destroy(strata_plan *p); /* NULL is allowed */

/* The choice (not the problem) as text of at most STRATA_PLAN_CODE - 1 letters: kernel, tile and order. With strata_choice.code and the same
 * problem, any process of this version on such a device makes the same plan again; a code that is damaged, or whose kernel cannot do
 * the problem or would sum in another order, is refused with the reason. Owned by the plan. */
enum { STRATA_PLAN_CODE = 56 };
STRATA_API const char *strata_plan_code(const strata_plan *p);

/* One of the kernels (with a tile) that could do a plan's problem. */
typedef struct strata_candidate {
    char kernel[96];
    char code[STRATA_PLAN_CODE]; /* "" when refused */
    char order[192];
    char why[160];       /* refused: the rule that refuses, in words; else "" */
    double predicted_us; /* on one thread of a CPU; < 0: refused */
    double measured_us;  /* median; 0: not measured */
    size_t workspace;    /* bytes, for one thread */
    strata_tile tile;    /* 0 where the kernel does not say */
    bool chosen;         /* the plan's own */
    bool same_order;     /* sums in the order of the plan's kernel */
    uint64_t reserved[4];
} strata_candidate;
/* Candidate i of a plan that a function ending in _plan made, as it was when the choice was made: 1, or 0 past the end. */
STRATA_API int strata_plan_candidates(const strata_plan *p, int i, strata_candidate *c);

/* Batch invariance for every call and plan of this handle, as strata_choice.batch_invariant asks it for one: a row has the same bits in a batch of
 * any size, and in a product of one row. Costs speed where few rows would go to kernels with an order of their own. Default off. */
STRATA_API strata_status strata_set_batch_invariant(strata_handle *h, bool on);

/* Packs operand `operand` of the plan's data[] once, into memory of its own (strata_alloc; free it with strata_free(h, prepared->data)), in the layout
 * that the plan's kernel reads: for weights. W is the view with which the plan was made; its elements may change or go afterwards. Runs get
 * prepared->data as data[operand] and bit `operand` of strata_run.prepared, and give the same bits as with W. What is prepared serves every plan of the
 * same kernel whose operand is alike, whatever the number of rows of the other; a CPU's run refuses what is of another layout. A plan whose kernel
 * does not pack refuses. On a GPU the copy runs in the handle's stream. */
STRATA_API strata_status strata_prepare(strata_handle *h, const strata_plan *p, int operand, strata_tensor W,
                                        strata_tensor *prepared);

/* ---- measuring and the tuning database (docs/tuning.md) ----------------------------------------------------------------------- */

typedef struct strata_tune_options {
    double
        seconds; /* of measuring and building kernels; 0: one second. The usual choice is measured whatever the budget */
    bool allow_reordering; /* measure kernels that sum in another order than the usual choice, too */
    bool forget;           /* do not store what is found */
    /* NULL, or called between measurements with the part that is done (0 to 1) and the best so far; false stops the search */
    bool (*progress)(void *user, double done, const strata_candidate *best);
    void *user;
    uint64_t reserved[4]; /* zero */
} strata_tune_options;

/* Measures the candidates of p's problem (and further tiles of the best ones), each the median of several runs in turn with the others, and
 * stores the times in the tuning database, from which every later choice of such a problem on such a device takes the fastest. p itself stays what it
 * is: make it again to have the winner, or pass its code. p must be made by a function ending in _plan, on h's device. `data`: the operands'
 * addresses, whose outputs are overwritten; NULL: buffers of the search's own. results: up to `max` candidates, measured ones first,
 * fastest first; *count says how many there are (both may be NULL and 0). */
STRATA_API strata_status strata_tune(strata_handle *h, const strata_plan *p, void *const data[],
                                     const strata_tune_options *o, strata_candidate *results, int max,
                                     int *count);

/* From now on the first use of a problem that the database does not know searches for at most so many seconds, on this handle: for one-shot calls
 * (plans of one's own are searched by strata_tune). 0 ends it. With allow_reordering the fastest kernel is used whatever its order. */
STRATA_API strata_status strata_find(strata_handle *h, double seconds, bool allow_reordering);

typedef struct strata_tuning_info {
    char path[256];    /* of the database; or why it is in memory only */
    char warning[512]; /* the first thing that went wrong with the file in this process; "": nothing */
    int64_t problems, measurements; /* known now, of this version of the library, for any device */
    uint64_t reserved[4];
} strata_tuning_info;
STRATA_API strata_status strata_get_tuning_info(strata_tuning_info *info);
/* The database as text, one line a measurement, and back: rows of another version are skipped; a wrong line refuses the whole file, by its number. */
STRATA_API strata_status strata_tuning_export(const char *path);
STRATA_API strata_status strata_tuning_import(const char *path, int64_t *measurements); /* NULL is allowed */

/* Every kernel of this build, one row each, in the order of preference. */
typedef struct strata_kernel_info {
    const char *id;      /* "gemm_f32f32f32_6x64_avx512" */
    const char *family;  /* "gemm", "conv", "pointwise", ... */
    const char *types;   /* "f32f32f32" */
    const char *isa;     /* "avx512" */
    const char *order;   /* summation order in words */
    bool usable;         /* on this machine now */
    const char *why_not; /* NULL, or why not */
} strata_kernel_info;
STRATA_API int strata_kernels(int i, strata_kernel_info *info); /* 1, or 0 past the end */
/* A diagnostic: runs the bare microkernel of gemm row `id` on prepared panels in cache (the A block in L2, the B panel in L1, the C tile in
 * L1) on the calling thread for about `seconds` and gives its rate. It is the bar that a whole product is held to.
 * STRATA_ERROR_UNSUPPORTED when the row has no such kernel. */
STRATA_API strata_status strata_kernel_probe(strata_handle *h, const char *id, double seconds,
                                             double *gflops);

typedef struct strata_plan_cache_stats {
    uint64_t hits, misses, entries, evictions;
} strata_plan_cache_stats;
STRATA_API strata_status strata_get_plan_cache_stats(strata_handle *h, strata_plan_cache_stats *s);

#ifdef __cplusplus
}
#endif
#endif
