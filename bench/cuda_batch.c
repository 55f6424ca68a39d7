/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_batch.c - `strata bench blas --device cuda:N --batch COUNT`: many small matrices in one call, beside cuBLAS's batched functions. Matrices are
 * column-major, packed one after another; cuBLAS's functions that want addresses get an array of them in device memory.
 *
 * What works in place (getrf, getrs, geqrf, gels) is given its operands anew by a copy before each call; all contenders pay for it, and its time alone is
 * the column `restore`. Every result is checked on the host by what it must fulfil: P A = L U, A X = B, A C = 1, R^H R = A^H A. */
#include "cuda_blas.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum batch_op {
    B_GEMM,
    B_GEMMP,
    B_TRSM,
    B_GETRF,
    B_GETRS,
    B_GETRI,
    B_MATINV,
    B_GEQRF,
    B_GELS,
    BATCH_OPS
} batch_op;
static const struct {
    const char *name, *peer;
    bool restores;
    double flops; /* of n cubed */
} ops[BATCH_OPS] = {
    [B_GEMM] = {"gemm", "gemmStridedBatched", false, 2},
    [B_GEMMP] = {"gemm-pointers", "gemmBatched", false, 2},
    [B_TRSM] = {"trsm", "trsmBatched", false, 1},
    [B_GETRF] = {"getrf", "getrfBatched", true, 2.0 / 3},
    [B_GETRS] = {"getrs", "getrsBatched", true, 2},
    [B_GETRI] = {"getri", "getriBatched", false, 4.0 / 3},
    [B_MATINV] = {"matinv", "matinvBatched", false, 2},
    [B_GEQRF] = {"geqrf", "geqrfBatched", true, 4.0 / 3},
    [B_GELS] = {"gels", "gelsBatched", true, 8.0 / 3},
};

/* a: the matrix as given; b: right sides; c: results; lu: factors, or what is worked in. */
typedef struct task {
    int turn;
    bool peer_ran;
    bench *b;
    cuda_work w;
    batch_op op;
    strata_type type;
    int64_t n, count;
    void *pivots[2], *info, *tau; /* ours count from 0, cuBLAS's from 1; both of LU[] */
    void *list[4][CUDA_COPIES], *tau_list;
    void *host;
    size_t bytes, host_bytes;
} task;
typedef struct call {
    task *t;
    void *handle, *fn;
    bool restore_only;
} call;
enum { A_, B_, C_, LU_ };

static strata_tensor batch_of(const task *t, int o, int i)
{
    return strata_batch(strata_matrix(t->w.data[o][i], t->type, t->n, t->n, STRATA_COL_MAJOR, 0), t->count,
                        0);
}
static strata_tensor numbers(const task *t, const void *p)
{
    const int64_t dim[2] = {t->count, t->n};
    return strata_array(p, STRATA_I32, 2, dim, NULL);
}

static void restore(const task *t, int i)
{
    strata_handle *const h = t->b->h;
    if (t->op == B_GETRF || t->op == B_GEQRF || t->op == B_GELS)
        strata_copy(h, batch_of(t, A_, i), batch_of(t, LU_, i));
    if (t->op == B_GETRS || t->op == B_GELS) strata_copy(h, batch_of(t, B_, i), batch_of(t, C_, i));
}

static void run_strata(void *arg)
{
    const call *const c = arg;
    task *const t = c->t;
    strata_handle *const h = t->b->h;
    const int i = t->turn = (t->turn + 1) % t->w.copies;
    const int64_t dim[2] = {t->count, t->n};
    const strata_tensor A = batch_of(t, A_, i), B = batch_of(t, B_, i), C = batch_of(t, C_, i),
                        LU = batch_of(t, LU_, i), none = {0}, pivots = numbers(t, t->pivots[0]),
                        info = strata_array(t->info, STRATA_I32, 1, dim, NULL),
                        tau = strata_array(t->tau, t->type, 2, dim, NULL);
    t->peer_ran = false;
    if (ops[t->op].restores) restore(t, i);
    if (c->restore_only) return;
    switch (t->op) {
    case B_GEMM: strata_gemm(h, STRATA_ONE, A, B, STRATA_ZERO, C, NULL); break;
    case B_GEMMP: {
        const strata_tensor one = strata_matrix(NULL, t->type, t->n, t->n, STRATA_COL_MAJOR, 0);
        strata_gemm(h, STRATA_ONE, strata_pointers(one, t->list[A_][i], t->count),
                    strata_pointers(one, t->list[B_][i], t->count), STRATA_ZERO,
                    strata_pointers(one, t->list[C_][i], t->count), NULL);
        break;
    }
    case B_TRSM: strata_trsm(h, STRATA_ONE, strata_triangular(LU, STRATA_LOWER, STRATA_NON_UNIT), B); break;
    case B_GETRF: strata_getrf(h, LU, pivots, info); break;
    case B_GETRS: strata_getrs(h, LU, pivots, C, NULL); break;
    case B_GETRI: strata_getri(h, LU, pivots, C, info); break;
    case B_MATINV: strata_matinv(h, A, C, info); break;
    case B_GEQRF: strata_geqrf(h, LU, tau); break;
    default: strata_gels(h, LU, C, none); break;
    }
}

typedef void *V;
typedef const void *P;
typedef int N;
#define CALL(...) ((int (*)(V, __VA_ARGS__))c->fn)
static void run_cublas(void *arg)
{
    const call *const c = arg;
    task *const t = c->t;
    const V h = c->handle;
    const int i = t->turn = (t->turn + 1) % t->w.copies, n = (int)t->n, count = (int)t->count;
    static const float f[4] = {1, 0, 0, 0};
    static const double d[4] = {1, 0, 0, 0};
    const void *const one = cuda_is_single(t->type) ? (P)f : d, *const zero = cuda_is_single(t->type)
                                                                                  ? (P)(f + 2)
                                                                                  : d + 2;
    const V a = t->list[A_][i], b = t->list[B_][i], x = t->list[C_][i], lu = t->list[LU_][i];
    int ignored;
    t->peer_ran = true;
    if (ops[t->op].restores) restore(t, i);
    switch (t->op) {
    case B_GEMM: {
        const long long step = (long long)n * n;
        CALL(N, N, N, N, N, P, P, N, long long, P, N, long long, P, V, N, long long, N)
        (h, 0, 0, n, n, n, one, t->w.data[A_][i], n, step, t->w.data[B_][i], n, step, zero, t->w.data[C_][i],
         n, step, count);
        break;
    }
    case B_GEMMP:
        CALL(N, N, N, N, N, P, V, N, V, N, P, V, N, N)(h, 0, 0, n, n, n, one, a, n, b, n, zero, x, n, count);
        break;
    case B_TRSM:
        CALL(N, N, N, N, N, N, P, V, N, V, N, N)(h, 0, 0, 0, 0, n, n, one, lu, n, b, n, count);
        break;
    case B_GETRF: CALL(N, V, N, V, V, N)(h, n, lu, n, t->pivots[1], t->info, count); break;
    case B_GETRS:
        CALL(N, N, N, V, N, V, V, N, int *, N)(h, 0, n, n, lu, n, t->pivots[1], x, n, &ignored, count);
        break;
    case B_GETRI: CALL(N, V, N, V, V, N, V, N)(h, n, lu, n, t->pivots[1], x, n, t->info, count); break;
    case B_MATINV: CALL(N, V, N, V, N, V, N)(h, n, a, n, x, n, t->info, count); break;
    case B_GEQRF: CALL(N, N, V, N, V, int *, N)(h, n, n, lu, n, t->tau_list, &ignored, count); break;
    default:
        CALL(N, N, N, N, V, N, V, N, int *, V, N)(h, 0, n, n, n, lu, n, x, n, &ignored, t->info, count);
        break;
    }
}

/* ---- checks ---- */
static double complex at(const task *t, int o, int64_t item, int64_t i, int64_t j)
{
    static const int64_t base[2] = {0, 1234567};
    const int64_t e = item * t->n * t->n + i + j * t->n;
    double complex v = cuda_pool_at(base[o] + e);
    return v;
}
static double complex given(const task *t, int64_t item, int64_t i, int64_t j)
{
    return at(t, A_, item, i, j);
}
static double size1(double complex z) { return fabs(creal(z)) + fabs(cimag(z)); }

/* what must be 0: row i, column j of the statement about item `item`; *mag: the size of its terms */
static double complex residual(const task *t, int64_t item, const void *got, const int32_t *pivots, int64_t i,
                               int64_t j, double *mag)
{
    const int64_t n = t->n;
    double complex s = 0;
    *mag = 0;
#define TERM(v)                        \
    do {                               \
        const double complex v_ = (v); \
        s += v_;                       \
        *mag += size1(v_);             \
    } while (0)
#define GOT(i, j) cuda_number(t->type, got, (i) + (j)*n)
    switch (t->op) {
    case B_GEMM:
    case B_GEMMP:
        for (int64_t l = 0; l < n; l++) TERM(given(t, item, i, l) * at(t, B_, item, l, j));
        TERM(-GOT(i, j));
        break;
    case B_TRSM:
        for (int64_t l = 0; l < i; l++) TERM(0x1p-14 * cuda_pool_at(item * n * n + i + l * n) * GOT(l, j));
        TERM(GOT(i, j));
        TERM(-at(t, B_, item, i, j));
        break;
    case B_GETRF: { /* row i of P A */
        int64_t row = i;
        int32_t order[64] = {0};
        for (int32_t k = 0; k < n; k++) order[k] = k;
        for (int64_t k = 0; k < n; k++) {
            const int32_t p = pivots[k] - t->peer_ran, o = order[k];
            if (p < 0 || p >= n) return NAN;
            order[k] = order[p];
            order[p] = o;
        }
        row = order[i];
        for (int64_t l = 0; l <= i && l <= j; l++) TERM((l == i ? 1 : GOT(i, l)) * GOT(l, j));
        TERM(-given(t, item, row, j));
        *mag *= (double)n; /* growth */
        break;
    }
    case B_GEQRF:
        for (int64_t l = 0; l <= i && l <= j; l++) TERM(conj(GOT(l, i)) * GOT(l, j));
        for (int64_t l = 0; l < n; l++) TERM(-conj(given(t, item, l, i)) * given(t, item, l, j));
        break;
    case B_GETRS:
    case B_GELS:
        for (int64_t l = 0; l < n; l++) TERM(given(t, item, i, l) * GOT(l, j));
        TERM(-at(t, B_, item, i, j));
        *mag *= (double)n;
        break;
    default:
        for (int64_t l = 0; l < n; l++) TERM(given(t, item, i, l) * GOT(l, j));
        TERM(i == j ? -1 : 0);
        *mag *= 64 * (double)n; /* growth, and a residual from the side that the algorithm does not bound */
    }
    return s;
#undef GOT
#undef TERM
}

static double check(void *arg)
{
    task *const t = arg;
    enum { ITEMS = 4 };
    const int64_t n = t->n, nn = n * n;
    const size_t es = strata_type_bits(t->type) / 8;
    const int o = t->op == B_TRSM ? B_ : t->op == B_GETRF || t->op == B_GEQRF ? LU_ : C_;
    const double u =
        (cuda_is_single(t->type) ? FLT_EPSILON : DBL_EPSILON) / 2 * (cuda_is_complex(t->type) ? 4 : 1);
    int32_t pivots[64];
    double worst = 0;
    for (int64_t q = 0; q < ITEMS; q++) {
        const int64_t item = (t->count - 1) * q / (ITEMS - 1);
        const char *from = t->w.data[o][t->turn];
        if (strata_copy(t->b->h, strata_array(from + (size_t)(item * nn) * es, t->type, 1, &nn, NULL),
                        strata_array(t->host, t->type, 1, &nn, NULL)))
            return INFINITY;
        if (t->op == B_GETRF &&
            strata_copy(t->b->h,
                        strata_array((int32_t *)t->pivots[t->peer_ran] + item * n, STRATA_I32, 1, &n, NULL),
                        strata_array(pivots, STRATA_I32, 1, &n, NULL)))
            return INFINITY;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                double mag;
                const double complex r = residual(t, item, t->host, pivots, i, j, &mag);
                const double e = size1(r) / ((double)(4 * n + 16) * u * mag + DBL_MIN);
                if (!(e <= worst)) worst = e;
            }
    }
    return worst;
}

static void poison(void *arg)
{
    task *const t = arg;
    const int i = (t->turn + 1) % t->w.copies;
    const int64_t all = (int64_t)t->bytes;
    strata_fill(t->b->h, strata_array(t->w.data[C_][i], STRATA_U8, 1, &all, NULL), strata_real(255));
    if (t->op == B_TRSM) cuda_pool_fill(t->b, t->w.data[B_][i], 1234567, t->count * t->n * t->n, false);
}

/* ---- operands ---- */
/* addresses of the matrices of data[o][i] */
static bool make_list(task *t, const void *base, int64_t step, void **out)
{
    int64_t *a = malloc((size_t)t->count * sizeof *a);
    bool ok = a && !strata_alloc(t->b->h, (size_t)t->count * sizeof *a, out);
    for (int64_t k = 0; ok && k < t->count; k++) a[k] = (int64_t)(intptr_t)base + k * step;
    ok = ok && !strata_copy(t->b->h, strata_array(a, STRATA_I64, 1, &t->count, NULL),
                            strata_array(*out, STRATA_I64, 1, &t->count, NULL));
    free(a);
    return ok;
}

static bool fill(task *t, int i)
{
    const int64_t n = t->n, all = t->count * n * n, es = (int64_t)strata_type_bits(t->type) / 8;
    const int64_t ones[2] = {t->count, n}, steps[2] = {n * n, n + 1};
    bool ok = cuda_pool_fill(t->b, t->w.data[A_][i], 0, all, false) &&
              cuda_pool_fill(t->b, t->w.data[B_][i], 1234567, all, false) &&
              cuda_pool_fill(t->b, t->w.data[LU_][i], 0, all, t->op == B_TRSM);
    if (ok && t->op == B_TRSM)
        ok = !strata_fill(t->b->h, strata_array(t->w.data[LU_][i], t->type, 2, ones, steps), strata_real(1));
    for (int o = 0; ok && o < 4; o++) ok = make_list(t, t->w.data[o][i], n * n * es, &t->list[o][i]);
    return ok;
}

/* factors for getrs and getri, with both kinds of pivots */
static bool factor(task *t, int i)
{
    const int64_t dim[2] = {t->count, t->n}, all = t->count * t->n;
    const strata_tensor info = strata_array(t->info, STRATA_I32, 1, dim, NULL);
    if (strata_getrf(t->b->h, batch_of(t, LU_, i), numbers(t, t->pivots[0]), info)) return false;
    int32_t *p = malloc((size_t)all * sizeof *p);
    const strata_tensor host = strata_array(p, STRATA_I32, 1, &all, NULL);
    bool ok = p && !strata_copy(t->b->h, strata_array(t->pivots[0], STRATA_I32, 1, &all, NULL), host);
    for (int64_t k = 0; ok && k < all; k++) p[k]++;
    ok = ok && !strata_copy(t->b->h, host, strata_array(t->pivots[1], STRATA_I32, 1, &all, NULL));
    free(p);
    return ok;
}

static bool make(task *t, bench *b, batch_op op, strata_type type, int64_t n)
{
    const size_t es = strata_type_bits(type) / 8;
    *t = (task){.b = b, .op = op, .type = type, .n = n, .count = b->o.batch, .w = {.h = b->h, .cpu = b->cpu}};
    t->bytes = (size_t)(t->count * n * n) * es;
    t->host_bytes = (size_t)(n * n) * es;
    t->host = bench_alloc(t->host_bytes);
    const size_t all[4] = {t->bytes, t->bytes, t->bytes, t->bytes}, numbers_ = (size_t)(t->count * n) * 4;
    bool ok = t->host && cuda_work_alloc(b, &t->w, 4, all) && !strata_alloc(b->h, numbers_, &t->pivots[0]) &&
              !strata_alloc(b->h, numbers_, &t->pivots[1]) && !strata_alloc(b->h, numbers_, &t->info) &&
              !strata_alloc(b->h, (size_t)(t->count * n) * es, &t->tau) &&
              make_list(t, t->tau, n * (int64_t)es, &t->tau_list);
    for (int i = 0; ok && i < t->w.copies; i++) {
        ok = fill(t, i);
        if (ok && (op == B_GETRS || op == B_GETRI)) ok = factor(t, i);
    }
    return ok;
}

static void drop(task *t)
{
    void *const one[] = {t->pivots[0], t->pivots[1], t->info, t->tau, t->tau_list};
    for (size_t k = 0; k < sizeof one / sizeof *one; k++) strata_free(t->b->h, one[k]);
    for (int o = 0; o < 4; o++)
        for (int i = 0; i < t->w.copies; i++) strata_free(t->b->h, t->list[o][i]);
    cuda_work_free(&t->w);
    bench_free(t->host, t->host_bytes);
    free(t);
}

static call *new_call(task *t, void *handle, void *fn, bool restore_only)
{
    call *c = calloc(1, sizeof *c);
    if (c) *c = (call){t, handle, fn, restore_only};
    return c;
}

static bool one_case(bench *b, cublas *blas, batch_op op, strata_type type, int64_t n)
{
    task *t = calloc(1, sizeof *t);
    bench_case c = {.unit = "GFLOP/s", .group = ops[op].name, .peak_scale = 1e3};
    if (!t) return false;
    bool ok = cuda_pool_make(b, type) && make(t, b, op, type, n);
    if (!ok) {
        cli_failed("bench", b->h);
    } else {
        snprintf(c.name, sizeof c.name, "%s %s %lld of %lldx%lld", ops[op].name, strata_type_name(type),
                 (long long)t->count, (long long)n, (long long)n);
        c.flops = ops[op].flops * (double)(n * n) * (double)(n * t->count) * (cuda_is_complex(type) ? 4 : 1);
        c.bytes = 3.0 * (double)t->bytes;
        c.work = c.flops * 1e-9;
        c.check = check;
        c.check_arg = t;
        c.poison = poison;
        case_add(&c, "strata", CLASS_OURS, run_strata, new_call(t, NULL, NULL, false), free);
        if (ops[op].restores)
            case_add(&c, "restore", CLASS_REFERENCE, run_strata, new_call(t, NULL, NULL, true), free);
        char symbol[48];
        snprintf(symbol, sizeof symbol, "cublas%c%s", cuda_letter(type) - 32, ops[op].peer);
        void *const fn = blas && (op != B_MATINV || n <= 32) ? cublas_symbol(blas, symbol) : NULL;
        contender *k = fn ? case_add(&c, "cublas", CLASS_PEER, run_cublas,
                                     new_call(t, cublas_handle(blas), fn, false), free)
                          : NULL;
        if (k) snprintf(k->note, sizeof k->note, "%s", symbol);
        ok = cuda_measure(b, &c);
    }
    drop(t);
    return ok;
}

int cuda_bench_batch(bench *b, const char **words, int n)
{
    strata_type types[4] = {STRATA_F32, STRATA_F64, STRATA_C64, STRATA_C128};
    int64_t size[32] = {4, 8, 16, 32, 64};
    bool want[BATCH_OPS] = {false}, any = false, ok = true;
    int sizes = 0, count = 4;
    if (b->o.type) {
        types[0] = strata_type_from_name(b->o.type), count = 1;
        if (types[0] != STRATA_F32 && types[0] != STRATA_F64 && !cuda_is_complex(types[0]))
            return cli_bad("bench", "--type of blas is f32, f64, c64 or c128, not '%.40s'", b->o.type);
    }
    for (int i = 0; i < n; i++) {
        char room[256], *save = NULL;
        snprintf(room, sizeof room, "%s", words[i]);
        for (char *w = strtok_r(room, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
            bool found = false;
            for (int o = 0; o < BATCH_OPS; o++)
                if (!strcmp(w, ops[o].name)) want[o] = any = found = true;
            if (!found && (sizes == 32 || !cli_integer(w, 1, 64, &size[sizes++])))
                return cli_bad("bench", "'%.40s' is no batched operator and no size of 1 to 64", w);
        }
    }
    if (!sizes) sizes = 5;
    cublas *blas = b->o.no_peers ? NULL : cublas_open(b);
    report_column(b, "strata", NULL);
    report_column(b, "restore", NULL);
    if (blas) report_column(b, "cublas", NULL);
    for (int o = 0; o < BATCH_OPS; o++) b->total += !any || want[o] ? sizes * count : 0;
    cli_progress_begin(&b->progress, b->total);
    for (int k = 0; k < count; k++)
        for (int o = 0; o < BATCH_OPS; o++)
            for (int s = 0; (!any || want[o]) && s < sizes; s++)
                ok = one_case(b, blas, (batch_op)o, types[k], size[s]) && ok;
    cuda_pool_drop(b);
    cublas_close(blas);
    return ok ? CLI_OK : CLI_FAILED;
}
