/* SPDX-License-Identifier: Apache-2.0 */
/* matvec.h - a matrix with vectors, and matrices element by element: what BLAS level 2, geam, dgmm and the copies between storages of a triangle
 * are made of.
 *
 * A problem is plain data (zero-padded, compared by bytes), so that a plan can be made of it: on the CPU it runs at once, on a GPU through the plan
 * cache (ST_OP_POINTWISE, told apart by its first word). Lengths and strides count elements of `type`. */
#ifndef ST_POINTWISE_MATVEC_H
#define ST_POINTWISE_MATVEC_H
#include "base/base.h"
#include "runtime/handle.h"
#include <strata/blas.h>
#include <strata/plan.h>

/* as in blas.h */
typedef enum st_matvec_op {
    ST_MATVEC_PRODUCT = STRATA_MATVEC_PRODUCT,
    ST_MATVEC_MULTIPLY = STRATA_MATVEC_MULTIPLY,
    ST_MATVEC_SOLVE = STRATA_MATVEC_SOLVE,
    ST_MATVEC_UPDATE = STRATA_MATVEC_UPDATE,
    ST_MATVEC_UPDATE2 = STRATA_MATVEC_UPDATE2
} st_matvec_op;
enum { ST_STORE_STRIDED, ST_STORE_PACKED };

/* Which elements are there: (i, j) with -ku <= i - j <= kl. A whole matrix has kl = m, ku = n; the lower triangle kl = m, ku = 0; a band its widths.
 * Where `half` is set the others are 0, or by `mirror` the mirror images. Element (i, j) that is there lies at i * row + j * col; in a packed
 * triangle of order n, by columns (row = 1, col = 0): of the upper one at i + j (j + 1) / 2, of the lower one at i + j (2 n - j - 1) / 2; by rows
 * (row = 0, col = 1) with i and j exchanged (and so the triangles). */
typedef struct st_matvec {
    int64_t family;           /* ST_PW_MATVEC */
    int64_t op, type;         /* st_matvec_op, strata_type: f32 f64 c64 c128 */
    int64_t m, n;             /* A is m x n; m = n but for PRODUCT and UPDATE */
    int64_t store;            /* ST_STORE_ */
    int64_t row, col, kl, ku; /* of A */
    int64_t half;             /* 0: both triangles, 1: lower, 2: upper */
    int64_t
        mirror; /* 0: the other one is 0, 1: symmetric, 2: hermitian (the diagonal's imaginary parts are not read; UPDATE*: become 0) */
    int64_t unit;                 /* the diagonal is 1 and not read (a triangle without mirror) */
    int64_t conj, conj_x, conj_y; /* elements are read conjugated; never of what is written */
    int64_t x,
        y; /* strides, of any sign; of MULTIPLY and SOLVE only x. The vectors' addresses are those of element 0 */
    int64_t alignment; /* on a GPU: a power of two up to 16 that divides every address; 0 on the CPU */
} st_matvec;

/* data: A, x, y (of MULTIPLY and SOLVE NULL; UPDATE with x and y one vector: twice its address). alpha = 0, of PRODUCT: A and x are not read; of UPDATE*:
 * the caller has returned before. beta = 0: y is not read. m and n are not 0. Checked by the caller (blas). On a GPU the plan's operands are
 * data[0..2] (data[2] may be NULL), and the factors come with the run (strata_run's alpha and beta: values). */
strata_status st_matvec_run(strata_handle *h, const char *who, const st_matvec *v, const double alpha[2],
                            const double beta[2], void *const data[3]);

typedef enum st_matcopy_op {
    ST_MATCOPY_SUM, /* C := alpha A + beta B; a factor of 0: its matrix is not read */
    ST_MATCOPY_ROWS /* C := diag(B) A: B's element i (stride[1][rank - 2]) times row i; factors do not occur */
} st_matcopy_op;
enum { ST_MATCOPY_BATCH = STRATA_MAX_RANK - 2 };
typedef struct st_matcopy {
    int64_t family;                     /* ST_PW_MATCOPY */
    int64_t op, type;                   /* strata_type: f32 f64 c64 c128 */
    int64_t batches;                    /* batch dims, outermost first */
    int64_t dim[STRATA_MAX_RANK];       /* of C: batches, rows, columns; then 0 */
    int64_t stride[3][STRATA_MAX_RANK]; /* of A, B, C; a packed triangle's rows and columns as in st_matvec */
    int64_t packed[3];                  /* A, B, C is a packed triangle */
    int64_t half;                       /* only the triangle: 1 lower, 2 upper, the diagonal included */
    int64_t conj[2];                    /* of A, B */
    int64_t hermitian;                  /* imaginary parts of C's diagonal become 0 */
    int64_t alignment;                  /* as in st_matvec */
} st_matcopy;
/* data: A, B, C. A or B may be C (the same view); else they are apart. */
strata_status st_matcopy_run(strata_handle *h, const char *who, const st_matcopy *c, const double alpha[2],
                             const double beta[2], void *const data[3]);

/* matvec_copy.c: on the CPU */
strata_status st_matcopy_cpu(strata_handle *h, const st_matcopy *c, const double alpha[2],
                             const double beta[2], void *const data[3]);

/* ---- kernels of the CPU -----------------------------------------------------------------------------------------------------------
 * A line is a column of contiguous elements; a kernel takes a group of lines of one length, by their addresses. */
enum { ST_MATVEC_LINES = 8 };
/* What is short: at most so many rows, columns and bytes. */
enum { ST_MATVEC_SHORT = 512, ST_MATVEC_SHORT_BYTES = 384 * 1024 };
typedef struct st_matvec_kernels {
    /* The whole operation on a short matrix of dense lines, one thread; false: nothing was done, the long way is for it. */
    bool (*brief)(const strata_matvec_plain *p);
    /* y_i += sum over k of a[k]_i t_k, ascending; conj: of the a */
    void (*add)(int64_t m, int lines, const void *const a[], const void *t, bool conj, void *y);
    /* s_k += sum over i of a[k]_i x_i */
    void (*dot)(int64_t m, int lines, const void *const a[], const void *x, bool conj, void *s);
    /* both, reading the lines once */
    void (*both)(int64_t m, int lines, const void *const a[], const void *t, bool conj_add, void *y,
                 const void *x, bool conj_dot, void *s);
    /* a[k]_i += x_i t_k, and + y_i u_k where y is not NULL */
    void (*update)(int64_t m, int lines, void *const a[], const void *x, const void *t, const void *y,
                   const void *u);
} st_matvec_kernels;
const st_matvec_kernels *st_matvec_kernels_of(int type, unsigned isa);
int st_matvec_list(int i, strata_kernel_info *info);
#endif
