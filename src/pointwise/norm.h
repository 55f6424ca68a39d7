/* SPDX-License-Identifier: Apache-2.0 */
/* norm.h - between the per-channel normalisation (norm.c) and its kernels (cpu/norm_*.c). Arrays are of the problem's type.
 *
 * channels kernels work on a rectangle of `rows` rows whose columns are channels (contiguous); per-channel arguments are arrays.
 * runs kernels work on `n` contiguous elements of one channel; sums go through ST_NORM_ACC running partial sums, so that many
 * short runs add up in a fixed order, and `fold` ends them. */
#ifndef ST_POINTWISE_NORM_H
#define ST_POINTWISE_NORM_H
#include "pointwise/pointwise.h"

/* What plans are keyed by. ST_OP_POINTWISE problems begin with a word that says which family they are for. */
typedef struct st_norm_key {
    int64_t family;
    st_norm_problem p;
    int64_t alignment; /* on a GPU; 0 on the CPU */
} st_norm_key;

/* What every device's plans say: title, operands, work (then `more`); and the bytes that they touch. */
void st_pw_norm_describe(strata_plan *plan, const st_norm_problem *p, const char *more);
strata_status st_pw_norm_extents(strata_plan *plan, const st_norm_problem *p);
/* What divides the operands' addresses, up to 16: plans of a GPU depend on it (only in how they read). */
int64_t st_pw_norm_alignment(const st_norm_problem *p, void *const data[]);
/* cuda/norm_cuda.c */
void st_pw_norm_cuda_init(void);
int st_pw_norm_cuda_kernels(int i, strata_kernel_info *info);

enum { ST_NORM_ACC = 64 }; /* running sums of a runs kernel: four of the widest vectors */

typedef struct st_norm_kernel {
    const char *id, *types, *isa_name;
    int type;
    unsigned isa;
    bool channels;
    /* sum (+)= x; in the channels form sum is overwritten */
    void (*sum)(const void *x, int64_t ldx, int64_t rows, int64_t n, void *sum);
    /* x - mean and (x - mean)^2: the first corrects the rounded mean */
    void (*square)(const void *x, int64_t ldx, int64_t rows, int64_t n, const void *mean, void *sum,
                   void *square);
    /* dy and dy * (x - mean) */
    void (*products)(const void *x, int64_t ldx, const void *dy, int64_t ldy, int64_t rows, int64_t n,
                     const void *mean, void *sum, void *product);
    /* y = (x - mean) * a + b; stream: past the caches where y allows it */
    void (*apply)(const void *x, int64_t ldx, void *y, int64_t ldy, int64_t rows, int64_t n, const void *mean,
                  const void *a, const void *b, bool stream);
    /* dx = a * (dy - b - (x - mean) * c), added to dx or stored; stream: as above (not when added) */
    void (*gradient)(const void *x, int64_t ldx, const void *dy, int64_t ldy, void *dx, int64_t ldz,
                     int64_t rows, int64_t n, const void *mean, const void *a, const void *b, const void *c,
                     bool add, bool stream);
} st_norm_kernel;

#define NORM(way, type, TYPE, arch, ISA)                                                                   \
    void st_norm_##way##_##type##_##arch##_sum(const void *, int64_t, int64_t, int64_t, void *);           \
    void st_norm_##way##_##type##_##arch##_square(const void *, int64_t, int64_t, int64_t, const void *,   \
                                                  void *, void *);                                         \
    void st_norm_##way##_##type##_##arch##_products(const void *, int64_t, const void *, int64_t, int64_t, \
                                                    int64_t, const void *, void *, void *);                \
    void st_norm_##way##_##type##_##arch##_apply(const void *, int64_t, void *, int64_t, int64_t, int64_t, \
                                                 const void *, const void *, const void *, bool);          \
    void st_norm_##way##_##type##_##arch##_gradient(const void *, int64_t, const void *, int64_t, void *,  \
                                                    int64_t, int64_t, int64_t, const void *, const void *, \
                                                    const void *, const void *, bool, bool);
#include "pointwise/cpu/kernels.inc"
/* One line of cpu/kernels.inc as a row of norm.c's table. */
#define NORM(way, type, TYPE, arch, ISA)         \
    {"norm_" #way "_" #type "_" #arch,           \
     #type,                                      \
     #arch,                                      \
     TYPE,                                       \
     ISA,                                        \
     #way[0] == 'c',                             \
     st_norm_##way##_##type##_##arch##_sum,      \
     st_norm_##way##_##type##_##arch##_square,   \
     st_norm_##way##_##type##_##arch##_products, \
     st_norm_##way##_##type##_##arch##_apply,    \
     st_norm_##way##_##type##_##arch##_gradient},
#endif
