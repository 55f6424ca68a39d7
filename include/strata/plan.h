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

/* What the caller demands of the choice. The zero value means "the usual". */
typedef struct strata_choice {
    size_t
        workspace_limit; /* bytes; used when limit_workspace is set. 0 always works: the scratch in which one thread evaluates an
                              * expression (less than 1 MiB) is not counted; strata_plan_workspace says it */
    bool limit_workspace;
    bool deterministic;   /* every kernel of this version is; kept so that programs can say it */
    const char *kernel;   /* force the kernel of this id (strata_kernels lists them); NULL: choose */
    uint64_t reserved[4]; /* zero */
} strata_choice;

/* Per-run values; the zero value (or NULL) uses what the plan was made with. */
typedef struct strata_run {
    const strata_scalar *alpha, *beta; /* where the operator has them */
    void *workspace;                   /* NULL: the handle's */
    size_t workspace_bytes;
    uint64_t reserved[4]; /* zero */
} strata_run;

/* data[] are the addresses of the operands in the order in which the plan's maker takes them. That they overlap no more than the maker allows
 * is the caller's duty: a run does not look. */
STRATA_API strata_status strata_plan_run(strata_handle *h, const strata_plan *p, void *const data[],
                                         const strata_run *r);
STRATA_API size_t strata_plan_workspace(const strata_plan *p);
/* The problem, the choice with predicted and floor time, the alternatives and why each was refused. Owned by the plan. */
STRATA_API const char *strata_plan_describe(const strata_plan *p);
STRATA_API const char *strata_plan_kernel(const strata_plan *p); /* id of the main kernel */
STRATA_API void strata_plan_destroy(strata_plan *p);             /* NULL is allowed */

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
