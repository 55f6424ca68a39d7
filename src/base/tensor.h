/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.h - what the tensor files share: how a view carries its maker's refusal from tensor.c to tensor_check.c, which puts it into
 * words; and the exact overlap tests. */
#ifndef ST_BASE_TENSOR_H
#define ST_BASE_TENSOR_H
#include "base/base.h"

/* strata_tensor.error is a strata_status in its low byte, one of these in the next, an axis in the third; error_arg is the
 * value that was given. The dims of the tensor are those before the refused step. */
typedef enum st_bad {
    ST_BAD_DIM = 1,         /* axis, size */
    ST_BAD_LD,              /* axis that is contiguous, ld */
    ST_BAD_TYPE,            /* type */
    ST_BAD_RANK,            /* rank */
    ST_BAD_DIMS_NULL,       /* rank */
    ST_BAD_AXIS,            /* axis given (in error_arg) */
    ST_BAD_AXIS_TWICE,      /* axis given (in error_arg) */
    ST_BAD_PERMUTE_NULL,    /* rank */
    ST_BAD_SLICE_COUNT,     /* axis, count */
    ST_BAD_SLICE_REACH,     /* axis, the index outside */
    ST_BAD_RESHAPE_COUNT,   /* elements wanted, -1 when they do not fit */
    ST_BAD_RESHAPE_JOIN,    /* axis whose stride does not step over the axis inside it */
    ST_BAD_BROADCAST,       /* axis, size wanted */
    ST_BAD_OVERFLOW,        /* axis */
    ST_BAD_ORDER,           /* order */
    ST_BAD_SUBBYTE,         /* offset in elements */
    ST_BAD_SLICE_STEP,      /* axis */
    ST_BAD_SQUARE,          /* columns; dim has the rows */
    ST_BAD_UPLO,            /* the number given */
    ST_BAD_DIAG,            /* the number given */
    ST_BAD_STRUCTURED,      /* flags of the view that cannot be taken apart */
    ST_BAD_STRUCTURE_TWICE, /* flags that it has already */
    ST_BAD_BAND,            /* axis 0: kl, 1: ku; the width */
    ST_BAD_BAND_LD,         /* ld */
    ST_BAD_BAND_UPLO,       /* the width on the side that is not stored */
    ST_BAD_MATRIX_RANK      /* rank */
} st_bad;

/* tensor.c: the view with a refusal (the first one stays), and: may a view be taken of it? */
strata_tensor st_view_refuse(strata_tensor t, strata_status s, st_bad what, int axis, int64_t arg);
bool st_view_usable(strata_tensor *t);
/* tensor_overlap.c: do two different indices of a checked view name the same memory? */
bool st_view_collides(const strata_tensor *t);
/* The memory behind a view as a plain strided one: a packed triangle is a vector, a band its columns or rows, in
 * `room`; others are themselves. */
const strata_tensor *st_view_plain(const strata_tensor *t, strata_tensor *room);

/* What nearly all views are, told with few comparisons: at most two dims, sizes and strides so small that nothing about them can overflow, elements of
 * 4, 8 or 16 bytes, an address. The size of an element, or 0: look closer. (The checks of a call on four elements took 300 ns without this.) */
ST_INLINE int64_t st_view_usual(const strata_tensor *t)
{
    const int type = t->type, rank = t->rank;
    const uint64_t half = UINT64_C(1) << 27;
    uint64_t all = 0;
    if ((unsigned)rank > 2 || t->error || t->reserved || !t->data) return 0;
    if (rank > 0) all |= (uint64_t)t->dim[0] | ((uint64_t)t->stride[0] + half);
    if (rank > 1) all |= (uint64_t)t->dim[1] | ((uint64_t)t->stride[1] + half);
    if (all >= 2 * half) return 0;
    return type == STRATA_F32                         ? 4
           : type == STRATA_F64 || type == STRATA_C64 ? 8
           : type == STRATA_C128                      ? 16
                                                      : 0;
}
/* The bytes of such a view that is no packed triangle, band or array of addresses: [*lo, *hi); false when it has no elements. */
enum { ST_VIEW_STORES = STRATA_TENSOR_PACKED | STRATA_TENSOR_BAND | STRATA_TENSOR_POINTERS };
ST_INLINE bool st_view_usual_span(const strata_tensor *t, int64_t size, const char **lo, const char **hi)
{
    int64_t below = 0, above = 1;
    for (int d = 0; d < t->rank; d++) {
        const int64_t reach = (t->dim[d] - 1) * t->stride[d];
        if (t->dim[d] == 0) return false;
        if (reach < 0)
            below += reach;
        else
            above += reach;
    }
    *lo = (const char *)t->data + below * size;
    *hi = (const char *)t->data + above * size;
    return true;
}
#endif
