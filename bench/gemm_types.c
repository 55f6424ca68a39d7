/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_types.c - `strata bench gemm --type` on a CPU for the other types: f16 and bf16 (stored as such), f8 (stored as bf16), i8 (stored as i32),
 * c64 and c128. Row-major, A and B plain or stored transposed, checked on elements all over C. Peers are those with cblas_cgemm and cblas_zgemm for complex
 * products; none of the others has the rest behind one common interface. */
#include "bench.h"
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 400 };
typedef void (*zgemm_fn)(int, int, int, int, int, int, const void *, const void *, int, const void *, int,
                         const void *, void *, int);

static const struct {
    const char *name;
    strata_type in, out;
    double round; /* unit round-off of the sums' type and of C's */
    double store;
} types[] = {{"f16", STRATA_F16, STRATA_F16, 0x1p-24, 0x1p-11},
             {"bf16", STRATA_BF16, STRATA_BF16, 0x1p-24, 0x1p-8},
             {"f8", STRATA_F8E4M3, STRATA_BF16, 0x1p-24, 0x1p-8},
             {"f8e4m3", STRATA_F8E4M3, STRATA_BF16, 0x1p-24, 0x1p-8},
             {"f8e5m2", STRATA_F8E5M2, STRATA_BF16, 0x1p-24, 0x1p-8},
             {"i8", STRATA_I8, STRATA_I32, 0, 0},
             {"c64", STRATA_C64, STRATA_C64, 0x1p-24, 0},
             {"c128", STRATA_C128, STRATA_C128, 0x1p-53, 0}};
enum { TYPES = sizeof types / sizeof *types };

static int type_named(const char *name)
{
    for (int i = 0; name && i < TYPES; i++)
        if (strcmp(name, types[i].name) == 0) return i;
    return -1;
}
bool bench_gemm_type(const char *name) { return type_named(name) >= 0; }

typedef struct product {
    gemm_shape s;
    int type, wide; /* wide: numbers an element, 2 of complex ones */
    bool ta, tb, failed;
    strata_tensor A, B, C;
    double *a, *b, *c; /* the values of A, B and C */
    strata_handle *h;
    zgemm_fn zgemm;
    int count;
    struct {
        int64_t at;
        double want[2], bound;
    } sample[SAMPLES];
} product;

static void run_strata(void *arg)
{
    product *p = arg;
    p->failed |= strata_gemm(p->h, STRATA_ONE, p->A, p->B, STRATA_ZERO, p->C, NULL) != STRATA_OK;
}

static void run_cblas(void *arg)
{
    const product *p = arg;
    static const double one64[2] = {1, 0}, zero64[2] = {0, 0};
    static const float one32[2] = {1, 0}, zero32[2] = {0, 0};
    const bool wide = types[p->type].in == STRATA_C128;
    const int m = (int)p->s.m, n = (int)p->s.n, k = (int)p->s.k;
    p->zgemm(CBLAS_ROW, p->ta ? CBLAS_T : CBLAS_N, p->tb ? CBLAS_T : CBLAS_N, m, n, k,
             wide ? (const void *)one64 : one32, p->A.data, p->ta ? m : k, p->B.data, p->tb ? k : n,
             wide ? (const void *)zero64 : zero32, p->C.data, n);
}

static void drop_copy(void *arg) { free(arg); }
static product *copy_of(const product *p, strata_handle *h, zgemm_fn zgemm)
{
    product *q = malloc(sizeof *q);
    if (q) *q = *p, q->h = h, q->zgemm = zgemm;
    return q;
}

/* n numbers between a real type (complex: of its parts) and f64 */
static bool convert(strata_handle *h, const void *from, strata_type tf, void *to, strata_type tt, int64_t n)
{
    const strata_operand o[] = {
        {"x", strata_vector(from, tf, n, 1)}, {"out", strata_vector(to, tt, n, 1)}, {NULL, {0}}};
    return strata_fused(h, "out = x", o, NULL) == STRATA_OK;
}
static strata_type part_of(strata_type t)
{
    return t == STRATA_C64 ? STRATA_F32 : t == STRATA_C128 ? STRATA_F64 : t;
}

static bool make_operand(product *p, void **data, double **values, int64_t elements, uint64_t seed)
{
    const strata_type t = types[p->type].in;
    const int64_t n = elements * p->wide;
    *values = bench_alloc((size_t)n * 8 + 64);
    *data = bench_alloc((size_t)n * 8 + 64);
    if (!*values || !*data) return false;
    bench_random(*values, n, true, seed);
    for (int64_t i = 0; t == STRATA_I8 && i < n; i++) (*values)[i] = rint(100 * (*values)[i]);
    return convert(p->h, *values, STRATA_F64, *data, part_of(t), n) &&
           convert(p->h, *data, part_of(t), *values, STRATA_F64, n);
}

static void make_reference(product *p)
{
    const int64_t m = p->s.m, n = p->s.n, k = p->s.k, all = m * n;
    const int w = p->wide;
    int64_t want = k > 0 && 4e7 / (double)k < SAMPLES ? (int64_t)(4e7 / (double)k) + 16 : SAMPLES;
    if (want > SAMPLES) want = SAMPLES;
    p->count = (int)(all < want ? all : want);
    for (int q = 0; q < p->count; q++) {
        const int64_t at = all <= want ? q
                           : q < 2     ? q * (all - 1)
                                       : (int64_t)(((uint64_t)q * 0x9e3779b97f4a7c15u) % (uint64_t)all);
        const int64_t i = at / n, j = at % n;
        long double sum[2] = {0, 0};
        double mag = 0;
        for (int64_t l = 0; l < k; l++) {
            const double *x = p->a + w * (p->ta ? l * m + i : i * k + l),
                         *y = p->b + w * (p->tb ? j * k + l : l * n + j);
            const double xi = w > 1 ? x[1] : 0, yi = w > 1 ? y[1] : 0;
            sum[0] += (long double)x[0] * y[0] - (long double)xi * yi;
            sum[1] += (long double)x[0] * yi + (long double)xi * y[0];
            mag += (fabs(x[0]) + fabs(xi)) * (fabs(y[0]) + fabs(yi));
        }
        p->sample[q].at = at;
        p->sample[q].want[0] = (double)sum[0], p->sample[q].want[1] = (double)sum[1];
        p->sample[q].bound =
            ((double)k + 3) * types[p->type].round * mag + 1.01 * types[p->type].store * mag + 1e-30;
        if (types[p->type].in == STRATA_I8) p->sample[q].bound = 0.5;
    }
}

static double check_product(void *arg)
{
    product *p = arg;
    const int w = p->wide;
    double worst = 0;
    if (p->failed ||
        !convert(p->h, p->C.data, part_of(types[p->type].out), p->c, STRATA_F64, p->s.m * p->s.n * w))
        return INFINITY;
    for (int q = 0; q < p->count; q++)
        for (int d = 0; d < w; d++) {
            const double e = fabs(p->c[p->sample[q].at * w + d] - p->sample[q].want[d]) / p->sample[q].bound;
            if (!(e <= worst)) worst = e;
        }
    return worst;
}

static void poison_product(void *arg)
{
    product *p = arg;
    memset(p->C.data, 0xff, (size_t)(p->s.m * p->s.n) * strata_type_bits(types[p->type].out) / 8);
}

static bool one_product(bench *b, gemm_shape s, int type)
{
    product *p = calloc(1, sizeof *p);
    bench_case c = {.unit = "GFLOP/s"};
    void *data[3] = {NULL, NULL, NULL};
    bool ok = p != NULL;
    const size_t room = 64;
    if (ok) {
        p->s = s, p->type = type, p->ta = b->o.ta, p->tb = b->o.tb, p->h = b->h;
        p->wide = types[type].in == STRATA_C64 || types[type].in == STRATA_C128 ? 2 : 1;
        ok = make_operand(p, &data[0], &p->a, s.m * s.k, 1) &&
             make_operand(p, &data[1], &p->b, s.k * s.n, 2) &&
             (data[2] = bench_alloc((size_t)(s.m * s.n * p->wide) * 8 + room)) &&
             (p->c = bench_alloc((size_t)(s.m * s.n * p->wide) * 8 + room));
    }
    if (ok) {
        const strata_type t = types[type].in;
        p->A = strata_matrix(data[0], t, s.m, s.k, p->ta ? STRATA_COL_MAJOR : STRATA_ROW_MAJOR, 0);
        p->B = strata_matrix(data[1], t, s.k, s.n, p->tb ? STRATA_COL_MAJOR : STRATA_ROW_MAJOR, 0);
        p->C = strata_matrix(data[2], types[type].out, s.m, s.n, STRATA_ROW_MAJOR, 0);
        make_reference(p);
        snprintf(c.name, sizeof c.name, "%s %c%c %lldx%lldx%lld", types[type].name, p->ta ? 'T' : 'N',
                 p->tb ? 'T' : 'N', (long long)s.m, (long long)s.n, (long long)s.k);
        const double m = (double)s.m, n = (double)s.n, k = (double)s.k;
        c.flops = (p->wide == 2 ? 8 : 2) * m * n * k;
        c.bytes = (m * k + k * n) * (double)strata_type_bits(t) / 8 +
                  m * n * (double)strata_type_bits(types[type].out) / 8;
        c.work = c.flops * 1e-9;
        c.peak_scale = t == STRATA_C128 ? 0.5 : 1;
        c.check = check_product, c.check_arg = p, c.poison = poison_product;
        ok = strata_gemm(b->h, STRATA_ONE, p->A, p->B, STRATA_ZERO, p->C, NULL) == STRATA_OK;
        if (!ok) cli_failed("bench", b->h);
    } else {
        cli_bad("bench", "no memory for %lldx%lldx%lld", (long long)s.m, (long long)s.n, (long long)s.k);
    }
    if (ok) {
        case_add(&c, "strata", CLASS_OURS, run_strata, copy_of(p, b->h, NULL), drop_copy);
        if (b->o.threads > 1)
            case_add(&c, "one-thread", CLASS_REFERENCE, run_strata, copy_of(p, b->cpu, NULL), drop_copy);
        for (int i = 0; i < b->peers.n && p->wide == 2; i++) {
            zgemm_fn f;
            *(void **)&f =
                dlsym(b->peers.p[i].lib, types[type].in == STRATA_C64 ? "cblas_cgemm" : "cblas_zgemm");
            if (f && b->peers.p[i].kind == PEER_CBLAS)
                case_add(&c, b->peers.p[i].name, CLASS_PEER, run_cblas, copy_of(p, NULL, f), drop_copy);
        }
        ok = bench_measure(b, &c);
    }
    for (int i = 0; i < 3; i++) {
        const int64_t n = (i == 0 ? s.m * s.k : i == 1 ? s.k * s.n : s.m * s.n) * (p ? p->wide : 1);
        double *values = !p ? NULL : i == 0 ? p->a : i == 1 ? p->b : p->c;
        if (data[i]) bench_free(data[i], (size_t)n * 8 + room);
        if (values) bench_free(values, (size_t)n * 8 + room);
    }
    free(p);
    return ok;
}

int bench_gemm_types(bench *b, const gemm_shape *s, int count)
{
    const int type = type_named(b->o.type);
    bool ok = true;
    if (b->o.plan) return cli_bad("bench", "--plan goes with f32 and f64");
    report_column(b, "strata", NULL);
    if (b->o.threads > 1) report_column(b, "one-thread", NULL);
    for (int i = 0; i < b->peers.n && (types[type].in == STRATA_C64 || types[type].in == STRATA_C128); i++)
        if (b->peers.p[i].kind == PEER_CBLAS) report_column(b, b->peers.p[i].name, NULL);
    b->total = count;
    cli_progress_begin(&b->progress, b->total);
    for (int i = 0; i < count; i++) ok = one_product(b, s[i], type) && ok;
    return ok ? CLI_OK : CLI_FAILED;
}
