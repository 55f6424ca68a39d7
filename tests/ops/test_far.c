/* SPDX-License-Identifier: Apache-2.0 */
/* test_far.c - sizes, strides and offsets beyond 2^31 elements: operators on views whose rows, items and increments lie far apart in address space that is
 * reserved but not filled, against the same operators on the numbers side by side; and vectors longer than 2^31 elements. */
#include "handle.h"
#include <stdlib.h>
#include <sys/mman.h>

enum { N = 5, ITEMS = 3 };
static const int64_t FAR = (INT64_C(1) << 31) + 24; /* elements from row to row */
static const strata_type types[] = {STRATA_F32, STRATA_F64, STRATA_C64, STRATA_C128};

static void *reserve(int64_t bytes)
{
    void *p =
        mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* An operand far apart and the same one side by side. */
typedef struct twin {
    strata_tensor far, near;
    char *memory, *room;
    int64_t bytes;
} twin;

/* Copies between them. */
static void copy(twin *t, bool out)
{
    const int64_t es = (int64_t)strata_type_bits((strata_type)t->far.type) / 8, n = strata_count(t->far);
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, f = 0, m = 0;
        for (int d = t->far.rank - 1; d >= 0; d--) {
            f += rest % t->far.dim[d] * t->far.stride[d];
            m += rest % t->far.dim[d] * t->near.stride[d];
            rest /= t->far.dim[d];
        }
        char *a = (char *)t->far.data + f * es, *b = (char *)t->near.data + m * es;
        memcpy(out ? a : b, out ? b : a, (size_t)es);
    }
}

static bool make(test_rng *r, twin *t, strata_type type, int rank, const int64_t *dim, int far_axis,
                 bool backwards)
{
    const int64_t es = (int64_t)strata_type_bits(type) / 8;
    int64_t stride[3], step = 1;
    for (int d = rank - 1; d >= 0; d--) {
        if (d == far_axis) continue;
        stride[d] = step;
        step *= dim[d];
    }
    stride[far_axis] = backwards ? -FAR : FAR;
    t->bytes = (dim[far_axis] * FAR + step) * es;
    t->memory = reserve(t->bytes);
    if (!t->memory) return false;
    t->far =
        strata_array(t->memory + (backwards ? (dim[far_axis] - 1) * FAR * es : 0), type, rank, dim, stride);
    t->room = calloc((size_t)strata_count(t->far), (size_t)es);
    t->near = strata_array(t->room, type, rank, dim, NULL);
    for (int64_t i = 0; i < strata_count(t->near) * (es / (type == STRATA_F32 || type == STRATA_C64 ? 4 : 8));
         i++) {
        const double v = (double)test_int(r, -8, 8) / 8 + (i % 3 == 0 ? 2 : 0);
        if (type == STRATA_F32 || type == STRATA_C64)
            ((float *)(void *)t->room)[i] = (float)v;
        else
            ((double *)(void *)t->room)[i] = v;
    }
    copy(t, true);
    return true;
}
static void drop(twin *t)
{
    if (t->memory) munmap(t->memory, (size_t)t->bytes);
    free(t->room);
    memset(t, 0, sizeof *t);
}
/* The far one has the near one's numbers, up to the order of a sum. */
static void same(twin *t, const char *what)
{
    const int64_t n = strata_count(t->near), es = (int64_t)strata_type_bits((strata_type)t->near.type) / 8;
    char *want = malloc((size_t)(n * es));
    memcpy(want, t->room, (size_t)(n * es));
    copy(t, false);
    const bool single = t->near.type == STRATA_F32 || t->near.type == STRATA_C64;
    for (int64_t i = 0; i < n * es / (single ? 4 : 8); i++) {
        const double x = single ? (double)((float *)(void *)t->room)[i] : ((double *)(void *)t->room)[i],
                     y = single ? (double)((float *)(void *)want)[i] : ((double *)(void *)want)[i];
        test_close(x, y, (single ? 1e-4 : 1e-12) * (1 + (y < 0 ? -y : y)), "%s, number %lld", what,
                   (long long)i);
    }
    free(want);
}

#define BOTH(call_far, call_near, out, what) \
    do {                                     \
        test_ok(h, call_far);                \
        test_ok(h, call_near);               \
        same(&(out), what);                  \
    } while (0)

static void matrices(void **state)
{
    (void)state;
    test_rng r = test_rng_make(801);
    const int64_t square[] = {N, N}, vec[] = {N}, batch[] = {ITEMS, N, N};
    for (int round = 0; round < 16; round++) {
        const strata_type type = types[round % 4];
        const int axis = round / 4 % 2;
        const bool back = round / 8;
        twin A = {0}, B = {0}, C = {0}, x = {0}, y = {0}, P = {0};
        test_problem("round %d: %s, axis %d%s", round, strata_type_name(type), axis,
                     back ? ", backwards" : "");
        if (!make(&r, &A, type, 2, square, axis, back) || !make(&r, &B, type, 2, square, !axis, back) ||
            !make(&r, &C, type, 2, square, axis, false) || !make(&r, &x, type, 1, vec, 0, back) ||
            !make(&r, &y, type, 1, vec, 0, !back) || !make(&r, &P, type, 3, batch, 0, false)) {
            drop(&A), drop(&B), drop(&C), drop(&x), drop(&y), drop(&P);
            skip(); /* this system does not give address space away */
        }
        const strata_scalar one = STRATA_ONE, half = strata_real(0.5);
        for (int i = 0; i < N; i++) { /* a diagonal that a solution likes */
            const int64_t es = (int64_t)strata_type_bits(type) / 8;
            memset(A.room + i * (N + 1) * es, 0, (size_t)es);
            if (type == STRATA_F32 || type == STRATA_C64)
                *(float *)(void *)(A.room + i * (N + 1) * es) = 4;
            else
                *(double *)(void *)(A.room + i * (N + 1) * es) = 4;
        }
        copy(&A, true);
#define L(t) strata_triangular(t, STRATA_LOWER, STRATA_NON_UNIT)
        BOTH(strata_gemm(h, one, A.far, B.far, half, C.far, NULL),
             strata_gemm(h, one, A.near, B.near, half, C.near, NULL), C, "gemm");
        BOTH(strata_gemm(h, one, strata_symmetric(A.far, STRATA_UPPER), B.far, half, C.far, NULL),
             strata_gemm(h, one, strata_symmetric(A.near, STRATA_UPPER), B.near, half, C.near, NULL), C,
             "symm");
        BOTH(strata_syrk(h, one, A.far, half, L(C.far)), strata_syrk(h, one, A.near, half, L(C.near)), C,
             "syrk");
        BOTH(strata_syr2k(h, one, A.far, B.far, half, L(C.far)),
             strata_syr2k(h, one, A.near, B.near, half, L(C.near)), C, "syr2k");
        BOTH(strata_trmm(h, half, L(A.far), C.far), strata_trmm(h, half, L(A.near), C.near), C, "trmm");
        BOTH(strata_trsm(h, half, L(A.far), C.far), strata_trsm(h, half, L(A.near), C.near), C, "trsm");
        BOTH(strata_gemm(h, one, strata_slice(P.far, 0, 2, 1, 1), B.far, STRATA_ZERO,
                         strata_batch(C.far, 1, 0), NULL),
             strata_gemm(h, one, strata_slice(P.near, 0, 2, 1, 1), B.near, STRATA_ZERO,
                         strata_batch(C.near, 1, 0), NULL),
             C, "an item of a batch");
        BOTH(strata_gemm(h, one, A.far, B.far, one, P.far, NULL),
             strata_gemm(h, one, A.near, B.near, one, P.near, NULL), P, "a batch");
        BOTH(strata_geam(h, half, A.far, one, strata_transpose(B.far), C.far),
             strata_geam(h, half, A.near, one, strata_transpose(B.near), C.near), C, "geam");
        BOTH(strata_gemv(h, one, A.far, x.far, half, y.far),
             strata_gemv(h, one, A.near, x.near, half, y.near), y, "gemv");
        BOTH(strata_gemv(h, one, strata_symmetric(A.far, STRATA_LOWER), x.far, half, y.far),
             strata_gemv(h, one, strata_symmetric(A.near, STRATA_LOWER), x.near, half, y.near), y, "symv");
        BOTH(strata_trmv(h, L(A.far), y.far), strata_trmv(h, L(A.near), y.near), y, "trmv");
        BOTH(strata_trsv(h, L(A.far), y.far), strata_trsv(h, L(A.near), y.near), y, "trsv");
        BOTH(strata_ger(h, half, x.far, y.far, C.far), strata_ger(h, half, x.near, y.near, C.near), C, "ger");
        BOTH(strata_syr(h, half, x.far, L(C.far)), strata_syr(h, half, x.near, L(C.near)), C, "syr");
        BOTH(strata_syr2(h, half, x.far, y.far, L(C.far)), strata_syr2(h, half, x.near, y.near, L(C.near)), C,
             "syr2");
        BOTH(strata_axpy(h, half, x.far, y.far), strata_axpy(h, half, x.near, y.near), y, "axpy");
        BOTH(strata_copy(h, x.far, y.far), strata_copy(h, x.near, y.near), y, "copy");
        BOTH(strata_scal(h, half, y.far), strata_scal(h, half, y.near), y, "scal");
        BOTH(strata_getrf(h, C.far, (strata_tensor){0}, (strata_tensor){0}),
             strata_getrf(h, C.near, (strata_tensor){0}, (strata_tensor){0}), C, "getrf");
        drop(&A), drop(&B), drop(&C), drop(&x), drop(&y), drop(&P);
    }
}

/* More than 2^31 elements: zeros that nobody stored, and few that somebody did. */
static void long_vectors(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* minutes */
#endif
    if (TEST_UNDER_TSAN) skip();
    const int64_t n = (INT64_C(1) << 31) + 100;
    float *x = reserve(n * 4);
    if (!x) skip();
    int64_t at = 0;
    double sum = 0;
    x[n - 1] = -3, x[7] = 2, x[n - 50] = 1;
    test_problem("vectors of 2^31 + 100 elements");
    test_ok(h, strata_iamax(h, strata_vector(x, STRATA_F32, n, 1), strata_point(&at, STRATA_I64)));
    test_check(at == n - 1, "iamax gives %lld", (long long)at);
    test_ok(h, strata_asum(h, strata_vector(x, STRATA_F32, n, 1), strata_point(&sum, STRATA_F64)));
    test_close(sum, 6, 0, "asum");
    test_ok(h, strata_dot(h, strata_vector(x, STRATA_F32, n, 1), strata_vector(x, STRATA_F32, n, 1),
                          strata_point(&sum, STRATA_F64)));
    test_close(sum, 14, 0, "dot");
    /* one row that long */
    float y[1] = {5};
    test_ok(h,
            strata_gemv(h, STRATA_ONE, strata_matrix(x, STRATA_F32, 1, n, STRATA_ROW_MAJOR, 0),
                        strata_vector(x, STRATA_F32, n, 1), STRATA_ONE, strata_vector(y, STRATA_F32, 1, 1)));
    test_close((double)y[0], 19, 0, "gemv");
    munmap(x, (size_t)n * 4);
}

int main(void)
{
    if (strcmp(test_device(), "cpu")) return 77;
    const struct CMUnitTest tests[] = {cmocka_unit_test(matrices), cmocka_unit_test(long_vectors)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
