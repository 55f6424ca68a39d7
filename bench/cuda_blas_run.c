/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_blas_run.c - one call of every BLAS operator: Strata's, and cuBLAS's through our own prototypes. All four types share one prototype an
 * operator, since only addresses depend on the type. Enumerators are those of cublas_api.h. */
#include "cuda_blas.h"

/* the names after "cublas" and the letter; those of level 1 to 3 end in _v2 */
const cuda_op_row cuda_ops[CUDA_OPS] = {
    [OP_AXPY] = {"axpy", "axpy_v2", "axpy_v2", 1, FORM_NONE, OUT_Y, false, 3, 0},
    [OP_SCAL] = {"scal", "scal_v2", "scal_v2", 1, FORM_NONE, OUT_X, false, 2, 0},
    [OP_SWAP] = {"swap", "swap_v2", "swap_v2", 1, FORM_NONE, OUT_BOTH, false, 4, 0},
    [OP_COPY] = {"copy", "copy_v2", "copy_v2", 1, FORM_NONE, OUT_Y, false, 2, 0},
    [OP_ROT] = {"rot", "rot_v2", "rot_v2", 1, FORM_NONE, OUT_BOTH, false, 4, 0},
    [OP_DOT] = {"dot", "dot_v2", "dotu_v2", 1, FORM_NONE, OUT_NUMBER, false, 2, 0},
    [OP_NRM2] = {"nrm2", "nrm2_v2", "nrm2_v2", 1, FORM_NONE, OUT_NUMBER, false, 1, 0},
    [OP_ASUM] = {"asum", "asum_v2", "asum_v2", 1, FORM_NONE, OUT_NUMBER, false, 1, 0},
    [OP_IAMAX] = {"iamax", "amax_v2", "amax_v2", 1, FORM_NONE, OUT_NUMBER, false, 1, 0},
    [OP_GEMV] = {"gemv", "gemv_v2", "gemv_v2", 2, FORM_FULL, OUT_Y, false, 1, 0},
    [OP_GEMVT] = {"gemvt", "gemv_v2", "gemv_v2", 2, FORM_FULL, OUT_Y, false, 1, 0},
    [OP_SYMV] = {"symv", "symv_v2", "hemv_v2", 2, FORM_HALF, OUT_Y, false, 1, 0},
    [OP_GER] = {"ger", "ger_v2", "geru_v2", 2, FORM_FULL, OUT_A, false, 2, 0},
    [OP_SYR] = {"syr", "syr_v2", "her_v2", 2, FORM_HALF, OUT_A, false, 2, 0},
    [OP_SYR2] = {"syr2", "syr2_v2", "her2_v2", 2, FORM_HALF, OUT_A, false, 2, 0},
    [OP_TRMV] = {"trmv", "trmv_v2", "trmv_v2", 2, FORM_HALF, OUT_X, true, 1, 0},
    [OP_TRMVT] = {"trmvt", "trmv_v2", "trmv_v2", 2, FORM_HALF, OUT_X, true, 1, 0},
    [OP_TRSV] = {"trsv", "trsv_v2", "trsv_v2", 2, FORM_HALF, OUT_X, true, 1, 0},
    [OP_TRSVT] = {"trsvt", "trsv_v2", "trsv_v2", 2, FORM_HALF, OUT_X, true, 1, 0},
    [OP_SPMV] = {"spmv", "spmv_v2", "hpmv_v2", 2, FORM_PACKED, OUT_Y, false, 1, 0},
    [OP_SPR] = {"spr", "spr_v2", "hpr_v2", 2, FORM_PACKED, OUT_A, false, 2, 0},
    [OP_TPMV] = {"tpmv", "tpmv_v2", "tpmv_v2", 2, FORM_PACKED, OUT_X, true, 1, 0},
    [OP_TPSV] = {"tpsv", "tpsv_v2", "tpsv_v2", 2, FORM_PACKED, OUT_X, true, 1, 0},
    [OP_GBMV] = {"gbmv", "gbmv_v2", "gbmv_v2", 2, FORM_BAND, OUT_Y, false, 1, 0},
    [OP_SBMV] = {"sbmv", "sbmv_v2", "hbmv_v2", 2, FORM_HALF_BAND, OUT_Y, false, 1, 0},
    [OP_TBMV] = {"tbmv", "tbmv_v2", "tbmv_v2", 2, FORM_HALF_BAND, OUT_X, true, 1, 0},
    [OP_TBSV] = {"tbsv", "tbsv_v2", "tbsv_v2", 2, FORM_HALF_BAND, OUT_X, true, 1, 0},
    [OP_GEMM] = {"gemm", "gemm_v2", "gemm_v2", 3, FORM_FULL, OUT_C, false, 0, 2},
    [OP_SYMM] = {"symm", "symm_v2", "symm_v2", 3, FORM_HALF, OUT_C, false, 0, 2},
    [OP_HEMM] = {"hemm", NULL, "hemm_v2", 3, FORM_HALF, OUT_C, false, 0, 2},
    [OP_SYRK] = {"syrk", "syrk_v2", "syrk_v2", 3, FORM_FULL, OUT_C, false, 0, 1},
    [OP_HERK] = {"herk", NULL, "herk_v2", 3, FORM_FULL, OUT_C, false, 0, 1},
    [OP_SYR2K] = {"syr2k", "syr2k_v2", "syr2k_v2", 3, FORM_FULL, OUT_C, false, 0, 2},
    [OP_HER2K] = {"her2k", NULL, "her2k_v2", 3, FORM_FULL, OUT_C, false, 0, 2},
    [OP_TRMM] = {"trmm", "trmm_v2", "trmm_v2", 3, FORM_HALF, OUT_B, true, 0, 1},
    [OP_TRSM] = {"trsm", "trsm_v2", "trsm_v2", 3, FORM_HALF, OUT_B, true, 0, 1},
    [OP_GEAM] = {"geam", "geam", "geam", 3, FORM_FULL, OUT_C, false, 3, 0},
    [OP_DGMM] = {"dgmm", "dgmm", "dgmm", 3, FORM_FULL, OUT_C, false, 2, 0},
};

/* large enough to be seen in f32, small enough that numbers stay finite over any run */
static const double small = 0x1p-12;

double cuda_factor(const cuda_task *t)
{
    switch (t->op) {
    case OP_AXPY:
    case OP_GER:
    case OP_SYR:
    case OP_SYR2:
    case OP_SPR:
    case OP_ROT: return small;
    case OP_SCAL: return -1;
    default: return 1;
    }
}

strata_tensor cuda_matrix(const cuda_task *t, int i)
{
    void *const a = t->w.data[0][i];
    const int64_t n = t->n;
    const bool herm = cuda_is_complex(t->type) && t->op != OP_SYMM, mirror = !cuda_ops[t->op].near_one;
    strata_tensor A;
    switch (cuda_ops[t->op].form) {
    case FORM_PACKED:
        A = strata_packed(a, t->type, n, STRATA_LOWER, STRATA_COL_MAJOR);
        /* its diagonal is not evenly spaced, and so it is the one that needs none */
        return mirror ? (herm ? strata_hermitian : strata_symmetric)(A, STRATA_LOWER)
                      : strata_triangular(A, STRATA_LOWER, STRATA_UNIT);
    case FORM_BAND: return strata_band(a, t->type, n, n, CUDA_BAND, CUDA_BAND, STRATA_COL_MAJOR, 0);
    case FORM_HALF_BAND: A = strata_band(a, t->type, n, n, CUDA_BAND, 0, STRATA_COL_MAJOR, 0); break;
    case FORM_HALF: A = strata_matrix(a, t->type, n, n, STRATA_COL_MAJOR, 0); break;
    default:
        A = strata_matrix(a, t->type, n, n, STRATA_COL_MAJOR, 0);
        return t->op == OP_GEMVT || t->op == OP_GEAM ? strata_transpose(A) : A;
    }
    if (mirror) return (herm ? strata_hermitian : strata_symmetric)(A, STRATA_LOWER);
    A = strata_triangular(A, STRATA_LOWER, STRATA_NON_UNIT);
    return t->op == OP_TRMVT || t->op == OP_TRSVT ? strata_transpose(A) : A;
}

static int next(cuda_task *t) { return t->turn = (t->turn + 1) % t->w.copies; }

static void strata_level3(cuda_task *t, int i)
{
    strata_handle *const h = t->b->h;
    const int64_t n = t->n;
    const strata_scalar one = STRATA_ONE, zero = STRATA_ZERO;
    const strata_tensor A = cuda_matrix(t, i),
                        B = strata_matrix(t->w.data[1][i], t->type, n, n, STRATA_COL_MAJOR, 0),
                        C = strata_matrix(t->w.data[2][i], t->type, n, n, STRATA_COL_MAJOR, 0),
                        x = strata_vector(t->w.data[3][i], t->type, n, 1);
    switch (t->op) {
    case OP_SYRK: strata_syrk(h, one, A, zero, strata_symmetric(C, STRATA_LOWER)); break;
    case OP_HERK: strata_herk(h, one, A, zero, strata_hermitian(C, STRATA_LOWER)); break;
    case OP_SYR2K: strata_syr2k(h, one, A, B, zero, strata_symmetric(C, STRATA_LOWER)); break;
    case OP_HER2K: strata_her2k(h, one, A, B, zero, strata_hermitian(C, STRATA_LOWER)); break;
    case OP_TRMM: strata_trmm(h, one, A, B); break;
    case OP_TRSM: strata_trsm(h, one, A, B); break;
    case OP_GEAM: strata_geam(h, one, A, one, B, C); break;
    case OP_DGMM: strata_dgmm(h, x, A, C); break;
    default: strata_gemm(h, one, A, B, zero, C, NULL); break;
    }
}

void cuda_run_strata(void *arg)
{
    cuda_task *const t = ((cuda_call *)arg)->t;
    strata_handle *const h = t->b->h;
    const int i = next(t);
    t->peer_ran = false;
    if (cuda_ops[t->op].level == 3) {
        strata_level3(t, i);
        return;
    }
    const strata_scalar f = strata_real(cuda_factor(t)), one = STRATA_ONE, zero = STRATA_ZERO;
    const int part = cuda_is_single(t->type) ? STRATA_F32 : STRATA_F64;
    const strata_tensor x = strata_vector(t->w.data[1][i], t->type, t->n, 1),
                        y = strata_vector(t->w.data[2][i], t->type, t->n, 1),
                        r = strata_point(t->w.data[3][i], t->op == OP_DOT     ? t->type
                                                          : t->op == OP_IAMAX ? STRATA_I32
                                                                              : (strata_type)part);
    switch (t->op) {
    case OP_AXPY: strata_axpy(h, f, x, y); break;
    case OP_SCAL: strata_scal(h, f, x); break;
    case OP_SWAP: strata_swap(h, x, y); break;
    case OP_COPY: strata_copy(h, x, y); break;
    case OP_ROT: strata_rot(h, x, y, one, f); break;
    case OP_DOT: strata_dot(h, x, y, r); break;
    case OP_NRM2: strata_nrm2(h, x, r); break;
    case OP_ASUM: strata_asum(h, x, r); break;
    case OP_IAMAX: strata_iamax(h, x, r); break;
    case OP_GER: strata_ger(h, f, x, y, cuda_matrix(t, i)); break;
    case OP_SYR:
    case OP_SPR: (cuda_is_complex(t->type) ? strata_her : strata_syr)(h, f, x, cuda_matrix(t, i)); break;
    case OP_SYR2:
        (cuda_is_complex(t->type) ? strata_her2 : strata_syr2)(h, f, x, y, cuda_matrix(t, i));
        break;
    case OP_TRMV:
    case OP_TRMVT:
    case OP_TPMV:
    case OP_TBMV: strata_trmv(h, cuda_matrix(t, i), x); break;
    case OP_TRSV:
    case OP_TRSVT:
    case OP_TPSV:
    case OP_TBSV: strata_trsv(h, cuda_matrix(t, i), x); break;
    default: strata_gemv(h, one, cuda_matrix(t, i), x, zero, y); break;
    }
}

enum { OP_N = 0, OP_T = 1, LOWER = 0, NON_UNIT = 0, UNIT = 1, LEFT = 0, ON_HOST = 0, ON_DEVICE = 1 };
typedef union scalar_room {
    float f[2];
    double d[2];
} scalar_room;
static const void *number(strata_type type, double v, scalar_room *r)
{
    if (cuda_is_single(type))
        r->f[0] = (float)v, r->f[1] = 0;
    else
        r->d[0] = v, r->d[1] = 0;
    return r;
}

typedef void *V;
typedef const void *P;
#define CALL(...) ((int (*)(V, __VA_ARGS__))c->fn)
typedef int N;

static void cublas_level1(const cuda_call *c, V x, V y, V r, P f, P one)
{
    const V h = c->handle;
    const int n = (int)c->t->n;
    switch (c->t->op) {
    case OP_AXPY: CALL(N, P, P, N, V, N)(h, n, f, x, 1, y, 1); break;
    case OP_SCAL: CALL(N, P, V, N)(h, n, f, x, 1); break;
    case OP_SWAP:
    case OP_COPY: CALL(N, V, N, V, N)(h, n, x, 1, y, 1); break;
    case OP_ROT: CALL(N, V, N, V, N, P, P)(h, n, x, 1, y, 1, one, f); break;
    default:
        c->pointer_mode(h, ON_DEVICE);
        if (c->t->op == OP_DOT)
            CALL(N, P, N, P, N, V)(h, n, x, 1, y, 1, r);
        else
            CALL(N, P, N, V)(h, n, x, 1, r);
        c->pointer_mode(h, ON_HOST);
    }
}

static void cublas_level2(const cuda_call *c, V a, V x, V y, P f, P one, P zero)
{
    const V h = c->handle;
    const int n = (int)c->t->n, k = CUDA_BAND,
              trans = c->t->op == OP_GEMVT || c->t->op == OP_TRMVT || c->t->op == OP_TRSVT;
    switch (c->t->op) {
    case OP_GEMV:
    case OP_GEMVT: CALL(N, N, N, P, P, N, P, N, P, V, N)(h, trans, n, n, one, a, n, x, 1, zero, y, 1); break;
    case OP_SYMV: CALL(N, N, P, P, N, P, N, P, V, N)(h, LOWER, n, one, a, n, x, 1, zero, y, 1); break;
    case OP_SPMV: CALL(N, N, P, P, P, N, P, V, N)(h, LOWER, n, one, a, x, 1, zero, y, 1); break;
    case OP_SBMV:
        CALL(N, N, N, P, P, N, P, N, P, V, N)(h, LOWER, n, k, one, a, k + 1, x, 1, zero, y, 1);
        break;
    case OP_GBMV:
        CALL(N, N, N, N, N, P, P, N, P, N, P, V, N)
        (h, OP_N, n, n, k, k, one, a, 2 * k + 1, x, 1, zero, y, 1);
        break;
    case OP_GER: CALL(N, N, P, P, N, P, N, V, N)(h, n, n, f, x, 1, y, 1, a, n); break;
    case OP_SYR: CALL(N, N, P, P, N, V, N)(h, LOWER, n, f, x, 1, a, n); break;
    case OP_SYR2: CALL(N, N, P, P, N, P, N, V, N)(h, LOWER, n, f, x, 1, y, 1, a, n); break;
    case OP_SPR: CALL(N, N, P, P, N, V)(h, LOWER, n, f, x, 1, a); break;
    case OP_TPMV:
    case OP_TPSV: CALL(N, N, N, N, P, V, N)(h, LOWER, OP_N, UNIT, n, a, x, 1); break;
    case OP_TBMV:
    case OP_TBSV: CALL(N, N, N, N, N, P, N, V, N)(h, LOWER, OP_N, NON_UNIT, n, k, a, k + 1, x, 1); break;
    default: CALL(N, N, N, N, P, N, V, N)(h, LOWER, trans, NON_UNIT, n, a, n, x, 1); break;
    }
}

static void cublas_level3(const cuda_call *c, V a, V b, V d, V x, P one, P zero)
{
    const V h = c->handle;
    const int n = (int)c->t->n;
    switch (c->t->op) {
    case OP_GEMM:
        CALL(N, N, N, N, N, P, P, N, P, N, P, V, N)(h, OP_N, OP_N, n, n, n, one, a, n, b, n, zero, d, n);
        break;
    case OP_SYMM:
    case OP_HEMM:
        CALL(N, N, N, N, P, P, N, P, N, P, V, N)(h, LEFT, LOWER, n, n, one, a, n, b, n, zero, d, n);
        break;
    case OP_SYRK:
    case OP_HERK: CALL(N, N, N, N, P, P, N, P, V, N)(h, LOWER, OP_N, n, n, one, a, n, zero, d, n); break;
    case OP_SYR2K:
    case OP_HER2K:
        CALL(N, N, N, N, P, P, N, P, N, P, V, N)(h, LOWER, OP_N, n, n, one, a, n, b, n, zero, d, n);
        break;
    case OP_TRMM:
        CALL(N, N, N, N, N, N, P, P, N, P, N, V, N)
        (h, LEFT, LOWER, OP_N, NON_UNIT, n, n, one, a, n, b, n, b, n);
        break;
    case OP_TRSM:
        CALL(N, N, N, N, N, N, P, P, N, V, N)(h, LEFT, LOWER, OP_N, NON_UNIT, n, n, one, a, n, b, n);
        break;
    case OP_GEAM:
        CALL(N, N, N, N, P, P, N, P, P, N, V, N)(h, OP_T, OP_N, n, n, one, a, n, one, b, n, d, n);
        break;
    default: CALL(N, N, N, P, N, P, N, V, N)(h, LEFT, n, n, a, n, x, 1, d, n); break;
    }
}

void cuda_run_cublas(void *arg)
{
    const cuda_call *const c = arg;
    cuda_task *const t = c->t;
    scalar_room rf, r1, r0;
    const void *const f = number(t->type, cuda_factor(t), &rf), *const one = number(t->type, 1, &r1),
                      *const zero = number(t->type, 0, &r0);
    const int i = next(t);
    void *const a = t->w.data[0][i], *const x = t->w.data[1][i], *const y = t->w.data[2][i],
                *const r = t->w.data[3][i];
    t->peer_ran = true;
    switch (cuda_ops[t->op].level) {
    case 1: cublas_level1(c, x, y, r, f, one); break;
    case 2: cublas_level2(c, a, x, y, f, one, zero); break;
    default: cublas_level3(c, a, x, y, r, one, zero); break;
    }
}
