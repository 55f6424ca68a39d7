/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_gemm.c - matrix products on a GPU: C = A B, row-major, beta = 0, beside cublasGemmEx and the best of cublasLt's answers. With an epilogue: beside
 * cublasLt's own fused one, the product without it, and cublasGemmEx with a pointwise program behind it. */
#include "cuda.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 600 };

typedef struct kind {
    const char *name;
    strata_type in, out;
    bool tf32, fast, x6;
    double clocks;   /* multiply-adds an SM and clock, dense, of the unit that the type runs on (Hopper) */
    double in_error; /* relative rounding of an operand on its way into the product */
    double unit;     /* of the accumulation: tensor cores truncate */
    const char *fill;
} kind;
static const kind kinds[] = {
    {"f32", STRATA_F32, STRATA_F32, false, false, false, 128, 0, FLT_EPSILON / 2, "out = x"},
    {"f64", STRATA_F64, STRATA_F64, false, false, false, 128, 0, DBL_EPSILON / 2, "out = x"},
    {"tf32", STRATA_F32, STRATA_F32, true, false, false, 1024, 0x1p-10, FLT_EPSILON, "out = x"},
    {"bf16x6", STRATA_F32, STRATA_F32, false, false, true, 128, 0, FLT_EPSILON, "out = x"},
    {"f16", STRATA_F16, STRATA_F16, false, false, false, 2048, 0, FLT_EPSILON, "out = x"},
    {"bf16", STRATA_BF16, STRATA_BF16, false, false, false, 2048, 0, FLT_EPSILON, "out = x"},
    {"f8", STRATA_F8E4M3, STRATA_BF16, false, true, false, 4096, 0, 0x1p-12, "out = x"},
    {"f8-exact", STRATA_F8E4M3, STRATA_BF16, false, false, false, 4096, 0, 0x1p-12, "out = x"},
    {"i8", STRATA_I8, STRATA_I32, false, false, false, 4096, 0, 0, "out = sat_i8(rint(x * 127))"},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* What --epilogue names: bias is a vector of C's columns, of 16 bits as the product's types are. */
typedef struct fusion {
    const char *name, *epilogue, *program; /* program: y of x and bias, behind a product without epilogue */
    int lt;                                /* cublasLt's epilogue; 0: it has none */
    bool quantises;                        /* into i8 */
    double (*value)(double x, double bias);
    double steep; /* how much the value's slope may be */
} fusion;
static double gelu(double x) { return x / (1 + exp(-2 * 0.79788456080286536 * (x + 0.044715 * x * x * x))); }
static double biased(double x, double b) { return x + b; }
static double biased_gelu(double x, double b) { return gelu(x + b); }
static double biased_relu(double x, double b) { return x + b > 0 ? x + b : 0; }
static double quantised(double x, double b)
{
    const double v = rint(gelu(x + b) * 16);
    return v > 127 ? 127 : v < -128 ? -128 : v;
}
static const fusion fusions[] = {
    {"bias", "acc + bias[n]", "y = x + bias[n]", 4, false, biased, 1},
    {"bias_gelu", "gelu_tanh(acc + bias[n])", "y = gelu_tanh(x + bias[n])", 36, false, biased_gelu, 1.2},
    {"bias_relu", "relu(acc + bias[n])", "y = relu(x + bias[n])", 6, false, biased_relu, 1},
    {"quantise", "sat_i8(rint(gelu_tanh(acc + bias[n]) * 16))",
     "y = sat_i8(rint(gelu_tanh(x + bias[n]) * 16))", 0, true, quantised, 20},
};

typedef struct product {
    int turn;  /* first: which copy the next call uses */
    bool bare; /* the last call had no epilogue */
    strata_type out;
    const fusion *f;
    void *bias;
    float *bias_host;
    bench *b;
    cuda_work w;
    gemm_shape s;
    const kind *k;
    bool ta, tb;
    void *c; /* host, of the type of C */
    size_t c_bytes;
    int count;
    struct {
        int64_t at;
        double want, bound, bare, bare_bound; /* bare: without the epilogue */
    } sample[SAMPLES];
} product;

typedef struct call {
    product *p;
    cublas *blas;
    cublaslt *lt;
    int answer;
    strata_plan *plan;
    strata_gemm_options o;
    strata_operand operand[2];
} call;

static void drop_call(void *arg)
{
    call *c = arg;
    strata_plan_destroy(c->plan);
    if (c->lt) cublaslt_free(c->lt);
    free(c);
}

static int next(product *p) { return p->turn = (p->turn + 1) % p->w.copies; }

static void views(const product *p, int i, strata_tensor *A, strata_tensor *B, strata_tensor *C)
{
    *A = strata_matrix(p->w.data[0][i], p->k->in, p->s.m, p->s.k, p->ta ? STRATA_COL_MAJOR : STRATA_ROW_MAJOR,
                       0);
    *B = strata_matrix(p->w.data[1][i], p->k->in, p->s.k, p->s.n, p->tb ? STRATA_COL_MAJOR : STRATA_ROW_MAJOR,
                       0);
    *C = strata_matrix(p->w.data[2][i], p->out, p->s.m, p->s.n, STRATA_ROW_MAJOR, 0);
}

static void run_strata(void *arg)
{
    call *c = arg;
    strata_tensor A, B, C;
    c->p->bare = !c->o.epilogue;
    views(c->p, next(c->p), &A, &B, &C);
    if (c->p->bare && c->p->f && c->p->f->quantises)
        C = strata_matrix(c->p->w.data[3][c->p->turn], c->p->k->out, c->p->s.m, c->p->s.n, STRATA_ROW_MAJOR,
                          0);
    strata_gemm(c->p->w.h, STRATA_ONE, A, B, STRATA_ZERO, C, &c->o);
}

static void peer_view(const product *p, int i, cublas_product *q)
{
    *q = (cublas_product){p->s.m,
                          p->s.n,
                          p->s.k,
                          p->k->in,
                          p->k->out,
                          p->ta,
                          p->tb,
                          p->k->tf32,
                          p->k->fast,
                          p->w.data[0][i],
                          p->w.data[1][i],
                          p->w.data[2][i],
                          p->f ? p->f->lt : 0,
                          p->bias};
}

static void run_cublas(void *arg)
{
    call *c = arg;
    cublas_product q;
    peer_view(c->p, next(c->p), &q);
    cublas_gemm(c->blas, &q);
}

/* cuBLAS, then the epilogue over its result: in place, or from 16 bits to 8 */
static void run_unfused(void *arg)
{
    call *c = arg;
    product *p = c->p;
    cublas_product q;
    peer_view(p, next(p), &q);
    if (p->f->quantises) q.c = p->w.data[3][p->turn];
    p->bare = false;
    cublas_gemm(c->blas, &q);
    const strata_operand to[] = {
        {"x", strata_matrix(q.c, p->k->out, p->s.m, p->s.n, STRATA_ROW_MAJOR, 0)},
        {"y", strata_matrix(p->w.data[2][p->turn], p->out, p->s.m, p->s.n, STRATA_ROW_MAJOR, 0)},
        {"bias", strata_array(p->bias, p->k->out, 1, &p->s.n, NULL)},
        {0}};
    strata_fused(p->w.h, p->f->program, to, NULL);
}

static void run_cublaslt(void *arg)
{
    call *c = arg;
    cublas_product q;
    c->p->bare = false;
    peer_view(c->p, next(c->p), &q);
    cublaslt_run(c->lt, c->answer, &q);
}

/* ---- operands and reference ------------------------------------------------------------------------------------------------ */
/* Random numbers rounded to the operand's type: on the host as f32 (or f64) again, on every copy of the device as they are. */
static void *fill(product *p, int o, int64_t n, uint64_t seed)
{
    const bool f64 = p->k->in == STRATA_F64;
    const size_t es = strata_type_bits(p->k->in) / 8, hs = f64 ? 8 : 4;
    char *host = bench_alloc((size_t)n * hs), *typed = bench_alloc((size_t)n * es);
    bool ok = host && typed;
    if (ok) {
        bench_random(host, n, f64, seed);
        const strata_type ht = f64 ? STRATA_F64 : STRATA_F32;
        strata_operand to[] = {{"x", strata_array(host, ht, 1, &n, NULL)},
                               {"out", strata_array(typed, p->k->in, 1, &n, NULL)},
                               {0}};
        strata_operand back[] = {{"x", strata_array(typed, p->k->in, 1, &n, NULL)},
                                 {"out", strata_array(host, ht, 1, &n, NULL)},
                                 {0}};
        ok = !strata_fused(p->w.cpu, p->k->fill, to, NULL) && !strata_fused(p->w.cpu, "out = x", back, NULL);
        for (int i = 0; ok && i < p->w.copies; i++)
            ok = !strata_copy(p->w.h, strata_array(typed, p->k->in, 1, &n, NULL),
                              strata_array(p->w.data[o][i], p->k->in, 1, &n, NULL));
    }
    bench_free(typed, (size_t)n * es);
    if (ok) return host;
    bench_free(host, (size_t)n * hs);
    return NULL;
}

static double element(const void *p, bool f64, int64_t i)
{
    return f64 ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

static double out_error(strata_type t)
{
    return t == STRATA_BF16  ? 0x1p-8
           : t == STRATA_F16 ? 0x1p-11
           : t == STRATA_F64 ? DBL_EPSILON / 2
           : t == STRATA_I32 ? 0
                             : FLT_EPSILON / 2;
}

static void make_reference(product *p, const void *a, const void *b)
{
    const gemm_shape *s = &p->s;
    const bool f64 = p->k->in == STRATA_F64;
    const int64_t all = s->m * s->n;
    int64_t want = s->k > 0 && 1e7 / (double)s->k < SAMPLES ? (int64_t)(1e7 / (double)s->k) + 64 : SAMPLES;
    if (want > SAMPLES) want = SAMPLES;
    p->count = (int)(all < want ? all : want);
    for (int q = 0; q < p->count; q++) {
        int64_t i = q < 4 ? (q & 1) * (s->m - 1) : (int64_t)((double)q / p->count * (double)s->m),
                j = q < 4 ? (q >> 1) * (s->n - 1) : (int64_t)(((uint64_t)q * 2654435761u) % (uint64_t)s->n);
        if (all <= want) i = q / s->n, j = q % s->n;
        long double sum = 0;
        double mag = 0;
        for (int64_t l = 0; l < s->k; l++) {
            const double x = element(a, f64, p->ta ? l * s->m + i : i * s->k + l),
                         y = element(b, f64, p->tb ? j * s->k + l : l * s->n + j);
            sum += (long double)x * y;
            mag += fabs(x * y);
        }
        p->sample[q].at = i * s->n + j;
        p->sample[q].want = p->sample[q].bare = (double)sum;
        const double in = (((double)s->k + 3) * p->k->unit + 2 * p->k->in_error) * mag;
        p->sample[q].bound = p->sample[q].bare_bound =
            in + out_error(p->k->out) * fabs((double)sum) + DBL_MIN;
        if (p->f) { /* without fusion the sum is rounded to C's type on the way; a rounding to i8 may fall either way */
            const double add = (double)p->bias_host[j], w = p->f->value((double)sum, add);
            p->sample[q].want = w;
            p->sample[q].bound = p->f->steep * (p->sample[q].bound + 1e-6 * (fabs((double)sum) + fabs(add))) +
                                 (p->f->quantises ? 1 : out_error(p->k->out) * fabs(w)) + 1e-6;
        }
    }
}

static double check_product(void *arg)
{
    product *p = arg;
    const int64_t n = p->s.m * p->s.n;
    const bool aside = p->bare && p->f && p->f->quantises;
    const strata_type t = aside ? p->k->out : p->out, as = t == STRATA_F64 ? STRATA_F64 : STRATA_F32;
    double worst = 0;
    if (strata_copy(p->w.h, strata_array(p->w.data[aside ? 3 : 2][p->turn], t, 1, &n, NULL),
                    strata_array(p->c, t, 1, &n, NULL)))
        return INFINITY;
    for (int q = 0; q < p->count; q++) {
        float f = 0;
        double d = 0;
        const int64_t one = 1;
        strata_operand to[] = {
            {"x", strata_array((char *)p->c + (size_t)p->sample[q].at * (strata_type_bits(t) / 8), t, 1, &one,
                               NULL)},
            {"out", strata_array(as == STRATA_F64 ? (void *)&d : (void *)&f, as, 1, &one, NULL)},
            {0}};
        if (t == STRATA_I32)
            d = ((const int32_t *)p->c)[p->sample[q].at];
        else if (strata_fused(p->w.cpu, "out = x", to, NULL))
            return INFINITY;
        else if (as == STRATA_F32)
            d = (double)f;
        const double e = p->bare ? fabs(d - p->sample[q].bare) / p->sample[q].bare_bound
                                 : fabs(d - p->sample[q].want) / p->sample[q].bound;
        if (!(e <= worst)) worst = e;
    }
    return worst;
}

static void poison_product(void *arg)
{
    product *p = arg;
    const int64_t n = (int64_t)p->c_bytes;
    const int i = (p->turn + 1) % p->w.copies; /* the copy that the next call uses */
    strata_fill(p->w.h, strata_array(p->w.data[2][i], STRATA_U8, 1, &n, NULL), strata_real(255));
}

static call *new_call(product *p, cublas *blas)
{
    call *c = calloc(1, sizeof *c);
    if (c) c->p = p, c->blas = blas;
    return c;
}

/* The bias: C's 16-bit type on the device, the same numbers on the host */
static bool make_bias(product *p)
{
    const int64_t n = p->s.n;
    const size_t bytes = (size_t)n * strata_type_bits(p->k->out) / 8;
    void *typed = bench_alloc(bytes);
    p->bias_host = bench_alloc((size_t)n * 4);
    bool ok = typed && p->bias_host && !strata_alloc(p->w.h, bytes, &p->bias);
    if (ok) {
        bench_random(p->bias_host, n, false, 3);
        const strata_tensor f = strata_array(p->bias_host, STRATA_F32, 1, &n, NULL),
                            t = strata_array(typed, p->k->out, 1, &n, NULL);
        const strata_operand to[] = {{"x", f}, {"out", t}, {0}}, back[] = {{"x", t}, {"out", f}, {0}};
        ok = !strata_fused(p->w.cpu, "out = x", to, NULL) && !strata_fused(p->w.cpu, "out = x", back, NULL) &&
             !strata_copy(p->w.h, t, strata_array(p->bias, p->k->out, 1, &n, NULL));
    }
    bench_free(typed, bytes);
    return ok;
}

/* ---- one case ------------------------------------------------------------------------------------------------------------------ */
static void set_options(const product *p, call *q, bool fused)
{
    if (p->k->tf32) q->o.math = STRATA_MATH_TF32;
    if (p->k->fast) q->o.math = STRATA_MATH_FAST_ACCUM;
    if (p->k->x6) q->o.math = STRATA_MATH_BF16X6;
    if (!fused) return;
    q->operand[0] = (strata_operand){"bias", strata_array(p->bias, p->k->out, 1, &p->s.n, NULL)};
    q->o.epilogue = p->f->epilogue;
    q->o.operands = q->operand;
}

static void add_ours(product *p, bench_case *c, const char *name, contender_class class, bool fused)
{
    call *q = new_call(p, NULL);
    strata_tensor A, B, C;
    if (!q) return;
    set_options(p, q, fused);
    views(p, 0, &A, &B, &C);
    if (!fused && p->f && p->f->quantises)
        C = strata_matrix(p->w.data[3][0], p->k->out, p->s.m, p->s.n, STRATA_ROW_MAJOR, 0);
    contender *k = case_add(c, name, class, run_strata, q, drop_call);
    if (k && !strata_gemm_plan(p->w.h, STRATA_ONE, A, B, STRATA_ZERO, C, &q->o, NULL, &q->plan))
        snprintf(k->note, sizeof k->note, "%s", strata_plan_kernel(q->plan));
}

static void run_forced(void *arg)
{
    call *c = arg;
    const product *p = c->p;
    const int i = next(c->p);
    c->p->bare = !c->o.epilogue;
    void *data[] = {p->w.data[0][i], p->w.data[1][i], p->w.data[2][i], p->bias};
    strata_plan_run(p->w.h, c->plan, data, NULL);
}

/* --candidates: the kernels of least predicted time, each forced. */
static void add_candidates(product *p, bench_case *c, int count)
{
    call *first = new_call(p, NULL);
    strata_tensor A, B, C;
    strata_candidate x;
    if (!first) return;
    set_options(p, first, p->f != NULL);
    views(p, 0, &A, &B, &C);
    if (strata_gemm_plan(p->w.h, STRATA_ONE, A, B, STRATA_ZERO, C, &first->o, NULL, &first->plan)) count = 0;
    for (double done = 0; count-- > 0;) { /* the next slower one each time */
        strata_candidate best = {0};
        for (int i = 0; strata_plan_candidates(first->plan, i, &x); i++)
            if (x.predicted_us > done && (best.predicted_us == 0 || x.predicted_us < best.predicted_us))
                best = x;
        if (best.predicted_us == 0) break;
        done = best.predicted_us;
        call *q = new_call(p, NULL);
        if (!q) break;
        set_options(p, q, p->f != NULL);
        const strata_choice choice = {.kernel = best.kernel};
        if (strata_gemm_plan(p->w.h, STRATA_ONE, A, B, STRATA_ZERO, C, &q->o, &choice, &q->plan)) {
            drop_call(q);
            continue;
        }
        contender *k = case_add(c, "candidate", CLASS_PREPARED, run_forced, q, drop_call);
        if (k) snprintf(k->note, sizeof k->note, "%s, predicted %.1f us", best.kernel, best.predicted_us);
    }
    drop_call(first);
}

/* The quickest of cublasLt's answers, by a short look at each. */
static void add_lt(bench *b, product *p, cublas *blas, bench_case *c)
{
    cublas_product v;
    int count = 0, best = -1;
    double best_ms = INFINITY;
    strata_event *e0 = NULL, *e1 = NULL;
    call *q = new_call(p, blas);
    if (!q) return;
    peer_view(p, 0, &v);
    q->lt = cublaslt_make(blas, &v, &count);
    if (q->lt && !strata_event_create(b->h, &e0) && !strata_event_create(b->h, &e1))
        for (int i = 0; i < count; i++) {
            double ms = 0;
            q->answer = i;
            if (cublaslt_run(q->lt, i, &v) || strata_synchronize(b->h)) continue;
            for (int j = 0; j < 3; j++) run_cublaslt(q);
            strata_event_record(b->h, e0);
            for (int j = 0; j < 10; j++) run_cublaslt(q);
            strata_event_record(b->h, e1);
            if (strata_event_wait(e1) || strata_event_elapsed(e0, e1, &ms)) continue;
            if (ms < best_ms) best_ms = ms, best = i;
        }
    strata_event_destroy(e0);
    strata_event_destroy(e1);
    if (best < 0) {
        drop_call(q);
        return;
    }
    q->answer = best;
    contender *k = case_add(c, "cublaslt", CLASS_PEER, run_cublaslt, q, drop_call);
    if (k) snprintf(k->note, sizeof k->note, "answer %d of %d", best, count);
}

static bool one_product(bench *b, cublas *blas, gemm_shape s, const kind *k, const fusion *f)
{
    product *p = calloc(1, sizeof *p);
    if (!p) return false;
    p->f = f;
    p->out = f && f->quantises ? STRATA_I8 : k->out;
    const size_t es = strata_type_bits(k->in) / 8, cs = strata_type_bits(k->out) / 8,
                 os = strata_type_bits(p->out) / 8, hs = k->in == STRATA_F64 ? 8 : 4;
    const size_t bytes[4] = {(size_t)(s.m * s.k) * es, (size_t)(s.k * s.n) * es, (size_t)(s.m * s.n) * os,
                             (size_t)(s.m * s.n) * cs};
    const bool aside = f && f->quantises;
    bench_case c = {.unit = "TFLOP/s"};
    p->b = b;
    p->s = s;
    p->k = k;
    p->ta = b->o.ta;
    p->tb = b->o.tb;
    p->w.h = b->h;
    p->w.cpu = b->cpu;
    p->c_bytes = bytes[2];
    void *ha = NULL, *hb = NULL;
    bool ok = cuda_work_alloc(b, &p->w, aside ? 4 : 3, bytes) && (p->c = bench_alloc(bytes[3])) &&
              (!f || make_bias(p)) && (ha = fill(p, 0, s.m * s.k, 1)) && (hb = fill(p, 1, s.k * s.n, 2));
    if (!ok) {
        cli_failed("bench", b->h);
    } else {
        make_reference(p, ha, hb);
        snprintf(c.name, sizeof c.name, "%s %c%c %lldx%lldx%lld%s%s", k->name, p->ta ? 'T' : 'N',
                 p->tb ? 'T' : 'N', (long long)s.m, (long long)s.n, (long long)s.k, f ? " " : "",
                 f ? f->name : "");
        c.flops = 2.0 * (double)s.m * (double)s.n * (double)s.k;
        c.bytes = (double)(bytes[0] + bytes[1] + bytes[2]);
        c.work = c.flops * 1e-12;
        c.peak_scale = k->clocks / 128; /* relative to f32's 128 multiply-adds an SM and clock */
        c.check = check_product;
        c.check_arg = p;
        c.poison = poison_product;
        add_ours(p, &c, "strata", CLASS_OURS, f != NULL);
        if (f) add_ours(p, &c, "plain", CLASS_REFERENCE, false);
        add_candidates(p, &c, b->o.candidates);
        if (blas && f) {
            case_add(&c, "unfused", CLASS_PEER, run_unfused, new_call(p, blas), drop_call);
            if (f->lt) add_lt(b, p, blas, &c);
        } else if (blas && k->x6) {
            case_add(&c, "cublas", CLASS_PEER, run_cublas, new_call(p, blas),
                     drop_call); /* the exact sgemm */
        } else if (blas) {
            if (k->in != STRATA_F8E4M3) {
                contender *g = case_add(&c, "cublas", CLASS_PEER, run_cublas, new_call(p, blas), drop_call);
                if (g) snprintf(g->note, sizeof g->note, "cublasGemmEx, its own choice");
            }
            add_lt(b, p, blas, &c);
        }
        ok = cuda_measure(b, &c);
    }
    bench_free(ha, (size_t)(s.m * s.k) * hs);
    bench_free(hb, (size_t)(s.k * s.n) * hs);
    bench_free(p->c, bytes[3]);
    bench_free(p->bias_host, (size_t)s.n * 4);
    strata_free(b->h, p->bias);
    cuda_work_free(&p->w);
    free(p);
    return ok;
}

int cuda_bench_gemm(bench *b, const char **words, int n)
{
    static gemm_shape s[GEMM_SHAPES];
    int count = gemm_shapes(words, n, "1024,2048,4096,8192", s);
    const char *type = b->o.type ? b->o.type : "bf16";
    const kind *k = NULL;
    if (count < 0) return CLI_USAGE;
    for (int i = 0; i < KINDS; i++)
        if (!strcmp(kinds[i].name, type)) k = &kinds[i];
    if (!k)
        return cli_bad(
            "bench", "--type on a GPU is f32, f64, tf32, bf16x6, f16, bf16, f8, f8-exact or i8, not '%.40s'",
            type);
    const fusion *f = NULL;
    for (size_t i = 0; b->o.epilogue && i < sizeof fusions / sizeof *fusions; i++)
        if (!strcmp(fusions[i].name, b->o.epilogue)) f = &fusions[i];
    if (b->o.epilogue && (!f || (k->out != STRATA_BF16 && k->out != STRATA_F16)))
        return cli_bad("bench",
                       "--epilogue is bias, bias_gelu, bias_relu or quantise, of a product into bf16 or f16, "
                       "not '%.40s' of %s",
                       b->o.epilogue, k->name);
    cublas *blas = b->o.no_peers ? NULL : cublas_open(b);
    report_column(b, "strata", NULL);
    if (f) report_column(b, "plain", NULL);
    if (blas) report_column(b, f ? "unfused" : "cublas", NULL), report_column(b, "cublaslt", NULL);
    b->total = count;
    cli_progress_begin(&b->progress, b->total);
    bool ok = true;
    for (int i = 0; i < count; i++) ok = one_product(b, blas, s[i], k, f) && ok;
    cublas_close(blas);
    return ok ? CLI_OK : CLI_FAILED;
}
