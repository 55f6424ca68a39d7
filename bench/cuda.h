/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.h - the bench on a GPU: contenders enqueue work in the handle's stream; a graph of launches is what is timed.
 *
 * Gaps between launches do not count (each sample is one graph of about two milliseconds between two events), the second-level cache is
 * cold because every launch of a graph uses the next of several copies of the operands, contenders take turns. Two regimes, since the
 * card is limited by its power: "burst" (short samples in turn) and "sustained" (blocks of 0.3 s of one contender in turn). */
#ifndef ST_BENCH_CUDA_H
#define ST_BENCH_CUDA_H
#include "bench.h"

enum { CUDA_COPIES = 24, CUDA_ALGOS = 8 };

/* One problem with its copies on the device. data[o][copy]: operand o. */
typedef struct cuda_work {
    strata_handle *h, *cpu;
    int operands, copies;
    void *data[4][CUDA_COPIES];
    size_t bytes[4];
} cuda_work;
/* Copies so that all together exceed three second-level caches (at least one, at most CUDA_COPIES and a quarter of memory). */
int cuda_copies(const bench *b, size_t bytes);
bool cuda_work_alloc(const bench *b, cuda_work *w, int operands, const size_t *bytes);
void cuda_work_free(cuda_work *w);

/* Times a case whose contenders' `run` enqueues one call on copy `turn` (the first member of their argument, an int that run
 * itself steps). Checks first, appends to b->rows, drops the contenders. */
bool cuda_measure(bench *b, bench_case *c);

/* cuBLAS and cuBLASLt, opened at run time. */
typedef struct cublas cublas;
cublas *cublas_open(bench *b); /* NULL with a note when they are not there */
void cublas_close(cublas *p);
void *cublas_handle(const cublas *p);
void *cublas_symbol(const cublas *p, const char *name); /* a function of cuBLAS, or NULL */
typedef struct cublas_product {
    int64_t m, n, k;
    strata_type in, out; /* of A and B; of C */
    bool ta, tb;         /* stored transposed (row-major views) */
    bool tf32, fast;     /* f32 through tf32; f8 with fast accumulation */
    const void *a, *b;
    void *c;
    int epilogue;     /* cublasLt's number for it, 0: none */
    const void *bias; /* of n numbers of C's type, where the epilogue has one */
} cublas_product;
/* cublasGemmEx's own choice: 0, or an error when it does not take the problem. */
int cublas_gemm(cublas *p, const cublas_product *q);
/* cublasLt: up to CUDA_ALGOS heuristic answers for the problem; run i with cublaslt_run. */
typedef struct cublaslt cublaslt;
cublaslt *cublaslt_make(cublas *p, const cublas_product *q, int *count);
int cublaslt_run(cublaslt *l, int i, const cublas_product *q);
void cublaslt_free(cublaslt *l);

int cuda_bench_gemm(bench *b, const char **words, int n);
int cuda_bench_pointwise(bench *b, const char **words, int n);
int cuda_bench_blas(bench *b, const char **words, int n);
#endif
