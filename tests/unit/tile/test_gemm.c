/* SPDX-License-Identifier: Apache-2.0 */
/* test_gemm.c - plain contractions through st_tile_plan and st_tile_contract against a triple loop in long double: every kernel row by
 * id, random views of all strides between guard pages, axis lists, batches, scalars, zero sizes, threads.
 * Bound: |computed - exact| <= (k + 3) u (|alpha| |A||B| + |beta C|). */
#include "support.h"
#include "tile/contract.h"
#include <math.h>

static strata_handle *h;

static int setup(void **state)
{
    (void)state;
    st_tile_init();
    return strata_create(&h, "cpu");
}
static int teardown(void **state)
{
    (void)state;
    strata_destroy(h);
    return 0;
}

typedef struct st_case {
    strata_type type;
    st_contract c;
    test_array a, b, c0,
        got;            /* a: batch, m, k; b: batch, k, n; c0 the old C, got the result in the same layout */
    int bd, md, nd, kd; /* numbers of axes */
    double alpha, beta;
} st_case;

static void strides(const test_array *t, int first, int count, st_axis *ax, char which)
{
    for (int d = 0; d < count; d++) {
        ax[d].len = t->t.dim[first + d];
        *(which == 'a' ? &ax[d].a : which == 'b' ? &ax[d].b : &ax[d].c) = t->t.stride[first + d];
    }
}

/* bd[], md[], nd[], kd[]: lengths of the axes of each list */
static void make(st_case *x, test_rng *r, strata_type type, int nb, const int64_t *b, int nm,
                 const int64_t *m, int nn, const int64_t *n, int nk, const int64_t *k, unsigned how)
{
    int64_t da[8], db[8], dc[8];
    memset(x, 0, sizeof *x);
    x->type = type;
    for (int i = 0; i < nb; i++) da[i] = db[i] = dc[i] = b[i];
    for (int i = 0; i < nm; i++) da[nb + i] = dc[nb + i] = m[i];
    for (int i = 0; i < nk; i++) da[nb + nm + i] = db[nb + i] = k[i];
    for (int i = 0; i < nn; i++) db[nb + nk + i] = dc[nb + nm + i] = n[i];
    x->a = test_array_make(r, type, nb + nm + nk, da, how | (test_chance(r, 0.2) ? TEST_BROADCAST : 0));
    x->b = test_array_make(r, type, nb + nk + nn, db, how | (test_chance(r, 0.2) ? TEST_BROADCAST : 0));
    x->c0 = test_array_make(r, type, nb + nm + nn, dc, TEST_PACKED);
    x->got = test_array_make(r, type, nb + nm + nn, dc, how);
    test_array_random(r, &x->a, -1, 1);
    test_array_random(r, &x->b, -1, 1);
    x->bd = nb;
    x->md = nm;
    x->nd = nn;
    x->kd = nk;
    st_contract *c = &x->c;
    c->ta = c->tb = c->tc = type;
    c->batch.count = nb;
    c->m.count = nm;
    c->n.count = nn;
    c->k.count = nk;
    strides(&x->a, 0, nb, c->batch.ax, 'a');
    strides(&x->b, 0, nb, c->batch.ax, 'b');
    strides(&x->got, 0, nb, c->batch.ax, 'c');
    strides(&x->a, nb, nm, c->m.ax, 'a');
    strides(&x->got, nb, nm, c->m.ax, 'c');
    strides(&x->b, nb + nk, nn, c->n.ax, 'b');
    strides(&x->got, nb + nm, nn, c->n.ax, 'c');
    strides(&x->a, nb + nm, nk, c->k.ax, 'a');
    strides(&x->b, nb, nk, c->k.ax, 'b');
}

static void fill_c(st_case *x, test_rng *r)
{
    if (x->beta == 0) {
        test_array_set(&x->c0, NAN); /* must not be read */
        test_array_set(&x->got, NAN);
        return;
    }
    test_array_random(r, &x->c0, -1, 1);
    int64_t i[STRATA_MAX_RANK] = {0};
    if (strata_count(x->got.t)) do
            test_put(&x->got.t, i, test_get(&x->c0.t, i));
        while (test_next(&x->got.t, i));
}

static void verify(st_case *x)
{
    const strata_tensor *C = &x->got.t;
    int64_t i[STRATA_MAX_RANK] = {0}, k = 1;
    for (int d = 0; d < x->kd; d++) k *= x->c.k.ax[d].len;
    const double u = test_unit(x->type);
    if (!strata_count(*C)) return;
    do {
        int64_t ia[STRATA_MAX_RANK] = {0}, ib[STRATA_MAX_RANK] = {0};
        for (int d = 0; d < x->bd; d++) ia[d] = ib[d] = i[d];
        for (int d = 0; d < x->md; d++) ia[x->bd + d] = i[x->bd + d];
        for (int d = 0; d < x->nd; d++) ib[x->bd + x->kd + d] = i[x->bd + x->md + d];
        long double s = 0, abs = 0;
        for (int64_t p = 0; p < k && x->alpha != 0; p++) {
            int64_t q = p;
            for (int d = x->kd - 1; d >= 0; d--) {
                ia[x->bd + x->md + d] = ib[x->bd + d] = q % x->c.k.ax[d].len;
                q /= x->c.k.ax[d].len;
            }
            long double v = (long double)test_get(&x->a.t, ia) * test_get(&x->b.t, ib);
            s += v;
            abs += fabsl(v);
        }
        long double old = x->beta == 0 ? 0 : (long double)test_get(&x->c0.t, i);
        long double want = x->alpha * s + (x->beta == 0 ? 0 : x->beta * old);
        double bound = (double)((k + 3) * u * (fabs(x->alpha) * abs + fabsl((long double)x->beta * old)));
        test_close(test_get(C, i), (double)want, bound, "C[%d,%d,%d,%d]", (int)i[0], (int)i[1], (int)i[2],
                   (int)i[3]);
    } while (test_next(C, i));
    test_array_intact(&x->got);
}

static void release(st_case *x)
{
    test_array_free(&x->a);
    test_array_free(&x->b);
    test_array_free(&x->c0);
    test_array_free(&x->got);
}

/* Through a plan of the kernel (NULL: the plan's choice). False when the kernel refuses the problem or this machine. */
static bool run_plan(st_case *x, const char *kernel)
{
    strata_plan *p;
    strata_choice choice = {.kernel = kernel};
    strata_status s = st_tile_plan(h, "test", &x->c, NULL, x->alpha, x->beta, &choice, &p);
    if (s == STRATA_ERROR_UNSUPPORTED && kernel) return false;
    test_ok(h, s);
    void *data[] = {x->a.t.data, x->b.t.data, x->got.t.data};
    if (x->alpha == 0 || strata_count(x->a.t) == 0) data[0] = data[1] = NULL; /* must not be read */
    test_ok(h, strata_plan_run(h, p, data, NULL));
    strata_plan_destroy(p);
    return true;
}

static const double scalars[] = {0, 1, -1, 0.7, 1, 0};

static int64_t some_length(test_rng *r)
{
    switch (test_int(r, 0, 9)) {
    case 0: return test_int(r, 0, 1);
    case 1: return test_int(r, 60, 140);
    case 2: return (int64_t[]){6, 12, 16, 32, 64, 128}[test_int(r, 0, 5)];
    default: return test_int(r, 1, 40);
    }
}

static void two_dims(test_rng *r, const char *kernel, strata_type type, int round)
{
    int64_t m = some_length(r), n = some_length(r), k = some_length(r);
    if (test_chance(r, 0.1)) k = test_int(r, 500, 1100);
    st_case x;
    unsigned how = test_chance(r, 0.3)   ? TEST_PACKED
                   : test_chance(r, 0.5) ? TEST_PERMUTED | TEST_PADDED
                                         : TEST_ANY;
    make(&x, r, type, 0, NULL, 1, &m, 1, &n, 1, &k, how);
    x.alpha = scalars[test_int(r, 0, 5)];
    x.beta = scalars[test_int(r, 0, 5)];
    test_problem("%s %s round %d: %lldx%lldx%lld alpha %g beta %g, A %s B %s C %s", kernel ? kernel : "any",
                 strata_type_name(type), round, (long long)m, (long long)n, (long long)k, x.alpha, x.beta,
                 test_say(x.a.t), test_say(x.b.t), test_say(x.got.t));
    fill_c(&x, r);
    if (run_plan(&x, kernel)) verify(&x);
    release(&x);
}

static void every_row(void **state)
{
    (void)state;
    int rows;
    const st_kernel_row *row = st_kernel_rows(&rows);
    test_rng r = test_rng_make(11);
    for (int i = 0; i < rows; i++) {
        if (strncmp(row[i].id, "gemm_", 5)) continue;
        /* complex numbers: ops/test_gemm_complex.c; short types: ops/test_gemm_types.c */
        if (row[i].type != STRATA_F32 && row[i].type != STRATA_F64) continue;
        for (int n = 0; n < test_rounds(60); n++) two_dims(&r, row[i].id, (strata_type)row[i].type, n);
    }
}

static void the_choice(void **state)
{
    (void)state;
    test_rng r = test_rng_make(12);
    for (int n = 0; n < test_rounds(150); n++) two_dims(&r, NULL, n & 1 ? STRATA_F64 : STRATA_F32, n);
}

/* m, n, k and batch each of up to two (batch three) axes in any layout */
static void axis_lists(void **state)
{
    (void)state;
    static const char *const kernels[] = {NULL, "gemm_f32f32f32_6x64_avx512", "gemm_f32f32f32_6x16_avx2",
                                          "gemm_f32f32f32_4x8_portable"};
    test_rng r = test_rng_make(13);
    for (int n = 0; n < test_rounds(160); n++) {
        int64_t b[3], m[2], nn[2], k[2];
        int nb = (int)test_int(&r, 0, 3), nm = (int)test_int(&r, 0, 2), nc = (int)test_int(&r, 0, 2),
            nk = (int)test_int(&r, 0, 2);
        for (int i = 0; i < 3; i++) b[i] = test_int(&r, 1, 3);
        for (int i = 0; i < 2; i++) {
            m[i] = test_int(&r, 1, 12);
            nn[i] = test_int(&r, 1, 20);
            k[i] = test_int(&r, 1, 15);
        }
        st_case x;
        make(&x, &r, STRATA_F32, nb, b, nm, m, nc, nn, nk, k, test_chance(&r, 0.3) ? TEST_PACKED : TEST_ANY);
        x.alpha = scalars[test_int(&r, 0, 5)];
        x.beta = scalars[test_int(&r, 0, 5)];
        const char *kernel = kernels[test_int(&r, 0, 3)];
        test_problem("lists round %d %s: batch %d m %d n %d k %d, alpha %g beta %g, A %s B %s C %s", n,
                     kernel ? kernel : "any", nb, nm, nc, nk, x.alpha, x.beta, test_say(x.a.t),
                     test_say(x.b.t), test_say(x.got.t));
        fill_c(&x, &r);
        if (run_plan(&x, kernel)) verify(&x);
        release(&x);
    }
}

static void one_after_the_other(void *user, int n, void (*body)(void *arg, int i), void *arg)
{
    (void)user;
    for (int i = n - 1; i >= 0; i--) body(arg, i);
}

/* The same bits for 1, 2, 3 and 5 threads and for bodies that run in turn, in shapes that split by rows, by columns, by items, and in several blocks. */
static void any_number_of_threads(void **state)
{
    (void)state;
    static const int64_t shape[][4] = {{1, 300, 300, 300}, {1, 7, 2000, 600},   {1, 2000, 7, 600},
                                       {20, 40, 50, 60},   {3, 130, 140, 1100}, {1, 250, 4500, 530}};
    test_rng r = test_rng_make(14);
    for (int s = 0; s < TEST_COUNT(shape); s++) {
        const int64_t *d = shape[s];
        st_case x;
        make(&x, &r, STRATA_F32, 1, &d[0], 1, &d[1], 1, &d[2], 1, &d[3], TEST_PACKED);
        x.alpha = 1.25;
        test_problem("threads shape %d", s);
        /* every second shape by the packed kernel */
        size_t bytes = (size_t)(d[0] * d[1] * d[2]) * 4;
        char *first = malloc(bytes);
        for (int n = 1; n <= 5; n += n == 3 ? 2 : 1) {
            test_ok(h, strata_set_threads(h, n));
            test_array_set(&x.got, NAN);
            for (int warm = 0; warm < 3; warm++) test_check(run_plan(&x, NULL), " ");
            if (h->cpu->isa & ST_ISA_AVX512 && (s & 1))
                test_check(run_plan(&x, "gemm_f32f32f32_6x64_avx512"), " ");
            if (n == 1)
                memcpy(first, x.got.t.data, bytes);
            else
                test_check(!memcmp(first, x.got.t.data, bytes), "%d threads give other bits", n);
        }
        test_ok(h, strata_set_parallel_for(h, one_after_the_other, NULL, 3));
        for (int packed = 0; packed < 2; packed++) {
            test_array_set(&x.got, NAN);
            test_check(run_plan(&x, packed                                   ? "gemm_f32f32f32_4x8_portable"
                                    : h->cpu->isa & ST_ISA_AVX512 && (s & 1) ? "gemm_f32f32f32_6x64_avx512"
                                                                             : NULL),
                       " ");
            if (!packed)
                test_check(!memcmp(first, x.got.t.data, bytes), "the caller's threads give other bits");
        }
        test_ok(h, strata_set_parallel_for(h, NULL, NULL, 0));
        free(first);
        release(&x);
        test_ok(h, strata_set_threads(h, 0));
    }
}

/* NaN and Inf go through as multiplication and addition have it; alpha 0 stops them; beta 0 stops those of C (fill_c). */
static void nan_and_inf(void **state)
{
    (void)state;
    int64_t m = 9, n = 70, k = 20;
    test_rng r = test_rng_make(15);
    st_case x;
    make(&x, &r, STRATA_F32, 0, NULL, 1, &m, 1, &n, 1, &k, TEST_PACKED);
    test_array_set(&x.a, 1);
    test_array_set(&x.b, 1);
    test_put(&x.a.t, (int64_t[8]){3, 4}, NAN);
    test_put(&x.b.t, (int64_t[8]){7, 65}, INFINITY);
    x.alpha = 1;
    test_problem("NaN and Inf");
    test_check(run_plan(&x, NULL), " ");
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double got = test_elem(x.got.t, i, j);
            test_close(got, i == 3 ? NAN : j == 65 ? INFINITY : 20.0, 0.0, "C[%d,%d]", (int)i, (int)j);
        }
    x.alpha = 0;
    x.beta = 0;
    test_array_set(&x.got, NAN);
    test_check(run_plan(&x, NULL), " ");
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            test_close(test_elem(x.got.t, i, j), 0.0, 0.0, "C[%d,%d]", (int)i, (int)j);
    release(&x);
}

/* A plan says what it is, what it refused and why, and how much workspace it takes; a run allocates nothing once that is there. */
static void plans_speak(void **state)
{
    (void)state;
    int64_t m = 300, n = 400, k = 500;
    test_rng r = test_rng_make(16);
    st_case x;
    make(&x, &r, STRATA_F32, 0, NULL, 1, &m, 1, &n, 1, &k, TEST_PACKED);
    strata_plan *p;
    test_ok(h, st_tile_plan(h, "test", &x.c, NULL, 1, 0, NULL, &p));
    test_check(strstr(strata_plan_describe(p), "gemm f32 300x400x500, A row, B row, C row"), "%s",
               strata_plan_describe(p));
    test_check(strstr(strata_plan_describe(p), "order"), "%s", strata_plan_describe(p));
    size_t ws = strata_plan_workspace(p);
    test_check(ws < (size_t)(8 << 20) * (size_t)strata_get_threads(h), "workspace %zu", ws);
    void *data[] = {x.a.t.data, x.b.t.data, x.got.t.data};
    test_ok(h, strata_plan_run(h, p, data, NULL));
    strata_memory_stats before, after;
    test_ok(h, strata_get_memory_stats(h, &before));
    for (int i = 0; i < 10; i++) {
        test_ok(h, strata_plan_run(h, p, data, NULL));
        test_ok(h, st_tile_contract(h, "test", &x.c, NULL, 1, 0, data));
    }
    test_ok(h, strata_get_memory_stats(h, &after));
    test_check(before.system_allocations == after.system_allocations, "allocated during runs");
    strata_plan_destroy(p);
    test_error(h,
               st_tile_plan(h, "test", &x.c, NULL, 1, 0,
                            &(strata_choice){.kernel = "gemm_f64f64f64_4x4_portable"}, &p),
               STRATA_ERROR_ARGUMENT, "gemm_f64f64f64_4x4_portable");
    x.c.bounds = 1;
    x.c.bound[0] = (st_bound){.limit = 5, .m = 0, .im = 1, .k = 0, .ik = 1};
    test_error(h,
               st_tile_plan(h, "test", &x.c, NULL, 1, 0,
                            &(strata_choice){.kernel = "gemm_f32f32f32_4x8_portable"}, &p),
               STRATA_ERROR_UNSUPPORTED, "bounds");
    release(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row),   cmocka_unit_test(the_choice),
        cmocka_unit_test(axis_lists),  cmocka_unit_test(any_number_of_threads),
        cmocka_unit_test(nan_and_inf), cmocka_unit_test(plans_speak),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
