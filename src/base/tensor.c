/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.c - makers, views and checks of tensors. A maker never fails by itself: it returns a view that carries its error, which the
 * first operator reports under the operator's name. */
#include "base/tensor.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

strata_tensor st_view_refuse(strata_tensor t, strata_status s, st_bad what, int axis, int64_t arg)
{
    if (!t.error) {
        t.error = (uint32_t)s | (uint32_t)what << 8 | (uint32_t)(axis & 0xff) << 16;
        t.error_arg = arg;
    }
    return t;
}

/* A view can be taken of it: no error yet, and a rank that its arrays have (a tensor that nobody filled in may say anything). */
bool st_view_usable(strata_tensor *t)
{
    if (t->error) return false;
    if (t->rank >= 0 && t->rank <= STRATA_MAX_RANK) return true;
    *t = st_view_refuse(*t, STRATA_ERROR_ARGUMENT, ST_BAD_RANK, 0, t->rank);
    t->rank = 0;
    return false;
}

static strata_tensor start(const void *data, strata_type type, int rank)
{
    strata_tensor t;
    memset(&t, 0, sizeof t);
    t.data = (void *)(uintptr_t)data;
    t.type = (int32_t)type;
    t.rank = rank;
    if ((int)type <= STRATA_NONE || (int)type >= STRATA_TYPE_COUNT)
        return st_view_refuse(t, STRATA_ERROR_TYPE, ST_BAD_TYPE, 0, (int)type);
    return t;
}

/* Elements of a byte: 1 but for types of less than a byte. */
static int64_t elements_a_byte(int type)
{
    const size_t bits = strata_type_bits((strata_type)type);
    return bits && bits < 8 ? 8 / (int64_t)bits : 1;
}

/* Rows of types of less than a byte begin on whole bytes. */
static strata_tensor pack_strides(strata_tensor t)
{
    const int64_t unit = elements_a_byte(t.type);
    int64_t s = 1;
    for (int d = t.rank - 1; d >= 0; d--) {
        t.stride[d] = s;
        if (st_mul_over(s, t.dim[d] ? t.dim[d] : 1, &s) || st_add_over(s, unit - 1, &s))
            return st_view_refuse(t, STRATA_ERROR_OVERFLOW, ST_BAD_OVERFLOW, d, 0);
        s -= unit > 1 ? s % unit : 0;
    }
    return t;
}

strata_tensor strata_matrix(const void *data, strata_type type, int64_t rows, int64_t cols,
                            strata_order order, int64_t ld)
{
    strata_tensor t = start(data, type, 2);
    t.dim[0] = rows;
    t.dim[1] = cols;
    if (rows < 0 || cols < 0)
        return st_view_refuse(t, STRATA_ERROR_SHAPE, ST_BAD_DIM, rows >= 0, rows < 0 ? rows : cols);
    if (order != STRATA_ROW_MAJOR && order != STRATA_COL_MAJOR)
        return st_view_refuse(t, STRATA_ERROR_ARGUMENT, ST_BAD_ORDER, 0, (int)order);
    int64_t run = order == STRATA_ROW_MAJOR ? cols : rows;
    const int64_t unit = elements_a_byte(t.type);
    if (ld == 0) ld = run > INT64_MAX - unit ? run : run ? st_round_up(run, unit) : unit;
    t.stride[0] = order == STRATA_ROW_MAJOR ? ld : 1;
    t.stride[1] = order == STRATA_ROW_MAJOR ? 1 : ld;
    if (ld < run) return st_view_refuse(t, STRATA_ERROR_LAYOUT, ST_BAD_LD, order == STRATA_ROW_MAJOR, ld);
    if (unit > 1 && ld % unit) return st_view_refuse(t, STRATA_ERROR_LAYOUT, ST_BAD_SUBBYTE, 0, ld);
    return t;
}

strata_tensor strata_vector(const void *data, strata_type type, int64_t n, int64_t inc)
{
    strata_tensor t = start(data, type, 1);
    t.dim[0] = n;
    if (n < 0) return st_view_refuse(t, STRATA_ERROR_SHAPE, ST_BAD_DIM, 0, n);
    if (inc == 0) inc = 1;
    t.stride[0] = inc;
    int64_t off;
    if (inc < 0 && n > 1) {
        if (st_mul_over(n - 1, inc, &off) || st_mul_over(off, (int64_t)(strata_type_bits(type) / 8), &off) ||
            off == INT64_MIN)
            return st_view_refuse(t, STRATA_ERROR_OVERFLOW, ST_BAD_OVERFLOW, 0, 0);
        if (strata_type_bits(type) < 8) return st_view_refuse(t, STRATA_ERROR_LAYOUT, ST_BAD_SUBBYTE, 0, inc);
        if (data) t.data = (char *)t.data - off;
    }
    return t;
}

strata_tensor strata_point(const void *data, strata_type type) { return start(data, type, 0); }

strata_tensor strata_array(const void *data, strata_type type, int rank, const int64_t *dim,
                           const int64_t *stride)
{
    strata_tensor t = start(data, type, rank);
    if (rank < 0 || rank > STRATA_MAX_RANK || (rank > 0 && !dim)) {
        t.rank = 0;
        bool range = rank < 0 || rank > STRATA_MAX_RANK;
        return st_view_refuse(t, STRATA_ERROR_ARGUMENT, range ? ST_BAD_RANK : ST_BAD_DIMS_NULL, 0, rank);
    }
    for (int d = 0; d < rank; d++) {
        t.dim[d] = dim[d];
        if (dim[d] < 0) t = st_view_refuse(t, STRATA_ERROR_SHAPE, ST_BAD_DIM, d, dim[d]);
        if (stride) t.stride[d] = stride[d];
    }
    return stride || t.error ? t : pack_strides(t);
}

strata_tensor strata_nchw(const void *data, strata_type type, int64_t n, int64_t c, int64_t h, int64_t w)
{
    int64_t dim[4] = {n, c, h, w};
    return strata_array(data, type, 4, dim, NULL);
}

strata_tensor strata_nhwc(const void *data, strata_type type, int64_t n, int64_t c, int64_t h, int64_t w)
{
    int64_t dim[4] = {n, h, w, c};
    if (n < 0 || c < 0 || h < 0 || w < 0)
        return strata_nchw(data, type, n, c, h, w); /* names the dim as the caller counts */
    return strata_permute(strata_array(data, type, 4, dim, NULL), (int[]){0, 3, 1, 2});
}

strata_tensor strata_batch(strata_tensor m, int64_t count, int64_t distance)
{
    if (!st_view_usable(&m)) return m;
    if (m.rank >= STRATA_MAX_RANK)
        return st_view_refuse(m, STRATA_ERROR_ARGUMENT, ST_BAD_RANK, 0, m.rank + 1);
    if (count < 0) return st_view_refuse(m, STRATA_ERROR_SHAPE, ST_BAD_DIM, 0, count);
    if (m.flags & STRATA_TENSOR_POINTERS)
        return st_view_refuse(m, STRATA_ERROR_ARGUMENT, ST_BAD_STRUCTURED, 0, m.flags);
    if (distance == 0 && m.flags & (STRATA_TENSOR_PACKED | STRATA_TENSOR_BAND)) {
        strata_tensor room, memory = strata_batch(*st_view_plain(&m, &room), count, 0);
        if (memory.error) return memory;
        distance = memory.stride[0];
    }
    if (distance == 0) {
        distance = 1;
        for (int d = 0; d < m.rank; d++) {
            int64_t span, s = m.stride[d];
            if (s == INT64_MIN || st_mul_over(s < 0 ? -s : s, m.dim[d], &span))
                return st_view_refuse(m, STRATA_ERROR_OVERFLOW, ST_BAD_OVERFLOW, d, 0);
            distance = st_max64(distance, span);
        }
    }
    memmove(m.dim + 1, m.dim, sizeof(int64_t) * (size_t)m.rank);
    memmove(m.stride + 1, m.stride, sizeof(int64_t) * (size_t)m.rank);
    m.dim[0] = count;
    m.stride[0] = distance;
    m.rank++;
    return m;
}

strata_tensor strata_transpose(strata_tensor t)
{
    if (!st_view_usable(&t) || t.rank < 2) return t;
    int a = t.rank - 2, b = t.rank - 1;
    int64_t d = t.dim[a], s = t.stride[a];
    t.dim[a] = t.dim[b];
    t.stride[a] = t.stride[b];
    t.dim[b] = d;
    t.stride[b] = s;
    const uint32_t half = t.flags & (STRATA_TENSOR_LOWER | STRATA_TENSOR_UPPER);
    if (half) t.flags ^= STRATA_TENSOR_LOWER | STRATA_TENSOR_UPPER;
    if (t.flags & STRATA_TENSOR_BAND)
        t.error_arg = st_band_width(&t, true) + (st_band_width(&t, false) << 32);
    return t;
}

/* Views that would take a structured matrix apart are refused; so are all of what is no strided view at all. */
static bool plain_view(strata_tensor *t)
{
    if (!st_view_usable(t)) return false;
    const uint32_t structure = t->flags & ~STRATA_TENSOR_CONJ;
    if (structure) *t = st_view_refuse(*t, STRATA_ERROR_ARGUMENT, ST_BAD_STRUCTURED, 0, structure);
    return !structure;
}

strata_tensor strata_permute(strata_tensor t, const int *order)
{
    if (!plain_view(&t)) return t;
    if (!order && t.rank > 0) return st_view_refuse(t, STRATA_ERROR_ARGUMENT, ST_BAD_PERMUTE_NULL, 0, t.rank);
    strata_tensor r = t;
    unsigned seen = 0;
    for (int d = 0; d < t.rank; d++) {
        if (order[d] < 0 || order[d] >= t.rank)
            return st_view_refuse(t, STRATA_ERROR_ARGUMENT, ST_BAD_AXIS, 0, order[d]);
        if (seen >> order[d] & 1)
            return st_view_refuse(t, STRATA_ERROR_ARGUMENT, ST_BAD_AXIS_TWICE, 0, order[d]);
        seen |= 1u << order[d];
        r.dim[d] = t.dim[order[d]];
        r.stride[d] = t.stride[order[d]];
    }
    return r;
}

strata_tensor strata_slice(strata_tensor t, int axis, int64_t begin, int64_t count, int64_t step)
{
    if (!plain_view(&t)) return t;
    if (axis < 0 || axis >= t.rank) return st_view_refuse(t, STRATA_ERROR_ARGUMENT, ST_BAD_AXIS, 0, axis);
    int64_t last = begin, off, size = t.dim[axis];
    if (step == 0) return st_view_refuse(t, STRATA_ERROR_ARGUMENT, ST_BAD_SLICE_STEP, axis, 0);
    if (count < 0) return st_view_refuse(t, STRATA_ERROR_ARGUMENT, ST_BAD_SLICE_COUNT, axis, count);
    if (begin < 0 || begin > size || (begin == size && count > 0))
        return st_view_refuse(t, STRATA_ERROR_ARGUMENT, ST_BAD_SLICE_REACH, axis, begin);
    if (count > 0) {
        if (st_mul_over(count - 1, step, &last) || st_add_over(last, begin, &last))
            last = step < 0 ? INT64_MIN : INT64_MAX;
        if (last < 0 || last >= size)
            return st_view_refuse(t, STRATA_ERROR_ARGUMENT, ST_BAD_SLICE_REACH, axis, last);
        int64_t bits = (int64_t)strata_type_bits((strata_type)t.type);
        if (st_mul_over(begin, t.stride[axis], &off) || st_mul_over(off, bits, &off))
            return st_view_refuse(t, STRATA_ERROR_OVERFLOW, ST_BAD_OVERFLOW, axis, 0);
        if (off % 8) return st_view_refuse(t, STRATA_ERROR_LAYOUT, ST_BAD_SUBBYTE, axis, begin);
        if (t.data) t.data = (char *)t.data + off / 8;
    }
    strata_tensor r = t;
    r.dim[axis] = count;
    if (count <= 1) /* a step that is never taken may have any size */
        r.stride[axis] = t.stride[axis];
    else if (st_mul_over(t.stride[axis], step, &r.stride[axis]))
        return st_view_refuse(t, STRATA_ERROR_OVERFLOW, ST_BAD_OVERFLOW, axis, 0);
    return r;
}

/* One group of old dims [i, i1) becomes the new dims [j, j1) of the same product. The old ones must be contiguous in each other; the
 * first that is not is returned, -1 when all are. */
static int refold(const strata_tensor *t, int i, int i1, strata_tensor *r, int j, int j1)
{
    int64_t inner = 1, next = 1;
    bool any = false, lost = false;
    for (int p = i1 - 1; p >= i; p--) {
        if (t->dim[p] == 1) continue;
        if (!any)
            inner = t->stride[p];
        else if (lost || t->stride[p] != next)
            return p;
        any = true;
        lost = st_mul_over(t->stride[p], t->dim[p], &next); /* where the next dim outwards must continue */
    }
    for (int p = j1 - 1; p >= j; p--) {
        r->stride[p] = inner;
        if (st_mul_over(inner, r->dim[p], &inner))
            inner = INT64_MAX; /* used by dims of 1 only, or refused by every operator */
    }
    return -1;
}

strata_tensor strata_reshape(strata_tensor t, int rank, const int64_t *dim)
{
    if (!plain_view(&t)) return t;
    strata_tensor r = t;
    int64_t n = strata_count(t), m = 1;
    bool zero = false, over = false;
    if (rank < 0 || rank > STRATA_MAX_RANK)
        return st_view_refuse(t, STRATA_ERROR_ARGUMENT, ST_BAD_RANK, 0, rank);
    if (rank && !dim) return st_view_refuse(t, STRATA_ERROR_ARGUMENT, ST_BAD_DIMS_NULL, 0, rank);
    for (int d = 0; d < rank; d++) {
        if (dim[d] < 0) return st_view_refuse(t, STRATA_ERROR_SHAPE, ST_BAD_DIM, d, dim[d]);
        zero |= dim[d] == 0;
        over |= st_mul_over(m, dim[d], &m);
    }
    if (zero) m = 0;
    if (n != m || n < 0 || (over && !zero))
        return st_view_refuse(t, STRATA_ERROR_SHAPE, ST_BAD_RESHAPE_COUNT, 0, over && !zero ? -1 : m);
    memset(r.dim, 0, sizeof r.dim);
    memset(r.stride, 0, sizeof r.stride);
    r.rank = rank;
    for (int d = 0; d < rank; d++) r.dim[d] = dim[d];
    if (n == 0) return pack_strides(r);
    int i = 0, j = 0;
    while (i < t.rank || j < rank) {
        int i1 = i, j1 = j;
        int64_t a = 1, b = 1;
        /* the smallest groups with equal products; dims of 1 join whatever is open */
        do {
            if (a <= b && i1 < t.rank)
                a *= t.dim[i1++];
            else if (j1 < rank)
                b *= dim[j1++];
            else
                a *= t.dim[i1++];
        } while (a != b || (i1 == i && i < t.rank) || (j1 == j && j < rank && i1 == t.rank));
        while (i1 < t.rank && t.dim[i1] == 1) i1++;
        while (j1 < rank && dim[j1] == 1) j1++;
        int torn = refold(&t, i, i1, &r, j, j1);
        if (torn >= 0)
            return st_view_refuse(t, STRATA_ERROR_LAYOUT, ST_BAD_RESHAPE_JOIN, torn, t.stride[torn]);
        i = i1;
        j = j1;
    }
    return r;
}

strata_tensor strata_broadcast(strata_tensor t, int rank, const int64_t *dim)
{
    if (!plain_view(&t)) return t;
    if (rank < t.rank || rank > STRATA_MAX_RANK)
        return st_view_refuse(t, STRATA_ERROR_ARGUMENT, ST_BAD_RANK, 0, rank);
    if (rank && !dim) return st_view_refuse(t, STRATA_ERROR_ARGUMENT, ST_BAD_DIMS_NULL, 0, rank);
    strata_tensor r = t;
    memset(r.dim, 0, sizeof r.dim);
    memset(r.stride, 0, sizeof r.stride);
    r.rank = rank;
    for (int d = 0; d < rank; d++) {
        int s = d - (rank - t.rank);
        r.dim[d] = dim[d];
        if (dim[d] < 0) return st_view_refuse(t, STRATA_ERROR_SHAPE, ST_BAD_DIM, d, dim[d]);
        if (s >= 0 && t.dim[s] == dim[d])
            r.stride[d] = t.stride[s];
        else if (s >= 0 && t.dim[s] != 1)
            return st_view_refuse(t, STRATA_ERROR_SHAPE, ST_BAD_BROADCAST, s, dim[d]);
    }
    return r;
}

int64_t strata_count(strata_tensor t)
{
    int64_t n = 1;
    bool over = false, zero = false;
    for (int d = 0; d < t.rank && d < STRATA_MAX_RANK; d++) {
        zero |= t.dim[d] == 0;
        over |= t.dim[d] < 0 || st_mul_over(n, t.dim[d], &n);
    }
    return zero ? 0 : over ? -1 : n;
}

const char *st_dims(const strata_tensor *t, char *buf, size_t n)
{
    size_t at = 0;
    buf[0] = 0;
    if (t->rank <= 0) snprintf(buf, n, "a single element");
    for (int d = 0; d < t->rank && d < STRATA_MAX_RANK && at < n; d++)
        at += (size_t)snprintf(buf + at, n - at, "%s%" PRId64, d ? "x" : "", t->dim[d]);
    return buf;
}

size_t strata_tensor_describe(strata_tensor t, char *buf, size_t n)
{
    char dims[200], strides[200] = "";
    size_t at = 0;
    for (int d = 0; d < t.rank && d < STRATA_MAX_RANK && at < sizeof strides; d++)
        at += (size_t)snprintf(strides + at, sizeof strides - at, "%s%" PRId64, d ? "," : "", t.stride[d]);
    int k =
        snprintf(buf, n, "%s %s%s%s%s", strata_type_name((strata_type)t.type), st_dims(&t, dims, sizeof dims),
                 t.rank > 0 ? " (stride " : "", strides, t.rank > 0 ? ")" : "");
    return k < 0 ? 0 : (size_t)k;
}
