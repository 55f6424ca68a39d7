/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.c - makers, views and checks of tensors. A maker never fails by itself: it returns a view that carries its error, which the
 * first operator reports under the operator's name. */
#include "base/base.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What a bad view is: the low byte of `error` is a strata_status, the next byte one of these, error_arg the offending value. */
enum {
    BAD_DIM = 1,
    BAD_LD,
    BAD_TYPE,
    BAD_RANK,
    BAD_AXIS,
    BAD_SLICE,
    BAD_RESHAPE,
    BAD_BROADCAST,
    BAD_OVERFLOW,
    BAD_ORDER,
    BAD_SUBBYTE
};

static strata_tensor bad(strata_tensor t, strata_status s, int what, int64_t arg)
{
    if (!t.error) {
        t.error = (uint32_t)s | (uint32_t)what << 8;
        t.error_arg = arg;
    }
    return t;
}

static strata_tensor start(const void *data, strata_type type, int rank)
{
    strata_tensor t;
    memset(&t, 0, sizeof t);
    t.data = (void *)(uintptr_t)data;
    t.type = (int32_t)type;
    t.rank = rank;
    if ((int)type <= STRATA_NONE || (int)type >= STRATA_TYPE_COUNT)
        return bad(t, STRATA_ERROR_TYPE, BAD_TYPE, (int64_t)type);
    return t;
}

static strata_tensor pack_strides(strata_tensor t)
{
    int64_t s = 1;
    for (int d = t.rank - 1; d >= 0; d--) {
        t.stride[d] = s;
        if (st_mul_over(s, t.dim[d] ? t.dim[d] : 1, &s))
            return bad(t, STRATA_ERROR_OVERFLOW, BAD_OVERFLOW, d);
    }
    return t;
}

strata_tensor strata_matrix(const void *data, strata_type type, int64_t rows, int64_t cols,
                            strata_order order, int64_t ld)
{
    strata_tensor t = start(data, type, 2);
    t.dim[0] = rows;
    t.dim[1] = cols;
    if (rows < 0 || cols < 0) return bad(t, STRATA_ERROR_SHAPE, BAD_DIM, rows < 0 ? rows : cols);
    if (order != STRATA_ROW_MAJOR && order != STRATA_COL_MAJOR)
        return bad(t, STRATA_ERROR_ARGUMENT, BAD_ORDER, (int64_t)order);
    int64_t run = order == STRATA_ROW_MAJOR ? cols : rows;
    if (ld == 0) ld = run ? run : 1;
    t.stride[0] = order == STRATA_ROW_MAJOR ? ld : 1;
    t.stride[1] = order == STRATA_ROW_MAJOR ? 1 : ld;
    if (ld < run) return bad(t, STRATA_ERROR_LAYOUT, BAD_LD, ld);
    return t;
}

strata_tensor strata_vector(const void *data, strata_type type, int64_t n, int64_t inc)
{
    strata_tensor t = start(data, type, 1);
    t.dim[0] = n;
    if (n < 0) return bad(t, STRATA_ERROR_SHAPE, BAD_DIM, n);
    if (inc == 0) inc = 1;
    t.stride[0] = inc;
    int64_t off;
    if (inc < 0 && n > 1) {
        if (st_mul_over(n - 1, inc, &off) || st_mul_over(off, (int64_t)(strata_type_bits(type) / 8), &off) ||
            off == INT64_MIN)
            return bad(t, STRATA_ERROR_OVERFLOW, BAD_OVERFLOW, 0);
        if (strata_type_bits(type) < 8) return bad(t, STRATA_ERROR_LAYOUT, BAD_SUBBYTE, inc);
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
        return bad(t, STRATA_ERROR_ARGUMENT, BAD_RANK, rank);
    }
    for (int d = 0; d < rank; d++) {
        t.dim[d] = dim[d];
        if (dim[d] < 0) t = bad(t, STRATA_ERROR_SHAPE, BAD_DIM, dim[d]);
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
    return strata_permute(strata_array(data, type, 4, dim, NULL), (int[]){0, 3, 1, 2});
}

strata_tensor strata_batch(strata_tensor m, int64_t count, int64_t distance)
{
    if (m.error) return m;
    if (m.rank >= STRATA_MAX_RANK) return bad(m, STRATA_ERROR_ARGUMENT, BAD_RANK, m.rank + 1);
    if (distance == 0) {
        distance = 1;
        for (int d = 0; d < m.rank; d++) {
            int64_t span, s = m.stride[d] < 0 ? -m.stride[d] : m.stride[d];
            if (st_mul_over(s, m.dim[d], &span)) return bad(m, STRATA_ERROR_OVERFLOW, BAD_OVERFLOW, d);
            distance = st_max64(distance, span);
        }
    }
    memmove(m.dim + 1, m.dim, sizeof(int64_t) * (size_t)m.rank);
    memmove(m.stride + 1, m.stride, sizeof(int64_t) * (size_t)m.rank);
    m.dim[0] = count;
    m.stride[0] = distance;
    m.rank++;
    return count < 0 ? bad(m, STRATA_ERROR_SHAPE, BAD_DIM, count) : m;
}

strata_tensor strata_transpose(strata_tensor t)
{
    if (t.error || t.rank < 2) return t;
    int a = t.rank - 2, b = t.rank - 1;
    int64_t d = t.dim[a], s = t.stride[a];
    t.dim[a] = t.dim[b];
    t.stride[a] = t.stride[b];
    t.dim[b] = d;
    t.stride[b] = s;
    return t;
}

strata_tensor strata_permute(strata_tensor t, const int *order)
{
    if (t.error) return t;
    strata_tensor r = t;
    unsigned seen = 0;
    for (int d = 0; d < t.rank; d++) {
        if (!order || order[d] < 0 || order[d] >= t.rank || seen >> order[d] & 1)
            return bad(t, STRATA_ERROR_ARGUMENT, BAD_AXIS, order ? order[d] : -1);
        seen |= 1u << order[d];
        r.dim[d] = t.dim[order[d]];
        r.stride[d] = t.stride[order[d]];
    }
    return r;
}

strata_tensor strata_slice(strata_tensor t, int axis, int64_t begin, int64_t count, int64_t step)
{
    if (t.error) return t;
    if (axis < 0 || axis >= t.rank) return bad(t, STRATA_ERROR_ARGUMENT, BAD_AXIS, axis);
    int64_t last = begin, off;
    if (step == 0) step = 1;
    if (count < 0 || begin < 0 ||
        (count > 0 && (st_mul_over(count - 1, step, &last) || st_add_over(last, begin, &last) || last < 0 ||
                       last >= t.dim[axis] || begin >= t.dim[axis])))
        return bad(t, STRATA_ERROR_ARGUMENT, BAD_SLICE, axis);
    int64_t bits = (int64_t)strata_type_bits((strata_type)t.type);
    if (count > 0) {
        if (st_mul_over(begin, t.stride[axis], &off) || st_mul_over(off, bits, &off))
            return bad(t, STRATA_ERROR_OVERFLOW, BAD_OVERFLOW, axis);
        if (off % 8) return bad(t, STRATA_ERROR_LAYOUT, BAD_SUBBYTE, begin);
        if (t.data) t.data = (char *)t.data + off / 8;
    }
    t.dim[axis] = count;
    if (st_mul_over(t.stride[axis], step, &t.stride[axis]))
        return bad(t, STRATA_ERROR_OVERFLOW, BAD_OVERFLOW, axis);
    return t;
}

/* Groups of old dims that are contiguous in each other are refolded into groups of new dims of the same product. */
strata_tensor strata_reshape(strata_tensor t, int rank, const int64_t *dim)
{
    if (t.error) return t;
    strata_tensor r = t;
    int64_t n = strata_count(t), m = 1;
    if (rank < 0 || rank > STRATA_MAX_RANK || (rank && !dim))
        return bad(t, STRATA_ERROR_ARGUMENT, BAD_RANK, rank);
    for (int d = 0; d < rank; d++)
        if (dim[d] < 0 || st_mul_over(m, dim[d], &m)) return bad(t, STRATA_ERROR_SHAPE, BAD_RESHAPE, dim[d]);
    if (n != m) return bad(t, STRATA_ERROR_SHAPE, BAD_RESHAPE, m);
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
        int64_t inner = 1;
        bool any = false;
        for (int p = i1 - 1, last = -1; p >= i; p--) {
            if (t.dim[p] == 1) continue;
            if (!any)
                inner = t.stride[p];
            else if (t.stride[p] != t.stride[last] * t.dim[last])
                return bad(t, STRATA_ERROR_LAYOUT, BAD_RESHAPE, p);
            any = true;
            last = p;
        }
        for (int p = j1 - 1; p >= j; p--) {
            r.stride[p] = inner;
            inner *= dim[p];
        }
        i = i1;
        j = j1;
    }
    return r;
}

strata_tensor strata_broadcast(strata_tensor t, int rank, const int64_t *dim)
{
    if (t.error) return t;
    if (rank < t.rank || rank > STRATA_MAX_RANK || (rank && !dim))
        return bad(t, STRATA_ERROR_ARGUMENT, BAD_RANK, rank);
    strata_tensor r = t;
    memset(r.dim, 0, sizeof r.dim);
    memset(r.stride, 0, sizeof r.stride);
    r.rank = rank;
    for (int d = 0; d < rank; d++) {
        int s = d - (rank - t.rank);
        r.dim[d] = dim[d];
        if (s >= 0 && t.dim[s] == dim[d])
            r.stride[d] = t.stride[s];
        else if (s >= 0 && t.dim[s] != 1)
            return bad(t, STRATA_ERROR_SHAPE, BAD_BROADCAST, dim[d]);
    }
    return r;
}

int64_t strata_count(strata_tensor t)
{
    int64_t n = 1;
    bool over = false, zero = false;
    for (int d = 0; d < t.rank && d < STRATA_MAX_RANK; d++) {
        zero |= t.dim[d] == 0;
        over |= st_mul_over(n, t.dim[d], &n);
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
