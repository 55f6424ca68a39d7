/* SPDX-License-Identifier: Apache-2.0 */
/* test_small_batches.c - many small products, and triangular products and solutions of batches, by strides and by arrays of addresses, in the device's own memory. All numbers
 * are whole and small, so that every sum is exact in every kernel and the results are compared by bits: a solution's right-hand sides are made from the solution.
 * What a structure says is not stored, C where beta is 0, and what lies between the lines are NaN, and must stay so. */
#include "handle.h"
#include <math.h>
#include <strata/blas.h>
#include <strata/runtime.h>

typedef struct number {
    int64_t re, im;
} number;
static number times(number a, number b)
{
    return (number){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
static number plus(number a, number b) { return (number){a.re + b.re, a.im + b.im}; }
static number conj_of(number a, bool c) { return (number){a.re, c ? -a.im : a.im}; }

static bool is_complex(strata_type t) { return t == STRATA_C64 || t == STRATA_C128; }

/* `items` matrices; `mean` is what each element means, `bytes` the memory, all NaN but for what is stored */
typedef struct batch {
    strata_type type;
    int64_t items, rows, cols, rs, cs, each, es;
    bool addresses;
    number *mean;
    char *bytes;
    void *device, *list;
    size_t size;
} batch;

static batch make(test_rng *r, strata_type type, int64_t items, int64_t rows, int64_t cols, bool addresses)
{
    const bool turned = test_chance(r, 0.5);
    const int64_t pad = test_chance(r, 0.5) ? 0 : test_int(r, 1, 5), ld = (turned ? rows : cols) + pad;
    batch b = {.type = type, .items = items, .rows = rows, .cols = cols, .addresses = addresses};
    b.es = (int64_t)strata_type_bits(type) / 8;
    b.rs = turned ? 1 : ld;
    b.cs = turned ? ld : 1;
    b.each = ld * (turned ? cols : rows) + (test_chance(r, 0.5) ? 0 : test_int(r, 1, 3));
    if (b.each == 0) b.each = 1;
    b.size = (size_t)(b.each * items * b.es);
    b.mean = calloc((size_t)(items * rows * cols + 1), sizeof *b.mean);
    b.bytes = malloc(b.size);
    assert_true(b.mean && b.bytes);
    memset(b.bytes, 0xff, b.size); /* NaN in every type */
    test_ok(h, strata_alloc(h, b.size, &b.device));
    return b;
}
static void drop(batch *b)
{
    free(b->mean);
    free(b->bytes);
    test_ok(h, strata_free(h, b->device));
    if (b->list) test_ok(h, strata_free(h, b->list));
}
static number *at(const batch *b, int64_t g, int64_t i, int64_t j)
{
    return &b->mean[(g * b->rows + i) * b->cols + j];
}

static void put(const batch *b, char *to, int64_t g, int64_t i, int64_t j, number v)
{
    char *p = to + (g * b->each + i * b->rs + j * b->cs) * b->es;
    const double d[2] = {(double)v.re, (double)v.im};
    const float f[2] = {(float)v.re, (float)v.im};
    uint32_t u;
    memcpy(&u, f, 4);
    switch (b->type) {
    case STRATA_F64: memcpy(p, d, 8); break;
    case STRATA_C128: memcpy(p, d, 16); break;
    case STRATA_F32: memcpy(p, f, 4); break;
    case STRATA_C64: memcpy(p, f, 8); break;
    case STRATA_BF16: memcpy(p, (uint16_t[]){(uint16_t)(u >> 16)}, 2); break;
    default: /* f16; whole numbers to 2048 */
        u = v.re == 0 ? 0 : (u >> 16 & 0x8000) | (((u >> 23 & 255) - 112) << 10) | (u >> 13 & 0x3ff);
        memcpy(p, (uint16_t[]){(uint16_t)u}, 2);
    }
}

static strata_tensor bytes_at(void *p, size_t n) { return strata_vector(p, STRATA_U8, (int64_t)n, 1); }

/* Brings the memory to the device; the view of it. */
static strata_tensor view(batch *b)
{
    const int64_t dim[] = {b->items, b->rows, b->cols}, stride[] = {b->each, b->rs, b->cs};
    test_ok(h, strata_copy(h, bytes_at(b->bytes, b->size), bytes_at(b->device, b->size)));
    if (!b->addresses) return strata_array(b->device, b->type, 3, dim, stride);
    void **host = malloc((size_t)b->items * sizeof *host);
    assert_non_null(host);
    for (int64_t g = 0; g < b->items; g++) host[g] = (char *)b->device + g * b->each * b->es;
    const size_t n = (size_t)b->items * sizeof *host;
    test_ok(h, strata_alloc(h, n, &b->list));
    test_ok(h, strata_copy(h, bytes_at(host, n), bytes_at(b->list, n)));
    free(host);
    return strata_pointers(strata_array(NULL, b->type, 2, dim + 1, stride + 1), b->list, b->items);
}

/* The device's memory must hold the meaning of every element, and NaN elsewhere: the bytes of `b` after the stores. */
static void check(batch *b)
{
    char *got = malloc(b->size);
    assert_non_null(got);
    for (int64_t g = 0; g < b->items; g++)
        for (int64_t i = 0; i < b->rows; i++)
            for (int64_t j = 0; j < b->cols; j++) put(b, b->bytes, g, i, j, *at(b, g, i, j));
    test_ok(h, strata_copy(h, bytes_at(b->device, b->size), bytes_at(got, b->size)));
    test_ok(h, strata_synchronize(h));
    const int64_t word = is_complex(b->type) ? b->es / 2 : b->es;
    for (int64_t x = 0; x < (int64_t)b->size && !test_values_ignored(); x += word) {
        double v[2] = {0};
        float f[2];
        uint16_t half[2];
        if (!memcmp(got + x, b->bytes + x, (size_t)word)) continue;
        if (word == 8) memcpy(&v[0], got + x, 8), memcpy(&v[1], b->bytes + x, 8);
        if (word == 4) memcpy(&f[0], got + x, 4), memcpy(&f[1], b->bytes + x, 4), v[0] = f[0], v[1] = f[1];
        if (word == 2)
            memcpy(&half[0], got + x, 2), memcpy(&half[1], b->bytes + x, 2),
                v[0] = half[0] & 0x7fff ? half[0] : 0, v[1] = half[1] & 0x7fff ? half[1] : 0;
        /* -0 is 0 */
        test_check(v[0] == v[1], "item %d, element %d of its memory: %g, not %g", (int)(x / b->es / b->each),
                   (int)(x / b->es % b->each), v[0], v[1]);
    }
    free(got);
}

static number whole(test_rng *r, strata_type type, int most)
{
    return (number){test_int(r, -most, most), is_complex(type) ? test_int(r, -most, most) : 0};
}

typedef struct kind {
    strata_type in, out;
} kind;
static const kind kinds[] = {{STRATA_F32, STRATA_F32},   {STRATA_F64, STRATA_F64}, {STRATA_C64, STRATA_C64},
                             {STRATA_C128, STRATA_C128}, {STRATA_F16, STRATA_F32}, {STRATA_BF16, STRATA_F32},
                             {STRATA_F16, STRATA_F16}};

static int64_t side(test_rng *r)
{
    static const int64_t usual[] = {1, 4, 8, 12, 16, 24, 32, 48, 64};
    return test_chance(r, 0.5) ? usual[test_int(r, 0, TEST_COUNT(usual) - 1)] : test_int(r, 1, 70);
}

static void products(void **state)
{
    (void)state;
    test_rng r = test_rng_make(901);
    for (int n = 0; n < test_rounds(140); n++) {
        const kind k = kinds[n % TEST_COUNT(kinds)];
        const bool small = test_chance(&r, 0.7);
        const int64_t M = small ? test_int(&r, 1, 17) : side(&r), N = small ? test_int(&r, 1, 17) : side(&r),
                      K = test_chance(&r, 0.05) ? 0 : side(&r), items = test_int(&r, 1, 40);
        /* on a CPU 16-bit floats have no kernel that takes addresses */
        const bool some = on_gpu() || (k.in != STRATA_F16 && k.in != STRATA_BF16),
                   all = some && test_chance(&r, 0.3);
        batch a = make(&r, k.in, items, M, K, all || (some && test_chance(&r, 0.2))),
              b = make(&r, k.in, items, K, N, all || (some && test_chance(&r, 0.2))),
              c = make(&r, k.out, items, M, N, all || (some && test_chance(&r, 0.2)));
        const bool ca = is_complex(k.in) && test_chance(&r, 0.4),
                   cb = is_complex(k.in) && test_chance(&r, 0.4);
        const number alpha = whole(&r, k.in, 2),
                     beta = test_chance(&r, 0.5) ? (number){0, 0} : whole(&r, k.in, 2);
        test_problem("round %d: %s %lld x %lldx%lldx%lld conj %d%d addresses %d%d%d alpha %d,%d beta %d,%d",
                     n, strata_type_name(k.in), (long long)items, (long long)M, (long long)N, (long long)K,
                     ca, cb, a.addresses, b.addresses, c.addresses, (int)alpha.re, (int)alpha.im,
                     (int)beta.re, (int)beta.im);
        const bool read = alpha.re || alpha.im, old = beta.re || beta.im;
        batch *in[] = {&a, &b};
        for (int s = 0; s < 2; s++)
            for (int64_t g = 0; g < items; g++)
                for (int64_t i = 0; i < in[s]->rows; i++)
                    for (int64_t j = 0; j < in[s]->cols; j++) {
                        *at(in[s], g, i, j) = whole(&r, k.in, 2);
                        if (read) put(in[s], in[s]->bytes, g, i, j, *at(in[s], g, i, j));
                    }
        for (int64_t g = 0; g < items; g++)
            for (int64_t i = 0; i < M; i++)
                for (int64_t j = 0; j < N; j++) {
                    number sum = {0, 0}, was = whole(&r, k.in, 3);
                    if (old) put(&c, c.bytes, g, i, j, was);
                    for (int64_t p = 0; p < K; p++)
                        sum = plus(sum, times(conj_of(*at(&a, g, i, p), ca), conj_of(*at(&b, g, p, j), cb)));
                    *at(&c, g, i, j) = plus(times(alpha, sum), times(beta, was));
                }
        strata_tensor A = view(&a), B = view(&b);
        const strata_tensor C = view(&c);
        if (ca) A = strata_conj(A);
        if (cb) B = strata_conj(B);
        test_ok(h, strata_gemm(h, strata_complex((double)alpha.re, (double)alpha.im), A, B,
                               strata_complex((double)beta.re, (double)beta.im), C, NULL));
        check(&c);
        drop(&a);
        drop(&b);
        drop(&c);
    }
}

/* A triangle whose inverse stays small: ones, -1 or +-i on the diagonal, few elements beside it. */
static void fill_triangle(test_rng *r, batch *a, bool lower, bool unit)
{
    for (int64_t g = 0; g < a->items; g++)
        for (int64_t i = 0; i < a->rows; i++)
            for (int64_t j = 0; j < a->rows; j++) {
                number v = {0, 0};
                const bool stored = i == j ? !unit : lower == (i > j);
                if (i == j) {
                    v.re = unit || test_chance(r, 0.5) ? 1 : -1;
                    if (!unit && is_complex(a->type) && test_chance(r, 0.5)) v = (number){0, v.re};
                } else if (stored && test_chance(r, 1.0 / (double)(a->rows + 1)))
                    v = (number){test_chance(r, 0.5) ? 1 : -1, 0};
                *at(a, g, i, j) = v;
                if (stored) put(a, a->bytes, g, i, j, v);
            }
}

static void triangles(void **state)
{
    (void)state;
    test_rng r = test_rng_make(902);
    for (int n = 0; n < test_rounds(120); n++) {
        const strata_type type = kinds[n % 4].in;
        const bool large = n % 12 == 11, solve = test_chance(&r, 0.6), lower = test_chance(&r, 0.5),
                   unit = test_chance(&r, 0.3), turn = test_chance(&r, 0.4),
                   conj = is_complex(type) && test_chance(&r, 0.4), all = test_chance(&r, 0.3);
        const int64_t N = large                  ? test_int(&r, 257, 420)
                          : test_chance(&r, 0.6) ? test_int(&r, 1, 33)
                                                 : test_int(&r, 33, 140),
                      cols = test_chance(&r, 0.5) ? test_int(&r, 1, 9) : test_int(&r, 1, 70),
                      items = large ? test_int(&r, 1, 2) : test_int(&r, 1, 9);
        batch a = make(&r, type, items, N, N, all || test_chance(&r, 0.2)),
              b = make(&r, type, items, N, cols, all || test_chance(&r, 0.2));
        test_problem("round %d: %s %s %lld x %lldx%lld lower %d unit %d transposed %d conj %d addresses %d%d",
                     n, solve ? "trsm" : "trmm", strata_type_name(type), (long long)items, (long long)N,
                     (long long)cols, lower, unit, turn, conj, a.addresses, b.addresses);
        fill_triangle(&r, &a, lower, unit);
        number *column = malloc((size_t)N * sizeof *column);
        assert_non_null(column);
        for (int64_t g = 0; g < items; g++)
            for (int64_t j = 0; j < cols; j++) {
                for (int64_t i = 0; i < N; i++) column[i] = whole(&r, type, 2);
                for (int64_t i = 0; i < N; i++) { /* the product */
                    number s = {0, 0};
                    for (int64_t p = 0; p < N; p++)
                        s = plus(s,
                                 times(conj_of(turn ? *at(&a, g, p, i) : *at(&a, g, i, p), conj), column[p]));
                    *at(&b, g, i, j) = solve ? column[i] : s;
                    put(&b, b.bytes, g, i, j, solve ? s : column[i]);
                }
            }
        free(column);
        strata_tensor A = strata_triangular(view(&a), lower ? STRATA_LOWER : STRATA_UPPER,
                                            unit ? STRATA_UNIT : STRATA_NON_UNIT);
        const strata_tensor B = view(&b);
        if (turn) A = strata_transpose(A);
        if (conj) A = strata_conj(A);
        test_ok(h, (solve ? strata_trsm : strata_trmm)(h, STRATA_ONE, A, B));
        check(&b);
        drop(&a);
        drop(&b);
    }
}

/* A NaN goes to the rows whose definition has it, and to no others. */
static void nan_spreads_no_further(void **state)
{
    (void)state;
    enum { N = 40, COLS = 3, AT = 17 };
    if (!on_gpu()) return; /* a CPU's tiles of rows are multiplied whole, zeros of the triangle too */
    for (int solve = 0; solve < 2; solve++)
        for (int n = 20; n <= N; n += 20) {
            double a[N * N], b[N * COLS];
            void *da, *db;
            test_problem("%s of order %d", solve ? "trsm" : "trmm", n);
            for (int i = 0; i < n * n; i++) a[i] = i / n == i % n ? 1 : i / n > i % n ? 0.125 : NAN;
            for (int i = 0; i < n * COLS; i++) b[i] = 1;
            b[AT * COLS + 1] = NAN;
            test_ok(h, strata_alloc(h, sizeof a, &da));
            test_ok(h, strata_alloc(h, sizeof b, &db));
            test_ok(h, strata_copy(h, bytes_at(a, sizeof a), bytes_at(da, sizeof a)));
            test_ok(h, strata_copy(h, bytes_at(b, sizeof b), bytes_at(db, sizeof b)));
            const strata_tensor A = strata_triangular(
                                    strata_matrix(da, STRATA_F64, n, n, STRATA_ROW_MAJOR, n), STRATA_LOWER,
                                    STRATA_NON_UNIT),
                                B = strata_matrix(db, STRATA_F64, n, COLS, STRATA_ROW_MAJOR, COLS);
            test_ok(h, (solve ? strata_trsm : strata_trmm)(h, STRATA_ONE, A, B));
            test_ok(h, strata_copy(h, bytes_at(db, sizeof b), bytes_at(b, sizeof b)));
            test_ok(h, strata_synchronize(h));
            for (int i = 0; i < n && !test_values_ignored(); i++)
                for (int j = 0; j < COLS; j++)
                    test_check(isnan(b[i * COLS + j]) == (j == 1 && i >= AT), "B[%d,%d] is %g", i, j,
                               b[i * COLS + j]);
            test_ok(h, strata_free(h, da));
            test_ok(h, strata_free(h, db));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(products), cmocka_unit_test(triangles),
                                       cmocka_unit_test(nan_spreads_no_further)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
