/* SPDX-License-Identifier: Apache-2.0 */
/* base.h - status, types, tensors and scalars.
 *
 * A tensor is a view: an address, a type, dims and strides. Layout is strides, counted in elements; row-major,
 * column-major, transposed, NCHW, NHWC, batched and broadcast (stride 0) are all views of memory that the caller owns. */
#ifndef STRATA_BASE_H
#define STRATA_BASE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STRATA_VERSION_MAJOR 0
#define STRATA_VERSION_MINOR 1
#define STRATA_VERSION_PATCH 0
#define STRATA_VERSION_STRING "0.1.0"

#if defined(__GNUC__)
#    define STRATA_API __attribute__((visibility("default")))
#else
#    define STRATA_API
#endif

typedef struct strata_handle strata_handle;

/* What went wrong, as a class; strata_error() says it in words. Values are stable. */
typedef enum strata_status {
    STRATA_OK = 0,
    STRATA_ERROR_ARGUMENT = 1,    /* an argument is outside what the function's comment allows */
    STRATA_ERROR_SHAPE = 2,       /* dims of two operands do not fit together */
    STRATA_ERROR_TYPE = 3,        /* a type, or a combination of types, that the operator does not take */
    STRATA_ERROR_LAYOUT = 4,      /* strides that cannot be used (an output that overlaps itself, say) */
    STRATA_ERROR_ALIAS = 5,       /* the output overlaps an input where that is not allowed */
    STRATA_ERROR_OVERFLOW = 6,    /* a size in elements or bytes does not fit 63 bits */
    STRATA_ERROR_UNSUPPORTED = 7, /* legal, but no kernel can do it; the message lists what is supported */
    STRATA_ERROR_MEMORY = 8,      /* out of memory */
    STRATA_ERROR_WORKSPACE = 9,   /* the workspace limit or the given workspace is too small */
    STRATA_ERROR_DEVICE = 10,     /* no such device, or it failed */
    STRATA_ERROR_SYNTAX = 11,     /* an expression does not parse; the message points at the character */
    STRATA_ERROR_STATE =
        12, /* called at a moment when it may not be (plan of another device, use after destroy) */
    STRATA_ERROR_IO = 13,      /* a file cannot be read or written, or its content is wrong */
    STRATA_ERROR_INTERNAL = 14 /* a fault of Strata's own: please report it */
} strata_status;

/* Element types. Sub-byte types are packed, each row starting on a byte. */
typedef enum strata_type {
    STRATA_NONE = 0,
    STRATA_F64 = 1,
    STRATA_F32 = 2,
    STRATA_C64 = 3,
    STRATA_C128 = 4, /* c64: two f32; c128: two f64 */
    STRATA_F16 = 5,
    STRATA_BF16 = 6,
    STRATA_F8E4M3 = 7,
    STRATA_F8E5M2 = 8,
    STRATA_I64 = 9,
    STRATA_I32 = 10,
    STRATA_I8 = 11,
    STRATA_U8 = 12,
    STRATA_I4 = 13,
    STRATA_U4 = 14,
    STRATA_BOOL = 15,
    STRATA_BIT = 16,
    STRATA_TYPE_COUNT = 17
} strata_type;

#define STRATA_MAX_RANK 8

/* Tensor flags. */
#define STRATA_TENSOR_POINTERS 1u /* data is an array of pointers, one a batch entry */
#define STRATA_TENSOR_PACKED 2u   /* a packed triangle */
#define STRATA_TENSOR_PREPARED 4u /* made by strata_prepare: layout private to a plan */

/* A view of memory, passed by value. Element (i0, ..., i[rank-1]) is at data + (sum of i[d] * stride[d]) * size of type.
 * Strides are in elements, may be zero (inputs only) or negative. A maker that is given impossible arguments returns a
 * tensor whose `error` is not 0; the first operator that meets it reports what the maker was given. */
typedef struct strata_tensor {
    void *data;
    int32_t type; /* strata_type */
    int32_t rank; /* 0 to STRATA_MAX_RANK */
    uint32_t flags;
    uint32_t error; /* 0, or why the maker refused (strata_status), detail in error_arg */
    int64_t dim[STRATA_MAX_RANK];
    int64_t stride[STRATA_MAX_RANK];
    int64_t error_arg;
    uint64_t reserved; /* zero */
} strata_tensor;

/* A number by value, or the address of one. */
typedef struct strata_scalar {
    double re, im;
    const void *ptr; /* when not NULL the value is read there at run time */
    int32_t type;    /* type of *ptr */
    int32_t reserved;
} strata_scalar;

static inline strata_scalar strata_complex(double re, double im)
{
    strata_scalar s = {re, im, NULL, 0, 0};
    return s;
}
static inline strata_scalar strata_real(double x) { return strata_complex(x, 0.0); }
static inline strata_scalar strata_scalar_at(strata_type type, const void *ptr)
{
    strata_scalar s = {0.0, 0.0, ptr, (int32_t)type, 0};
    return s;
}
#define STRATA_ONE strata_real(1.0)
#define STRATA_ZERO strata_real(0.0)

typedef enum strata_order { STRATA_ROW_MAJOR = 0, STRATA_COL_MAJOR = 1 } strata_order;

/* Makers. `ld` is the distance in elements between rows (row-major) or columns (col-major); 0 means tightly packed.
 * Nothing is allocated or copied; `data` must outlive the view. */
STRATA_API strata_tensor strata_matrix(const void *data, strata_type type, int64_t rows, int64_t cols,
                                       strata_order order, int64_t ld);
/* `inc` may be negative: as in BLAS, element 0 is then at data[(1 - n) * inc]. 0 means 1. */
STRATA_API strata_tensor strata_vector(const void *data, strata_type type, int64_t n, int64_t inc);
/* rank-0 tensor: one element */
STRATA_API strata_tensor strata_point(const void *data, strata_type type);
/* Any rank; stride NULL means packed with the last dim innermost. */
STRATA_API strata_tensor strata_array(const void *data, strata_type type, int rank, const int64_t *dim,
                                      const int64_t *stride);
/* Images: the dims are always in the order (n, c, h, w), whatever lies innermost in memory. */
STRATA_API strata_tensor strata_nchw(const void *data, strata_type type, int64_t n, int64_t c, int64_t h,
                                     int64_t w);
STRATA_API strata_tensor strata_nhwc(const void *data, strata_type type, int64_t n, int64_t c, int64_t h,
                                     int64_t w);
/* `count` matrices, `distance` elements apart (0: packed one after the other): dims (count, rows, cols). */
STRATA_API strata_tensor strata_batch(strata_tensor matrix, int64_t count, int64_t distance);

/* Views of a view. */
STRATA_API strata_tensor strata_transpose(strata_tensor t); /* swaps the last two dims */
STRATA_API strata_tensor strata_permute(strata_tensor t, const int *order);
/* elements begin, begin + step, ... (count of them) of dim `axis`; step may be negative and is never 0 */
STRATA_API strata_tensor strata_slice(strata_tensor t, int axis, int64_t begin, int64_t count, int64_t step);
/* other dims over the same elements; refused where the strides do not allow it without a copy */
STRATA_API strata_tensor strata_reshape(strata_tensor t, int rank, const int64_t *dim);
/* dims of 1 (or missing leading dims) are repeated by stride 0 */
STRATA_API strata_tensor strata_broadcast(strata_tensor t, int rank, const int64_t *dim);

STRATA_API const char *strata_status_name(strata_status s);     /* "STRATA_ERROR_SHAPE" */
STRATA_API const char *strata_type_name(strata_type t);         /* "f32" */
STRATA_API strata_type strata_type_from_name(const char *name); /* STRATA_NONE when unknown */
STRATA_API size_t strata_type_bits(strata_type t);
STRATA_API int64_t strata_count(strata_tensor t); /* product of the dims; -1 when it overflows */
/* Writes "f32 512x256 (stride 256,1)" to buf and returns the length it needs. */
STRATA_API size_t strata_tensor_describe(strata_tensor t, char *buf, size_t n);
STRATA_API const char *strata_version(void);

/* Why the last failed call on this handle failed: outermost call first, ending in the layer at fault and a remedy. With NULL: the last
 * failure on this thread of a call that had no handle. Valid until the next failing call. Never NULL. Of a destroyed handle it says so. */
STRATA_API const char *strata_error(const strata_handle *h);

#ifdef __cplusplus
}
#endif
#endif
