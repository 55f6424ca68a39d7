/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_structure.c - views that say what a matrix is: conjugated, symmetric, hermitian, triangular, packed, banded, a batch of addresses.
 *
 * The strides of a packed triangle only say its order ({1, 0}: by columns, {0, 1}: by rows): its elements are not evenly spaced. Those of a band are
 * real: a step along the diagonal is ld, so a column's elements are 1 apart and a row's ld - 1. */
#include "base/tensor.h"
#include <string.h>

enum { TRIANGLE = STRATA_TENSOR_LOWER | STRATA_TENSOR_UPPER };

/* A square matrix (or a batch) that may become `kind` in the triangle `stored`. */
static bool triangle(strata_tensor *t, strata_uplo stored)
{
    if (!st_view_usable(t)) return false;
    const uint32_t have =
        t->flags & (TRIANGLE | STRATA_TENSOR_SYMMETRIC | STRATA_TENSOR_HERMITIAN | STRATA_TENSOR_UNIT);
    const uint32_t want = stored == STRATA_LOWER ? STRATA_TENSOR_LOWER : STRATA_TENSOR_UPPER;
    if (t->rank < 2)
        *t = st_view_refuse(*t, STRATA_ERROR_SHAPE, ST_BAD_MATRIX_RANK, 0, t->rank);
    else if (t->dim[t->rank - 1] != t->dim[t->rank - 2])
        *t = st_view_refuse(*t, STRATA_ERROR_SHAPE, ST_BAD_SQUARE, t->rank - 2, t->dim[t->rank - 1]);
    else if (stored != STRATA_LOWER && stored != STRATA_UPPER)
        *t = st_view_refuse(*t, STRATA_ERROR_ARGUMENT, ST_BAD_UPLO, 0, (int)stored);
    else if (t->flags & STRATA_TENSOR_PACKED ? have != want : have != 0)
        *t = st_view_refuse(*t, STRATA_ERROR_ARGUMENT, ST_BAD_STRUCTURE_TWICE, 0, have);
    else if (t->flags & STRATA_TENSOR_BAND && st_band_width(t, stored == STRATA_LOWER))
        *t = st_view_refuse(*t, STRATA_ERROR_ARGUMENT, ST_BAD_BAND_UPLO, stored == STRATA_LOWER,
                            st_band_width(t, stored == STRATA_LOWER));
    else
        t->flags |= want;
    return !t->error;
}

strata_tensor strata_conj(strata_tensor t)
{
    if (st_view_usable(&t) && st_type_is_complex(t.type)) t.flags ^= STRATA_TENSOR_CONJ;
    return t;
}

strata_tensor strata_symmetric(strata_tensor t, strata_uplo stored)
{
    if (triangle(&t, stored)) t.flags |= STRATA_TENSOR_SYMMETRIC;
    return t;
}

strata_tensor strata_hermitian(strata_tensor t, strata_uplo stored)
{
    if (triangle(&t, stored))
        t.flags |= st_type_is_complex(t.type) ? STRATA_TENSOR_HERMITIAN : STRATA_TENSOR_SYMMETRIC;
    return t;
}

strata_tensor strata_triangular(strata_tensor t, strata_uplo stored, strata_diag diag)
{
    if (!triangle(&t, stored)) return t;
    if (diag != STRATA_NON_UNIT && diag != STRATA_UNIT)
        return st_view_refuse(t, STRATA_ERROR_ARGUMENT, ST_BAD_DIAG, 0, (int)diag);
    if (diag == STRATA_UNIT) t.flags |= STRATA_TENSOR_UNIT;
    return t;
}

strata_tensor strata_packed(const void *data, strata_type type, int64_t n, strata_uplo stored,
                            strata_order order)
{
    strata_tensor t = strata_matrix(data, type, n, n, order, 0);
    int64_t elements;
    if (t.error) return t;
    if (stored != STRATA_LOWER && stored != STRATA_UPPER)
        return st_view_refuse(t, STRATA_ERROR_ARGUMENT, ST_BAD_UPLO, 0, (int)stored);
    if (st_mul_over(n, n + 1, &elements))
        return st_view_refuse(t, STRATA_ERROR_OVERFLOW, ST_BAD_OVERFLOW, 0, 0);
    t.flags = STRATA_TENSOR_PACKED | (stored == STRATA_LOWER ? STRATA_TENSOR_LOWER : STRATA_TENSOR_UPPER);
    t.stride[0] = order == STRATA_COL_MAJOR;
    t.stride[1] = order == STRATA_ROW_MAJOR;
    return t;
}

strata_tensor strata_band(const void *data, strata_type type, int64_t rows, int64_t cols, int64_t kl,
                          int64_t ku, strata_order order, int64_t ld)
{
    const bool by_columns = order == STRATA_COL_MAJOR;
    strata_tensor t = strata_matrix(data, type, rows, cols, order, 0);
    if (t.error) return t;
    if (kl < 0 || kl > INT32_MAX) return st_view_refuse(t, STRATA_ERROR_ARGUMENT, ST_BAD_BAND, 0, kl);
    if (ku < 0 || ku > INT32_MAX) return st_view_refuse(t, STRATA_ERROR_ARGUMENT, ST_BAD_BAND, 1, ku);
    if (ld == 0) ld = kl + ku + 1;
    t.error_arg = kl + (ku << 32);
    if (ld < kl + ku + 1) return st_view_refuse(t, STRATA_ERROR_LAYOUT, ST_BAD_BAND_LD, 0, ld);
    t.flags = STRATA_TENSOR_BAND;
    t.stride[0] = by_columns ? 1 : ld - 1;
    t.stride[1] = by_columns ? ld - 1 : 1;
    if (data) t.data = (char *)t.data + (by_columns ? ku : kl) * (int64_t)(strata_type_bits(type) / 8);
    return t;
}

strata_tensor strata_pointers(strata_tensor m, const void *const *address, int64_t count)
{
    if (!st_view_usable(&m)) return m;
    if (m.flags & STRATA_TENSOR_POINTERS)
        return st_view_refuse(m, STRATA_ERROR_ARGUMENT, ST_BAD_STRUCTURE_TWICE, 0, m.flags);
    m = strata_batch(m, count, 1);
    if (m.error) return m;
    m.flags |= STRATA_TENSOR_POINTERS;
    m.stride[0] = 0;
    m.data = (void *)(uintptr_t)address;
    return m;
}

const strata_tensor *st_view_plain(const strata_tensor *t, strata_tensor *room)
{
    const int r = t->rank - 2, rows = r, cols = r + 1;
    if (!(t->flags & (STRATA_TENSOR_PACKED | STRATA_TENSOR_BAND))) return t;
    *room = *t;
    room->flags = 0;
    room->error_arg = 0;
    if (t->flags & STRATA_TENSOR_PACKED) {
        room->rank = r + 1;
        room->dim[r] = t->dim[rows] * (t->dim[rows] + 1) / 2;
        room->stride[r] = 1;
    } else if (t->dim[rows] > 0 && t->dim[cols] > 0) {
        const bool by_columns =
            t->stride[rows] == 1; /* with ld 2 both are 1; either reading covers the memory */
        const int64_t kl = st_band_width(t, false), ku = st_band_width(t, true);
        const int64_t es = (int64_t)(strata_type_bits((strata_type)t->type) / 8);
        room->dim[rows] = t->dim[by_columns ? cols : rows];
        room->dim[cols] = kl + ku + 1;
        room->stride[rows] = t->stride[by_columns ? cols : rows] + 1;
        room->stride[cols] = 1;
        if (t->data) room->data = (char *)t->data - (by_columns ? ku : kl) * es;
    }
    return room;
}
