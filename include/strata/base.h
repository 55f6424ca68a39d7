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
/* What a matrix (the last two dims) is beyond its elements. A view says it, not the operator: a symmetric product is strata_gemm on a symmetric view.
 * Inputs: LOWER or UPPER: only this triangle and the diagonal are stored, the others are never read; they are 0 (a triangular matrix), or with
 * SYMMETRIC or HERMITIAN the mirror image (of a hermitian matrix the diagonal's imaginary parts are taken as 0). UNIT: the diagonal of a triangular
 * matrix is 1 and is not read. BAND: elements more than kl below or ku above the diagonal are 0 and not stored. CONJ: elements are read
 * conjugated. Outputs: LOWER or UPPER: the others are neither read nor written; HERMITIAN: the diagonal's imaginary parts become 0. */
#define STRATA_TENSOR_CONJ 8u
#define STRATA_TENSOR_LOWER 16u
#define STRATA_TENSOR_UPPER 32u
#define STRATA_TENSOR_SYMMETRIC 64u
#define STRATA_TENSOR_HERMITIAN 128u
#define STRATA_TENSOR_UNIT 256u
#define STRATA_TENSOR_BAND 512u /* kl and ku are error_arg: kl + ku * 2^32 */

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
    int64_t error_arg; /* the value that a maker refused; of a band its widths */
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

/* ---- structure: views of a matrix (or of a batch of matrices) that say what it is ----------------------------------------------
 * They may be transposed (which swaps the triangles and the widths of a band), conjugated and batched. Slicing, reshaping, permuting or broadcasting
 * them is refused: take the slice first. */
typedef enum strata_uplo { STRATA_LOWER = 0, STRATA_UPPER = 1 } strata_uplo;
typedef enum strata_diag { STRATA_NON_UNIT = 0, STRATA_UNIT = 1 } strata_diag;
STRATA_API strata_tensor strata_conj(strata_tensor t); /* toggles; real types stay as they are */
STRATA_API strata_tensor strata_symmetric(strata_tensor square, strata_uplo stored);
STRATA_API strata_tensor strata_hermitian(strata_tensor square, strata_uplo stored);
STRATA_API strata_tensor strata_triangular(strata_tensor square, strata_uplo stored, strata_diag diag);
/* A triangle of an n x n matrix without gaps: its columns (STRATA_COL_MAJOR) or rows one after another, n (n + 1) / 2 elements. It is triangular until
 * strata_symmetric or strata_hermitian says more. Element (i, j) of the upper triangle by columns is at i + j (j + 1) / 2; strides only say the order. */
STRATA_API strata_tensor strata_packed(const void *data, strata_type type, int64_t n, strata_uplo stored,
                                       strata_order order);
/* A band of an m x n matrix: kl diagonals below and ku above the main one, in LAPACK's storage: by columns, element (i, j) is at ku + i - j + j ld;
 * by rows at kl + j - i + i ld. ld is at least kl + ku + 1 (0: that). `data` is the array's first element; the view's is element (0, 0). A triangular or
 * symmetric band: strata_triangular(strata_band(..., k, 0, ...), STRATA_LOWER, diag), with 0, k for the upper one. */
STRATA_API strata_tensor strata_band(const void *data, strata_type type, int64_t rows, int64_t cols,
                                     int64_t kl, int64_t ku, strata_order order, int64_t ld);
/* A batch whose matrices lie anywhere: `address` is an array of `count` addresses of matrices with the dims and strides of `matrix` (whose own address is
 * not used). On a GPU the array lies in device memory or in host memory, the matrices in device memory. Calls refuse a NULL among the addresses and results
 * that share memory with each other or with an input, but in an array in device memory, which is not looked at. */
STRATA_API strata_tensor strata_pointers(strata_tensor matrix, const void *const *address, int64_t count);

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
