/* SPDX-License-Identifier: Apache-2.0 */
/* fused.c - products with what surrounds them, on a CPU: `strata bench gemm --epilogue NAME`. Strata's one program beside oneDNN's matmul with bias and a
 * post-operation (where it has one) and beside every BLAS's product(s) followed by a pass over the result, Strata's own pointwise program: the best that a
 * careful user of the BLAS could write (a plain loop at the compiler's -O2 took ten times as long for bias and relu).
 *
 * Three columns are bounds, not peers: `plain`, Strata's product(s) alone, so that 1/ratio says what the program costs; `apart`, Strata's product(s),
 * then the pass; for 4-bit weights `plain` reads the weights as f32. */
#include "bench.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 128, MOST_ROWS = 64 };

typedef enum kind { MAPS, GATE, ROWS, WEIGHTS } kind;
typedef struct fusion {
    const char *name;
    kind kind;
    const char *program,
        *pass; /* of A, B, V, bias, C; pass: of T (the product), U (the second one), bias, C */
    int dnnl;  /* dnnl_row of the post-operation, -1: bias alone, -2: it has nothing like it */
} fusion;
static const fusion fusions[] = {
    {"bias", MAPS, "C = A @ B + bias[n]", "C = C + bias[n]", -1},
    {"bias_relu", MAPS, "C = relu(A @ B + bias[n])", "C = relu(C + bias[n])", DNNL_RELU},
    {"bias_gelu", MAPS, "C = gelu(A @ B + bias[n])", "C = gelu(C + bias[n])", DNNL_GELU_ERF},
    {"eight", MAPS, "z = A @ B + bias[n]; C = clamp(z * 0.5, -3, 3) * sigmoid(z * 1.25 + 0.5) - 0.125",
     "z = C + bias[n]; C = clamp(z * 0.5, -3, 3) * sigmoid(z * 1.25 + 0.5) - 0.125", -2},
    {"gate", GATE, "C = silu(A @ B) * (A @ V)", "C = silu(C) * U", -2},
    {"softmax", ROWS, "z = A @ B + bias[n]; e = exp(z - max(z)); C = e / sum(e)",
     "z = C + bias[n]; e = exp(z - max(z)); C = e / sum(e)", -2},
    {"layer_norm", ROWS, "z = A @ B + bias[n]; C = (z - mean(z)) * rsqrt(var(z) + 1e-5)",
     "z = C + bias[n]; C = (z - mean(z)) * rsqrt(var(z) + 1e-5)", -2},
    {"int4", WEIGHTS, "C = A @ ((Q - Z[k/128, n]) * S[k/128, n])", NULL, -2},
};
enum { FUSIONS = sizeof fusions / sizeof *fusions };

typedef struct fused {
    const fusion *f;
    gemm_shape s;
    size_t bytes;
    char *block;
    float *a, *b, *v, *c, *u, *bias, *scale;
    uint8_t *q, *z;
    strata_operand all[6], pass[4];
    int rows; /* of the reference, spread over all */
    double *want, *bound;
} fused;

typedef struct call {
    fused *p;
    const peer *peer;
    strata_handle *h;
    dnnl_op *op;
} call;

static void drop_call(void *arg)
{
    dnnl_drop(((call *)arg)->op);
    free(arg);
}

static strata_tensor matrix(const void *p, int64_t rows, int64_t cols)
{
    return strata_matrix(p, STRATA_F32, rows, cols, STRATA_ROW_MAJOR, 0);
}

static void run_strata(void *arg)
{
    const call *c = arg;
    strata_fused(c->h, c->p->f->program, c->p->all, NULL);
}
static void run_plain(void *arg)
{
    const call *c = arg;
    const fused *p = c->p;
    const strata_tensor A = matrix(p->a, p->s.m, p->s.k);
    strata_gemm(c->h, STRATA_ONE, A, matrix(p->b, p->s.k, p->s.n), STRATA_ZERO, matrix(p->c, p->s.m, p->s.n),
                NULL);
    if (p->f->kind == GATE)
        strata_gemm(c->h, STRATA_ONE, A, matrix(p->v, p->s.k, p->s.n), STRATA_ZERO,
                    matrix(p->u, p->s.m, p->s.n), NULL);
}
static void pass(const call *c) { strata_fused(c->h, c->p->f->pass, c->p->pass, NULL); }
static void run_apart(void *arg)
{
    run_plain(arg);
    pass(arg);
}
static void run_cblas(void *arg)
{
    const call *c = arg;
    const fused *p = c->p;
    const int m = (int)p->s.m, n = (int)p->s.n, k = (int)p->s.k;
    c->peer->sgemm(CBLAS_ROW, CBLAS_N, CBLAS_N, m, n, k, 1, p->a, k, p->b, n, 0, p->c, n);
    if (p->f->kind == GATE)
        c->peer->sgemm(CBLAS_ROW, CBLAS_N, CBLAS_N, m, n, k, 1, p->a, k, p->v, n, 0, p->u, n);
    if (p->f->pass) pass(c);
}
static void run_dnnl(void *arg) { dnnl_run(((call *)arg)->op); }

/* ---- the reference -------------------------------------------------------------------------------------------------------- */
static double weight(const fused *p, int64_t k, int64_t j)
{
    if (p->f->kind != WEIGHTS) return p->b[k * p->s.n + j];
    const int64_t at = k * ((p->s.n + 1) / 2 * 2) + j, group = k / GROUP * ((p->s.n + 1) / 2 * 2) + j;
    const int q = p->q[at / 2] >> (at & 1) * 4 & 15, z = p->z[group / 2] >> (group & 1) * 4 & 15;
    return (q - z) * (double)p->scale[k / GROUP * p->s.n + j];
}

/* The program on row of products z (and u), in place; *slope: how much it can enlarge an error. */
static void finish_row(const fused *p, double *z, const double *u, double *slope)
{
    const int64_t n = p->s.n;
    double most = -INFINITY, sum = 0, mean = 0, var = 0;
    *slope = 2;
    for (int64_t j = 0; j < n && p->f->kind != GATE && p->f->kind != WEIGHTS; j++) z[j] += p->bias[j];
    for (int64_t j = 0; j < n; j++) most = fmax(most, z[j]), mean += z[j] / (double)n;
    for (int64_t j = 0; j < n; j++) var += (z[j] - mean) * (z[j] - mean) / (double)n, sum += exp(z[j] - most);
    if (!strcmp(p->f->name, "layer_norm")) *slope = 8 / sqrt(var + 1e-5);
    for (int64_t j = 0; j < n; j++) {
        const double x = z[j];
        if (!strcmp(p->f->name, "bias_relu")) z[j] = fmax(x, 0);
        if (!strcmp(p->f->name, "bias_gelu")) z[j] = 0.5 * x * erfc(-x / sqrt(2));
        if (!strcmp(p->f->name, "eight"))
            z[j] = fmin(fmax(x * 0.5, -3), 3) / (1 + exp(-(x * 1.25 + 0.5))) - 0.125;
        if (!strcmp(p->f->name, "gate"))
            *slope = fmax(*slope, 4 * (fabs(u[j]) + fabs(x))), z[j] = x / (1 + exp(-x)) * u[j];
        if (!strcmp(p->f->name, "softmax")) z[j] = exp(x - most) / sum;
        if (!strcmp(p->f->name, "layer_norm")) z[j] = (x - mean) / sqrt(var + 1e-5);
    }
}

static int64_t row_of(const fused *p, int r) { return p->rows > 1 ? (p->s.m - 1) * r / (p->rows - 1) : 0; }

static bool make_reference(fused *p)
{
    const gemm_shape *s = &p->s;
    const double fit = 4e7 / ((double)s->n * (double)s->k);
    p->rows = (int)(fit > MOST_ROWS ? MOST_ROWS : fit < 2 ? 2 : fit);
    if (p->rows > s->m) p->rows = (int)s->m;
    p->want = calloc((size_t)(p->rows * s->n), sizeof(double));
    p->bound = calloc((size_t)(p->rows * s->n), sizeof(double));
    double *u = calloc((size_t)s->n, sizeof(double));
    for (int r = 0; p->want && p->bound && u && r < p->rows; r++) {
        double *z = p->want + r * s->n, *e = p->bound + r * s->n, slope;
        const float *row = p->a + row_of(p, r) * s->k;
        memset(u, 0, (size_t)s->n * sizeof *u);
        for (int64_t k = 0; k < s->k; k++)
            for (int64_t j = 0; j < s->n; j++) {
                const double x = row[k] * weight(p, k, j);
                z[j] += x, e[j] += fabs(x);
                if (p->f->kind == GATE) u[j] += (double)row[k] * p->v[k * s->n + j];
            }
        finish_row(p, z, u, &slope);
        for (int64_t j = 0; j < s->n; j++)
            e[j] = slope * ((double)s->k + 8) * FLT_EPSILON / 2 * (e[j] + 1) + 1e-5 * fabs(z[j]);
    }
    free(u);
    return p->want && p->bound;
}

static double check(void *arg)
{
    const fused *p = arg;
    double worst = 0;
    for (int r = 0; r < p->rows; r++)
        for (int64_t j = 0; j < p->s.n; j++) {
            const double e =
                fabs(p->c[row_of(p, r) * p->s.n + j] - p->want[r * p->s.n + j]) / p->bound[r * p->s.n + j];
            if (!(e <= worst)) worst = e;
        }
    return worst;
}
static void poison(void *arg)
{
    const fused *p = arg;
    memset(p->c, 0xff, (size_t)(p->s.m * p->s.n) * 4);
}

/* `plain` is judged by nothing: it has no program */
static bool fetch_nothing(void *arg)
{
    const fused *p = ((call *)arg)->p;
    for (int r = 0; r < p->rows; r++)
        for (int64_t j = 0; j < p->s.n; j++) p->c[row_of(p, r) * p->s.n + j] = (float)p->want[r * p->s.n + j];
    return true;
}

/* ---- operands -------------------------------------------------------------------------------------------------------------- */
static float *take(char **at, int64_t n)
{
    float *p = (float *)*at;
    *at += ((size_t)n * 4 + 4095) / 4096 * 4096 + 21 * 64;
    return p;
}

static bool make_operands(fused *p, const fusion *f, gemm_shape s)
{
    const int64_t half = (s.n + 1) / 2;
    memset(p, 0, sizeof *p);
    p->f = f;
    p->s = s;
    p->bytes = 4 * (size_t)(s.m * s.k + 2 * s.k * s.n + 2 * s.m * s.n + s.n + s.k * half / 2) + (16 << 12) +
               (size_t)(s.k / GROUP + 1) * (size_t)s.n * 8;
    if (!(p->block = bench_alloc(p->bytes))) return false;
    char *at = p->block;
    p->a = take(&at, s.m * s.k), p->b = take(&at, s.k * s.n), p->v = take(&at, s.k * s.n);
    p->c = take(&at, s.m * s.n), p->u = take(&at, s.m * s.n), p->bias = take(&at, s.n);
    p->scale = take(&at, (s.k / GROUP + 1) * s.n);
    p->q = (uint8_t *)take(&at, s.k * half / 4 + 1),
    p->z = (uint8_t *)take(&at, (s.k / GROUP + 1) * half / 4 + 1);
    bench_random(p->a, s.m * s.k, false, 1), bench_random(p->b, s.k * s.n, false, 2);
    bench_random(p->v, s.k * s.n, false, 3), bench_random(p->bias, s.n, false, 4);
    bench_random(p->scale, (s.k / GROUP + 1) * s.n, false, 5);
    /* products of about 1, as layers have them (numbers far from it end in denormals behind an exp, on which processors stumble) */
    const float small = 1.7f * sqrtf(3.0f / (float)(s.k ? s.k : 1));
    for (int64_t i = 0; i < s.k * s.n; i++) p->b[i] *= small, p->v[i] *= small;
    for (int64_t i = 0; i < (s.k / GROUP + 1) * s.n; i++) p->scale[i] *= small / 8;
    uint64_t x = 88172645463325252u;
    for (int64_t i = 0; i < s.k * half; i++) x ^= x << 13, x ^= x >> 7, x ^= x << 17, p->q[i] = (uint8_t)x;
    for (int64_t i = 0; i < (s.k / GROUP + 1) * half; i++)
        x ^= x << 13, x ^= x >> 7, x ^= x << 17, p->z[i] = (uint8_t)x;
    const strata_tensor bias = strata_vector(p->bias, STRATA_F32, s.n, 1), C = matrix(p->c, s.m, s.n);
    int n = 0;
    p->all[n++] = (strata_operand){"A", matrix(p->a, s.m, s.k)};
    p->all[n++] = (strata_operand){"C", C};
    if (f->kind == WEIGHTS) {
        p->all[n++] = (strata_operand){"Q", strata_matrix(p->q, STRATA_U4, s.k, s.n, STRATA_ROW_MAJOR, 0)};
        p->all[n++] =
            (strata_operand){"Z", strata_matrix(p->z, STRATA_U4, s.k / GROUP, s.n, STRATA_ROW_MAJOR, 0)};
        p->all[n++] = (strata_operand){"S", matrix(p->scale, s.k / GROUP, s.n)};
        for (int64_t k = 0; k < s.k; k++) /* the same as f32, for peers */
            for (int64_t j = 0; j < s.n; j++) p->b[k * s.n + j] = (float)weight(p, k, j);
    } else {
        p->all[n++] = (strata_operand){"B", matrix(p->b, s.k, s.n)};
    }
    if (f->kind == GATE) p->all[n++] = (strata_operand){"V", matrix(p->v, s.k, s.n)};
    if (f->kind == MAPS || f->kind == ROWS) p->all[n++] = (strata_operand){"bias", bias};
    p->pass[0] = (strata_operand){"C", C};
    p->pass[1] =
        f->kind == GATE ? (strata_operand){"U", matrix(p->u, s.m, s.n)} : (strata_operand){"bias", bias};
    return true;
}

static call *new_call(fused *p, const peer *e, strata_handle *h)
{
    call *c = calloc(1, sizeof *c);
    if (c) c->p = p, c->peer = e, c->h = h;
    return c;
}

static void add_peers(bench *b, fused *p, bench_case *c)
{
    for (int i = 0; i < b->peers.n; i++) {
        const peer *e = &b->peers.p[i];
        if (e->kind == PEER_CBLAS) {
            contender *k = case_add(c, e->name, CLASS_PEER, run_cblas, new_call(p, e, b->h), drop_call);
            if (k) snprintf(k->note, sizeof k->note, p->f->pass ? "product, then a pass" : "of f32 weights");
        }
        for (int packed = 0; e->kind == PEER_DNNL && p->f->dnnl > -2 && packed < 2; packed++) {
            call *q = new_call(p, e, NULL);
            char name[40];
            if (!q) return;
            q->op = dnnl_matmul_fused(e->dnnl, p->s.m, p->s.n, p->s.k, packed, p->a, p->b, p->bias, p->c,
                                      p->f->dnnl);
            if (!q->op) {
                free(q);
                continue;
            }
            snprintf(name, sizeof name, packed ? "%s-packed" : "%s", e->name);
            contender *k = case_add(c, name, packed ? CLASS_PREPARED : CLASS_PEER, run_dnnl, q, drop_call);
            if (k) k->pointer = true, snprintf(k->note, sizeof k->note, "%s", dnnl_impl(q->op));
        }
    }
}

static bool one(bench *b, const fusion *f, gemm_shape s)
{
    fused *p = malloc(sizeof *p);
    bench_case c = {.unit = "GFLOP/s"};
    if (!p || !make_operands(p, f, s) || !make_reference(p)) {
        fprintf(stderr, "strata bench: no memory for %lldx%lldx%lld\n", (long long)s.m, (long long)s.n,
                (long long)s.k);
        free(p);
        return false;
    }
    const double products = f->kind == GATE ? 2 : 1;
    snprintf(c.name, sizeof c.name, "%s %lldx%lldx%lld", f->name, (long long)s.m, (long long)s.n,
             (long long)s.k);
    c.flops = 2.0 * products * (double)s.m * (double)s.n * (double)s.k;
    c.bytes =
        4 * ((double)s.m * (double)s.k + (f->kind == WEIGHTS ? 0.14 : products) * (double)s.k * (double)s.n +
             (double)s.m * (double)s.n);
    c.work = c.flops * 1e-9;
    c.peak_scale = 1;
    c.check = check, c.check_arg = p, c.poison = poison;
    bool ok = strata_fused(b->h, f->program, p->all, NULL) == STRATA_OK;
    if (!ok) {
        cli_failed("bench", b->h);
    } else {
        strata_plan *plan;
        contender *k = case_add(&c, "strata", CLASS_OURS, run_strata, new_call(p, NULL, b->h), drop_call);
        if (k && !strata_fused_plan(b->h, f->program, p->all, NULL, NULL, &plan)) {
            snprintf(k->note, sizeof k->note, "%s", strata_plan_kernel(plan));
            strata_plan_destroy(plan);
        }
        k = case_add(&c, "plain", CLASS_REFERENCE, run_plain, new_call(p, NULL, b->h), drop_call);
        if (k) k->fetch = fetch_nothing;
        if (f->pass) case_add(&c, "apart", CLASS_REFERENCE, run_apart, new_call(p, NULL, b->h), drop_call);
        add_peers(b, p, &c);
        ok = bench_measure(b, &c);
    }
    free(p->want), free(p->bound);
    bench_free(p->block, p->bytes);
    free(p);
    return ok;
}

int bench_fused(bench *b, const char **words, int n)
{
    static gemm_shape s[GEMM_SHAPES];
    const fusion *f = NULL;
    for (int i = 0; i < FUSIONS; i++)
        if (!strcmp(fusions[i].name, b->o.epilogue)) f = &fusions[i];
    if (!f)
        return cli_bad(
            "bench",
            "--epilogue is bias, bias_relu, bias_gelu, eight, gate, softmax, layer_norm or int4 on a "
            "CPU, not '%.40s'",
            b->o.epilogue);
    if (b->o.f64 || b->o.ta || b->o.tb)
        return cli_bad("bench", "--epilogue takes f32 operands by rows on a CPU");
    const int count = gemm_shapes(words, n, "256,512,1024,2048", s);
    if (count < 0) return CLI_USAGE;
    for (int i = 0; i < count; i++) {
        if (f->kind == WEIGHTS && s[i].k % GROUP)
            return cli_bad("bench", "--epilogue int4 has groups of %d along k; k is %lld", GROUP,
                           (long long)s[i].k);
        if (s[i].m > INT32_MAX || s[i].n > INT32_MAX || s[i].k > INT32_MAX)
            return cli_bad("bench", "a dim does not fit the peers' 32 bits");
    }
    report_column(b, "strata", NULL);
    report_column(b, "plain", NULL);
    if (f->pass) report_column(b, "apart", NULL);
    for (int i = 0; i < b->peers.n; i++) {
        const peer *e = &b->peers.p[i];
        if (e->kind == PEER_CBLAS || (e->kind == PEER_DNNL && f->dnnl > -2)) report_column(b, e->name, NULL);
        if (e->kind == PEER_DNNL && f->dnnl > -2) report_column(b, e->name, "packed");
    }
    b->total = count;
    cli_progress_begin(&b->progress, b->total);
    bool ok = true;
    for (int i = 0; i < count; i++) ok = one(b, f, s[i]) && ok;
    return ok ? CLI_OK : CLI_FAILED;
}
