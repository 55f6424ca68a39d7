/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_sm90.h - the host's side of gemm_sm90.cu: plain products on Hopper.
 *
 * A problem is taken as the generic kernels take it (simplified; A and B, m and n exchanged where only the rows of C stand together), with one axis each of m, n and k and
 * columns of C that stand together. TMA reads an operand where its k (or, for 16-bit types, its rows) is contiguous, and address and strides
 * are multiples of 16 bytes; any other is copied into workspace first, k contiguous and padded. A row of kernels.inc together with a problem becomes a configuration. */
#ifndef ST_TILE_CUDA_GEMM_SM90_H
#define ST_TILE_CUDA_GEMM_SM90_H
#include "tile/cuda/generic.h"
#include "tile/grouped.h"
#include <strata/blas.h>

/* kinds of rows; TURN: f32 whose k is not contiguous in one operand, which goes through registers */
enum { ST_SM90_ANY, ST_SM90_SPLIT, ST_SM90_PROMOTE, ST_SM90_X6, ST_SM90_TURN };

typedef struct st_sm90_row {
    int bm, bn, stages, consumers, pp, wait, cm, cn, tma_store, preg, creg, raster, kind, percent;
    int parts; /* of a row made for a caller's tile (gemm_sm90_tile.c): k is cut into so many; 0: as the model says */
} st_sm90_row;

/* mirrored in gemm_sm90.cu */
typedef struct st_sm90_args {
    int32_t m, n, k, g, g0, raster, splits, az, bz, vec, m_at, n_at, bytes, scaled;
    double alpha, beta;
    void *c;
    int64_t ldc, cg;
    const uint32_t *found;
} st_sm90_args;
/* mirrored in gemm_sm90_pack.cu; strides in elements */
typedef struct st_sm90_pack {
    const void *src;
    void *dst;
    int64_t rows, k, rs, ks, gs, pitch, item;
    int32_t g;
} st_sm90_pack;

typedef struct st_sm90_pack_both {
    st_sm90_pack p[2];
    uint32_t first; /* blocks of the first */
} st_sm90_pack_both;

/* mirrored in gemm_sm90_split.cu and gemm_sm90_exact.cu */
typedef struct st_sm90_parts {
    const void *src;
    void *dst, *found;
    int64_t rows, k, rs, ks, gs, pitch, item, part;
    int32_t g;
} st_sm90_parts;
typedef struct st_sm90_exact {
    const void *a, *b;
    void *c;
    const void *found;
    int64_t ars, aks, ags, brs, bks, bgs, ldc, cg;
    int32_t m, n, k, g, m_at, n_at;
    float alpha, beta;
} st_sm90_exact;

/* mirrored in gemm_sm90.cu: scales of blocks of rows of A, of columns of B, and of 128 of k; strides in elements from block to block */
typedef struct st_sm90_scales {
    const void *a, *b;
    int64_t a_row, a_k, b_col, b_k;
    int32_t a_rows, b_cols;
} st_sm90_scales;

/* A or B: rows are m or n. Strides in elements. */
typedef struct st_sm90_side {
    int64_t rows, rs, ks, gs; /* as the caller has it; gs: of the inner batch axis */
    bool pack;                /* copied into workspace */
    bool mn;                  /* its rows are contiguous */
    int64_t pitch, item; /* as the kernel reads it: of the outer dim, and of the batch (0: one for all) */
    int64_t part;        /* X6: elements between its three parts */
    int64_t panel;       /* X6: rows whose parts are in the workspace at a time */
    size_t at, bytes;    /* where in the workspace */
} st_sm90_side;

typedef struct st_sm90 {
    st_gproblem g;
    const st_sm90_row *row;
    int es, cs;
    bool tf32, integer, epilogue;
    bool
        turned; /* TURN: the kernel computes C transposed, A and B exchanged, since B is the one that goes through registers */
    st_sm90_side a, b;
    int64_t M, N, K, G, outer; /* G: the inner batch axis' length, outer: of the others together */
    int64_t ldc, cg;
    int splits;
    int scales; /* 1: A has scales, 2: B */
    st_sm90_scales scale;
    bool batch; /* tensor maps of rank 3 */
    size_t partial_at, workspace;
    double us;
} st_sm90;

/* X6: do a stage's buffers hold all parts of A and of B? */
static inline bool st_sm90_holds_parts(const st_sm90_row *row)
{
    return row->kind == ST_SM90_X6 && row->stages <= 4;
}
const st_sm90_row *st_sm90_rows(int *count);
/* How the row runs the problem; false with the rule that refuses. */
bool st_sm90_configure(const st_sm90_row *row, const st_contract *c, const char *text, const st_gpu *gpu,
                       st_sm90 *q, char *why, size_t n);
unsigned st_sm90_smem(const st_sm90 *q);
/* Bytes that one stage of the ring receives. */
int st_sm90_stage_bytes(const st_sm90 *q);
/* The tensor map of A or B at `base`, in boxes of `tile` rows. */
strata_status st_sm90_map(strata_handle *h, const st_sm90 *q, const st_sm90_side *s, int type, int tile,
                          const void *base, st_gpu_map *map);
/* The tile of q's row, for operands of q->es bytes. */
void st_sm90_tile(const st_sm90 *q, strata_tile *t);
/* What the choice is to know of q, which st_sm90_configure filled in and called usable or not; leaves arg, why and listed. */
void st_sm90_candidate(const st_contract *c, const st_sm90 *q, bool usable, st_candidate *x);
/* A plan of c's row; scale: NULL, or the scales of A and B as the caller has them (gemm_sm90_scaled.c). */
strata_status st_sm90_build(strata_handle *h, const st_problem *problem, const st_candidate *c,
                            const st_block_scale *scale, strata_plan **plan);
/* Does the row, which q is of, take such scales? Sets q's. */
bool st_sm90_scale(st_sm90 *q, const st_block_scale scale[2], char *why, size_t n);
/* The plan for the same problem at any address, of a plan with scales. */
void st_sm90_set_twin(strata_plan *plan, strata_plan *twin);
extern const st_provider st_sm90_provider;
extern const st_tiles st_sm90_tiles; /* gemm_sm90_tile.c */

/* What is compiled. Equal configurations give equal options. */
void st_sm90_id(const st_sm90_row *row, int ta, int tb, int tc, bool amn, bool bmn, char *id, size_t n);
void st_sm90_spec(const st_sm90_row *row, int ta, int tb, int tc, bool tf32, bool amn, bool bmn, bool batch,
                  const char *generated, st_gspec *s);
void st_sm90_pack_spec(int es, bool along_rows, st_gspec *s);
void st_sm90_parts_spec(bool along_rows, st_gspec *s);
void st_sm90_exact_spec(const char *generated, st_gspec *s);
void st_sm90_sum_spec(const st_sm90 *q, const char *generated, st_gspec *s);
const char *st_sm90_order(const st_sm90_row *row, int ta);
int st_sm90_list(int i, strata_kernel_info *info);

/* gemm_sm90_group.c: see tile/grouped.h */
strata_status st_sm90_group(strata_handle *h, const char *who, const st_member *const m[], int64_t count,
                            bool done[]);

void st_sm90_register(void);
#endif
