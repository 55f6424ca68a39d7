/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_blas.h - what the benches of the BLAS on a GPU share: operators as rows of one table, operands cut from a pool of random numbers.
 *
 * The pool lies on the host and, in the type under test, on the device; element e of operand o is pool[(base[o] + e) mod its length], so any operand of
 * any size is filled by copies inside the device and known on the host without one. Triangles of what works in place are the pool times 2^-14
 * with ones on the diagonal: any number of calls leaves the numbers as they are. Everything is column-major and packed. */
#ifndef ST_BENCH_CUDA_BLAS_H
#define ST_BENCH_CUDA_BLAS_H
#include "cuda.h"
#include <complex.h>

typedef enum cuda_op {
    OP_AXPY,
    OP_SCAL,
    OP_SWAP,
    OP_COPY,
    OP_ROT,
    OP_DOT,
    OP_NRM2,
    OP_ASUM,
    OP_IAMAX,
    OP_GEMV,
    OP_GEMVT,
    OP_SYMV,
    OP_GER,
    OP_SYR,
    OP_SYR2,
    OP_TRMV,
    OP_TRMVT,
    OP_TRSV,
    OP_TRSVT,
    OP_SPMV,
    OP_SPR,
    OP_TPMV,
    OP_TPSV,
    OP_GBMV,
    OP_SBMV,
    OP_TBMV,
    OP_TBSV,
    OP_GEMM,
    OP_SYMM,
    OP_HEMM,
    OP_SYRK,
    OP_HERK,
    OP_SYR2K,
    OP_HER2K,
    OP_TRMM,
    OP_TRSM,
    OP_GEAM,
    OP_DGMM,
    CUDA_OPS
} cuda_op;

/* How A is stored: not at all, n x n, the lower half of it, or that half without gaps, or BAND diagonals on each side or below. */
typedef enum cuda_form { FORM_NONE, FORM_FULL, FORM_HALF, FORM_PACKED, FORM_BAND, FORM_HALF_BAND } cuda_form;
enum { CUDA_BAND = 32, OUT_X = 1, OUT_Y = 2, OUT_BOTH = 3, OUT_NUMBER = 4, OUT_A = 5, OUT_C = 6, OUT_B = 7 };

typedef struct cuda_op_row {
    const char *name, *real,
        *pairs; /* ours; cuBLAS's after the type's letter: of real types, of complex ones (NULL: none) */
    int level;
    cuda_form form;
    int out;       /* OUT_*: what is written */
    bool near_one; /* A is next to the identity */
    double
        traffic; /* level 1: vectors moved; else how often what is stored of A (GEAM, DGMM: matrices) is; 0: counts flops */
    double flops; /* level 3: of n cubed */
} cuda_op_row;
extern const cuda_op_row cuda_ops[CUDA_OPS];

typedef struct cuda_task {
    int turn; /* the copy that the last call used */
    bool peer_ran;
    bench *b;
    cuda_work w; /* level 1 and 2: A, x, y, a number; level 3: A, B, C, x */
    cuda_op op;
    strata_type type;
    int64_t n, lda;
    int64_t base[4], count[4]; /* elements of each operand */
    void *host;                /* room to fetch a column or a vector */
    double complex number;     /* of OUT_NUMBER: what it must be, and how far off it may be */
    double number_bound;
} cuda_task;

/* ---- the pool ---- */
enum { CUDA_POOL = 2097143 };                    /* a prime number of elements */
bool cuda_pool_make(bench *b, strata_type type); /* forgets the one before */
void cuda_pool_drop(bench *b);
double complex cuda_pool_at(int64_t e);
/* n elements at `to` from element `base`, in the handle's stream; tiny: times 2^-14 */
bool cuda_pool_fill(bench *b, void *to, int64_t base, int64_t n, bool tiny);

bool cuda_is_complex(strata_type t);
bool cuda_is_single(strata_type t);
double complex cuda_number(strata_type t, const void *p, int64_t i);
char cuda_letter(strata_type t); /* s d c z */

/* ---- cuda_blas_run.c: a call's arg ---- */
typedef struct cuda_call {
    cuda_task *t;
    void *handle, *fn;
    int (*pointer_mode)(void *, int);
} cuda_call;
void cuda_run_strata(void *arg);
void cuda_run_cublas(void *arg);
/* A as the operator has it, copy i */
strata_tensor cuda_matrix(const cuda_task *t, int i);
double cuda_factor(const cuda_task *t); /* alpha */

/* ---- cuda_blas_check.c ---- */
bool cuda_blas_fill(cuda_task *t, int o, int i); /* operand o, copy i */
void cuda_blas_refill(void *arg); /* of the copy that the next call uses: inputs anew, outputs NaN */
double cuda_blas_check(void *arg);
void cuda_blas_expect(cuda_task *t); /* OUT_NUMBER: what must come */

/* a copy of as many bytes, as a contender that is a reference: its rate is what percentages are of */
typedef struct cuda_copier cuda_copier;
cuda_copier *cuda_copier_make(bench *b);
void cuda_copier_drop(bench *b, cuda_copier *c);
void cuda_copier_add(cuda_copier *c, bench_case *k);

int cuda_bench_batch(bench *b, const char **words, int n); /* cuda_batch.c: with --batch */
#endif
