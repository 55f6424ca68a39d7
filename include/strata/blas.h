/* SPDX-License-Identifier: Apache-2.0 */
/* blas.h - dense linear algebra. */
#ifndef STRATA_BLAS_H
#define STRATA_BLAS_H
#include <strata/base.h>
#include <strata/plan.h>
#include <strata/pointwise.h>
#ifdef __cplusplus
extern "C" {
#endif

/* Arithmetic that a caller allows beyond the types' own; a plan's kernel says what it uses. A mode that no kernel has for the types is EXACT. */
typedef enum strata_math {
    STRATA_MATH_EXACT = 0,
    STRATA_MATH_TF32 = 1,   /* f32 factors rounded to 11 significant bits, sums in f32 */
    STRATA_MATH_BF16X6 = 2, /* each f32 factor as three bf16 parts, six products: errors of f32's size */
    STRATA_MATH_FAST_ACCUM =
        3, /* 8-bit floats: sums keep about 14 bits on Hopper, which else adds every 128 to f32 */
    STRATA_MATH_3M =
        4 /* complex products by three real ones: the imaginary part's error is that of |re| + |im| */
} strata_math;

typedef struct strata_gemm_options {
    /* NULL, or an expression over `acc` (which is alpha * A B + beta * C_in) and the named operands, run on each tile while
     * it is in cache: "gelu(acc + bias[n])". Its value is stored to C. Statements separated by ';' may also write auxiliary
     * outputs: "pre = acc + bias[n]; out = gelu(pre)" (the value for C is named out). */
    const char *epilogue;
    const strata_operand *operands; /* name, tensor; rank 1 with [m] or [n], rank 0, or broadcastable to C */
    strata_math math;
    uint64_t reserved[4]; /* zero */
} strata_gemm_options;

/* C := alpha * A B + beta * C.
 * A is m x k, B is k x n, C is m x n, each rank 2 with any strides; or each of rank 3 or more with the same leading (batch)
 * dims, which broadcast for A and B. Transposition is strata_transpose(A).
 * A and B may be views of a structure (base.h): conjugated, symmetric, hermitian, triangular, a batch of addresses; C a triangle, of which the rest is
 * not touched. So BLAS's symm, hemm, trmm, gemmt, syrk and herk are this function on such views, and the side is the operand's place.
 * Types: A, B, C all f32, f64, c64 or c128. Sums run in the type itself. Also f16 x f16 and bf16 x bf16 into f32, f16, bf16 or i8, 8-bit floats into f32,
 * f16, bf16 or 8-bit floats (sums in f32; u below is that of f32, and C is rounded once more to its type: floats to nearest, i8 towards zero and saturated, so an
 * epilogue that quantises says rint), and i8 or u8 into i32 (modulo 2^32), f32 or i8; on the CPU any
 * of these into any of f32 (bytes: i32), f16, bf16, i8, u8, and floats into 8-bit floats.
 * beta = 0: C is not read (NaN there does not spread). alpha = 0: A and B are not read. k = 0: C := beta * C. A zero m, n or
 * batch is a legal no-op. NaN and Inf in A and B propagate as IEEE multiplication and addition do.
 * C may not overlap A or B. Error bound: |computed - exact| <= (k + 3) u (|alpha| |A||B| + |beta C|), u the unit round-off.
 * Source: Dongarra et al., "A set of level 3 basic linear algebra subprograms", TOMS 16 (1990), for the rules. */
STRATA_API strata_status strata_gemm(strata_handle *h, strata_scalar alpha, strata_tensor A, strata_tensor B,
                                     strata_scalar beta, strata_tensor C, const strata_gemm_options *o);
/* The same with its arguments by address, for bindings that cannot pass structures by value. */
STRATA_API strata_status strata_gemm_run(strata_handle *h, const strata_scalar *alpha, const strata_tensor *A,
                                         const strata_tensor *B, const strata_scalar *beta,
                                         const strata_tensor *C, const strata_gemm_options *o);
/* The same for what most calls are: three matrices of one type, sizes that agree, numbers, no options. */
typedef struct strata_gemm_plain {
    int64_t m, k, n;
    const void *a, *b;
    void *c;
    int64_t a_row, b_row, c_row, a_col, b_col, c_col; /* elements from row to row, from column to column */
    double alpha, beta;
    int32_t type;             /* strata_type */
    int32_t conj;             /* of complex matrices: 1 conjugates A, 2 B, 3 both; else 0 */
    double alpha_im, beta_im; /* of complex matrices; else not read */
} strata_gemm_plain;
STRATA_API strata_status strata_gemm_run_plain(strata_handle *h, const strata_gemm_plain *p);

/* At 8x8x8 passing three tensors takes as long as the product. So a compiler that can puts the choice into the caller, where most of the copies
 * are not made; the exported function stays what dlsym, bindings and -O0 find. Both do the same. */
#if defined(__GNUC__) && defined(__OPTIMIZE__) && !defined(STRATA_NO_INLINE)
#    define STRATA_GEMM_INLINE extern inline __attribute__((gnu_inline, always_inline))
#else
#    define STRATA_GEMM_INLINE static inline
#endif

/* Fills *p when the call is that plain; else 0. */
STRATA_GEMM_INLINE int strata_gemm_as_plain(const strata_scalar *alpha, const strata_tensor *A,
                                            const strata_tensor *B, const strata_scalar *beta,
                                            const strata_tensor *C, const strata_gemm_options *o,
                                            strata_gemm_plain *p)
{
    if (o || alpha->ptr || beta->ptr || (alpha->type | beta->type | alpha->reserved | beta->reserved) ||
        ((A->rank ^ 2) | (B->rank ^ 2) | (C->rank ^ 2) | (A->type ^ C->type) | (B->type ^ C->type)) ||
        (A->error | B->error | C->flags | C->error) || (A->reserved | B->reserved | C->reserved) ||
        ((A->dim[0] ^ C->dim[0]) | (B->dim[0] ^ A->dim[1]) | (B->dim[1] ^ C->dim[1])))
        return 0;
    p->conj = 0;
    p->alpha_im = alpha->im, p->beta_im = beta->im;
    if ((A->flags | B->flags) || alpha->im != 0 || beta->im != 0) {
        if (((A->flags | B->flags) & ~(uint32_t)STRATA_TENSOR_CONJ) ||
            (C->type != STRATA_C64 && C->type != STRATA_C128))
            return 0;
        p->conj = (A->flags ? 1 : 0) | (B->flags ? 2 : 0);
    }
    p->m = C->dim[0], p->k = A->dim[1], p->n = C->dim[1];
    p->a = A->data, p->b = B->data, p->c = C->data;
    p->a_row = A->stride[0], p->b_row = B->stride[0], p->c_row = C->stride[0];
    p->a_col = A->stride[1], p->b_col = B->stride[1], p->c_col = C->stride[1];
    p->alpha = alpha->re, p->beta = beta->re;
    p->type = C->type;
    return 1;
}

#if defined(__GNUC__) && defined(__OPTIMIZE__) && !defined(STRATA_NO_INLINE)
extern inline __attribute__((gnu_inline, always_inline)) strata_status strata_gemm(
    strata_handle *h, strata_scalar alpha, strata_tensor A, strata_tensor B, strata_scalar beta,
    strata_tensor C, const strata_gemm_options *o)
{
    strata_gemm_plain p;
    if (strata_gemm_as_plain(&alpha, &A, &B, &beta, &C, o, &p)) return strata_gemm_run_plain(h, &p);
    return strata_gemm_run(h, &alpha, &A, &B, &beta, &C, o);
}
#endif
/* The same as a plan; operands in the order A, B, C, then those of the epilogue. The addresses in the tensors are not kept. */
STRATA_API strata_status strata_gemm_plan(strata_handle *h, strata_scalar alpha, strata_tensor A,
                                          strata_tensor B, strata_scalar beta, strata_tensor C,
                                          const strata_gemm_options *o, const strata_choice *choice,
                                          strata_plan **plan);

/* Products of different sizes, types and layouts in one call, as if one after another (C of one may be A of a later one). All are checked before the first one
 * runs, so that an error leaves every C as it is; its message says which group. Products of one size are better a batch (rank 3, or strata_pointers).
 * Those that do not depend on each other run together: on a CPU with the bits of one call after another; on a GPU, where a call of its own may cut k into
 * parts, a member's k is never cut. */
typedef struct strata_gemm_group {
    strata_scalar alpha, beta;
    strata_tensor A, B, C;
    uint64_t reserved[2]; /* zero */
} strata_gemm_group;
STRATA_API strata_status strata_gemm_grouped(strata_handle *h, const strata_gemm_group *groups, int64_t count,
                                             const strata_gemm_options *o);

/* ---- level 1: vectors -------------------------------------------------------------------------------------------------------
 * x and y are rank-1 tensors of one type (f32 f64 c64 c128), any stride (strata_vector makes BLAS's negative increments), of the same
 * length. A result goes to a rank-0 tensor (strata_point). Outputs may not overlap inputs but as the identical view. n = 0 is legal.
 * NaN and Inf follow IEEE arithmetic: nothing is skipped because a factor is 0, except where it is said. Sums run in lanes inside chunks
 * whose sizes depend on n alone, joined in f64: bound n u sum|x_i y_i|, the same bits for any number of threads and any strides.
 * Handles on a GPU take f32 and f64. Source of the rules: Lawson, Hanson, Kincaid, Krogh, "Basic linear algebra subprograms for
 * Fortran usage", TOMS 5 (1979); BLAS Technical Forum Standard (2001) for axpby. */

/* y := alpha x + y. alpha = 0: y is left as it is, whatever x holds. */
STRATA_API strata_status strata_axpy(strata_handle *h, strata_scalar alpha, strata_tensor x, strata_tensor y);
/* y := alpha x + beta y. beta = 0: y is not read; alpha = 0: x is not read. */
STRATA_API strata_status strata_axpby(strata_handle *h, strata_scalar alpha, strata_tensor x,
                                      strata_scalar beta, strata_tensor y);
/* x := alpha x, IEEE multiplication throughout: 0 times NaN or Inf is NaN. */
STRATA_API strata_status strata_scal(strata_handle *h, strata_scalar alpha, strata_tensor x);
/* x and y change places. */
STRATA_API strata_status strata_swap(strata_handle *h, strata_tensor x, strata_tensor y);
/* result := sum x_i y_i, and with conj(x_i) for dotc. The result has the vectors' type, or the wider one (f64 for f32, c128 for c64),
 * and then products and sums are of that type (BLAS's dsdot). Empty sums are 0. */
STRATA_API strata_status strata_dot(strata_handle *h, strata_tensor x, strata_tensor y, strata_tensor result);
STRATA_API strata_status strata_dotc(strata_handle *h, strata_tensor x, strata_tensor y,
                                     strata_tensor result);
/* result := sqrt(sum |x_i|^2) without overflow or underflow on the way (squares outside the range of f64 are scaled; Anderson, "Algorithm
 * 978", TOMS 44, 2017). NaN when there is a NaN, else Inf when there is an Inf. The result is real, of the parts' type or f64. */
STRATA_API strata_status strata_nrm2(strata_handle *h, strata_tensor x, strata_tensor result);
/* result := sum |re x_i| + |im x_i|. Real, of the parts' type or f64. */
STRATA_API strata_status strata_asum(strata_handle *h, strata_tensor x, strata_tensor result);
/* result (i64 or i32) := the first position, counted from 0, of the largest (smallest) |re x_i| + |im x_i|; the first NaN if there is one
 * (Demmel and others, "Proposed consistent exception handling for the BLAS and LAPACK", 2022); -1 for no elements. */
STRATA_API strata_status strata_iamax(strata_handle *h, strata_tensor x, strata_tensor result);
STRATA_API strata_status strata_iamin(strata_handle *h, strata_tensor x, strata_tensor result);
/* Plane rotation: x_i, y_i := c x_i + s y_i, c y_i - conj(s) x_i. c is real. */
STRATA_API strata_status strata_rot(strata_handle *h, strata_tensor x, strata_tensor y, strata_scalar c,
                                    strata_scalar s);
/* The rotation that turns (a, b) into (r, 0): a := r, c, s and, for real types, b := z, from which c and s can be rebuilt. All rank 0; c is
 * real. Without needless overflow (Anderson, "Safe scaling in the level 1 BLAS", 2017). */
STRATA_API strata_status strata_rotg(strata_handle *h, strata_tensor a, strata_tensor b, strata_tensor c,
                                     strata_tensor s);
/* Modified Givens rotation. param holds flag, h11, h21, h12, h22 (rank 1, 5 elements) as in BLAS: flag -1: as stored; 0: h11 = h22 = 1; 1:
 * h12 = 1, h21 = -1; -2: the identity. x_i, y_i := h11 x_i + h12 y_i, h21 x_i + h22 y_i. f32 and f64. */
STRATA_API strata_status strata_rotm(strata_handle *h, strata_tensor x, strata_tensor y, strata_tensor param);
/* Builds param so that the second component of H (sqrt(d1) x1, sqrt(d2) y1) is zero; updates d1, d2, x1 (rank 0). */
STRATA_API strata_status strata_rotmg(strata_handle *h, strata_tensor d1, strata_tensor d2, strata_tensor x1,
                                      strata_tensor y1, strata_tensor param);

/* The kernels under the operators above, for vectors so short that passing and checking views takes longer than the work: no checks, no handle, no
 * threads, the operators' bits. n is 1 to `most` elements; x and y are the addresses of element 0 of vectors of the table's type, incx and incy the elements
 * from one to the next, of any sign (0: of what is only read); x and y are apart, or of axpy, axpby and copy the same view. Factors are {re, im}, im 0 for real types;
 * axpy and axpby read x, and axpby with b = 0 does not read y. A table is valid as long as the library is loaded, in any thread. */
typedef struct strata_vectors {
    int64_t most;
    void (*axpy)(int64_t n, const double a[2], const void *x, int64_t incx, void *y, int64_t incy);
    void (*axpby)(int64_t n, const double a[2], const void *x, int64_t incx, const double b[2], void *y,
                  int64_t incy);
    void (*scal)(int64_t n, const double a[2], void *x, int64_t incx);
    void (*copy)(int64_t n, const void *x, int64_t incx, void *y, int64_t incy);
    void (*swap)(int64_t n, void *x, int64_t incx, void *y, int64_t incy);
    void (*rot)(int64_t n, double c, const double s[2], void *x, int64_t incx, void *y, int64_t incy);
    void (*rotm)(int64_t n, const double h[4], void *x, int64_t incx, void *y, int64_t incy); /* real types */
    double (*dot)(int64_t n, const void *x, int64_t incx, const void *y,
                  int64_t incy); /* real types, else NULL */
    void (*dots)(int64_t n, bool conjugate, const void *x, int64_t incx, const void *y, int64_t incy,
                 double r[2]);
    double (*nrm2)(int64_t n, const void *x, int64_t incx);
    double (*asum)(int64_t n, const void *x, int64_t incx);
    int64_t (*iamax)(int64_t n, const void *x, int64_t incx); /* from 0 */
    int64_t (*iamin)(int64_t n, const void *x, int64_t incx);
    uint64_t reserved[4];
} strata_vectors;
/* NULL where there is none: handles on a GPU, types other than f32 f64 c64 c128. */
STRATA_API const strata_vectors *strata_vectors_of(strata_handle *h, strata_type type);

/* ---- level 2: a matrix and vectors ----------------------------------------------------------------------------------------
 * One type throughout: f32 f64 c64 c128. A is rank 2 with any strides and of any structure of base.h (conjugated, symmetric, hermitian, triangular,
 * packed, banded); transposition is strata_transpose(A). x and y are rank 1, any stride. What a structure says is not stored is not read.
 * Outputs may not overlap inputs. Zero sizes are legal no-ops. NaN and Inf follow IEEE arithmetic; a factor alpha or beta of 0 means that its operand is
 * not read. Error bound: |computed - exact| <= (n + 3) u |alpha| |A||x| + u |beta y|, n the length of a sum, u the unit round-off.
 * The same bits for any number of threads. Source of the rules: Dongarra et al., "An extended set of Fortran BLAS", TOMS 14 (1988). */

/* y := alpha A x + beta y. (gemv, gbmv, symv, hemv, sbmv, hbmv, spmv, hpmv, and trmv, tbmv, tpmv out of place) */
STRATA_API strata_status strata_gemv(strata_handle *h, strata_scalar alpha, strata_tensor A, strata_tensor x,
                                     strata_scalar beta, strata_tensor y);
/* x := A x, A triangular (also packed or banded). */
STRATA_API strata_status strata_trmv(strata_handle *h, strata_tensor A, strata_tensor x);
/* x := A^-1 x, A triangular (also packed or banded). No test for singularity: a zero on the diagonal gives Inf or NaN. */
STRATA_API strata_status strata_trsv(strata_handle *h, strata_tensor A, strata_tensor x);
/* A := alpha x y^T + A. y = strata_conj(y) gives gerc. */
STRATA_API strata_status strata_ger(strata_handle *h, strata_scalar alpha, strata_tensor x, strata_tensor y,
                                    strata_tensor A);
/* A := alpha x x^T + A and A := alpha x x^H + A (alpha real), A a triangle, packed or not. her sets the diagonal's imaginary parts to 0. */
STRATA_API strata_status strata_syr(strata_handle *h, strata_scalar alpha, strata_tensor x, strata_tensor A);
STRATA_API strata_status strata_her(strata_handle *h, strata_scalar alpha, strata_tensor x, strata_tensor A);
/* A := alpha x y^T + alpha y x^T + A and A := alpha x y^H + conj(alpha) y x^H + A. */
STRATA_API strata_status strata_syr2(strata_handle *h, strata_scalar alpha, strata_tensor x, strata_tensor y,
                                     strata_tensor A);
STRATA_API strata_status strata_her2(strata_handle *h, strata_scalar alpha, strata_tensor x, strata_tensor y,
                                     strata_tensor A);

/* The same by numbers, for callers to whom views are a detour, on the CPU: what a short matrix needs (at most 512 rows and columns, and 384 KiB that are stored) is
 * done at once, with no checks but those that keep operands apart. For all else the answer is STRATA_ERROR_UNSUPPORTED: nothing was done and no message was made;
 * call the operators above. Both give the same bits. Lengths and strides count elements; addresses are those of elements (0, 0) and 0. */
typedef enum strata_matvec_op {
    STRATA_MATVEC_PRODUCT,  /* y := alpha A x + beta y */
    STRATA_MATVEC_MULTIPLY, /* x := A x, A triangular */
    STRATA_MATVEC_SOLVE,    /* x := A^-1 x, A triangular */
    STRATA_MATVEC_UPDATE,   /* A := alpha x y^T + A */
    /* A := alpha x y^T + alpha y x^T + A, or where A is hermitian A := alpha x y^H + conj(alpha) y x^H + A */
    STRATA_MATVEC_UPDATE2
} strata_matvec_op;
typedef struct strata_matvec_plain {
    int32_t op;     /* strata_matvec_op */
    int32_t type;   /* strata_type: f32 f64 c64 c128 */
    int32_t half;   /* only a triangle of A is stored: 1 the lower one, 2 the upper one; 0: all */
    int32_t mirror; /* the other one is 0: zero, 1: symmetric, 2: hermitian */
    int32_t unit;   /* the diagonal is 1 and not read */
    int32_t packed; /* a packed triangle: by columns row = 1, col = 0, by rows the other way round */
    int32_t conj, conj_x, conj_y; /* the elements of A, x, y are read conjugated */
    int32_t reserved;             /* 0 */
    int64_t m, n, row, col;       /* of A; from row to row, from column to column */
    int64_t kl,
        ku; /* diagonals below and above that are there: all is m and n, of a triangle 0 on its other side */
    int64_t incx, incy;       /* of any sign, not 0 */
    void *a, *x, *y;          /* UPDATE of a triangle: y is x again */
    double alpha[2], beta[2]; /* re, im */
} strata_matvec_plain;
STRATA_API strata_status strata_matvec_run_plain(const strata_matvec_plain *p);

/* ---- level 3 ----------------------------------------------------------------------------------------------------------------
 * Types as in level 2; batches (rank 3 and more, or addresses) as in strata_gemm. C is a triangle (strata_triangular, strata_symmetric or
 * strata_hermitian of it); the other one is neither read nor written. */

/* C := alpha A A^T + beta C, and C := alpha A A^H + beta C with real alpha and beta. A^T A is strata_transpose(A); A^H A strata_conj of that. */
STRATA_API strata_status strata_syrk(strata_handle *h, strata_scalar alpha, strata_tensor A,
                                     strata_scalar beta, strata_tensor C);
STRATA_API strata_status strata_herk(strata_handle *h, strata_scalar alpha, strata_tensor A,
                                     strata_scalar beta, strata_tensor C);
/* C := alpha A B^T + alpha B A^T + beta C, and C := alpha A B^H + conj(alpha) B A^H + beta C with real beta. */
STRATA_API strata_status strata_syr2k(strata_handle *h, strata_scalar alpha, strata_tensor A, strata_tensor B,
                                      strata_scalar beta, strata_tensor C);
STRATA_API strata_status strata_her2k(strata_handle *h, strata_scalar alpha, strata_tensor A, strata_tensor B,
                                      strata_scalar beta, strata_tensor C);
/* B := alpha A B and B := alpha A^-1 B in place, A triangular. From the right, B := alpha B A, is the same with transposed views of both.
 * Error bound of trsm by rows: |A| |computed - exact| <= (k + 3) u |A||X| componentwise. */
STRATA_API strata_status strata_trmm(strata_handle *h, strata_scalar alpha, strata_tensor A, strata_tensor B);
STRATA_API strata_status strata_trsm(strata_handle *h, strata_scalar alpha, strata_tensor A, strata_tensor B);

/* ---- matrices element by element (rank 2, or batches of them) ---------------------------------------------------------------- */

/* C := alpha A + beta B. A and B may be transposed, conjugated; either may be C itself (the identical view). A factor of 0: its matrix is not read. Copying
 * with a factor (BLAS's omatcopy) is beta = 0. */
STRATA_API strata_status strata_geam(strata_handle *h, strata_scalar alpha, strata_tensor A,
                                     strata_scalar beta, strata_tensor B, strata_tensor C);
/* to := alpha from, where both may lie in the same memory, however they overlap: from is the matrix as it is, to how it shall lie (transposed, another
 * leading dimension). Views that overlap without being the same take a copy of the matrix for the time of the call; views that lie apart are strata_geam's copy. */
STRATA_API strata_status strata_imatcopy(strata_handle *h, strata_scalar alpha, strata_tensor from,
                                         strata_tensor to);
/* C := diag(x) A; C may be A. With transposed views of A and C: C := A diag(x). */
STRATA_API strata_status strata_dgmm(strata_handle *h, strata_tensor x, strata_tensor A, strata_tensor C);
/* Copies a triangle to a triangle of the same side, packed or not (trttp, tpttr). The diagonal is copied too. */
STRATA_API strata_status strata_trcopy(strata_handle *h, strata_tensor from, strata_tensor to);

/* ---- batched factorisations -------------------------------------------------------------------------------------------------
 * For many small matrices (each is one thread's on the CPU, one team of threads' on a GPU): A is rank 2 or a batch (rank 3 and more, or addresses),
 * f32 f64 c64 c128, any strides; every other operand has the same batch dims. pivots, i32 or i64, count from 0: row k changed places with row pivots[k].
 * Pivots that are read are checked on the CPU to name rows (0 to n - 1); LAPACK's count from 1.
 * info, i32 or i64, one number an item: 0, or 1 + the first k at which a diagonal element was exactly 0. An info of zeros ({0}: a tensor of
 * type STRATA_NONE) is not written; pivots likewise mean no exchange of rows. Outputs may not overlap other operands.
 * The bits of an item do not depend on the others. Storage and rules are LAPACK's (Users' Guide, 3rd ed., 1999), but for the count from 0. */
typedef struct strata_getrs_options {
    bool transpose; /* solve with A^T; with conjugate: A^H */
    bool conjugate;
    uint64_t reserved[2]; /* zero */
} strata_getrs_options;

/* A (m x n) := L U of P A, L unit lower, U upper; partial pivoting by |re| + |im|. pivots: (..., min(m, n)). Backward error <= c n u growth |A|. */
STRATA_API strata_status strata_getrf(strata_handle *h, strata_tensor A, strata_tensor pivots,
                                      strata_tensor info);
/* B (n x nrhs) := A^-1 B from getrf's result. No test for singularity. */
STRATA_API strata_status strata_getrs(strata_handle *h, strata_tensor LU, strata_tensor pivots,
                                      strata_tensor B, const strata_getrs_options *o);
/* C := A^-1 from getrf's result; where info is not 0 C is left as it is. */
STRATA_API strata_status strata_getri(strata_handle *h, strata_tensor LU, strata_tensor pivots,
                                      strata_tensor C, strata_tensor info);
/* C := A^-1; A is kept. */
STRATA_API strata_status strata_matinv(strata_handle *h, strata_tensor A, strata_tensor C,
                                       strata_tensor info);
/* A (m x n) := R and below it the vectors v of the reflectors I - tau v v^H (v_0 = 1), whose product is Q; tau: (..., min(m, n)), A's type. */
STRATA_API strata_status strata_geqrf(strata_handle *h, strata_tensor A, strata_tensor tau);
/* Least squares, m >= n, full rank: the first n rows of B (m x nrhs) := argmin |A X - B|, the others what is left over, turned by Q^H; A is as geqrf leaves it. Where
 * info is not 0 (R has a 0 on its diagonal) B is left as it is. */
STRATA_API strata_status strata_gels(strata_handle *h, strata_tensor A, strata_tensor B, strata_tensor info);

#ifdef __cplusplus
}
#endif
#endif
