/* SPDX-License-Identifier: Apache-2.0 */
/* factor.h - batched factorisations as plain data, and the two places that run them: cpu/factor_*.c, cuda/factor_cuda.c.
 *
 * Operands: A (m x n), B (rows x nrhs: right-hand sides, or the inverse), P (pivots, or the factors tau of reflectors), I (info). Each item of a batch is
 * independent of the others and is computed by one thread (CPU) or one team of threads (CUDA) in an order that its size alone fixes. */
#ifndef ST_BLAS_FACTOR_H
#define ST_BLAS_FACTOR_H
#include "runtime/handle.h"
#include <strata/blas.h>

typedef enum st_factor_op {
    ST_GETRF,  /* A -> L U, P, I */
    ST_GETRS,  /* A (L U), P, B -> X */
    ST_GETRI,  /* A (L U), P -> B, I */
    ST_MATINV, /* A -> B, I; A is kept */
    ST_GEQRF,  /* A -> R and reflectors, P (tau) */
    ST_GELS,   /* A -> R and reflectors, B -> X, I */
    ST_FACTOR_OPS
} st_factor_op;

enum { ST_FACTOR_A, ST_FACTOR_B, ST_FACTOR_P, ST_FACTOR_I, ST_FACTOR_OPERANDS, ST_FACTOR_BATCH = 4 };

/* The element (i, j) of item (b0, ...) is at ptr + i rs + j cs + sum b bs, in elements; or, with pointers, ptr is an array of addresses, one for every b0. */
typedef struct st_factor_view {
    char *ptr; /* NULL: absent */
    int64_t rs, cs, bs[ST_FACTOR_BATCH];
    int64_t pointers;
} st_factor_view;

typedef struct st_factor {
    int64_t m, n, nrhs, items;
    int64_t batch, len[ST_FACTOR_BATCH];
    st_factor_view view[ST_FACTOR_OPERANDS];
    int64_t transpose, conjugate; /* getrs: with the transposed (conjugate transposed) matrix */
    int32_t op, type;             /* st_factor_op; F32 F64 C64 C128 */
    int32_t index;                /* of pivots and info: 4 or 8 bytes */
    int32_t reserved;
} st_factor;

/* Bytes of an element. */
ST_INLINE int64_t st_factor_size(const st_factor *f)
{
    return (int64_t)strata_type_bits((strata_type)f->type) / 8;
}
/* Address of operand `o` of an item. */
ST_INLINE char *st_factor_at(const st_factor *f, int o, int64_t item, int64_t size)
{
    const st_factor_view *v = &f->view[o];
    if (!v->ptr) return NULL;
    if (v->pointers) return ((char **)(void *)v->ptr)[item];
    int64_t off = 0;
    for (int64_t d = f->batch - 1; d >= 0; d--) {
        off += item % f->len[d] * v->bs[d];
        item /= f->len[d];
    }
    return v->ptr + off * size;
}

/* cpu/: one item; scratch of st_factor_scratch bytes, 64-byte aligned. Tables by instruction set. */
typedef void (*st_factor_fn)(const st_factor *f, int64_t item, char *scratch);
typedef struct st_factor_table {
    st_factor_fn run[4]; /* f32 f64 c64 c128 */
} st_factor_table;
extern const st_factor_table st_factor_portable, st_factor_avx2, st_factor_avx512;
size_t st_factor_scratch(const st_factor *f);

strata_status st_factor_cuda(strata_handle *h, const char *who, const st_factor *f);
#endif
