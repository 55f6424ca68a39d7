/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_blas_check.c - the pool of random numbers, and what every operator's result must be: elements spread over the output, summed on the
 * host in the next wider type from the numbers that the pool gives. */
#include "cuda_blas.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct {
    strata_type type;
    void *host, *device, *tiny; /* CUDA_POOL elements; tiny: times 2^-14 */
    size_t bytes;
} pool;

bool cuda_is_complex(strata_type t) { return t == STRATA_C64 || t == STRATA_C128; }
bool cuda_is_single(strata_type t) { return t == STRATA_F32 || t == STRATA_C64; }
char cuda_letter(strata_type t)
{
    return t == STRATA_F32 ? 's' : t == STRATA_F64 ? 'd' : t == STRATA_C64 ? 'c' : 'z';
}
static size_t size_of(strata_type t) { return strata_type_bits(t) / 8; }

double complex cuda_number(strata_type t, const void *p, int64_t i)
{
    const float *f = p;
    const double *d = p;
    switch (t) {
    case STRATA_F32: return (double)f[i];
    case STRATA_F64: return d[i];
    case STRATA_C64: return __builtin_complex((double)f[2 * i], (double)f[2 * i + 1]);
    default: return __builtin_complex(d[2 * i], d[2 * i + 1]);
    }
}

void cuda_pool_drop(bench *b)
{
    bench_free(pool.host, pool.bytes);
    strata_free(b->h, pool.device);
    strata_free(b->h, pool.tiny);
    memset(&pool, 0, sizeof pool);
}

bool cuda_pool_make(bench *b, strata_type type)
{
    if (pool.host && pool.type == type) return true;
    cuda_pool_drop(b);
    const int64_t n = CUDA_POOL, parts = n * (cuda_is_complex(type) ? 2 : 1);
    const bool single = cuda_is_single(type);
    pool.type = type;
    pool.bytes = (size_t)n * size_of(type);
    pool.host = bench_alloc(pool.bytes);
    if (!pool.host || strata_alloc(b->h, pool.bytes, &pool.device) ||
        strata_alloc(b->h, pool.bytes, &pool.tiny))
        return false;
    float *f = pool.host;
    double *d = pool.host;
    bench_random(pool.host, parts, !single, 7);
    for (int64_t i = 0; i < parts; i++) single ? (void)(f[i] *= 0x1p-14f) : (void)(d[i] *= 0x1p-14);
    if (strata_copy(b->h, strata_array(pool.host, type, 1, &n, NULL),
                    strata_array(pool.tiny, type, 1, &n, NULL)))
        return false;
    for (int64_t i = 0; i < parts; i++) single ? (void)(f[i] *= 0x1p14f) : (void)(d[i] *= 0x1p14);
    return !strata_copy(b->h, strata_array(pool.host, type, 1, &n, NULL),
                        strata_array(pool.device, type, 1, &n, NULL));
}

double complex cuda_pool_at(int64_t e) { return cuda_number(pool.type, pool.host, e % CUDA_POOL); }

bool cuda_pool_fill(bench *b, void *to, int64_t base, int64_t n, bool tiny)
{
    const size_t es = size_of(pool.type);
    const char *from = tiny ? pool.tiny : pool.device;
    for (int64_t at = 0; at < n;) {
        const int64_t p = (base + at) % CUDA_POOL, left = n - at,
                      k = left < CUDA_POOL - p ? left : CUDA_POOL - p;
        if (strata_copy(b->h, strata_array(from + (size_t)p * es, pool.type, 1, &k, NULL),
                        strata_array((char *)to + (size_t)at * es, pool.type, 1, &k, NULL)))
            return false;
        at += k;
    }
    return true;
}

/* ---- operands ---- */
static bool poison(bench *b, void *p, size_t bytes)
{
    const int64_t n = (int64_t)bytes;
    return !strata_fill(b->h, strata_array(p, STRATA_U8, 1, &n, NULL), strata_real(255));
}

bool cuda_blas_fill(cuda_task *t, int o, int i)
{
    const cuda_op_row *r = &cuda_ops[t->op];
    const bool tiny = o == 0 && r->near_one;
    bool ok = cuda_pool_fill(t->b, t->w.data[o][i], t->base[o], t->count[o], tiny);
    if (ok && tiny && r->form != FORM_PACKED) {
        const int64_t step = t->lda + (r->form == FORM_HALF);
        ok = !strata_fill(t->b->h, strata_array(t->w.data[0][i], t->type, 1, &t->n, &step), strata_real(1));
    }
    return ok;
}

void cuda_blas_refill(void *arg)
{
    cuda_task *const t = arg;
    const int out = cuda_ops[t->op].out, i = (t->turn + 1) % t->w.copies;
    const bool updates = t->op == OP_AXPY || t->op == OP_SWAP || t->op == OP_ROT;
    if (out == OUT_A) cuda_blas_fill(t, 0, i);
    if (out == OUT_X || out == OUT_BOTH || out == OUT_B) cuda_blas_fill(t, 1, i);
    if ((out == OUT_Y || out == OUT_BOTH) && updates) cuda_blas_fill(t, 2, i);
    if ((out == OUT_Y && !updates) || out == OUT_C) poison(t->b, t->w.data[2][i], t->w.bytes[2]);
    if (out == OUT_NUMBER) poison(t->b, t->w.data[3][i], t->w.bytes[3]);
}

/* ---- what the operators mean ---- */
static double complex in(const cuda_task *t, int o, int64_t e) { return cuda_pool_at(t->base[o] + e); }
static double size1(double complex z) { return fabs(creal(z)) + fabs(cimag(z)); }

/* where (i, j) of what is stored lies; -1: it is not stored */
static int64_t place(const cuda_task *t, int64_t i, int64_t j)
{
    const int64_t n = t->n;
    switch (cuda_ops[t->op].form) {
    case FORM_HALF: return i < j ? -1 : i + j * n;
    case FORM_PACKED: return i < j ? -1 : i + j * (2 * n - j - 1) / 2;
    case FORM_BAND: return i - j > CUDA_BAND || j - i > CUDA_BAND ? -1 : CUDA_BAND + i - j + j * t->lda;
    case FORM_HALF_BAND: return i < j || i - j > CUDA_BAND ? -1 : i - j + j * t->lda;
    default: return i + j * n;
    }
}

static double complex a_at(const cuda_task *t, int64_t i, int64_t j)
{
    const cuda_op_row *r = &cuda_ops[t->op];
    if (t->op == OP_GEMVT || t->op == OP_TRMVT || t->op == OP_TRSVT || t->op == OP_GEAM) {
        const int64_t k = i;
        i = j;
        j = k;
    }
    if (r->near_one) {
        const int64_t e = place(t, i, j);
        return i == j ? 1 : e < 0 ? 0 : 0x1p-14 * in(t, 0, e);
    }
    const bool mirror = r->form == FORM_HALF || r->form == FORM_PACKED || r->form == FORM_HALF_BAND,
               herm = cuda_is_complex(t->type) && t->op != OP_SYMM;
    if (mirror && i < j) {
        const int64_t e = place(t, j, i);
        return e < 0 ? 0 : herm ? conj(in(t, 0, e)) : in(t, 0, e);
    }
    const int64_t e = place(t, i, j);
    if (e < 0) return 0;
    return mirror && herm && i == j ? creal(in(t, 0, e)) : in(t, 0, e);
}

static double unit(const cuda_task *t)
{
    return (cuda_is_single(t->type) ? FLT_EPSILON : DBL_EPSILON) / 2 * (cuda_is_complex(t->type) ? 4 : 1);
}

/* of a sum of terms: any order of them; next to the identity the sum is mostly one term, and errors are taken as random so that the others still show */
static double steps(const cuda_task *t, int64_t terms)
{
    return cuda_ops[t->op].near_one ? 4 * sqrt((double)terms) + 8 : (double)terms + 6;
}

static bool fetch(cuda_task *t, const void *from, int64_t at, int64_t n, void *to)
{
    return !strata_copy(
        t->b->h, strata_array((const char *)from + (size_t)at * size_of(t->type), t->type, 1, &n, NULL),
        strata_array(to, t->type, 1, &n, NULL));
}

/* ---- level 1 ---- */
void cuda_blas_expect(cuda_task *t)
{
    long double re = 0, im = 0, mag = 0;
    double best = -1;
    int64_t at = 0;
    for (int64_t i = 0; i < t->n; i++) {
        const double complex x = in(t, 1, i);
        if (t->op == OP_DOT) {
            const double complex y = in(t, 2, i), p = x * y;
            re += creal(p), im += cimag(p), mag += size1(x) * size1(y);
        } else if (t->op == OP_NRM2) {
            re += creal(x) * creal(x) + cimag(x) * cimag(x);
        } else {
            const double s =
                cuda_is_single(t->type) ? (double)((float)fabs(creal(x)) + (float)fabs(cimag(x))) : size1(x);
            re += s;
            if (s > best) best = s, at = i;
        }
    }
    if (t->op == OP_NRM2) re = sqrtl(re);
    if (t->op != OP_DOT) mag = re;
    t->number = t->op == OP_IAMAX ? (double)at : (double)re + (double)im * I;
    t->number_bound = t->op == OP_IAMAX ? 0.5 : (double)(t->n + 6) * unit(t) * (double)mag;
}

static double check_number(cuda_task *t)
{
    const void *const from = t->w.data[3][t->turn];
    const strata_type part = cuda_is_single(t->type) ? STRATA_F32 : STRATA_F64;
    const strata_type type = t->op == OP_IAMAX ? STRATA_I32 : t->op == OP_DOT ? t->type : part;
    const int64_t one = 1;
    double room[2] = {0};
    int32_t at;
    if (strata_copy(t->b->h, strata_array(from, type, 1, &one, NULL),
                    strata_array(room, type, 1, &one, NULL)))
        return INFINITY;
    memcpy(&at, room, sizeof at);
    const double complex got = t->op == OP_IAMAX ? (double)at - t->peer_ran : cuda_number(type, room, 0);
    return cabs(got - t->number) / t->number_bound;
}

static double complex want1(const cuda_task *t, bool of_y, int64_t i)
{
    const double f = cuda_factor(t);
    switch (t->op) {
    case OP_AXPY: return f * in(t, 1, i) + in(t, 2, i);
    case OP_SCAL: return f * in(t, 1, i);
    case OP_COPY: return in(t, 1, i);
    case OP_SWAP: return in(t, of_y ? 1 : 2, i);
    default: return of_y ? in(t, 2, i) - f * in(t, 1, i) : in(t, 1, i) + f * in(t, 2, i);
    }
}

static double check_level1(cuda_task *t)
{
    enum { WINDOWS = 16, WIDTH = 256 };
    const int out = cuda_ops[t->op].out;
    double worst = 0;
    if (out == OUT_NUMBER) return check_number(t);
    for (int v = 0; v < 2; v++)
        for (int64_t w = 0; w < WINDOWS && (out >> v & 1); w++) {
            const int64_t width = t->n < WIDTH ? t->n : WIDTH, at = (t->n - width) * w / (WINDOWS - 1);
            if (!fetch(t, t->w.data[1 + v][t->turn], at, width, t->host)) return INFINITY;
            for (int64_t i = 0; i < width; i++) {
                const double e =
                    size1(cuda_number(t->type, t->host, i) - want1(t, v == 1, at + i)) / (8 * unit(t));
                if (!(e <= worst)) worst = e;
            }
        }
    return worst;
}

/* ---- level 2 ---- */
static double check_vector(cuda_task *t)
{
    enum { SAMPLES = 64 };
    const bool solve = t->op == OP_TRSV || t->op == OP_TRSVT || t->op == OP_TPSV || t->op == OP_TBSV;
    const cuda_op_row *r = &cuda_ops[t->op];
    const int64_t n = t->n, reach = r->form == FORM_BAND || r->form == FORM_HALF_BAND ? CUDA_BAND : n;
    double worst = 0;
    if (!fetch(t, t->w.data[r->out == OUT_X ? 1 : 2][t->turn], 0, n, t->host)) return INFINITY;
    for (int64_t s = 0; s < SAMPLES; s++) {
        const int64_t i = (n - 1) * s / (SAMPLES - 1), from = i > reach ? i - reach : 0,
                      to = i + reach < n ? i + reach + 1 : n;
        long double re = 0, im = 0;
        double mag = 0;
        for (int64_t j = from; j < to; j++) {
            const double complex a = a_at(t, i, j),
                                 x = solve ? cuda_number(t->type, t->host, j) : in(t, 1, j), p = a * x;
            re += creal(p), im += cimag(p), mag += size1(a) * size1(x);
        }
        const double complex got = solve ? in(t, 1, i) : cuda_number(t->type, t->host, i);
        const double e =
            size1(got - ((double)re + (double)im * I)) / (steps(t, to - from) * unit(t) * mag + DBL_MIN);
        if (!(e <= worst)) worst = e;
    }
    return worst;
}

static double check_update(cuda_task *t)
{
    enum { SAMPLES = 200 };
    const int64_t n = t->n;
    const double f = cuda_factor(t);
    double worst = 0;
    for (int64_t s = 0; s < SAMPLES; s++) {
        int64_t i = (int64_t)((uint64_t)s * 2654435761u % (uint64_t)n), j = (n - 1) * s / (SAMPLES - 1);
        if (t->op != OP_GER && i < j) {
            const int64_t k = i;
            i = j;
            j = k;
        }
        const int64_t e = place(t, i, j);
        double complex want = in(t, 0, e);
        if (t->op == OP_GER) want += in(t, 1, i) * (f * in(t, 2, j));
        if (t->op == OP_SYR || t->op == OP_SPR) want += f * in(t, 1, i) * conj(in(t, 1, j));
        if (t->op == OP_SYR2) want += f * (in(t, 1, i) * conj(in(t, 2, j)) + in(t, 2, i) * conj(in(t, 1, j)));
        if (t->op != OP_GER && i == j) want = creal(want);
        if (!fetch(t, t->w.data[0][t->turn], e, 1, t->host)) return INFINITY;
        const double off = size1(cuda_number(t->type, t->host, 0) - want) / (8 * unit(t));
        if (!(off <= worst)) worst = off;
    }
    return worst;
}

/* ---- level 3 ---- */
static double complex term(const cuda_task *t, int64_t i, int64_t j, int64_t l)
{
    const int64_t n = t->n;
    switch (t->op) {
    case OP_SYRK: return in(t, 0, i + l * n) * in(t, 0, j + l * n);
    case OP_HERK: return in(t, 0, i + l * n) * conj(in(t, 0, j + l * n));
    case OP_SYR2K:
        return in(t, 0, i + l * n) * in(t, 1, j + l * n) + in(t, 1, i + l * n) * in(t, 0, j + l * n);
    case OP_HER2K:
        return in(t, 0, i + l * n) * conj(in(t, 1, j + l * n)) +
               in(t, 1, i + l * n) * conj(in(t, 0, j + l * n));
    case OP_TRSM: return a_at(t, i, l) * cuda_number(t->type, t->host, l);
    case OP_GEAM: return l ? in(t, 1, i + j * n) : a_at(t, i, j);
    case OP_DGMM: return in(t, 3, i) * in(t, 0, i + j * n);
    default: return a_at(t, i, l) * in(t, 1, l + j * n);
    }
}

static double check_level3(cuda_task *t)
{
    enum { COLUMNS = 8, ROWS = 24 };
    const cuda_op_row *r = &cuda_ops[t->op];
    const int64_t n = t->n, terms = t->op == OP_GEAM ? 2 : t->op == OP_DGMM ? 1 : n;
    const bool triangle = t->op >= OP_SYRK && t->op <= OP_HER2K;
    double worst = 0;
    for (int64_t q = 0; q < COLUMNS; q++) {
        const int64_t j = (n - 1) * q / (COLUMNS - 1);
        if (!fetch(t, t->w.data[r->out == OUT_B ? 1 : 2][t->turn], j * n, n, t->host)) return INFINITY;
        for (int64_t s = 0; s < ROWS; s++) {
            const int64_t first = triangle ? j : 0, i = first + (n - 1 - first) * s / (ROWS - 1);
            long double re = 0, im = 0;
            double mag = 0;
            for (int64_t l = 0; l < terms; l++) {
                const double complex p = term(t, i, j, l);
                re += creal(p), im += cimag(p), mag += 2 * size1(p);
            }
            const double complex got =
                t->op == OP_TRSM ? in(t, 1, i + j * n) : cuda_number(t->type, t->host, i);
            const double e = size1(got - ((double)re + (double)im * I)) /
                             (steps(t, terms) * unit(t) * (mag + size1(got)) + DBL_MIN);
            if (!(e <= worst)) worst = e;
        }
    }
    return worst;
}

double cuda_blas_check(void *arg)
{
    cuda_task *const t = arg;
    if (cuda_ops[t->op].level == 1) return check_level1(t);
    if (cuda_ops[t->op].level == 3) return check_level3(t);
    return cuda_ops[t->op].out == OUT_A ? check_update(t) : check_vector(t);
}
