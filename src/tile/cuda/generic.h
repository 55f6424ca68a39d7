/* SPDX-License-Identifier: Apache-2.0 */
/* generic.h - contractions on any CUDA device from sm_80 on: the host's side of generic.cuh.
 *
 * A row of kernels.inc is a kernel with its tile; together with a problem it becomes a configuration (layouts of the loaders, elements a copy, windowed
 * or not, split), which is what is compiled, and parameters, which a launch takes. A problem is taken simplified, and exchanged (A and B, m and n)
 * where only the rows of C stand together, so that columns do whenever any axis does. */
#ifndef ST_TILE_CUDA_GENERIC_H
#define ST_TILE_CUDA_GENERIC_H
#include "runtime/gpu.h"
#include "tile/contract.h"
#include "tile/cuda/epilogue.h"

/* ---- parameters, mirrored in generic.cuh ------------------------------------------------------------------------------ */
typedef struct st_gax {
    int64_t len, a, b, c;
    uint32_t mul, shift;
} st_gax;
typedef struct st_glist {
    int64_t count;
    st_gax ax[ST_AXES];
} st_glist;
typedef struct st_gwindow {
    int32_t limit, offset;
    int32_t row[ST_AXES], k[ST_AXES];
} st_gwindow;
typedef struct st_gparams {
    const void *a, *b;
    void *c, *part;
    st_glist m, n, k, batch;
    st_gwindow win[ST_BOUNDS];
    uint32_t M, N, K, G;
    uint32_t tiles_m, tiles_n, splits, k_split;
    double alpha, beta, alpha_im, beta_im;
    int64_t offset[3]; /* of the rules: A and B by row and k of the side, C */
    st_epi_params epi;
} st_gparams;

/* The factors of this run. */
strata_status st_generic_scalars(strata_handle *h, const st_contract_plan *p, const strata_run *r,
                                 st_gparams *a);

/* ---- rows ----------------------------------------------------------------------------------------------------------------- */
typedef enum st_gkind {
    ST_G_SIMT,
    ST_G_LDS,
    ST_G_ZMMA,
    ST_G_MMA,
    ST_G_SKINNY_K,
    ST_G_SKINNY_N,
    ST_G_BATCH,
    ST_G_KINDS
} st_gkind;
typedef struct st_grow {
    const char *name; /* of the tile: "128x128x16_s3_simt" */
    st_gkind kind;
    int ta, tb, tacc;       /* types of A and B, and of the sums */
    int tc[4];              /* those that C may have, 0 past the end */
    int bm, bn, bk, stages; /* bk in elements */
    int warps_m, warps_n, lanes_m, blocks_sm;
    int cc;       /* least compute capability */
    int64_t math; /* strata_math that allows it; 0: always */
    int parts; /* of a row made for a caller's tile (generic_tile.c): k is cut into so many; 0: as the model says */
} st_grow;
const st_grow *st_generic_rows(int *count);
/* "gemm_f32f32f32_128x128x16_s3_simt_sm80" */
void st_generic_id(const st_grow *row, int tc, bool split, char *id, size_t n);

/* ---- problems ------------------------------------------------------------------------------------------------------------- */
typedef struct st_gproblem {
    st_contract own; /* simplified; the epilogue's */
    st_contract c;   /* the kernel's: exchanged where `swapped` */
    bool swapped;
    int window; /* 0: none; 1: A, 2: B of c has the bounds */
    int64_t M, N, K, G;
} st_gproblem;
void st_generic_problem(const st_contract *c, const char *text, st_gproblem *g);

typedef struct st_gconfig {
    int layout[2], vec[2]; /* A, B: 0 along k, 1 along rows; elements a copy */
    int kax, cv, splits;
    int rule[3]; /* A and B by row and k of the side, C: bits of generic.cuh */
    int conj[2]; /* complex sides */
    bool halves; /* c128: an element is copied as two f64 */
    bool epilogue;
    int64_t k_split;
    /* skinny kernels: X is A; its rows as compiled; fragments or rows of W a warp, or rows a lane; rows of W a block; warps */
    bool x_is_a;
    int rows_x, width, block, warps, warps_k, unroll;
} st_gconfig;
/* How the row would run the problem, on `sms` multiprocessors; false with the rule that refuses in why. splits > 1 only where `split`. */
bool st_generic_configure(const st_grow *row, const st_gproblem *g, const st_gpu *gpu, bool epilogue,
                          bool split, st_gconfig *f, char *why, size_t n);
/* The same for addresses with no alignment but the elements': copies of one element. Returns the row that does it, in the same order of k: this one, or a smaller tile. */
const st_grow *st_generic_unaligned(const st_grow *row, st_gconfig *f);
/* Does every address have the alignment that f needs? data: A, B, C as the caller gives them. */
bool st_generic_aligned(const st_gproblem *g, const st_gconfig *f, void *const data[]);
double st_generic_us(const st_grow *row, const st_gproblem *g, const st_gconfig *f, const st_gpu *gpu);
size_t st_generic_workspace(const st_grow *row, const st_gproblem *g, const st_gconfig *f);

/* What is compiled. */
typedef struct st_gspec {
    st_gpu_spec spec;
    char id[96], text[ST_GPU_OPTIONS - 1][32];
} st_gspec;
void st_generic_option(st_gspec *s, const char *fmt, ...) ST_PRINTF(2, 3); /* "-DBM=%d" */
void st_generic_spec(const st_grow *row, const st_gproblem *g, const st_gconfig *f, int tc,
                     const char *generated, st_gspec *s);
void st_generic_sum_spec(const st_grow *row, const st_gproblem *g, const st_gconfig *f, int tc,
                         const char *generated, st_gspec *s);
/* Parameters but for addresses and scalars; threads and shared memory of a block. */
void st_generic_params(const st_grow *row, const st_gproblem *g, const st_gconfig *f, st_gparams *p);
void st_generic_list(st_glist *to, const st_axes *l);
unsigned st_generic_smem(const st_grow *row, const st_gconfig *f);
unsigned st_generic_threads(const st_grow *row, const st_gconfig *f);
unsigned st_generic_blocks(const st_grow *row, const st_gparams *p); /* of one part of k */
/* generic_skinny.c */
bool st_skinny_configure(const st_grow *row, const st_gproblem *g, const st_gpu *gpu, bool split,
                         st_gconfig *f, char *why, size_t n);
double st_skinny_us(const st_grow *row, const st_gproblem *g, const st_gconfig *f, const st_gpu *gpu);
/* generic_batch.c */
bool st_batch_configure(const st_grow *row, const st_gproblem *g, bool split, st_gconfig *f, char *why,
                        size_t n);
double st_batch_us(const st_grow *row, const st_gproblem *g, const st_gconfig *f, const st_gpu *gpu);
bool st_generic_together(const st_axes *fast, const st_axes *slow, const st_axes *batch, int which, int v);

/* What the choice is to know of a row with configuration f, usable or not; leaves arg, why and listed. */
void st_generic_candidate(const st_grow *row, const st_gproblem *g, const st_gconfig *f, const st_gpu *gpu,
                          bool split, bool usable, st_candidate *x);
void st_generic_tile(const st_grow *row, const st_gconfig *f, strata_tile *t);
bool st_generic_takes(const st_grow *row, const st_gproblem *g, int64_t math, char *why, size_t n);
extern const st_provider st_generic_provider;
extern const st_tiles st_generic_tiles; /* generic_tile.c */

/* generic_group.c: an st_group_runner (tile/grouped.h) */
struct st_member;
strata_status st_generic_group(strata_handle *h, const char *who, const struct st_member *const m[],
                               int64_t count, bool done[]);
/* Microseconds of a block when its multiprocessor is full of them */
double st_generic_tile_us(const st_grow *row, const st_gproblem *g, const st_gconfig *f, const st_gpu *gpu);

void st_generic_register(void);        /* generic.c */
void st_cuda_reference_register(void); /* reference_cuda.c */
const char *st_cuda_type(int type);    /* "bf16", "e4m3": the name in device code */
#endif
