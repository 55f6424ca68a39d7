/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_blas.c - `strata bench blas --device cuda:N`: one case an operator, type and size, beside cuBLAS and (what memory bounds) a copy of as
 * many bytes; geometric means per operator. */
#include "cuda_blas.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the copy beside a case ---- */
struct cuda_copier {
    bench *b;
    char *block;
    size_t room, at, bytes;
};
enum { COPY_ROOM = 1 << 30 };

cuda_copier *cuda_copier_make(bench *b)
{
    cuda_copier *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->b = b;
    c->room = COPY_ROOM;
    while (c->room > 1 << 20 && (double)c->room > 0.1 * (double)b->device.memory) c->room /= 2;
    void *p;
    if (strata_alloc(b->h, c->room, &p)) {
        free(c);
        return NULL;
    }
    c->block = p;
    return c;
}

void cuda_copier_drop(bench *b, cuda_copier *c)
{
    if (c) strata_free(b->h, c->block);
    free(c);
}

static void run_copy(void *arg)
{
    cuda_copier *c = arg;
    const int64_t n = (int64_t)c->bytes;
    if (c->at + c->bytes > c->room / 2) c->at = 0;
    strata_copy(c->b->h, strata_array(c->block + c->at, STRATA_U8, 1, &n, NULL),
                strata_array(c->block + c->room / 2 + c->at, STRATA_U8, 1, &n, NULL));
    c->at += c->bytes;
}

void cuda_copier_add(cuda_copier *c, bench_case *k)
{
    if (!c) return;
    c->bytes = ((size_t)(k->bytes / 2) + 255) / 256 * 256;
    if (c->bytes > c->room / 2) c->bytes = c->room / 2;
    k->copy_work = 2e-9 * (double)c->bytes;
    case_add(k, "copy", CLASS_REFERENCE, run_copy, c, NULL);
}

/* ---- one case ---- */
static int64_t stored(const cuda_task *t)
{
    const int64_t n = t->n;
    switch (cuda_ops[t->op].form) {
    case FORM_NONE: return 0;
    case FORM_PACKED: return n * (n + 1) / 2;
    case FORM_BAND:
    case FORM_HALF_BAND: return n * t->lda;
    default: return n * n;
    }
}

/* 1e9 units of work */
static double work_of(const cuda_task *t, bench_case *c)
{
    const cuda_op_row *r = &cuda_ops[t->op];
    const double n = (double)t->n, es = (double)strata_type_bits(t->type) / 8, matrix = (double)stored(t);
    const double vectors = r->out == OUT_A ? 2 : r->out == OUT_X ? 2 : 2;
    c->unit = r->traffic > 0 ? "GB/s" : "TFLOP/s";
    c->flops = r->flops * n * n * n * (cuda_is_complex(t->type) ? 4 : 1);
    if (r->level == 1)
        c->bytes = r->traffic * n * es;
    else if (r->level == 2)
        c->bytes = (r->traffic * (r->form == FORM_HALF ? n * (n + 1) / 2 : matrix) + vectors * n) * es;
    else
        c->bytes = (r->traffic > 0 ? r->traffic : 3) * n * n * es;
    return r->traffic > 0 ? c->bytes * 1e-9 : c->flops * 1e-12;
}

static cuda_call *new_call(cuda_task *t, cublas *blas)
{
    cuda_call *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    *c = (cuda_call){.t = t, .handle = blas ? cublas_handle(blas) : NULL};
    return c;
}

static void add_peer(cuda_task *t, bench_case *c, cublas *blas)
{
    const cuda_op_row *r = &cuda_ops[t->op];
    const char *name = cuda_is_complex(t->type) ? r->pairs : r->real;
    const char l = cuda_letter(t->type) - 32; /* upper case */
    char symbol[48];
    if (!blas || !name) return;
    if (t->op == OP_IAMAX)
        snprintf(symbol, sizeof symbol, "cublasI%c%s", l + 32, name);
    else if (cuda_is_complex(t->type) && (t->op == OP_NRM2 || t->op == OP_ASUM))
        snprintf(symbol, sizeof symbol, "cublas%s%s", t->type == STRATA_C64 ? "Sc" : "Dz", name);
    else if (cuda_is_complex(t->type) && t->op == OP_ROT)
        snprintf(symbol, sizeof symbol, "cublas%s%s", t->type == STRATA_C64 ? "Cs" : "Zd", name);
    else
        snprintf(symbol, sizeof symbol, "cublas%c%s", l, name);
    cuda_call *q = new_call(t, blas);
    if (!q) return;
    q->fn = cublas_symbol(blas, symbol);
    void *const mode = cublas_symbol(blas, "cublasSetPointerMode_v2");
    memcpy(&q->pointer_mode, &mode, sizeof mode);
    if (!q->fn || !mode) {
        free(q);
        return;
    }
    contender *k = case_add(c, "cublas", CLASS_PEER, cuda_run_cublas, q, free);
    if (k) snprintf(k->note, sizeof k->note, "%s", symbol);
}

/* which kernel a product takes, for the table's note */
static void note_kernel(cuda_task *t, contender *k)
{
    strata_plan *p = NULL;
    if (!k || (t->op != OP_GEMM && t->op != OP_SYMM && t->op != OP_HEMM)) return;
    const strata_tensor B = strata_matrix(t->w.data[1][0], t->type, t->n, t->n, STRATA_COL_MAJOR, 0),
                        C = strata_matrix(t->w.data[2][0], t->type, t->n, t->n, STRATA_COL_MAJOR, 0);
    if (strata_gemm_plan(t->b->h, STRATA_ONE, cuda_matrix(t, 0), B, STRATA_ZERO, C, NULL, NULL, &p)) return;
    snprintf(k->note, sizeof k->note, "%s", strata_plan_kernel(p));
    strata_plan_destroy(p);
}

static bool make(cuda_task *t, bench *b, cuda_op op, strata_type type, int64_t n)
{
    const cuda_op_row *r = &cuda_ops[op];
    const size_t es = strata_type_bits(type) / 8;
    *t = (cuda_task){.b = b, .op = op, .type = type, .n = n, .w = {.h = b->h, .cpu = b->cpu}};
    t->lda = r->form == FORM_BAND ? 2 * CUDA_BAND + 1 : r->form == FORM_HALF_BAND ? CUDA_BAND + 1 : n;
    t->count[0] = stored(t);
    t->count[1] = t->count[2] = r->level == 3 ? n * n : n;
    t->count[3] = r->level == 3 ? n : 1;
    size_t bytes[4];
    for (int o = 0; o < 4; o++) {
        t->base[o] = 1234567 * (int64_t)o;
        bytes[o] = (size_t)t->count[o] * es;
        if (bytes[o] < 16) bytes[o] = 16;
    }
    t->host = bench_alloc((size_t)(n < 65536 ? 65536 : n) * es);
    bool ok = t->host && cuda_work_alloc(b, &t->w, 4, bytes);
    for (int i = 0; ok && i < t->w.copies; i++)
        for (int o = 0; ok && o < 4; o++) {
            t->turn = i ? i - 1 : t->w.copies - 1;
            ok = cuda_blas_fill(t, o, i);
        }
    if (ok && r->out == OUT_NUMBER) cuda_blas_expect(t);
    return ok;
}

static bool one_case(bench *b, cublas *blas, cuda_copier *copier, cuda_op op, strata_type type, int64_t n)
{
    cuda_task *t = calloc(1, sizeof *t);
    bench_case c = {.group = cuda_ops[op].name};
    bool ok = t && cuda_pool_make(b, type) && make(t, b, op, type, n);
    if (!t) return false;
    if (!ok) {
        cli_failed("bench", b->h);
    } else {
        snprintf(c.name, sizeof c.name, "%s %s %lld", cuda_ops[op].name, strata_type_name(type),
                 (long long)n);
        c.work = work_of(t, &c);
        c.peak_scale = 1;
        c.check = cuda_blas_check;
        c.check_arg = t;
        c.poison = cuda_blas_refill;
        note_kernel(t, case_add(&c, "strata", CLASS_OURS, cuda_run_strata, new_call(t, NULL), free));
        if (cuda_ops[op].traffic > 0) cuda_copier_add(copier, &c);
        add_peer(t, &c, blas);
        ok = cuda_measure(b, &c);
    }
    bench_free(t->host, (size_t)(n < 65536 ? 65536 : n) * (strata_type_bits(type) / 8));
    cuda_work_free(&t->w);
    free(t);
    return ok;
}

/* ---- the verb ---- */
static bool fits(const bench *b, cuda_op op, strata_type type, int64_t n)
{
    const double es = (double)strata_type_bits(type) / 8, square = (double)n * (double)n * es;
    if (cuda_ops[op].level == 1 || cuda_ops[op].form >= FORM_BAND)
        return (double)n * es * 200 < 0.5 * (double)b->device.memory;
    return n <= 65536 && square * 4 < 0.5 * (double)b->device.memory;
}

static int understand(bench *b, const char **words, int n, bool *want, int64_t *size, int max)
{
    bool any = false;
    int sizes = 0;
    for (int i = 0; i < n; i++) {
        char room[256], *save = NULL;
        snprintf(room, sizeof room, "%s", words[i]);
        for (char *w = strtok_r(room, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
            bool found = false;
            for (int o = 0; o < CUDA_OPS; o++)
                if (cuda_ops[o].level == b->o.level && !strcmp(w, cuda_ops[o].name))
                    want[o] = any = found = true;
            if (!found && (sizes == max || !cli_integer(w, 1, 1 << 30, &size[sizes++])))
                return cli_bad("bench", "'%.40s' is no operator of level %d and no size", w, b->o.level), -1;
        }
    }
    for (int o = 0; o < CUDA_OPS && !any; o++) want[o] = cuda_ops[o].level == b->o.level;
    if (sizes) return sizes;
    static const int64_t usual[3][6] = {
        {65536, 1048576, 16777216}, {256, 1024, 4096, 8192, 16384}, {256, 512, 1024, 2048, 4096, 8192}};
    while (sizes < 6 && usual[b->o.level - 1][sizes]) size[sizes] = usual[b->o.level - 1][sizes], sizes++;
    return sizes;
}

int cuda_bench_blas(bench *b, const char **words, int n)
{
    strata_type types[4] = {STRATA_F32, STRATA_F64, STRATA_C64, STRATA_C128};
    bool want[CUDA_OPS] = {false}, ok = true;
    int64_t size[64];
    int count = 4;
    if (b->o.batch) return cuda_bench_batch(b, words, n);
    if (b->o.type) {
        types[0] = strata_type_from_name(b->o.type), count = 1;
        if (types[0] != STRATA_F32 && types[0] != STRATA_F64 && !cuda_is_complex(types[0]))
            return cli_bad("bench", "--type of blas is f32, f64, c64 or c128, not '%.40s'", b->o.type);
    }
    const int sizes = understand(b, words, n, want, size, 64);
    if (sizes < 0) return CLI_USAGE;
    cublas *blas = b->o.no_peers ? NULL : cublas_open(b);
    cuda_copier *copier = cuda_copier_make(b);
    report_column(b, "strata", NULL);
    if (b->o.level < 3) report_column(b, "copy", NULL);
    if (blas) report_column(b, "cublas", NULL);
    for (int o = 0; o < CUDA_OPS; o++) b->total += want[o] ? sizes * count : 0;
    cli_progress_begin(&b->progress, b->total);
    for (int k = 0; k < count; k++)
        for (int o = 0; o < CUDA_OPS; o++)
            for (int s = 0; want[o] && s < sizes; s++) {
                const bool complex_only = cuda_ops[o].level == 3 && !cuda_ops[o].real;
                if (complex_only && !cuda_is_complex(types[k])) continue;
                if (fits(b, (cuda_op)o, types[k], size[s]))
                    ok = one_case(b, blas, copier, (cuda_op)o, types[k], size[s]) && ok;
                else
                    peers_note(&b->peers, "%s %s %lld is left out: it takes too much memory",
                               cuda_ops[o].name, strata_type_name(types[k]), (long long)size[s]);
            }
    cuda_copier_drop(b, copier);
    cuda_pool_drop(b);
    cublas_close(blas);
    return ok ? CLI_OK : CLI_FAILED;
}
