/* SPDX-License-Identifier: Apache-2.0 */
/* overlap.c - copies of inputs that an output overlaps (see blas.h). Only what a view says is stored is read, so a copy never looks into the other
 * triangle, at a unit diagonal or beyond a band. */
#include "compat/blas/blas.h"
#include <stdlib.h>
#include <string.h>

static bool stored(const strata_tensor *t, int64_t i, int64_t j)
{
    const int64_t kl = t->error_arg & 0xffffffff, ku = t->error_arg >> 32;
    if (t->flags & STRATA_TENSOR_LOWER && i < j) return false;
    if (t->flags & STRATA_TENSOR_UPPER && i > j) return false;
    if (t->flags & STRATA_TENSOR_UNIT && i == j) return false;
    return !(t->flags & STRATA_TENSOR_BAND) || (i - j <= kl && j - i <= ku);
}

static void *memory(st_copies *c, size_t bytes)
{
    void *p =
        malloc(bytes ? bytes : 1); /* without it the operand stays as it is, and the call is refused again */
    return p ? c->memory[c->n++] = p : NULL;
}

/* A batch of plain matrices: whole ones behind each other; with a distance of 0 one. */
static void copy_batch(st_copies *c, strata_tensor *t)
{
    const int64_t size = (int64_t)st_blas_size(t->type), items = t->stride[0] ? t->dim[0] : 1,
                  rows = t->dim[1], cols = t->dim[2];
    char *to = memory(c, (size_t)(items * rows * cols * size)), *at = to;
    if (!to) return;
    for (int64_t g = 0; g < items; g++)
        for (int64_t j = 0; j < cols; j++)
            for (int64_t i = 0; i < rows; i++, at += size)
                memcpy(at,
                       (const char *)t->data +
                           (g * t->stride[0] + i * t->stride[1] + j * t->stride[2]) * size,
                       (size_t)size);
    t->data = to;
    t->stride[0] = items > 1 ? rows * cols : 0;
    t->stride[1] = 1;
    t->stride[2] = rows;
}

void st_blas_copy_input(st_copies *c, strata_tensor *t)
{
    if (!t) return;
    if (t->rank == 3) {
        copy_batch(c, t);
        return;
    }
    const int64_t size = (int64_t)st_blas_size(t->type), rows = t->dim[0],
                  cols = t->rank == 2 ? t->dim[1] : 1;
    const char *from = t->data;
    if (t->flags & STRATA_TENSOR_PACKED) {
        const size_t bytes = (size_t)(rows * (rows + 1) / 2 * size);
        void *p = memory(c, bytes);
        if (p) t->data = memcpy(p, from, bytes);
        return;
    }
    /* a band keeps its strides, which make it small; all else is packed */
    const int64_t s0 = t->stride[0], s1 = t->rank == 2 ? t->stride[1] : 0;
    const bool band = t->flags & STRATA_TENSOR_BAND;
    const int64_t n0 = band ? s0 : 1, n1 = band ? s1 : rows;
    int64_t low = 0, high = 0;
    for (int pass = 0; pass < 2; pass++) {
        char *to = pass ? memory(c, (size_t)((high - low + 1) * size)) : NULL;
        if (pass && !to) return;
        for (int64_t j = 0; j < cols; j++)
            for (int64_t i = 0; i < rows; i++) {
                const int64_t at = i * n0 + j * n1;
                if (!stored(t, i, j)) continue;
                if (pass) memcpy(to + (at - low) * size, from + (i * s0 + j * s1) * size, (size_t)size);
                low = at < low ? at : low;
                high = at > high ? at : high;
            }
        if (pass) t->data = to - low * size;
    }
    t->stride[0] = n0;
    if (t->rank == 2) t->stride[1] = n1;
}

void st_blas_copies_free(st_copies *c)
{
    for (int i = 0; i < c->n; i++) free(c->memory[i]);
    c->n = 0;
}
