/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_check.c - what every operator asks of a view before it touches memory. */
#include "base/base.h"
#include <inttypes.h>
#include <string.h>

/* The codes are tensor.c's, in the order of its enum. */
static const char *const maker_words[] = {
    "unknown reason",
    "was made with a negative size, %" PRId64 ": sizes are 0 or more",
    "was made with a leading dimension of %" PRId64
    ", smaller than the row (or column) that it must step over; 0 means tightly packed",
    "was made with type number %" PRId64 ", which is not a strata_type",
    "was made with rank %" PRId64 ": ranks are 0 to 8, and dims must be given",
    "was made from a view with axis %" PRId64 ", which it does not have (or which was named twice)",
    "was made by strata_slice outside the elements that axis %" PRId64 " has",
    "was made by strata_reshape to dims that do not fit: %" PRId64
    " elements wanted, or axis strides that would need a copy",
    "was made by strata_broadcast to a dim of %" PRId64 " that its own dim neither equals nor is 1",
    "is too large: the number of elements or bytes does not fit 63 bits (axis %" PRId64 ")",
    "was made with order %" PRId64 ": STRATA_ROW_MAJOR and STRATA_COL_MAJOR are the orders there are",
    "was made with an offset (%" PRId64 ") that does not fall on a whole byte"};

static strata_status maker_error(st_err *e, const char *who, const char *name, const strata_tensor *t)
{
    unsigned what = t->error >> 8 & 0xff;
    char words[256];
    const char *f = maker_words[what < ST_COUNT(maker_words) ? what : 0];
    /* the formats above are ours and take one int64 */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    __builtin_snprintf(words, sizeof words, f, t->error_arg);
#pragma GCC diagnostic pop
    return st_fail(e, (strata_status)(t->error & 0xff), "%s: %s %s", who, name, words);
}

/* Offsets in bytes of the lowest and highest element; false on overflow. */
static bool extent(const strata_tensor *t, int64_t *lo, int64_t *hi)
{
    int64_t a = 0, b = 0, bits = (int64_t)strata_type_bits((strata_type)t->type);
    for (int d = 0; d < t->rank; d++) {
        int64_t s;
        if (t->dim[d] <= 1) continue;
        if (st_mul_over(t->dim[d] - 1, t->stride[d], &s)) return false;
        if (st_add_over(s < 0 ? a : b, s, s < 0 ? &a : &b)) return false;
    }
    if (st_add_over(b, 1, &b) || st_mul_over(a, bits, &a) || st_mul_over(b, bits, &b)) return false;
    *lo = a / 8;
    *hi = (b + 7) / 8;
    return true;
}

strata_status st_tensor_check(st_err *e, const char *who, const char *name, const strata_tensor *t)
{
    if (t->error) return maker_error(e, who, name, t);
    if (t->type <= STRATA_NONE || t->type >= STRATA_TYPE_COUNT)
        return st_fail(e, STRATA_ERROR_TYPE,
                       "%s: %s has type number %d, which is not a strata_type; make it with strata_matrix, "
                       "strata_array, strata_nhwc, ...",
                       who, name, (int)t->type);
    if (t->rank < 0 || t->rank > STRATA_MAX_RANK)
        return st_fail(e, STRATA_ERROR_ARGUMENT, "%s: %s has rank %d; ranks are 0 to %d", who, name,
                       (int)t->rank, STRATA_MAX_RANK);
    if (t->reserved || (t->flags & ~7u))
        return st_fail(e, STRATA_ERROR_ARGUMENT,
                       "%s: %s has reserved words or unknown flags set; was the tensor made by a strata_ "
                       "maker or zeroed first?",
                       who, name);
    for (int d = 0; d < t->rank; d++)
        if (t->dim[d] < 0)
            return st_fail(e, STRATA_ERROR_SHAPE, "%s: %s is %s: dim %d is negative", who, name, ST_DIMS(*t),
                           d);
    int64_t n = strata_count(*t), lo, hi;
    if (n < 0 || !extent(t, &lo, &hi))
        return st_fail(e, STRATA_ERROR_OVERFLOW, "%s: %s is %s: its size does not fit 63 bits", who, name,
                       ST_DIMS(*t));
    if (n > 0 && !t->data)
        return st_fail(e, STRATA_ERROR_ARGUMENT, "%s: %s is %s but its data pointer is NULL", who, name,
                       ST_DIMS(*t));
    return STRATA_OK;
}

/* Sorted by stride, each dim must step over all that lies below it; that is sufficient, and necessary for every view that makers and
 * views produce from packed memory. */
strata_status st_tensor_check_output(st_err *e, const char *who, const char *name, const strata_tensor *t)
{
    strata_status s = st_tensor_check(e, who, name, t);
    if (s) return s;
    int64_t len[STRATA_MAX_RANK], st[STRATA_MAX_RANK];
    int n = 0;
    for (int d = 0; d < t->rank; d++) {
        if (t->dim[d] == 0) return STRATA_OK;
        if (t->dim[d] == 1) continue;
        int64_t a = t->stride[d] < 0 ? -t->stride[d] : t->stride[d];
        if (a == 0)
            return st_fail(e, STRATA_ERROR_LAYOUT,
                           "%s: %s is written, but its dim %d (%" PRId64
                           " long) has stride 0: all its elements are one",
                           who, name, d, t->dim[d]);
        int i = n++;
        for (; i > 0 && st[i - 1] > a; i--) {
            st[i] = st[i - 1];
            len[i] = len[i - 1];
        }
        st[i] = a;
        len[i] = t->dim[d];
    }
    int64_t reach = 0; /* offset of the last element below this dim */
    for (int i = 0; i < n; i++) {
        if (st[i] <= reach)
            return st_fail(e, STRATA_ERROR_LAYOUT,
                           "%s: %s is written, but its strides make elements overlap (stride %" PRId64
                           " steps into a run of %" PRId64 ")",
                           who, name, st[i], reach + 1);
        reach += (len[i] - 1) * st[i];
    }
    return STRATA_OK;
}

void st_tensor_span(const strata_tensor *t, const char **lo, const char **hi)
{
    int64_t a, b;
    if (!t->data || strata_count(*t) <= 0 || !extent(t, &a, &b)) {
        *lo = *hi = NULL;
        return;
    }
    *lo = (const char *)t->data + a;
    *hi = (const char *)t->data + b;
}

/* Dims longer than 1, by descending |stride|, with negative strides turned round (base moved to the lowest element). */
typedef struct {
    int n;
    int64_t len[STRATA_MAX_RANK], stride[STRATA_MAX_RANK];
    const char *base;
} st_lattice;

static st_lattice lattice(const strata_tensor *t)
{
    st_lattice l = {0, {0}, {0}, t->data};
    int64_t bits = (int64_t)strata_type_bits((strata_type)t->type);
    for (int d = 0; d < t->rank; d++) {
        int64_t s = t->stride[d];
        if (t->dim[d] <= 1 || s == 0) continue;
        if (s < 0) l.base += (t->dim[d] - 1) * s * bits / 8;
        s = s < 0 ? -s : s;
        int i = l.n++;
        for (; i > 0 && l.stride[i - 1] < s; i--) {
            l.stride[i] = l.stride[i - 1];
            l.len[i] = l.len[i - 1];
        }
        l.stride[i] = s;
        l.len[i] = t->dim[d];
    }
    return l;
}

/* Do two boxes on one lattice meet, b's corner lying `delta` elements after a's? */
static bool boxes_meet(const int64_t *stride, const int64_t *la, const int64_t *lb, int n, int64_t delta)
{
    if (n == 0) return delta == 0;
    int64_t q = delta / stride[0];
    if (delta % stride[0] < 0) q--;
    for (int64_t r = q; r <= q + 1; r++)
        if (r < la[0] && r + lb[0] > 0 &&
            boxes_meet(stride + 1, la + 1, lb + 1, n - 1, delta - r * stride[0]))
            return true;
    return false;
}

/* Two views whose dims have the same strides (blocks of one matrix, transposed or not) are compared exactly. Otherwise the answer is
 * yes when one of them fills its span, and no when that cannot be seen. */
bool st_tensor_overlap(const strata_tensor *a, const strata_tensor *b)
{
    const char *al, *ah, *bl, *bh;
    st_tensor_span(a, &al, &ah);
    st_tensor_span(b, &bl, &bh);
    if (!(al && bl && al < bh && bl < ah)) return false;
    st_lattice x = lattice(a), y = lattice(b);
    int64_t size = (int64_t)strata_type_bits((strata_type)a->type) / 8,
            sb = (int64_t)strata_type_bits((strata_type)b->type) / 8;
    int64_t na = 1, nb = 1;
    for (int i = 0; i < x.n; i++) na *= x.len[i];
    for (int i = 0; i < y.n; i++) nb *= y.len[i];
    if (na * size >= ah - al || nb * sb >= bh - bl) return true;
    /* merge the two lists of strides; a stride that only one has gets length 1 in the other */
    int64_t st[2 * STRATA_MAX_RANK], la[2 * STRATA_MAX_RANK], lb[2 * STRATA_MAX_RANK], reach = 0;
    int n = 0, i = 0, j = 0;
    while (i < x.n || j < y.n) {
        int64_t s = st_max64(i < x.n ? x.stride[i] : 0, j < y.n ? y.stride[j] : 0);
        st[n] = s;
        la[n] = i < x.n && x.stride[i] == s ? x.len[i++] : 1;
        lb[n++] = j < y.n && y.stride[j] == s ? y.len[j++] : 1;
    }
    for (int k = n - 1; k >= 0;
         k--) { /* the two-candidate search needs each stride to step over all below it */
        if (st[k] <= reach) return false;
        reach += (st_max64(la[k], lb[k]) - 1) * st[k];
    }
    if (size != sb || size == 0 || (y.base - x.base) % size) return false;
    return boxes_meet(st, la, lb, n, (y.base - x.base) / size);
}

bool st_tensor_same_view(const strata_tensor *a, const strata_tensor *b)
{
    if (a->data != b->data || a->type != b->type || a->rank != b->rank) return false;
    for (int d = 0; d < a->rank; d++)
        if (a->dim[d] != b->dim[d] || (a->dim[d] > 1 && a->stride[d] != b->stride[d])) return false;
    return true;
}
