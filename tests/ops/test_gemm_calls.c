/* SPDX-License-Identifier: Apache-2.0 */
/* test_gemm_calls.c - the ways to ask for one product agree: the call that is put into its caller, the exported function, the ones that take
 * addresses and a plan give the same bits, and the same words for what is wrong. */
#include "levels.h"
#include "support.h"
#include <math.h>
#include <strata.h>
#include <strata/blas.h>
#include <strata/runtime.h>
#include <string.h>

static strata_handle *h;
static int setup(void **state)
{
    (void)state;
    return strata_create(&h, test_device());
}
static int teardown(void **state)
{
    (void)state;
    strata_destroy(h);
    return 0;
}

/* never put into its caller: what dlsym finds */
static strata_status (*volatile exported)(strata_handle *, strata_scalar, strata_tensor, strata_tensor,
                                          strata_scalar, strata_tensor,
                                          const strata_gemm_options *) = strata_gemm;

typedef struct product {
    strata_scalar alpha, beta;
    strata_tensor A, B, C;
} product;

enum { INLINE, EXPORTED, ADDRESSES, PLAIN, PLAN, WAYS };
static const char *const way_name[] = {"inline", "exported", "by address", "plain", "plan"};

static strata_status ask(int way, product *p, strata_handle *on)
{
    if (way == INLINE) return strata_gemm(on, p->alpha, p->A, p->B, p->beta, p->C, NULL);
    if (way == EXPORTED) return exported(on, p->alpha, p->A, p->B, p->beta, p->C, NULL);
    if (way == ADDRESSES) return strata_gemm_run(on, &p->alpha, &p->A, &p->B, &p->beta, &p->C, NULL);
    if (way == PLAIN) {
        const strata_gemm_plain q = {.m = p->C.dim[0],
                                     .k = p->A.dim[1],
                                     .n = p->C.dim[1],
                                     .a = p->A.data,
                                     .b = p->B.data,
                                     .c = p->C.data,
                                     .a_row = p->A.stride[0],
                                     .b_row = p->B.stride[0],
                                     .c_row = p->C.stride[0],
                                     .a_col = p->A.stride[1],
                                     .b_col = p->B.stride[1],
                                     .c_col = p->C.stride[1],
                                     .alpha = p->alpha.re,
                                     .beta = p->beta.re,
                                     .type = p->C.type,
                                     .conj = (p->A.flags & STRATA_TENSOR_CONJ ? 1 : 0) |
                                             (p->B.flags & STRATA_TENSOR_CONJ ? 2 : 0),
                                     .alpha_im = p->alpha.im,
                                     .beta_im = p->beta.im};
        return strata_gemm_run_plain(on, &q);
    }
    strata_plan *plan;
    strata_status s = strata_gemm_plan(on, p->alpha, p->A, p->B, p->beta, p->C, NULL, NULL, &plan);
    if (s) return s;
    s = strata_plan_run(on, plan, (void *[]){p->A.data, p->B.data, p->C.data}, NULL);
    strata_plan_destroy(plan);
    return s;
}

static void fill(test_rng *r, test_array *t)
{
    if (t->t.type != STRATA_C64 && t->t.type != STRATA_C128) {
        test_array_random(r, t, -1, 1);
        return;
    }
    for (int64_t i = 0; i < 2 * strata_count(t->t); i++)
        if (t->t.type == STRATA_C64)
            ((float *)t->t.data)[i] = (float)test_real(r, -1, 1);
        else
            ((double *)t->t.data)[i] = test_real(r, -1, 1);
}

/* layout: 1, 2, 4 column-major A, B, C; 8, 16 conjugated A, B; complex types get complex factors where theirs are not 1 and 0 */
static void compare(test_rng *r, strata_type type, int64_t m, int64_t n, int64_t k, unsigned layout,
                    double alpha, double beta)
{
    const size_t es = strata_type_bits(type) / 8, bytes = (size_t)(m * n) * es;
    const bool complex = type == STRATA_C64 || type == STRATA_C128;
    test_array a = test_array_make(r, type, 2, (int64_t[]){m, k}, TEST_PACKED),
               b = test_array_make(r, type, 2, (int64_t[]){k, n}, TEST_PACKED),
               c = test_array_make(r, type, 2, (int64_t[]){m, n}, TEST_PACKED);
    fill(r, &a);
    fill(r, &b);
    fill(r, &c);
    product p = {strata_complex(alpha, complex && alpha != 1 ? 0.4 : 0),
                 strata_complex(beta, complex && beta != 0 ? -0.2 : 0), a.t, b.t, c.t};
    if (layout & 1) p.A = strata_matrix(a.t.data, type, m, k, STRATA_COL_MAJOR, 0);
    if (layout & 2) p.B = strata_matrix(b.t.data, type, k, n, STRATA_COL_MAJOR, 0);
    if (layout & 4) p.C = strata_matrix(c.t.data, type, m, n, STRATA_COL_MAJOR, 0);
    if (layout & 8) p.A = strata_conj(p.A);
    if (layout & 16) p.B = strata_conj(p.B);
    test_problem("%s %lldx%lldx%lld layout %u alpha %g beta %g", strata_type_name(type), (long long)m,
                 (long long)n, (long long)k, layout, alpha, beta);
    char *old = malloc(bytes), *want = malloc(bytes);
    memcpy(old, c.t.data, bytes);
    for (int way = 0; way < WAYS; way++) {
        memcpy(c.t.data, old, bytes);
        test_ok(h, ask(way, &p, h));
        if (way == 0) memcpy(want, c.t.data, bytes);
        test_check(!memcmp(want, c.t.data, bytes), "%s differs from %s", way_name[way], way_name[0]);
    }
    free(old);
    free(want);
    test_array_free(&a);
    test_array_free(&b);
    test_array_free(&c);
}

static void same_bits(void **state)
{
    (void)state;
    test_rng r = test_rng_make(91);
    /* long sums, on which the kernels' orders differ, and sizes around every switch between them */
    static const int64_t size[][3] = {{51, 1, 586},   {1, 51, 586},   {16, 16, 4000}, {17, 17, 3600},
                                      {8, 16, 1024},  {16, 8, 1024},  {7, 300, 1100}, {300, 7, 1100},
                                      {1, 1, 4096},   {1, 4096, 2},   {64, 64, 64},   {100, 100, 100},
                                      {20, 50, 1000}, {4, 130, 2000}, {130, 4, 2000}, {90, 24, 485}};
    for (int i = 0; i < (int)(sizeof size / sizeof *size); i++)
        for (unsigned layout = 0; layout < 8; layout++) {
            strata_type type = (i + (int)layout) & 1 ? STRATA_F64 : STRATA_F32;
            compare(&r, type, size[i][0], size[i][1], size[i][2], layout, 1, 0);
            compare(&r, type == STRATA_F32 ? STRATA_F64 : STRATA_F32, size[i][0], size[i][1], size[i][2],
                    layout, 0.7, layout & 1 ? 0.3 : 0);
        }
    for (int i = 0; i < test_rounds(150); i++) {
        int64_t most = i % 3 ? 40 : 130, d[3];
        for (int j = 0; j < 3; j++) d[j] = test_int(&r, 1, most);
        if (test_chance(&r, 0.3)) d[test_int(&r, 0, 1)] = test_int(&r, 1, 16);
        if (test_chance(&r, 0.3)) d[2] = test_int(&r, 500, 1300);
        compare(&r, i & 1 ? STRATA_F64 : STRATA_F32, d[0], d[1], d[2], (unsigned)test_int(&r, 0, 7),
                test_chance(&r, 0.5) ? 1 : -0.9, test_chance(&r, 0.5) ? 0 : 0.6);
        if (d[0] * d[1] * d[2] < 200000)
            compare(&r, i & 1 ? STRATA_C128 : STRATA_C64, d[0], d[1], d[2], (unsigned)test_int(&r, 0, 31),
                    test_chance(&r, 0.5) ? 1 : -0.9, test_chance(&r, 0.5) ? 0 : 0.6);
    }
}

/* Everything that is wrong is said by all in the same words, and leaves C alone. */
static void same_words(void **state)
{
    (void)state;
    float a[64], b[64], c[64];
    for (int i = 0; i < 64; i++) a[i] = b[i] = c[i] = (float)i;
    const strata_tensor A = strata_matrix(a, STRATA_F32, 4, 6, STRATA_ROW_MAJOR, 0),
                        B = strata_matrix(b, STRATA_F32, 6, 5, STRATA_ROW_MAJOR, 0),
                        C = strata_matrix(c, STRATA_F32, 4, 5, STRATA_ROW_MAJOR, 0);
    const product good = {STRATA_ONE, STRATA_ZERO, A, B, C};
    enum { CASES = 12 };
    product bad[CASES];
    for (int i = 0; i < CASES; i++) bad[i] = good;
    bad[0].A.dim[1] = 5;
    bad[1].C.dim[0] = 3;
    bad[2].A.data = NULL;
    bad[3].C.data = a + 10;
    bad[4].C.stride[0] = 0;
    bad[5].B.type = STRATA_F64;
    bad[6].A.type = bad[6].B.type = bad[6].C.type = STRATA_I32;
    bad[7].A.rank = 1;
    bad[8].A.flags = STRATA_TENSOR_POINTERS;
    bad[9].B = strata_matrix(b, STRATA_F32, 6, 5, STRATA_ROW_MAJOR, 3);
    bad[10].alpha = strata_complex(1, 2);
    bad[11].C.stride[1] = INT64_MAX / 2;
    for (int i = 0; i < CASES; i++) {
        char words[512] = "";
        for (int way = 0; way < PLAN; way++) {
            const bool plain =
                i == 2 || i == 3 || i == 4 || i == 6 || i == 11; /* what PLAIN can say at all */
            if (way == PLAIN && !plain) continue;
            test_problem("case %d, %s", i, way_name[way]);
            strata_status s = ask(way, &bad[i], h);
            test_check(s != STRATA_OK, "was accepted");
            if (way == 0) snprintf(words, sizeof words, "%s", strata_error(h));
            test_check(!strcmp(words, strata_error(h)), "'%s' is not '%s'", strata_error(h), words);
        }
    }
    for (int i = 0; i < 64; i++) test_check(c[i] == (float)i, "the output was touched");
    for (int way = 0; way < PLAN; way++) {
        product p = good;
        test_problem("no handle, %s", way_name[way]);
        test_check(ask(way, &p, NULL) == STRATA_ERROR_ARGUMENT, " ");
        test_check(strstr(strata_error(NULL), "strata_gemm:") != NULL, "%s", strata_error(NULL));
    }
    test_error(h, strata_gemm_run_plain(h, NULL), STRATA_ERROR_ARGUMENT, "product is NULL");
    test_error(h, strata_gemm_run(h, &good.alpha, &A, NULL, &good.beta, &C, NULL), STRATA_ERROR_ARGUMENT,
               "address of B");
}

/* Sizes from nothing to tall are legal everywhere. */
static void empty(void **state)
{
    (void)state;
    float c[16];
    for (int i = 0; i < 8; i++) {
        const int64_t m = i & 1 ? 0 : 2, n = i & 2 ? 0 : 3, k = i & 4 ? 0 : 2;
        float a[16] = {1, 2, 3, 4}, b[16] = {1, 2, 3, 4, 5, 6};
        product p = {STRATA_ONE, STRATA_ZERO, strata_matrix(a, STRATA_F32, m, k, STRATA_ROW_MAJOR, 0),
                     strata_matrix(b, STRATA_F32, k, n, STRATA_ROW_MAJOR, 0),
                     strata_matrix(c, STRATA_F32, m, n, STRATA_ROW_MAJOR, 0)};
        for (int way = 0; way < WAYS; way++) {
            test_problem("%lldx%lldx%lld %s", (long long)m, (long long)n, (long long)k, way_name[way]);
            for (int j = 0; j < 16; j++) c[j] = 7;
            test_ok(h, ask(way, &p, h));
            test_check(c[0] == (m && n ? (k ? 9.0f : 0.0f) : 7.0f), "C[0] is %g", (double)c[0]);
        }
    }
}

/* A plan's run takes the numbers that a call takes, and refuses what a call refuses. */
static void scalars_of_a_run(void **state)
{
    (void)state;
    float a[4] = {1, 2, 3, 4}, c[4] = {9, 9, 9, 9};
    const float two[2] = {2, 1};
    strata_tensor A = strata_matrix(a, STRATA_F32, 2, 2, STRATA_ROW_MAJOR, 0),
                  C = strata_matrix(c, STRATA_F32, 2, 2, STRATA_ROW_MAJOR, 0);
    strata_handle *own;
    strata_plan *p;
    test_ok(NULL, strata_create(&own, "cpu"));
    test_ok(own, strata_gemm_plan(own, STRATA_ONE, A, A, STRATA_ZERO, C, NULL, NULL, &p));
    const strata_scalar bad[] = {strata_scalar_at(STRATA_F32, NULL),
                                 strata_complex(1, 2),
                                 strata_scalar_at(STRATA_C64, two),
                                 {.re = 1, .reserved = 7}};
    static const char *const word[] = {"NULL", "imaginary", "imaginary", "reserved"};
    static const strata_status want[] = {STRATA_ERROR_ARGUMENT, STRATA_ERROR_TYPE, STRATA_ERROR_TYPE,
                                         STRATA_ERROR_ARGUMENT};
    void *const data[] = {a, a, c};
    for (int i = 0; i < 4; i++) {
        test_error(own, strata_plan_run(own, p, data, &(strata_run){.alpha = &bad[i]}), want[i], "alpha",
                   word[i]);
        test_error(own, strata_plan_run(own, p, data, &(strata_run){.beta = &bad[i]}), want[i], "beta",
                   word[i]);
    }
    test_check(c[0] == 9 && c[3] == 9, "untouched");
    const strata_scalar at = strata_scalar_at(STRATA_F32, two);
    test_ok(own, strata_plan_run(own, p, data, &(strata_run){.alpha = &at}));
    test_check(c[0] == 14, "2 A A");
    strata_plan_destroy(p);
    strata_destroy(own);
}

/* Groups give the bits of one call after another; a fault in any leaves all as they are. */
static void groups(void **state)
{
    (void)state;
    enum { GROUPS = 9 };
    test_rng r = test_rng_make(77);
    test_array a[GROUPS], b[GROUPS], c[GROUPS], want[GROUPS];
    strata_gemm_group g[GROUPS];
    memset(g, 0, sizeof g);
    for (int i = 0; i < GROUPS; i++) {
        const strata_type type = i % 3 == 2 ? STRATA_F64 : STRATA_F32;
        const int64_t m = test_int(&r, 1, 60), n = test_int(&r, 1, 60), k = test_int(&r, 0, 60);
        a[i] = test_array_make(&r, type, 2, (int64_t[]){m, k}, TEST_ANY);
        b[i] = test_array_make(&r, type, 2, (int64_t[]){k, n}, TEST_ANY);
        c[i] = test_array_make(&r, type, 2, (int64_t[]){m, n}, TEST_PACKED);
        want[i] = test_array_make(&r, type, 2, (int64_t[]){m, n}, TEST_PACKED);
        test_array_random(&r, &a[i], -1, 1), test_array_random(&r, &b[i], -1, 1);
        g[i] = (strata_gemm_group){
            .alpha = strata_real(i - 3), .beta = STRATA_ZERO, .A = a[i].t, .B = b[i].t, .C = c[i].t};
        test_ok(h, strata_gemm(h, g[i].alpha, g[i].A, g[i].B, g[i].beta, want[i].t, NULL));
    }
    const size_t first = (size_t)strata_count(c[0].t) * 4;
    float was[3600];
    memcpy(was, c[0].t.data, first);
    g[GROUPS - 1].B = strata_transpose(g[GROUPS - 1].A);
    g[GROUPS - 1].B.dim[0]++;
    test_error(h, strata_gemm_grouped(h, g, GROUPS, NULL), STRATA_ERROR_SHAPE, "strata_gemm_grouped",
               "in group 8 of 9");
    test_check(!memcmp(was, c[0].t.data, first), "a group was written before all were checked");
    g[GROUPS - 1].B = b[GROUPS - 1].t;
    test_error(h, strata_gemm_grouped(h, g, -1, NULL), STRATA_ERROR_ARGUMENT, "count is -1");
    test_error(h, strata_gemm_grouped(h, NULL, 2, NULL), STRATA_ERROR_ARGUMENT, "groups");
    test_error(h, strata_gemm_grouped(h, g, GROUPS, &(strata_gemm_options){.epilogue = "acc"}),
               STRATA_ERROR_UNSUPPORTED, "one product");
    const strata_operand twice[] = {
        {"v", strata_vector(was, STRATA_F32, 4, 1)}, {"v", strata_vector(was + 8, STRATA_F32, 4, 1)}, {0}};
    test_error(h,
               strata_gemm(h, STRATA_ONE, strata_matrix(was, STRATA_F32, 4, 4, STRATA_ROW_MAJOR, 0),
                           strata_matrix(was, STRATA_F32, 4, 4, STRATA_ROW_MAJOR, 0), STRATA_ZERO,
                           strata_matrix(was + 100, STRATA_F32, 4, 4, STRATA_ROW_MAJOR, 0),
                           &(strata_gemm_options){.epilogue = "out = acc + v[n]", .operands = twice}),
               STRATA_ERROR_ARGUMENT, "operands 0 and 1", "both called 'v'");
    test_ok(h, strata_gemm_grouped(h, NULL, 0, NULL));
    test_ok(h, strata_gemm_grouped(h, g, GROUPS, NULL));
    for (int i = 0; i < GROUPS; i++) {
        test_check(!memcmp(c[i].t.data, want[i].t.data,
                           (size_t)strata_count(c[i].t) * strata_type_bits(c[i].t.type) / 8),
                   "group %d has other bits", i);
        test_array_free(&a[i]), test_array_free(&b[i]), test_array_free(&c[i]), test_array_free(&want[i]);
    }
}

/* A product of no k still writes C, so a run needs its address. */
static void no_k(void **state)
{
    (void)state;
    float a[4] = {0}, c[4] = {1, 2, 3, 4};
    strata_plan *p;
    test_ok(h, strata_gemm_plan(h, STRATA_ONE, strata_matrix(a, STRATA_F32, 2, 0, STRATA_ROW_MAJOR, 0),
                                strata_matrix(a, STRATA_F32, 0, 2, STRATA_ROW_MAJOR, 0), STRATA_ZERO,
                                strata_matrix(c, STRATA_F32, 2, 2, STRATA_ROW_MAJOR, 0), NULL, NULL, &p));
    test_error(h, strata_plan_run(h, p, (void *[]){a, a, NULL}, NULL), STRATA_ERROR_ARGUMENT,
               "data[2] is NULL");
    test_ok(h, strata_plan_run(h, p, (void *[]){NULL, NULL, c}, NULL));
    for (int i = 0; i < 4; i++) test_check(c[i] == 0, "C[%d] is %g", i, (double)c[i]);
    strata_plan_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_k),  cmocka_unit_test(same_bits),        cmocka_unit_test(same_words),
        cmocka_unit_test(empty), cmocka_unit_test(scalars_of_a_run), cmocka_unit_test(groups)};
    int bad = cmocka_run_group_tests(tests, setup, teardown);
    return bad + test_lower_levels();
}
