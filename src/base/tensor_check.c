/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_check.c - what every operator asks of a view before it touches memory. */
#include "base/tensor.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What the maker was given and the rule that it broke. */
static void maker_words(const strata_tensor *t, char *out, size_t n)
{
    int axis = (int)(t->error >> 16 & 0xff);
    long long v = t->error_arg, own = axis < STRATA_MAX_RANK ? t->dim[axis] : 0;
    switch ((st_bad)(t->error >> 8 & 0xff)) {
    case ST_BAD_DIM:
        snprintf(out, n, "was made with dim %d of size %lld: sizes are 0 or more", axis, v);
        return;
    case ST_BAD_LD:
        snprintf(out, n,
                 "was made with leading dimension %lld, but steps over %s of %lld elements: give at least "
                 "that, or 0 for tightly packed",
                 v, axis ? "rows" : "columns", own);
        return;
    case ST_BAD_TYPE:
        snprintf(out, n, "was made with type number %lld, which is not a strata_type", v);
        return;
    case ST_BAD_RANK:
        snprintf(out, n, "was made with rank %lld: ranks are 0 to %d, and a broadcast never lowers one", v,
                 STRATA_MAX_RANK);
        return;
    case ST_BAD_DIMS_NULL: snprintf(out, n, "was made with rank %lld but its dims are NULL", v); return;
    case ST_BAD_AXIS:
        snprintf(out, n, "is a view along axis %lld of a tensor of rank %d: axes are 0 to rank - 1", v,
                 (int)t->rank);
        return;
    case ST_BAD_AXIS_TWICE:
        snprintf(out, n, "is a permutation that names axis %lld twice: each axis is named once", v);
        return;
    case ST_BAD_PERMUTE_NULL:
        snprintf(out, n, "is a permutation of rank %lld whose order is NULL", v);
        return;
    case ST_BAD_SLICE_COUNT:
        snprintf(out, n, "is a slice of axis %d with count %lld: counts are 0 or more", axis, v);
        return;
    case ST_BAD_SLICE_REACH:
        snprintf(out, n,
                 "is a slice that reaches element %lld of axis %d, which has %lld elements (0 to %lld)", v,
                 axis, own, own - 1);
        return;
    case ST_BAD_SLICE_STEP:
        snprintf(out, n,
                 "is a slice of axis %d with step %lld: steps are 1 or more, or negative; strata_broadcast "
                 "repeats an element",
                 axis, v);
        return;
    case ST_BAD_RESHAPE_COUNT:
        if (v < 0)
            snprintf(out, n, "was reshaped to dims whose product does not fit 63 bits; it has %lld elements",
                     (long long)strata_count(*t));
        else
            snprintf(out, n,
                     "was reshaped to %lld elements but has %lld: the products of the dims must agree", v,
                     (long long)strata_count(*t));
        return;
    case ST_BAD_RESHAPE_JOIN:
        snprintf(out, n,
                 "was reshaped across its axis %d, whose stride %lld does not continue the axis inside it: "
                 "that needs a copy (strata_copy to a packed tensor first)",
                 axis, v);
        return;
    case ST_BAD_BROADCAST:
        snprintf(out, n,
                 "was broadcast to size %lld along its axis %d, which has %lld: a size stays as it is, or "
                 "grows from 1",
                 v, axis, own);
        return;
    case ST_BAD_OVERFLOW:
        snprintf(out, n, "is too large: its elements or bytes do not fit 63 bits (axis %d)", axis);
        return;
    case ST_BAD_ORDER:
        snprintf(out, n,
                 "was made with order %lld: STRATA_ROW_MAJOR and STRATA_COL_MAJOR are the orders there are",
                 v);
        return;
    case ST_BAD_SUBBYTE:
        snprintf(out, n,
                 "is a view of %s that begins or steps at %lld elements, inside a byte: views of sub-byte "
                 "types begin on whole bytes",
                 strata_type_name((strata_type)t->type), v);
        return;
    case ST_BAD_SQUARE:
        snprintf(out, n, "is %lldx%lld: symmetric, hermitian and triangular matrices are square", own, v);
        return;
    case ST_BAD_UPLO:
        snprintf(out, n, "was made with triangle %lld: STRATA_LOWER and STRATA_UPPER are what there is", v);
        return;
    case ST_BAD_DIAG:
        snprintf(out, n, "was made with diagonal %lld: STRATA_NON_UNIT and STRATA_UNIT are what there is", v);
        return;
    case ST_BAD_STRUCTURED:
        snprintf(out, n,
                 "is a slice, reshape, permutation, broadcast or batch of a structured view (flags 0x%llx): "
                 "take the plain view first, then say what it is",
                 v);
        return;
    case ST_BAD_STRUCTURE_TWICE:
        snprintf(out, n, "was made from a view that has a structure already (flags 0x%llx)", v);
        return;
    case ST_BAD_BAND:
        snprintf(out, n, "was made with %s = %lld: widths of a band are 0 to 2147483647", axis ? "ku" : "kl",
                 v);
        return;
    case ST_BAD_BAND_LD:
        snprintf(
            out, n,
            "was made with leading dimension %lld, less than the kl + ku + 1 diagonals of its band: give "
            "at least that, or 0 for it",
            v);
        return;
    case ST_BAD_BAND_UPLO:
        snprintf(out, n,
                 "is a band with %lld diagonals %s the main one, the side that is not stored: make it with 0 "
                 "there",
                 v, axis ? "above" : "below");
        return;
    case ST_BAD_MATRIX_RANK:
        snprintf(out, n, "has rank %lld: matrices have rank 2, batches of them more", v);
        return;
    }
    snprintf(
        out, n,
        "carries error 0x%x that no maker gives; was the tensor made by a strata_ maker or zeroed first?",
        (unsigned)t->error);
}

static strata_status maker_error(st_err *e, const char *who, const char *name, const strata_tensor *t)
{
    char words[300];
    unsigned s = t->error & 0xff;
    maker_words(t, words, sizeof words);
    if (s == STRATA_OK || s > STRATA_ERROR_INTERNAL) s = STRATA_ERROR_ARGUMENT; /* not a maker's */
    return st_fail(e, (strata_status)s, "%s: %s %s", who, name, words);
}

/* Offsets in bytes of the lowest element and behind the highest; false when a sum or the distance overflows. */
static bool extent(const strata_tensor *t, int64_t *lo, int64_t *hi)
{
    int64_t a = 0, b = 0, bits = (int64_t)strata_type_bits((strata_type)t->type);
    for (int d = 0; d < t->rank; d++) {
        int64_t s;
        if (t->dim[d] <= 1) continue;
        if (t->stride[d] == INT64_MIN || st_mul_over(t->dim[d] - 1, t->stride[d], &s)) return false;
        if (st_add_over(s < 0 ? a : b, s, s < 0 ? &a : &b)) return false;
    }
    int64_t all;
    if (st_add_over(b, 1, &b) || st_mul_over(a, bits, &a) || st_mul_over(b, bits, &b) ||
        __builtin_sub_overflow(b, a, &all) || all > INT64_MAX - 8)
        return false;
    *lo = a >= 0 ? a / 8 : -((7 - a) / 8); /* a whole byte outwards */
    *hi = b > 0 ? (b + 7) / 8 : b / 8;
    return true;
}

/* One bit of the flags in words. */
static const char *flag_words(uint32_t f)
{
    static const struct {
        uint32_t flag;
        const char *words;
    } row[] = {{STRATA_TENSOR_POINTERS, "a pointer array (strata_pointers)"},
               {STRATA_TENSOR_PACKED, "a packed triangle (strata_packed)"},
               {STRATA_TENSOR_PREPARED, "prepared for a plan (strata_prepare)"},
               {STRATA_TENSOR_BAND, "a band (strata_band)"},
               {STRATA_TENSOR_SYMMETRIC, "a symmetric matrix (strata_symmetric)"},
               {STRATA_TENSOR_HERMITIAN, "a hermitian matrix (strata_hermitian)"},
               {STRATA_TENSOR_UNIT, "a triangular matrix of unit diagonal"},
               {STRATA_TENSOR_LOWER, "a lower triangle"},
               {STRATA_TENSOR_UPPER, "an upper triangle"},
               {STRATA_TENSOR_CONJ, "conjugated (strata_conj)"}};
    for (int i = 0; i < ST_COUNT(row); i++)
        if (f & row[i].flag) return row[i].words;
    return NULL;
}

static strata_status check_flags(st_err *e, const char *who, const char *name, const strata_tensor *t,
                                 uint32_t allowed)
{
    const uint32_t f = t->flags, half = f & (STRATA_TENSOR_LOWER | STRATA_TENSOR_UPPER),
                   mirror = f & (STRATA_TENSOR_SYMMETRIC | STRATA_TENSOR_HERMITIAN);
    const char *words = flag_words(f & ~allowed);
    if (words)
        return st_fail(e, STRATA_ERROR_UNSUPPORTED, "%s: %s is %s, which this function does not take%s", who,
                       name, words, allowed ? "" : "; plain strided views are taken");
    const bool matrix = t->rank >= 2;
    if (t->reserved || f & ~(STRATA_TENSOR_BAND * 2 - 1) ||
        half == (STRATA_TENSOR_LOWER | STRATA_TENSOR_UPPER) ||
        mirror == (STRATA_TENSOR_SYMMETRIC | STRATA_TENSOR_HERMITIAN) || (mirror && !half) ||
        (f & STRATA_TENSOR_UNIT && (!half || mirror)) ||
        (f & STRATA_TENSOR_PACKED && (!half || f & STRATA_TENSOR_BAND)) ||
        (f & ~STRATA_TENSOR_CONJ && !matrix))
        return st_fail(e, STRATA_ERROR_ARGUMENT,
                       "%s: %s has reserved words or unknown flags set; was the tensor made by a strata_ "
                       "maker or zeroed first?",
                       who, name);
    if (half && t->dim[t->rank - 1] != t->dim[t->rank - 2])
        return st_fail(e, STRATA_ERROR_SHAPE, "%s: %s is %s and %s, but not square", who, name, ST_DIMS(*t),
                       flag_words(f & ~STRATA_TENSOR_CONJ));
    return STRATA_OK;
}

strata_status st_tensor_check(st_err *e, const char *who, const char *name, const strata_tensor *t)
{
    return st_tensor_check_flags(e, who, name, t, 0);
}

/* Allowed flags that fit each other, without what is stored in another way; false: look closer. */
static bool usual_flags(const strata_tensor *t, uint32_t allowed)
{
    const uint32_t f = t->flags, half = f & (STRATA_TENSOR_LOWER | STRATA_TENSOR_UPPER),
                   mirror = f & (STRATA_TENSOR_SYMMETRIC | STRATA_TENSOR_HERMITIAN);
    if (ST_LIKELY(!f)) return true;
    if (f & ~allowed || f & ~(STRATA_TENSOR_UNIT * 2 - 1) || f & (ST_VIEW_STORES | STRATA_TENSOR_PREPARED))
        return false;
    if (f == STRATA_TENSOR_CONJ) return true;
    return t->rank == 2 && t->dim[0] == t->dim[1] && half &&
           half != (STRATA_TENSOR_LOWER | STRATA_TENSOR_UPPER) &&
           mirror != (STRATA_TENSOR_SYMMETRIC | STRATA_TENSOR_HERMITIAN) &&
           !(f & STRATA_TENSOR_UNIT && mirror);
}

strata_status st_tensor_check_flags(st_err *e, const char *who, const char *name, const strata_tensor *t,
                                    uint32_t allowed)
{
    if (ST_LIKELY(st_view_usual(t) && usual_flags(t, allowed))) return STRATA_OK;
    if (t->error) return maker_error(e, who, name, t);
    if (t->type <= STRATA_NONE || t->type >= STRATA_TYPE_COUNT)
        return st_fail(e, STRATA_ERROR_TYPE,
                       "%s: %s has type number %d, which is not a strata_type; make it with strata_matrix, "
                       "strata_array, strata_nhwc, ...",
                       who, name, (int)t->type);
    if (t->rank < 0 || t->rank > STRATA_MAX_RANK)
        return st_fail(e, STRATA_ERROR_ARGUMENT, "%s: %s has rank %d; ranks are 0 to %d", who, name,
                       (int)t->rank, STRATA_MAX_RANK);
    strata_status s = check_flags(e, who, name, t, allowed);
    if (s) return s;
    for (int d = 0; d < t->rank; d++)
        if (t->dim[d] < 0)
            return st_fail(e, STRATA_ERROR_SHAPE, "%s: %s is %s: dim %d is negative", who, name, ST_DIMS(*t),
                           d);
    int64_t n = strata_count(*t), lo, hi;
    strata_tensor room;
    if (n < 0 || !extent(st_view_plain(t, &room), &lo, &hi))
        return st_fail(e, STRATA_ERROR_OVERFLOW, "%s: %s is %s: its size does not fit 63 bits", who, name,
                       ST_DIMS(*t));
    if (n > 0 && !t->data)
        return st_fail(e, STRATA_ERROR_ARGUMENT, "%s: %s is %s but its data pointer is NULL", who, name,
                       ST_DIMS(*t));
    return STRATA_OK;
}

strata_status st_tensor_check_bits(st_err *e, const char *who, const char *name, const strata_tensor *t)
{
    if (!st_type_is_sub_byte(t->type)) return STRATA_OK;
    const int64_t unit = 8 / (int64_t)strata_type_bits((strata_type)t->type);
    int inside = -1;
    for (int d = 0; d < t->rank; d++) {
        if (t->dim[d] <= 1 || t->stride[d] % unit == 0) continue;
        if (t->stride[d] != 1 || inside >= 0)
            return st_fail(
                e, STRATA_ERROR_LAYOUT,
                "%s: %s is %s with stride %" PRId64
                " along dim %d, inside a byte: %s elements follow each other along one dim (stride "
                "1), and all other strides are multiples of %" PRId64 ", so that rows begin on whole bytes",
                who, name, strata_type_name((strata_type)t->type), t->stride[d], d,
                strata_type_name((strata_type)t->type), unit);
        inside = d;
    }
    return STRATA_OK;
}

strata_status st_tensor_check_output(st_err *e, const char *who, const char *name, const strata_tensor *t)
{
    return st_tensor_check_output_flags(e, who, name, t, 0);
}

/* Do the strides of a usual view keep its elements apart, each stepping over what the other reaches? false: look closer. */
static bool usual_output(const strata_tensor *t)
{
    const int64_t a = t->rank > 0 ? t->stride[0] : 1, b = t->rank > 1 ? t->stride[1] : 0;
    if (t->flags & STRATA_TENSOR_CONJ) return false;
    if (t->rank < 2) return a != 0;
    const int64_t sa = a < 0 ? -a : a, sb = b < 0 ? -b : b;
    return (sa > 0 && sb > (t->dim[0] - 1) * sa) || (sb > 0 && sa > (t->dim[1] - 1) * sb);
}

strata_status st_tensor_check_output_flags(st_err *e, const char *who, const char *name,
                                           const strata_tensor *view, uint32_t allowed)
{
    if (ST_LIKELY(st_view_usual(view) && usual_flags(view, allowed) && usual_output(view))) return STRATA_OK;
    strata_status s = st_tensor_check_flags(e, who, name, view, allowed);
    if (s) return s;
    if (view->flags & STRATA_TENSOR_CONJ)
        return st_fail(e, STRATA_ERROR_ARGUMENT,
                       "%s: %s is written, so it may not be a conjugated view; conjugate the inputs instead",
                       who, name);
    strata_tensor room, one;
    const strata_tensor *t = st_view_plain(view, &room);
    if (view->flags &
        STRATA_TENSOR_POINTERS) { /* each matrix by itself: what two addresses share is the caller's duty */
        one = *t;
        memmove(one.dim, one.dim + 1, sizeof(int64_t) * (size_t)(one.rank - 1));
        memmove(one.stride, one.stride + 1, sizeof(int64_t) * (size_t)(one.rank - 1));
        one.rank--;
        t = &one;
    }
    for (int d = 0; d < t->rank; d++)
        if (t->dim[d] == 0) return STRATA_OK;
    for (int d = 0; d < t->rank; d++)
        if (t->dim[d] > 1 && t->stride[d] == 0)
            return st_fail(e, STRATA_ERROR_LAYOUT,
                           "%s: %s is written, but its dim %d (%" PRId64
                           " long) has stride 0: all its elements are one",
                           who, name, d, t->dim[d]);
    if (!st_view_collides(t)) return STRATA_OK;
    char words[300];
    strata_tensor_describe(*t, words, sizeof words);
    return st_fail(e, STRATA_ERROR_LAYOUT,
                   "%s: %s is written, but its strides put two elements in one place: it is %s; each stride "
                   "must step over "
                   "what the smaller ones reach",
                   who, name, words);
}

void st_tensor_span(const strata_tensor *view, const char **lo, const char **hi)
{
    int64_t a, b;
    strata_tensor room;
    const int64_t size = st_view_usual(view);
    if (ST_LIKELY(size && !(view->flags & ST_VIEW_STORES))) {
        if (!st_view_usual_span(view, size, lo, hi)) *lo = *hi = NULL;
        return;
    }
    const strata_tensor *t = st_view_plain(view, &room);
    if (!t->data || strata_count(*t) <= 0 || !extent(t, &a, &b)) {
        *lo = *hi = NULL;
        return;
    }
    *lo = (const char *)t->data + a;
    *hi = (const char *)t->data + b;
}

bool st_tensor_same_view(const strata_tensor *a, const strata_tensor *b)
{
    if (a->data != b->data || a->type != b->type || a->rank != b->rank) return false;
    if ((a->flags ^ b->flags) & (STRATA_TENSOR_PACKED | STRATA_TENSOR_BAND | STRATA_TENSOR_POINTERS))
        return false;
    for (int d = 0; d < a->rank; d++)
        if (a->dim[d] != b->dim[d] || (a->dim[d] > 1 && a->stride[d] != b->stride[d])) return false;
    return true;
}
