/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.c - matrix products: C = A B, row-major, beta = 0, A and B plain or stored transposed. */
#include "bench.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 1500 };
typedef gemm_shape shape;

typedef struct product {
    shape s;
    bool f64, ta, tb;
    size_t bytes; /* of the block that holds all three */
    char *block;
    void *a, *b, *c;
    strata_tensor A, B, C;
    int count;
    struct {
        int64_t i, j;
        double want, bound;
    } sample[SAMPLES];
} product;

/* what a contender needs; freed after the case */
typedef struct call {
    product *p;
    const peer *peer;
    strata_handle *h;
    strata_plan *plan;
    void *kernel;
    dnnl_op *op;
    char id[96];
    double seconds;
} call;

static void drop_call(void *arg)
{
    call *c = arg;
    strata_plan_destroy(c->plan);
    dnnl_drop(c->op);
    free(c);
}

static void run_strata(void *arg)
{
    call *c = arg;
    strata_gemm(c->h, STRATA_ONE, c->p->A, c->p->B, STRATA_ZERO, c->p->C, NULL);
}

static void run_plan(void *arg)
{
    call *c = arg;
    void *const data[3] = {c->p->a, c->p->b, c->p->c};
    strata_plan_run(c->h, c->plan, data, NULL);
}

static double sample_bare(void *arg)
{
    call *c = arg;
    double gflops = 0;
    return strata_kernel_probe(c->h, c->id, 4e-3, &gflops) ? 0 : gflops;
}

static void run_cblas(void *arg)
{
    const product *p = ((call *)arg)->p;
    const peer *e = ((call *)arg)->peer;
    int m = (int)p->s.m, n = (int)p->s.n, k = (int)p->s.k, ta = p->ta ? CBLAS_T : CBLAS_N,
        tb = p->tb ? CBLAS_T : CBLAS_N;
    int lda = p->ta ? m : k, ldb = p->tb ? k : n;
    if (p->f64)
        e->dgemm(CBLAS_ROW, ta, tb, m, n, k, 1, p->a, lda, p->b, ldb, 0, p->c, n);
    else
        e->sgemm(CBLAS_ROW, ta, tb, m, n, k, 1, p->a, lda, p->b, ldb, 0, p->c, n);
}

/* one row or one column: the matrix-vector product that a careful user of the peer would call */
static void run_gemv(void *arg)
{
    const product *p = ((call *)arg)->p;
    const peer *e = ((call *)arg)->peer;
    bool row = p->s.m == 1;
    int other = (int)(row ? p->s.n : p->s.m), k = (int)p->s.k;
    bool stored_k_by_other = row ? !p->tb : p->ta; /* the matrix lies in memory as k rows */
    const void *mat = row ? p->b : p->a, *vec = row ? p->a : p->b;
    int rows = stored_k_by_other ? k : other, cols = stored_k_by_other ? other : k,
        t = stored_k_by_other ? CBLAS_T : CBLAS_N;
    if (p->f64)
        e->dgemv(CBLAS_ROW, t, rows, cols, 1, mat, cols, vec, 1, 0, p->c, 1);
    else
        e->sgemv(CBLAS_ROW, t, rows, cols, 1, mat, cols, vec, 1, 0, p->c, 1);
}

static void run_xsmm(void *arg)
{
    const call *c = arg;
    xsmm_run(c->kernel, c->p->a, c->p->b, c->p->c);
}

static void run_dnnl(void *arg) { dnnl_run(((call *)arg)->op); }

/* ---- the reference -------------------------------------------------------------------------------------------------------- */
static double element(const void *p, bool f64, int64_t i)
{
    return f64 ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

/* Elements spread over all rows and all columns with both borders: a tile that a kernel forgot is met. */
static void make_reference(product *p)
{
    const shape *s = &p->s;
    double u = p->f64 ? DBL_EPSILON / 2 : FLT_EPSILON / 2;
    int64_t all = s->m * s->n;
    /* long sums of a large problem cost more than they tell */
    int64_t want = s->k > 0 && 4e7 / (double)s->k < SAMPLES ? (int64_t)(4e7 / (double)s->k) + 64 : SAMPLES;
    if (want > SAMPLES) want = SAMPLES;
    p->count = (int)(all < want ? all : want);
    for (int q = 0; q < p->count; q++) {
        int64_t i, j;
        if (all <= want)
            i = q / s->n, j = q % s->n;
        else {
            i = q < 4 ? (q & 1) * (s->m - 1) : (int64_t)((double)q / p->count * (double)s->m);
            j = q < 4 ? (q >> 1) * (s->n - 1) : (int64_t)(((uint64_t)q * 2654435761u) % (uint64_t)s->n);
        }
        long double sum = 0;
        double mag = 0;
        for (int64_t l = 0; l < s->k; l++) {
            double x = element(p->a, p->f64, p->ta ? l * s->m + i : i * s->k + l);
            double y = element(p->b, p->f64, p->tb ? j * s->k + l : l * s->n + j);
            sum += (long double)x * y;
            mag += fabs(x * y);
        }
        p->sample[q].i = i;
        p->sample[q].j = j;
        p->sample[q].want = (double)sum;
        p->sample[q].bound = ((double)s->k + 3) * u * mag + (p->f64 ? DBL_MIN : FLT_MIN);
    }
}

static double check_product(void *arg)
{
    const product *p = arg;
    double worst = 0;
    for (int q = 0; q < p->count; q++) {
        double e = fabs(element(p->c, p->f64, p->sample[q].i * p->s.n + p->sample[q].j) - p->sample[q].want) /
                   p->sample[q].bound;
        if (!(e <= worst)) worst = e;
    }
    return worst;
}

static void poison_product(void *arg)
{
    product *p = arg;
    memset(p->c, 0xff, (size_t)(p->s.m * p->s.n) * (p->f64 ? 8 : 4));
}

static bool make_operands(bench *b, product *p, shape s)
{
    size_t size = b->o.f64 ? 8 : 4;
    memset(p, 0, sizeof *p);
    p->s = s;
    p->f64 = b->o.f64;
    p->ta = b->o.ta;
    p->tb = b->o.tb;
    /* The operands begin 21 and 42 lines apart from a page: equal offsets would make their lines fight for the same sets. */
    size_t na = (size_t)(s.m * s.k) * size, nb = (size_t)(s.k * s.n) * size, nc = (size_t)(s.m * s.n) * size;
    size_t ob = (na + 4095) / 4096 * 4096 + 21 * 64, oc = ob + (nb + 4095) / 4096 * 4096 + 21 * 64;
    p->bytes = oc + nc + 4096;
    p->block = bench_alloc(p->bytes);
    if (!p->block) return false;
    p->a = p->block;
    p->b = p->block + ob;
    p->c = p->block + oc;
    bench_random(p->a, s.m * s.k, p->f64, 1);
    bench_random(p->b, s.k * s.n, p->f64, 2);
    strata_type t = p->f64 ? STRATA_F64 : STRATA_F32;
    p->A = strata_matrix(p->a, t, s.m, s.k, p->ta ? STRATA_COL_MAJOR : STRATA_ROW_MAJOR, 0);
    p->B = strata_matrix(p->b, t, s.k, s.n, p->tb ? STRATA_COL_MAJOR : STRATA_ROW_MAJOR, 0);
    p->C = strata_matrix(p->c, t, s.m, s.n, STRATA_ROW_MAJOR, 0);
    return true;
}

static call *new_call(product *p, const peer *e, strata_handle *h)
{
    call *c = calloc(1, sizeof *c);
    if (c) c->p = p, c->peer = e, c->h = h;
    return c;
}

static void add_ours(bench *b, product *p, bench_case *c)
{
    contender *k = case_add(c, "strata", CLASS_OURS, run_strata, new_call(p, NULL, b->h), drop_call);
    call *q = new_call(p, NULL, b->h), *bare = new_call(p, NULL, b->h);
    if (!q || !bare ||
        strata_gemm_plan(b->h, STRATA_ONE, p->A, p->B, STRATA_ZERO, p->C, NULL, NULL, &q->plan)) {
        free(q);
        free(bare);
        return;
    }
    if (k) snprintf(k->note, sizeof k->note, "%s", strata_plan_kernel(q->plan));
    snprintf(bare->id, sizeof bare->id, "%s", strata_plan_kernel(q->plan));
    if (b->o.plan) {
        k = case_add(c, "strata-plan", CLASS_OURS, run_plan, q, drop_call);
        if (k) k->pointer = true, snprintf(k->note, sizeof k->note, "%s", bare->id);
    } else {
        drop_call(q);
    }
    /* The same on one thread: what the others add. */
    if (b->o.threads > 1)
        case_add(c, "one-thread", CLASS_REFERENCE, run_strata, new_call(p, NULL, b->cpu), drop_call);
    /* The kernel alone on prepared panels, one thread: what the loops around it may lose. */
    double gflops = 0;
    if (b->o.threads == 1 && p->s.m * p->s.n * p->s.k >= 128 * 128 * 128 &&
        strata_kernel_probe(b->h, bare->id, 1e-4, &gflops) == STRATA_OK && gflops > 0) {
        k = case_add(c, "bare", CLASS_REFERENCE, NULL, bare, drop_call);
        if (k) k->sample = sample_bare;
    } else {
        free(bare);
    }
}

static void add_dnnl(const peer *e, product *p, bench_case *c)
{
    const shape *s = &p->s;
    if (p->f64 || s->m * s->n * s->k == 0) return;
    for (int packed = 0; packed < 2; packed++) {
        call *q = new_call(p, e, NULL);
        char name[40];
        if (!q) return;
        q->op = dnnl_matmul(e->dnnl, s->m, s->n, s->k, p->ta, p->tb, packed, p->a, p->b, p->c);
        if (!q->op) {
            free(q);
            continue;
        }
        snprintf(name, sizeof name, packed ? "%s-packed" : "%s", e->name);
        contender *k = case_add(c, name, packed ? CLASS_PREPARED : CLASS_PEER, run_dnnl, q, drop_call);
        if (k) k->pointer = true, snprintf(k->note, sizeof k->note, "%s", dnnl_impl(q->op));
    }
}

static void add_peers(bench *b, product *p, bench_case *c)
{
    const shape *s = &p->s;
    for (int i = 0; i < b->peers.n; i++) {
        const peer *e = &b->peers.p[i];
        contender *k;
        char name[40];
        if (e->kind == PEER_DNNL) add_dnnl(e, p, c);
        if (e->kind == PEER_CBLAS) {
            case_add(c, e->name, CLASS_PEER, run_cblas, new_call(p, e, NULL), drop_call);
            if ((s->m == 1 || s->n == 1) && e->sgemv && e->dgemv) {
                snprintf(name, sizeof name, "%s-gemv", e->name);
                case_add(c, name, CLASS_PEER, run_gemv, new_call(p, e, NULL), drop_call);
            }
        }
        /* it is meant for small products, and its kernels are straight code: no larger ones are asked for */
        if (e->kind == PEER_XSMM && b->o.threads == 1 && s->m * s->n * s->k <= 256 * 256 * 256 &&
            s->m * s->n * s->k > 0) {
            call *q = new_call(p, e, NULL);
            if (q && (q->kernel = xsmm_gemm(e, s->m, s->n, s->k, p->f64, p->ta, p->tb))) {
                k = case_add(c, e->name, CLASS_PEER, run_xsmm, q, drop_call);
                if (k) k->pointer = true;
            } else {
                free(q);
            }
        }
    }
}

static bool one_product(bench *b, shape s)
{
    product *p = malloc(sizeof *p);
    bench_case c = {.unit = "GFLOP/s"};
    if (!p || !make_operands(b, p, s)) {
        fprintf(stderr, "strata bench: no memory for %lldx%lldx%lld\n", (long long)s.m, (long long)s.n,
                (long long)s.k);
        free(p);
        return false;
    }
    make_reference(p);
    snprintf(c.name, sizeof c.name, "%s %c%c %lldx%lldx%lld", p->f64 ? "f64" : "f32", p->ta ? 'T' : 'N',
             p->tb ? 'T' : 'N', (long long)s.m, (long long)s.n, (long long)s.k);
    c.flops = 2.0 * (double)s.m * (double)s.n * (double)s.k;
    c.bytes = ((double)s.m * (double)s.k + (double)s.k * (double)s.n + (double)s.m * (double)s.n) *
              (p->f64 ? 8 : 4);
    c.work = c.flops * 1e-9;
    c.peak_scale = p->f64 ? 0.5 : 1.0;
    c.check = check_product;
    c.check_arg = p;
    c.poison = poison_product;
    /* an error of our own would be timed as a very fast product */
    bool ok = strata_gemm(b->h, STRATA_ONE, p->A, p->B, STRATA_ZERO, p->C, NULL) == STRATA_OK;
    if (!ok)
        cli_failed("bench", b->h);
    else {
        add_ours(b, p, &c);
        add_peers(b, p, &c);
        ok = bench_measure(b, &c);
    }
    bench_free(p->block, p->bytes);
    free(p);
    return ok;
}

/* ---- which products --------------------------------------------------------------------------------------------------------- */
static const struct {
    const char *name, *shapes;
} sets[] = {
    {"square", "64,128,256,512,1024,2048,4096"},
    {"small", "4,8,12,16,24,32,48,64"},
    {"skinny", "1x4096x4096,2x4096x4096,4x4096x4096,8x4096x4096,16x4096x4096,4096x1x4096,4096x2x4096,"
               "4096x4x4096,4096x8x4096,4096x16x4096"},
    {"resnet50", "12544x64x147,3136x64x64,3136x64x576,3136x256x64,3136x64x256,784x128x1152,784x512x128,"
                 "196x256x2304,196x1024x256,"
                 "49x512x4608,49x2048x512,1x1000x2048"},
    {"llm", "1x4096x4096,4x4096x4096,16x4096x4096,16x14336x4096,64x4096x4096,64x14336x4096,128x4096x4096,"
            "256x4096x4096,4096x14336x4096,8192x1024x1024"},
    {"odd", "63,65,100,127,129,255,257,500,1000,1023,1025,49x512x4608,5x1000x5,64x64x4096,256x256x8192"},
};
enum { SETS = sizeof sets / sizeof *sets };

static int add_shapes(const char *list, shape *out, int n)
{
    while (*list) {
        size_t len = strcspn(list, ",");
        char word[64];
        int64_t v[3];
        if (len >= sizeof word) return cli_bad("bench", "'%.40s...' is not a size, MxNxK or a set", list), -1;
        memcpy(word, list, len);
        word[len] = 0;
        bool set = false;
        for (int i = 0; i < SETS && !set; i++)
            if (strcmp(word, sets[i].name) == 0) {
                n = add_shapes(sets[i].shapes, out, n);
                set = true;
            }
        if (!set) {
            int d = cli_dims(word, 1, 100000000, v, 3);
            if (d != 1 && d != 3) {
                const char *near = cli_nearest(word, &sets[0].name, SETS, sizeof *sets);
                cli_bad("bench",
                        "'%s' is not a size, MxNxK (each 1 to 10^8) or a set%s%s%s; sets: square small "
                        "skinny resnet50 llm odd",
                        word, near ? "; did you mean '" : "", near ? near : "", near ? "'" : "");
                return -1;
            }
            if (n == GEMM_SHAPES) return cli_bad("bench", "more than %d shapes", GEMM_SHAPES), -1;
            out[n++] = d == 1 ? (shape){v[0], v[0], v[0]} : (shape){v[0], v[1], v[2]};
        }
        if (n < 0) return -1;
        list += len;
        if (*list == ',') list++;
    }
    return n;
}

int gemm_shapes(const char **words, int n, const char *usual, gemm_shape *out)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        if ((count = add_shapes(words[i], out, count)) < 0) return -1;
    return n == 0 ? add_shapes(usual, out, 0) : count;
}

static void columns(bench *b, const shape *s, int count)
{
    bool large = false, small = false;
    for (int i = 0; i < count; i++) {
        double volume = (double)s[i].m * (double)s[i].n * (double)s[i].k;
        large = large || volume >= 128 * 128 * 128;
        small = small || volume <= 256 * 256 * 256;
    }
    report_column(b, "strata", NULL);
    if (b->o.plan) report_column(b, "strata", "plan");
    if (large && b->o.threads == 1) report_column(b, "bare", NULL);
    if (b->o.threads > 1) report_column(b, "one-thread", NULL);
    for (int i = 0; i < b->peers.n; i++) {
        const peer *e = &b->peers.p[i];
        if (e->kind == PEER_DNNL && b->o.f64) continue;
        if (e->kind == PEER_XSMM && (b->o.threads != 1 || !small)) continue;
        report_column(b, e->name, NULL);
        if (e->kind == PEER_DNNL) report_column(b, e->name, "packed");
    }
}

int bench_gemm(bench *b, const char **words, int n)
{
    static shape s[GEMM_SHAPES];
    if (b->o.epilogue) return bench_fused(b, words, n);
    const int count = gemm_shapes(words, n, "16,32,64,128,256,512,1024,2048", s);
    if (count < 0) return CLI_USAGE;
    const bool typed = bench_gemm_type(b->o.type);
    for (int i = 0; i < count; i++) {
        double bytes = ((double)s[i].m * (double)s[i].k + (double)s[i].k * (double)s[i].n +
                        (double)s[i].m * (double)s[i].n) *
                       (typed      ? 24
                        : b->o.f64 ? 8
                                   : 4); /* typed: with the values in f64 */
        if (bytes > 0.6 * (double)b->device.memory)
            return cli_bad("bench", "%lldx%lldx%lld needs %.1f GB, more than this machine can give",
                           (long long)s[i].m, (long long)s[i].n, (long long)s[i].k, bytes * 1e-9);
        if (s[i].m > INT32_MAX || s[i].n > INT32_MAX || s[i].k > INT32_MAX)
            return cli_bad("bench", "a dim does not fit the peers' 32 bits");
    }
    if (typed) return bench_gemm_types(b, s, count);
    columns(b, s, count);
    b->total = count;
    cli_progress_begin(&b->progress, b->total);
    bool ok = true;
    for (int i = 0; i < count; i++) ok = one_product(b, s[i]) && ok;
    return ok ? CLI_OK : CLI_FAILED;
}
