/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise.c - memory-bound operators: GB/s of bytes that must move (each input read once, the output written once) beside a
 * copy of the same arrays in the same round. Each operator runs in two sizes: both arrays in L2, and far beyond the caches. */
#include "bench.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 4096 };

typedef enum what { ELEMENT, BIAS, SOFTMAX, LAYER_NORM, BATCH_NORM } what;
static const struct op {
    const char *name;
    what kind;
    const char *program; /* for strata_fused */
    int dnnl;            /* dnnl_row, or -1 */
    int64_t cache[2], memory[2];
} ops[] = {
    {"exp", ELEMENT, "y = exp(x)", DNNL_EXP, {256, 256}, {4096, 4096}},
    {"tanh", ELEMENT, "y = tanh(x)", DNNL_TANH, {256, 256}, {4096, 4096}},
    {"sigmoid", ELEMENT, "y = sigmoid(x)", DNNL_SIGMOID, {256, 256}, {4096, 4096}},
    {"gelu", ELEMENT, "y = gelu(x)", DNNL_GELU_ERF, {256, 256}, {4096, 4096}},
    {"relu", ELEMENT, "y = relu(x)", DNNL_RELU, {256, 256}, {4096, 4096}},
    {"bias_relu", BIAS, "y = relu(x + b[n])", -1, {256, 256}, {4096, 4096}},
    {"softmax", SOFTMAX, NULL, DNNL_SOFTMAX, {512, 128}, {16384, 1024}},
    {"layer_norm",
     LAYER_NORM,
     "y = (x - mean(x)) * rsqrt(var(x) + 1e-5) * w[n] + b[n]",
     DNNL_LAYER_NORM,
     {84, 768},
     {16384, 1024}},
    {"batch_norm", BATCH_NORM, NULL, -1, {1024, 64}, {65536, 256}},
};
enum { OPS = sizeof ops / sizeof *ops };

typedef struct array {
    const struct op *op;
    int64_t rows, cols; /* batch norm: an nhwc image, cols are its channels */
    float *x, *y, *w, *b, *mean, *var;
    char *block;
    size_t bytes;
    strata_handle *h;
    dnnl_op *dnnl;
} array;

static strata_status run_ours(array *a)
{
    strata_tensor x = strata_matrix(a->x, STRATA_F32, a->rows, a->cols, STRATA_ROW_MAJOR, 0), y = x;
    strata_tensor w = strata_vector(a->w, STRATA_F32, a->cols, 1),
                  b = strata_vector(a->b, STRATA_F32, a->cols, 1);
    y.data = a->y;
    if (a->op->kind == SOFTMAX) return strata_softmax_forward(a->h, NULL, x, y);
    if (a->op->kind == BATCH_NORM) {
        strata_batch_norm_tensors t = {.scale = w, .shift = b};
        t.x = strata_nhwc(a->x, STRATA_F32, 1, a->cols, a->rows / 32, 32);
        t.y = strata_nhwc(a->y, STRATA_F32, 1, a->cols, a->rows / 32, 32);
        t.running_mean = strata_vector(a->mean, STRATA_F32, a->cols, 1);
        t.running_var = strata_vector(a->var, STRATA_F32, a->cols, 1);
        return strata_batch_norm_inference(a->h, NULL, &t);
    }
    strata_operand o[5] = {{"x", x}, {"y", y}};
    if (a->op->kind != ELEMENT) o[2] = (strata_operand){"b", b};
    if (a->op->kind == LAYER_NORM) o[3] = (strata_operand){"w", w};
    return strata_fused(a->h, a->op->program, o, NULL);
}

static void run_strata(void *arg) { run_ours(arg); }
static void run_dnnl(void *arg) { dnnl_run(((array *)arg)->dnnl); }
static void drop_dnnl(void *arg)
{
    dnnl_drop(((array *)arg)->dnnl);
    free(arg);
}
static double sample_copy(void *arg)
{
    array *a = arg;
    return bench_probe_copy(a->y, a->x, sizeof(float) * (size_t)(a->rows * a->cols), 3e-3);
}

/* want and a bound: approximations of different make differ by a few units in the last place, sums of a row by its length */
static double want(const array *a, int64_t i, int64_t j, double *bound)
{
    const float *row = a->x + i * a->cols;
    double x = row[j], w = 0, eps = FLT_EPSILON, sum = 0, squares = 0, most = -INFINITY;
    *bound = 0;
    switch (a->op->kind) {
    case ELEMENT:
        w = a->op->dnnl == DNNL_EXP       ? exp(x)
            : a->op->dnnl == DNNL_TANH    ? tanh(x)
            : a->op->dnnl == DNNL_SIGMOID ? 1 / (1 + exp(-x))
            : a->op->dnnl == DNNL_RELU    ? (x > 0 ? x : 0)
                                          : 0.5 * x * erfc(-x * 0.70710678118654752440);
        *bound = 8 * eps * (fabs(w) + 1);
        return w;
    case BIAS:
        w = x + a->b[j] > 0 ? x + a->b[j] : 0;
        *bound = eps * (fabs(x) + fabs((double)a->b[j])) + FLT_MIN;
        return w;
    case SOFTMAX:
        for (int64_t l = 0; l < a->cols; l++) most = row[l] > most ? row[l] : most;
        for (int64_t l = 0; l < a->cols; l++) sum += exp(row[l] - most);
        w = exp(x - most) / sum;
        *bound = (32 + (double)a->cols) * eps * w + FLT_MIN;
        return w;
    case LAYER_NORM:
        for (int64_t l = 0; l < a->cols; l++) sum += row[l];
        sum /= (double)a->cols;
        for (int64_t l = 0; l < a->cols; l++) squares += (row[l] - sum) * (row[l] - sum);
        w = (x - sum) / sqrt(squares / (double)a->cols + 1e-5) * a->w[j];
        *bound = (32 + (double)a->cols) * eps * (fabs(w) + 1 + fabs((double)a->b[j]));
        return w + a->b[j];
    case BATCH_NORM:
        w = (x - a->mean[j]) / sqrt(a->var[j] + 1e-5) * a->w[j];
        *bound =
            16 * eps *
            (fabs(w) + (fabs(x) + fabs((double)a->mean[j])) / sqrt(a->var[j] + 1e-5) * fabs((double)a->w[j]) +
             fabs((double)a->b[j]));
        return w + a->b[j];
    }
    return NAN;
}

static double check_array(void *arg)
{
    const array *a = arg;
    int64_t all = a->rows * a->cols;
    /* a row's reference costs its whole length */
    int n = a->op->kind == SOFTMAX || a->op->kind == LAYER_NORM ? SAMPLES / 16 : SAMPLES;
    double worst = 0;
    for (int s = 0; s < n; s++) {
        int64_t at = s == 0   ? 0
                     : s == 1 ? all - 1
                              : (int64_t)(((uint64_t)s * 0x9e3779b97f4a7c15u) % (uint64_t)all);
        double bound, w = want(a, at / a->cols, at % a->cols, &bound), e = fabs(a->y[at] - w) / bound;
        if (!(e <= worst)) worst = e;
    }
    return worst;
}

static void poison_array(void *arg)
{
    array *a = arg;
    memset(a->y, 0xff, sizeof(float) * (size_t)(a->rows * a->cols));
}

static bool make_array(bench *b, array *a, const struct op *op, const int64_t dim[2])
{
    size_t n = sizeof(float) * (size_t)(dim[0] * dim[1]), v = sizeof(float) * (size_t)dim[1] + 64;
    *a = (array){.op = op, .rows = dim[0], .cols = dim[1], .h = b->h};
    n = (n + 4095) / 4096 * 4096 + 21 * 64;
    v = (v + 63) / 64 * 64;
    a->bytes = 2 * n + 4 * v;
    a->block = bench_alloc(a->bytes);
    if (!a->block) return false;
    a->x = (float *)a->block;
    a->y = (float *)(a->block + n);
    a->w = (float *)(a->block + 2 * n);
    a->b = (float *)(a->block + 2 * n + v);
    a->mean = (float *)(a->block + 2 * n + 2 * v);
    a->var = (float *)(a->block + 2 * n + 3 * v);
    bench_random(a->x, dim[0] * dim[1], false, 1);
    for (int64_t i = 0; i < dim[0] * dim[1]; i++) a->x[i] *= 4;
    bench_random(a->w, dim[1], false, 2);
    bench_random(a->b, dim[1], false, 3);
    bench_random(a->mean, dim[1], false, 4);
    bench_random(a->var, dim[1], false, 5);
    for (int64_t i = 0; i < dim[1]; i++) a->var[i] = a->var[i] * a->var[i] + 0.1f;
    return true;
}

static void add_dnnl(bench *b, array *a, bench_case *c)
{
    for (int i = 0; i < b->peers.n; i++) {
        const peer *e = &b->peers.p[i];
        if (e->kind != PEER_DNNL || (a->op->dnnl < 0 && a->op->kind != BATCH_NORM)) continue;
        array *q = malloc(sizeof *q);
        if (!q) return;
        *q = *a;
        const int64_t dim[4] = {1, a->cols, a->rows / 32, 32};
        q->dnnl =
            a->op->kind == BATCH_NORM
                ? dnnl_batch_norm(e->dnnl, dim, true, a->x, a->y, a->w, a->b, a->mean, a->var)
                : dnnl_rowwise(e->dnnl, (dnnl_row)a->op->dnnl, a->rows, a->cols, a->x, a->y, a->w, a->b);
        if (!q->dnnl) {
            free(q);
            continue;
        }
        contender *k = case_add(c, e->name, CLASS_PEER, run_dnnl, q, drop_dnnl);
        if (k) snprintf(k->note, sizeof k->note, "%s", dnnl_impl(q->dnnl));
    }
}

static bool one_array(bench *b, const struct op *op, bool memory)
{
    array a;
    bench_case c = {.unit = "GB/s"};
    if (!make_array(b, &a, op, memory ? op->memory : op->cache)) {
        fprintf(stderr, "strata bench: no memory for %s\n", op->name);
        return false;
    }
    snprintf(c.name, sizeof c.name, "%s %lldx%lld %s", op->name, (long long)a.rows, (long long)a.cols,
             memory ? "memory" : "L2");
    c.bytes = 8.0 * (double)a.rows * (double)a.cols;
    c.work = c.bytes * 1e-9;
    c.check = check_array;
    c.check_arg = &a;
    c.poison = poison_array;
    bool ok = run_ours(&a) == STRATA_OK;
    if (!ok)
        cli_failed("bench", b->h);
    else {
        case_add(&c, "strata", CLASS_OURS, run_strata, &a, NULL);
        contender *k = case_add(&c, "copy", CLASS_REFERENCE, NULL, &a, NULL);
        if (k) k->sample = sample_copy;
        add_dnnl(b, &a, &c);
        ok = bench_measure(b, &c);
    }
    bench_free(a.block, a.bytes);
    return ok;
}

int bench_pointwise(bench *b, const char **words, int n)
{
    bool wanted[OPS] = {false};
    if (b->o.f64) return cli_bad("bench", "pointwise is measured in f32 only");
    for (int i = 0; i < n; i++) {
        const char *p = words[i];
        while (*p) {
            char word[32];
            size_t len = strcspn(p, ",");
            bool found = false;
            snprintf(word, sizeof word, "%.*s", (int)(len < 31 ? len : 31), p);
            for (int o = 0; o < OPS; o++)
                if (strcmp(word, ops[o].name) == 0) wanted[o] = found = true;
            if (!found) {
                const char *near = cli_nearest(word, &ops[0].name, OPS, sizeof *ops);
                return cli_bad("bench",
                               "unknown operator '%s'%s%s%s; known: exp tanh sigmoid gelu relu bias_relu "
                               "softmax layer_norm batch_norm",
                               word, near ? "; did you mean '" : "", near ? near : "", near ? "'" : "");
            }
            p += len + (p[len] == ',');
        }
    }
    report_column(b, "strata", NULL);
    report_column(b, "copy", NULL);
    for (int i = 0; i < b->peers.n; i++)
        if (b->peers.p[i].kind == PEER_DNNL) report_column(b, b->peers.p[i].name, NULL);
    peers_note(&b->peers, "GB/s count each input read once and the output written once; percentages are of "
                          "the copy in the same round");
    for (int o = 0; o < OPS; o++) b->total += n == 0 || wanted[o] ? 2 : 0;
    cli_progress_begin(&b->progress, b->total);
    bool ok = true;
    for (int memory = 0; memory < 2; memory++)
        for (int o = 0; o < OPS; o++)
            if (n == 0 || wanted[o]) ok = one_array(b, &ops[o], memory) && ok;
    return ok ? CLI_OK : CLI_FAILED;
}
