/* SPDX-License-Identifier: Apache-2.0 */
/* test_factor.c - batched factorisations. What is checked is what defines them, in double precision: P A = L U, A X = B, A C = I, Q^H Q = I and Q R = A, the normal
 * equations of least squares; with random sizes, layouts, batches, arrays of addresses; singular items; NaN; refusals; same bits for any batch and threads. */
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <strata.h>
#include <string.h>
#include "levels.h"
#include "handle.h"
#include "support.h"

typedef double _Complex num;
static const strata_type types[] = {STRATA_F32, STRATA_F64, STRATA_C64, STRATA_C128};
static double unit(strata_type t) { return t == STRATA_F32 || t == STRATA_C64 ? 0x1p-24 : 0x1p-53; }

static num get(const strata_tensor *t, int64_t b, int64_t i, int64_t j)
{
    const int r = t->rank;
    const int64_t at = (r > 2 ? b * t->stride[0] : 0) + i * t->stride[r - 2] + j * t->stride[r - 1];
    switch (t->type) {
    case STRATA_F32: return ((float *)t->data)[at];
    case STRATA_F64: return ((double *)t->data)[at];
    case STRATA_C64: return ((float _Complex *)t->data)[at];
    default: return ((double _Complex *)t->data)[at];
    }
}
static void put(const strata_tensor *t, int64_t b, int64_t i, int64_t j, num v)
{
    const int r = t->rank;
    const int64_t at = (r > 2 ? b * t->stride[0] : 0) + i * t->stride[r - 2] + j * t->stride[r - 1];
    switch (t->type) {
    case STRATA_F32: ((float *)t->data)[at] = (float)creal(v); break;
    case STRATA_F64: ((double *)t->data)[at] = creal(v); break;
    case STRATA_C64: ((float _Complex *)t->data)[at] = (float _Complex)v; break;
    default: ((double _Complex *)t->data)[at] = v;
    }
}

/* A batch of matrices in memory that the device reaches, row- or column-major, with a gap behind each. */
static strata_tensor batch(test_rng *r, strata_type type, int64_t items, int64_t m, int64_t n)
{
    const size_t size = strata_type_bits(type) / 8;
    const bool rows = test_chance(r, 0.5);
    const int64_t ld = (rows ? n : m) + test_int(r, 0, 3), one = ld * (rows ? m : n) + test_int(r, 0, 5);
    void *p = NULL;
    if (strata_alloc_host(h, (size_t)(one * items + 1) * size, &p)) fail();
    memset(p, 0xff, (size_t)(one * items + 1) * size);
    strata_tensor t =
        strata_batch(strata_matrix(p, type, m, n, rows ? STRATA_ROW_MAJOR : STRATA_COL_MAJOR, ld ? ld : 1),
                     items, one ? one : 1);
    const bool two_parts = type == STRATA_C64 || type == STRATA_C128;
    for (int64_t b = 0; b < items; b++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
                put(&t, b, i, j, test_real(r, -1, 1) + (two_parts ? I * test_real(r, -1, 1) : 0));
    return t;
}
static num *snapshot(const strata_tensor *t)
{
    const int64_t m = t->dim[1], n = t->dim[2];
    num *s = malloc(sizeof *s * (size_t)(t->dim[0] * m * n + 1));
    for (int64_t b = 0; b < t->dim[0]; b++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) s[(b * m + i) * n + j] = get(t, b, i, j);
    return s;
}
static num flat(const strata_tensor *t, int64_t b, int64_t i)
{
    return get(t, b, i / t->dim[2], i % t->dim[2]);
}
static void *host(size_t bytes)
{
    void *p = NULL;
    if (strata_alloc_host(h, bytes, &p)) fail();
    memset(p, 0x55, bytes);
    return p;
}
static void done(strata_tensor *t) { strata_free_host(h, t->data); }
static void ready(strata_status s)
{
    test_ok(h, s);
    test_ok(h, strata_synchronize(h));
}

static void lu(void **state)
{
    (void)state;
    test_rng r = test_rng_make(51);
    for (int k = 0; k < test_rounds(60); k++) {
        const strata_type type = types[k % 4];
        const int64_t items = test_int(&r, 1, 9), top = k % 7 == 6 ? 150 : 40, m = test_int(&r, 1, top),
                      n = test_int(&r, 1, top), least = m < n ? m : n;
        const bool exchange = k % 5 != 4;
        strata_tensor A = batch(&r, type, items, m, n);
        test_problem("lu %d %s %lld x %lldx%lld", k, strata_type_name(type), (long long)items, (long long)m,
                     (long long)n);
        if (!exchange) /* diagonally dominant: no exchange is needed */
            for (int64_t b = 0; b < items; b++)
                for (int64_t i = 0; i < least; i++) put(&A, b, i, i, 3.0 * (double)(m + n));
        num *was = snapshot(&A);
        int *piv = host(sizeof *piv * (size_t)(items * least)), *info = host(sizeof *info * (size_t)items);
        const strata_tensor P = strata_array(piv, STRATA_I32, 2, (int64_t[]){items, least}, NULL),
                            N = strata_vector(info, STRATA_I32, items, 1), none = {0};
        ready(strata_getrf(h, A, exchange ? P : none, N));
        for (int64_t b = 0; b < items && !test_values_ignored(); b++) {
            num *p = was + b * m * n;
            test_check(info[b] == 0, "info %d", info[b]);
            for (int64_t i = 0; exchange && i < least; i++) {
                const int64_t q = piv[b * least + i];
                test_check(q >= i && q < m, "pivot %lld of row %lld", (long long)q, (long long)i);
                for (int64_t j = 0; j < n; j++) {
                    const num t = p[i * n + j];
                    p[i * n + j] = p[q * n + j], p[q * n + j] = t;
                }
            }
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < n; j++) {
                    num s = 0;
                    double bound = 0;
                    for (int64_t c = 0; c <= (i < j ? i : j) && c < least; c++) {
                        const num l = c == i ? 1 : get(&A, b, i, c), u = get(&A, b, c, j);
                        s += l * u, bound += cabs(l) * cabs(u);
                        if (exchange && c < i) test_check(cabs(l) <= 1.4143, "a factor of L is %g", cabs(l));
                    }
                    test_check(cabs(s - p[i * n + j]) <=
                                   8 * (double)(least + 2) * unit(type) * (bound + 1e-30),
                               "(%lld,%lld): off by %g", (long long)i, (long long)j, cabs(s - p[i * n + j]));
                }
        }
        /* solve with it, plainly and transposed */
        if (m == n || k % 2) {
            strata_tensor S = batch(&r, type, items, least, least),
                          B = batch(&r, type, items, least, test_int(&r, 1, 5));
            num *a = snapshot(&S), *rhs = snapshot(&B);
            const int64_t nrhs = B.dim[2];
            const bool t = k % 3 == 1, cj = t && k % 2;
            ready(strata_getrf(h, S, P, N));
            ready(strata_getrs(h, S, P, B, &(strata_getrs_options){.transpose = t, .conjugate = cj}));
            for (int64_t b = 0; b < items && !test_values_ignored(); b++)
                for (int64_t i = 0; i < least; i++)
                    for (int64_t j = 0; j < nrhs; j++) {
                        num s = 0;
                        double bound = 0;
                        for (int64_t c = 0; c < least; c++) {
                            num v = a[(b * least + (t ? c : i)) * least + (t ? i : c)];
                            if (cj) v = conj(v);
                            s += v * get(&B, b, c, j);
                            for (int64_t d = 0; d < least; d++) bound = fmax(bound, cabs(get(&B, b, d, j)));
                        }
                        test_check(cabs(s - rhs[(b * least + i) * nrhs + j]) <=
                                       60 * (double)(least * least + 4) * unit(type) * (bound + 1),
                                   "solve (%lld,%lld): off by %g", (long long)i, (long long)j,
                                   cabs(s - rhs[(b * least + i) * nrhs + j]));
                    }
            free(a), free(rhs);
            done(&S), done(&B);
        }
        free(was);
        done(&A);
        strata_free_host(h, piv), strata_free_host(h, info);
    }
}

static void inverses(void **state)
{
    (void)state;
    test_rng r = test_rng_make(52);
    for (int k = 0; k < test_rounds(30); k++) {
        const strata_type type = types[k % 4];
        const int64_t items = test_int(&r, 1, 40), n = test_int(&r, 1, k % 9 == 8 ? 70 : 24);
        strata_tensor A = batch(&r, type, items, n, n), C = batch(&r, type, items, n, n),
                      D = batch(&r, type, items, n, n);
        long long *piv = host(sizeof *piv * (size_t)(items * n)), *info = host(sizeof *info * (size_t)items);
        const strata_tensor P = strata_array(piv, STRATA_I64, 2, (int64_t[]){items, n}, NULL),
                            N = strata_vector(info, STRATA_I64, items, 1);
        test_problem("inverse %d %s %lld x %lld", k, strata_type_name(type), (long long)items, (long long)n);
        for (int64_t b = 0; b < items; b++)
            for (int64_t i = 0; i < n; i++) put(&A, b, i, i, get(&A, b, i, i) + (b % 2 ? 4 : 0));
        for (int64_t i = 0; i < n; i++) put(&A, items - 1, i, n / 2, 0); /* one column of zeros: singular */
        num *was = snapshot(&A), *before = snapshot(&C);
        ready(strata_matinv(h, A, C, N));
        if (!test_values_ignored())
            test_check(info[items - 1] > 0, "info of the singular item is %lld", info[items - 1]);
        for (int64_t i = 0; i < n * n && !test_values_ignored(); i++)
            test_check(flat(&C, items - 1, i) == before[(items - 1) * n * n + i],
                       "the singular item's output was written");
        for (int64_t b = 0; b < items - 1 && !test_values_ignored(); b++) {
            double top = 0;
            test_check(info[b] == 0, "info %lld", info[b]);
            for (int64_t i = 0; i < n * n; i++) top = fmax(top, cabs(flat(&C, b, i)));
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < n; j++) {
                    num s = 0;
                    for (int64_t c = 0; c < n; c++) s += was[(b * n + i) * n + c] * get(&C, b, c, j);
                    test_check(cabs(s - (i == j)) <= 60 * (double)(n * n + 4) * unit(type) * (top + 1),
                               "A C (%lld,%lld) is %g", (long long)i, (long long)j, cabs(s));
                }
        }
        for (int64_t b = 0; b < items; b++)
            for (int64_t i = 0; i < n * n; i++)
                test_check(flat(&A, b, i) == was[b * n * n + i], "A was written");
        ready(strata_getrf(h, A, P, N));
        ready(strata_getri(h, A, P, D, N));
        for (int64_t b = 0; b < items - 1 && !test_values_ignored(); b++)
            for (int64_t i = 0; i < n * n; i++)
                test_check(cabs(flat(&D, b, i) - flat(&C, b, i)) <= 1e-3 * (1 + cabs(flat(&C, b, i))),
                           "getri");
        free(was), free(before);
        done(&A), done(&C), done(&D);
        strata_free_host(h, piv), strata_free_host(h, info);
    }
}

static void qr(void **state)
{
    (void)state;
    test_rng r = test_rng_make(53);
    for (int k = 0; k < test_rounds(40); k++) {
        const strata_type type = types[k % 4];
        const int64_t items = test_int(&r, 1, 9), m = test_int(&r, 1, k % 9 == 8 ? 120 : 40),
                      n = test_int(&r, 1, 30), least = m < n ? m : n;
        strata_tensor A = batch(&r, type, items, m, n);
        const size_t size = strata_type_bits(type) / 8;
        void *tau = host(size * (size_t)(items * least));
        const strata_tensor Tau = strata_array(tau, type, 3, (int64_t[]){items, 1, least}, NULL);
        test_problem("qr %d %s %lld x %lldx%lld", k, strata_type_name(type), (long long)items, (long long)m,
                     (long long)n);
        num *was = snapshot(&A);
        ready(strata_geqrf(h, A, strata_array(tau, type, 2, (int64_t[]){items, least}, NULL)));
        for (int64_t b = 0; b < items && !test_values_ignored(); b++) {
            num q[120 * 120] = {0};
            for (int64_t i = 0; i < m; i++)
                q[i * m + i] = 1; /* Q = H_0 H_1 ...: apply to the identity from the last */
            for (int64_t c = least - 1; c >= 0; c--)
                for (int64_t j = 0; j < m; j++) {
                    num s = q[c * m + j];
                    for (int64_t i = c + 1; i < m; i++) s += conj(get(&A, b, i, c)) * q[i * m + j];
                    s *= get(&Tau, b, 0, c);
                    q[c * m + j] -= s;
                    for (int64_t i = c + 1; i < m; i++) q[i * m + j] -= get(&A, b, i, c) * s;
                }
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < n; j++) {
                    num s = 0;
                    for (int64_t c = 0; c <= j && c < least; c++) s += q[i * m + c] * get(&A, b, c, j);
                    test_check(cabs(s - was[(b * m + i) * n + j]) <=
                                   30 * (double)(m + 4) * unit(type) * sqrt((double)m + 1),
                               "Q R (%lld,%lld) off by %g", (long long)i, (long long)j,
                               cabs(s - was[(b * m + i) * n + j]));
                }
        }
        if (m >= n && !test_values_ignored()) { /* least squares: A^H (A x - b) = 0 */
            strata_tensor S = batch(&r, type, items, m, n), B = batch(&r, type, items, m, 2);
            num *a = snapshot(&S), *rhs = snapshot(&B);
            int *info = host(sizeof *info * (size_t)items);
            ready(strata_gels(h, S, B, strata_vector(info, STRATA_I32, items, 1)));
            for (int64_t b = 0; b < items; b++)
                for (int64_t j = 0; j < 2; j++)
                    for (int64_t c = 0; c < n; c++) {
                        num s = 0;
                        double top = 0;
                        for (int64_t d = 0; d < n; d++) top = fmax(top, cabs(get(&B, b, d, j)));
                        for (int64_t i = 0; i < m; i++) {
                            num e = -rhs[(b * m + i) * 2 + j];
                            for (int64_t d = 0; d < n; d++) e += a[(b * m + i) * n + d] * get(&B, b, d, j);
                            s += conj(a[(b * m + i) * n + c]) * e;
                        }
                        test_check(cabs(s) <= 60 * (double)(m * n + 8) * unit(type) * (top + 1),
                                   "normal equation %lld is off by %g", (long long)c, cabs(s));
                    }
            free(a), free(rhs);
            strata_free_host(h, info);
            done(&S), done(&B);
        }
        free(was);
        done(&A);
        strata_free_host(h, tau);
    }
}

/* Arrays of addresses; an item alone has the bits that it has in a batch; a NaN stays in its item. */
static void alone(void **state)
{
    (void)state;
    test_rng r = test_rng_make(54);
    enum { ITEMS = 23, SIZE = 17 };
    strata_tensor A = batch(&r, STRATA_F64, ITEMS, SIZE, SIZE), B = batch(&r, STRATA_F64, ITEMS, SIZE, SIZE);
    put(&A, 3, 5, 5, NAN);
    for (int64_t b = 0; b < ITEMS; b++)
        for (int64_t i = 0; i < SIZE * SIZE; i++)
            put(&B, b, i / SIZE, i % SIZE, get(&A, b, i / SIZE, i % SIZE));
    int *piv = host(sizeof *piv * ITEMS * SIZE);
    const double **at = host(sizeof *at * ITEMS);
    strata_tensor one = B;
    one.rank = 2;
    one.dim[0] = one.dim[1] = SIZE, one.stride[0] = B.stride[1], one.stride[1] = B.stride[2];
    for (int64_t b = 0; b < ITEMS; b++) at[b] = (double *)B.data + b * B.stride[0];
    const strata_tensor P = strata_array(piv, STRATA_I32, 2, (int64_t[]){ITEMS, SIZE}, NULL), none = {0};
    ready(strata_getrf(h, A, P, none));
    ready(strata_getrf(h, strata_pointers(one, (const void *const *)at, ITEMS), P, none));
    for (int64_t b = 0; b < ITEMS && !test_values_ignored(); b++)
        for (int64_t i = 0; i < SIZE * SIZE; i++) {
            const double x = creal(get(&A, b, i / SIZE, i % SIZE)), y = creal(get(&B, b, i / SIZE, i % SIZE));
            test_check(x == y || (b == 3 && x != x && y != y), "item %lld: %g and %g", (long long)b, x, y);
        }
    done(&A), done(&B);
    strata_free_host(h, piv), strata_free_host(h, at);
}

static void refusals(void **state)
{
    (void)state;
    static double a[64], b[64];
    static int piv[8], info[8];
    const strata_tensor A = strata_matrix(a, STRATA_F64, 4, 4, STRATA_ROW_MAJOR, 0),
                        W = strata_matrix(a, STRATA_F64, 4, 6, STRATA_ROW_MAJOR, 0),
                        B = strata_matrix(b, STRATA_F64, 4, 2, STRATA_ROW_MAJOR, 0),
                        P = strata_vector(piv, STRATA_I32, 4, 1), N = strata_point(info, STRATA_I32),
                        none = {0};
    test_error(h, strata_getrf(h, strata_vector(a, STRATA_F64, 4, 1), P, N), STRATA_ERROR_SHAPE,
               "strata_getrf", "rank 1");
    test_error(h, strata_getrf(h, A, strata_vector(piv, STRATA_I32, 3, 1), N), STRATA_ERROR_SHAPE, "pivots",
               "must be 4");
    test_error(h, strata_getrf(h, A, strata_vector(b, STRATA_F64, 4, 1), N), STRATA_ERROR_TYPE,
               "pivots is f64", "i32 or i64");
    test_error(h, strata_getrf(h, strata_matrix(a, STRATA_I32, 4, 4, STRATA_ROW_MAJOR, 0), P, N),
               STRATA_ERROR_TYPE, "A is i32");
    test_error(h, strata_getrf(h, A, P, strata_vector(a, STRATA_I32, 1, 1)), STRATA_ERROR_ALIAS, "overlaps");
    test_error(h, strata_getrs(h, W, P, B, NULL), STRATA_ERROR_SHAPE, "LU is 4x6", "square");
    test_error(h, strata_getrs(h, A, P, B, &(strata_getrs_options){.conjugate = true}), STRATA_ERROR_ARGUMENT,
               "conjugate without transpose");
    test_error(h, strata_getrs(h, A, P, strata_matrix(b, STRATA_F64, 3, 2, STRATA_ROW_MAJOR, 0), NULL),
               STRATA_ERROR_SHAPE, "B is 3x2", "must be 4");
    test_error(h, strata_matinv(h, A, A, N), STRATA_ERROR_ALIAS, "C overlaps A");
    test_error(h, strata_gels(h, W, strata_matrix(b, STRATA_F64, 4, 2, STRATA_ROW_MAJOR, 0), N),
               STRATA_ERROR_SHAPE, "as many rows as columns");
    test_error(h, strata_geqrf(h, A, none), STRATA_ERROR_TYPE, "tau");
    if (!on_gpu()) {
        const strata_tensor E = strata_matrix(a, STRATA_F64, 0, 0, STRATA_ROW_MAJOR, 0);
        test_ok(h, strata_getrf(h, E, strata_vector(piv, STRATA_I32, 0, 1), N));
        test_check(info[0] == 0, "info of nothing is %d", info[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lu), cmocka_unit_test(inverses), cmocka_unit_test(qr),
                                       cmocka_unit_test(alone), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, setup, teardown) + test_lower_levels();
}
