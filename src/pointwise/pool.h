/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h - between the window engine (pool.c) and its kernels (cpu/pool_*.c). Tables made once per plan say which taps of each
 * window lie inside the image, so that kernels hold no bounds arithmetic. */
#ifndef ST_POINTWISE_POOL_H
#define ST_POINTWISE_POOL_H
#include "pointwise/pointwise.h"

/* What plans are keyed by. */
typedef struct st_pool_key {
    st_pool_problem p;
    int64_t find;  /* backward of max without argmax */
    int64_t slots; /* pieces that may run at once, each with its own scratch */
} st_pool_key;

/* What every device's plans say: title, operands, work; and the bytes that they touch. */
void st_pw_pool_describe(strata_plan *plan, const st_pool_problem *p);
strata_status st_pw_pool_extents(strata_plan *plan, const st_pool_key *k);
/* cuda/pool_cuda.c */
void st_pw_pool_cuda_init(void);
int st_pw_pool_cuda_kernels(int i, strata_kernel_info *info);

/* One output row or column: taps [lo, hi) of its window lie in the image (lo = hi: none), `count` elements divide an average. */
typedef struct st_pool_span {
    int32_t lo, hi, count;
} st_pool_span;
/* One input row or column: windows first, first + 1, ... last contain it, where (at + pad - window * stride) is a multiple of the
 * dilation (with dilation 1: all of them). */
typedef struct st_pool_back {
    int32_t first, last;
} st_pool_back;

typedef struct st_pool_tables {
    st_pool_span *row, *col;           /* p and q of them */
    st_pool_back *back_row, *back_col; /* h and w of them */
    int32_t *
        col_first; /* first column inside the image of every output column's window, -1: none; padded to whole vectors */
    bool empty;         /* some window holds no element of the image */
    int64_t row_buffer; /* elements of one phase of a buffered row, whole vectors beyond what is needed */
} st_pool_tables;

enum { ST_POOL_PAD = 16 }; /* lanes of the widest vector */

/* Kernels work on image n, channels [c0, c1), output (forward) or input (backward) rows [r0, r1). data as for st_pw_pool; y may be NULL
 * (argmax alone is wanted). scratch: st_pool_scratch bytes. */
typedef void (*st_pool_fn)(const st_pool_problem *p, const st_pool_tables *t, void *const data[], int64_t n,
                           int64_t c0, int64_t c1, int64_t r0, int64_t r1, void *scratch);
typedef struct st_pool_kernel {
    const char *id, *types, *isa_name;
    int type;
    unsigned isa;
    bool channels;
    st_pool_fn forward, backward;
} st_pool_kernel;

#define POOL(way, type, TYPE, arch, ISA)                                                               \
    void st_pool_##way##_##type##_##arch##_forward(const st_pool_problem *, const st_pool_tables *,    \
                                                   void *const[], int64_t, int64_t, int64_t, int64_t,  \
                                                   int64_t, void *);                                   \
    void st_pool_##way##_##type##_##arch##_backward(const st_pool_problem *, const st_pool_tables *,   \
                                                    void *const[], int64_t, int64_t, int64_t, int64_t, \
                                                    int64_t, void *);
#include "pointwise/cpu/kernels.inc"
#endif
