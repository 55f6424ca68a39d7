/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.h - the table of all tile kernels: cpu/kernels.inc expanded into rows, in order of preference.
 *
 * A row names its kernel by id, says what it computes and which instruction sets it needs, and points to what its family
 * defines (function pointers, tile sizes). Dispatch, the public kernel list and the tests read the same rows. */
#ifndef ST_TILE_KERNELS_H
#define ST_TILE_KERNELS_H
#include "base/base.h"
#include "base/cpu.h"
#include <strata/plan.h>

typedef struct st_kernel_row {
    const char *id;       /* "gemm_f32f32f32_6x64_avx512" */
    const char *provider; /* provider that runs it: "gemm_packed" */
    const char *family;   /* "gemm", "conv" */
    const char *types;    /* "f32f32f32" */
    const char *isa;      /* "avx512" */
    int type;             /* STRATA_F32, STRATA_F64 */
    unsigned needs;       /* ST_ISA_ bits, all of them */
    const char *order;    /* summation order in words */
    const void *impl;     /* struct of the family's own type */
} st_kernel_row;

const st_kernel_row *st_kernel_rows(int *count);
const st_kernel_row *st_kernel_find(const char *id);
/* First row (so the best) of a provider and type that this machine may run; NULL when there is none. */
const st_kernel_row *st_kernel_best(const char *provider, int type, const st_cpu *cpu);
/* "needs avx512, which this machine (or STRATA_ISA) does not offer" into buf, or NULL when usable. */
const char *st_kernel_why_not(const st_kernel_row *row, const st_cpu *cpu, char *buf, size_t n);
int st_kernel_list(int i, strata_kernel_info *info); /* for st_plan_register_kernels */

/* Summation orders in words, shared by rows. */
#define ST_ORDER_K "k in ascending order, one accumulator"
#define ST_ORDER_KBLOCKS "k in ascending order in even blocks of at most 512, block sums added in order"
#define ST_ORDER_WIDENED                                                                                    \
    "factors widened to f32 (exact); k in ascending order in even blocks of at most 512, block sums added " \
    "in order"
#define ST_ORDER_THREE                                                                                       \
    "three real products of parts and of their sums (re + im), each k in ascending order in even blocks of " \
    "at "                                                                                                    \
    "most 512, block sums added in order"
#define ST_ORDER_MODULO "integers modulo 2^32: any order is the same"
#define ST_ORDER_SKINNY \
    "k in ascending order, one accumulator (B contiguous along n), or in lanes of one vector (along k)"
#define ST_ORDER_SKINNY_WIDENED "factors widened to f32 (exact); " ST_ORDER_SKINNY
#define ST_ORDER_LANES \
    "k in interleaved lanes of one vector each, then the lanes by halves; blocks added in order"
#define ST_ORDER_KPARTS                                                                                  \
    "taps, then channels, in ascending order in even parts that the processor's cache fixes, part sums " \
    "added in order"
#define ST_ORDER_PIECES                                                                                     \
    "pixels in ascending order in even parts, padding left out; long sums in pieces that the shape fixes, " \
    "added in order"
#define ST_ORDER_REFERENCE "k in ascending order, one accumulator in f64"
#endif
