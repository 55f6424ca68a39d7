/* SPDX-License-Identifier: Apache-2.0 */
/* test_cuda_gemm.c - every contraction kernel of a CUDA device, forced by its id, over random types, layouts, sizes, scalars and epilogues, against sums in long double:
 * NaN around every element, C full of NaN where beta is 0, two runs with equal bits. Each id must have run; on a CPU there is nothing to do. */
#include "support.h"
#include "runtime/gpu.h"
#include <math.h>
#include <strata.h>
#include <strata/blas.h>
#include <strata/plan.h>
#include <strata/runtime.h>

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

typedef struct combination {
    strata_type a, b, c;
} combination;
static const combination combinations[] = {
    {STRATA_F32, STRATA_F32, STRATA_F32},
    {STRATA_F64, STRATA_F64, STRATA_F64},
    {STRATA_BF16, STRATA_BF16, STRATA_F32},
    {STRATA_BF16, STRATA_BF16, STRATA_BF16},
    {STRATA_BF16, STRATA_BF16, STRATA_F16},
    {STRATA_F16, STRATA_F16, STRATA_F16},
    {STRATA_F16, STRATA_F16, STRATA_F32},
    {STRATA_F16, STRATA_F16, STRATA_BF16},
    {STRATA_I8, STRATA_I8, STRATA_I32},
    {STRATA_I8, STRATA_I8, STRATA_F32},
    {STRATA_U8, STRATA_I8, STRATA_I32},
    {STRATA_I8, STRATA_U8, STRATA_I32},
    {STRATA_U8, STRATA_I8, STRATA_F32},
    {STRATA_I8, STRATA_U8, STRATA_F32},
    {STRATA_F8E4M3, STRATA_F8E4M3, STRATA_BF16},
    {STRATA_F8E4M3, STRATA_F8E4M3, STRATA_F16},
    {STRATA_F8E4M3, STRATA_F8E4M3, STRATA_F32},
    {STRATA_F8E4M3, STRATA_F8E5M2, STRATA_F32},
    {STRATA_F8E4M3, STRATA_F8E5M2, STRATA_F16},
    {STRATA_F8E4M3, STRATA_F8E5M2, STRATA_BF16},
    {STRATA_F8E5M2, STRATA_F8E4M3, STRATA_F32},
    {STRATA_F8E5M2, STRATA_F8E4M3, STRATA_F16},
    {STRATA_F8E5M2, STRATA_F8E4M3, STRATA_BF16},
    {STRATA_F8E5M2, STRATA_F8E5M2, STRATA_F32},
    {STRATA_F8E5M2, STRATA_F8E5M2, STRATA_F16},
    {STRATA_F8E5M2, STRATA_F8E5M2, STRATA_BF16},
    {STRATA_F8E4M3, STRATA_F8E4M3, STRATA_F8E4M3},
};

static double get(const strata_tensor *t, const int64_t *i)
{
    double v = NAN;
    st_load_f64(t->type, test_at(t, i), &v);
    return v;
}
static void put(const strata_tensor *t, const int64_t *i, double v)
{
    st_store_f64(t->type, test_at(t, i), v);
}
/* values of the type, or whole numbers */
static void fill(test_rng *r, const test_array *a, bool whole, double limit)
{
    int64_t i[STRATA_MAX_RANK] = {0};
    const int64_t lo = a->t.type == STRATA_U8 ? 0 : (int64_t)-limit,
                  hi = a->t.type == STRATA_U8 ? 255 : (int64_t)limit - 1;
    do put(&a->t, i, whole ? (double)test_int(r, lo, hi) : test_real(r, -limit, limit));
    while (test_next(&a->t, i));
}

static bool is_byte(strata_type t) { return t == STRATA_I8 || t == STRATA_U8; }
/* Relative error of a sum's addition, and of a value stored to C. */
static double sum_unit(strata_type a) { return a == STRATA_F64 ? 0x1p-53 : is_byte(a) ? 0 : 0x1p-23; }
static double store_unit(strata_type c) { return c == STRATA_I32 ? 0 : test_unit(c); }

typedef struct case_ {
    combination t;
    int64_t m, n, k;
    double alpha, beta;
    bool epilogue;
    strata_math math;
} case_;

static void check_result(const case_ *q, const test_array *a, const test_array *b, const test_array *old,
                         const test_array *c, const test_array *bias, const char *id)
{
    const double u = sum_unit(q->t.a), in = q->math == STRATA_MATH_TF32 ? 0x1p-10 : 0;
    for (int64_t i = 0; i < q->m; i++)
        for (int64_t j = 0; j < q->n; j++) {
            long double s = 0, abs = 0;
            for (int64_t k = 0; k < q->k; k++) {
                const long double v =
                    (long double)get(&a->t, (int64_t[]){i, k}) * get(&b->t, (int64_t[]){k, j});
                s += v;
                abs += fabsl(v);
            }
            const long double was = q->beta == 0 ? 0 : (long double)get(&old->t, (int64_t[]){i, j}) * q->beta;
            long double want = q->alpha * s + was;
            double size = (double)(fabs(q->alpha) * abs + fabsl(was));
            if (q->epilogue) {
                const double x = get(&bias->t, (int64_t[]){j});
                want = (want + x) * 2;
                size = 2 * (size + fabs(x));
            }
            /* the smallest steps of f16 and f8 below their normal numbers */
            const double least = q->t.c == STRATA_F16 ? 0x1p-25 : q->t.c == STRATA_F8E4M3 ? 0x1p-10 : 0;
            const double bound = ((double)(q->k + 6) * u + in) * size +
                                 1.01 * store_unit(q->t.c) * fabs((double)want) + least +
                                 (is_byte(q->t.a) && q->t.c == STRATA_F32 ? 0x1p-22 * size : 0);
            test_close(get(&c->t, (int64_t[]){i, j}), (double)want, bound, "%s: C[%d,%d]", id, (int)i,
                       (int)j);
        }
}

/* Forces kernel `id`; false when it refuses the problem. */
static bool try(const char *id, const case_ *q, test_rng *r, unsigned how)
{
    test_array a = test_array_make(r, q->t.a, 2, (int64_t[]){q->m, q->k}, how | TEST_PERMUTED),
               b = test_array_make(r, q->t.b, 2, (int64_t[]){q->k, q->n}, how | TEST_PERMUTED),
               c = test_array_make(r, q->t.c, 2, (int64_t[]){q->m, q->n}, how | TEST_PERMUTED),
               old = test_array_make(r, q->t.c, 2, (int64_t[]){q->m, q->n}, TEST_PACKED),
               bias = test_array_make(r, STRATA_F32, 1, (int64_t[]){q->n}, TEST_PACKED);
    const strata_operand operands[] = {{"bias", bias.t}, {0}};
    const strata_gemm_options o = {.epilogue = q->epilogue ? "(acc + bias[n]) * 2" : NULL,
                                   .operands = q->epilogue ? operands : NULL,
                                   .math = q->math};
    const strata_choice choice = {.kernel = id};
    strata_plan *p;
    const strata_status made =
        strata_gemm_plan(h, strata_real(q->alpha), a.t, b.t, strata_real(q->beta), c.t, &o, &choice, &p);
    if (made == STRATA_OK) {
        const bool whole = is_byte(q->t.a);
        fill(r, &a, whole, whole ? 128 : 1);
        fill(r, &b, whole, whole ? 128 : 1);
        fill(r, &old, whole, whole ? 100 : 1);
        fill(r, &bias, false, 1);
        test_array first = test_array_make(r, q->t.c, 2, (int64_t[]){q->m, q->n}, TEST_PACKED);
        for (int run = 0; run < 2; run++) {
            int64_t i[2] = {0};
            if (q->beta != 0) do
                    put(&c.t, i, get(&old.t, i));
                while (test_next(&c.t, i));
            void *data[] = {a.t.data, b.t.data, c.t.data, bias.t.data};
            test_ok(h, strata_plan_run(h, p, data, NULL));
            if (run == 0) check_result(q, &a, &b, &old, &c, &bias, id);
            memset(i, 0, sizeof i);
            do {
                if (run == 0)
                    put(&first.t, i, get(&c.t, i));
                else
                    test_check(get(&first.t, i) == get(&c.t, i), "%s: two runs differ at %d,%d", id,
                               (int)i[0], (int)i[1]);
            } while (test_next(&c.t, i));
        }
        test_array_intact(&c);
        test_array_intact(&a);
        test_array_free(&first);
    } else {
        test_check(made == STRATA_ERROR_UNSUPPORTED || made == STRATA_ERROR_ARGUMENT ||
                       made == STRATA_ERROR_TYPE || made == STRATA_ERROR_WORKSPACE,
                   "%s: %s", id, strata_error(h));
    }
    strata_plan_destroy(made == STRATA_OK ? p : NULL);
    test_array *all[] = {&a, &b, &c, &old, &bias};
    for (int i = 0; i < TEST_COUNT(all); i++) test_array_free(all[i]);
    return made == STRATA_OK;
}

static case_ random_case(test_rng *r, const combination *t, int round)
{
    static const double scalars[] = {1, 1, 0.5, -2};
    case_ q = {.t = *t, .alpha = 1};
    const int64_t big = round % 3 == 0 ? 300 : 90;
    q.m = round % 4 == 1 ? test_int(r, 1, 16) : test_int(r, 1, big);
    q.n = round % 4 == 1 ? test_int(r, 64, 300) : round % 8 == 3 ? test_int(r, 1, 16) : test_int(r, 1, big);
    q.k = round % 4 == 2 ? test_int(r, 900, 2500) : test_int(r, 1, 200);
    if (round % 2 == 0) { /* sizes that wide copies take */
        q.m = (q.m + 15) / 16 * 16;
        q.n = (q.n + 15) / 16 * 16;
        q.k = (q.k + 15) / 16 * 16;
    }
    if (round % 4 == 2) q.m = st_min64(q.m, 48), q.n = st_min64(q.n, 64);
    const bool whole = t->c == STRATA_I32;
    if (round > 1) {
        q.alpha = whole ? (double)test_int(r, -2, 3) : scalars[test_int(r, 0, 3)];
        q.beta = test_chance(r, 0.5) ? 0 : whole ? (double)test_int(r, -2, 2) : scalars[test_int(r, 0, 3)];
        q.epilogue = t->c == STRATA_F32 && test_chance(r, 0.15);
    }
    return q;
}

static void every_kernel(void **state)
{
    (void)state;
    if (!h->gpu) return;
    test_rng r = test_rng_make(31);
    strata_kernel_info info;
    int never = 0;
    for (int i = 0; strata_kernels(i, &info); i++) {
        if (strncmp(info.isa, "sm", 2) || (strcmp(info.family, "gemm") && strcmp(info.family, "reference")))
            continue;
        if (atoi(info.isa + 2) > h->gpu->cc || strstr(info.id, "_sm90a"))
            continue; /* test_gemm_types.c has those */
        if (strstr(info.types, "c64") || strstr(info.types, "c128"))
            continue; /* the sums here are real: test_gemm.c and test_level3.c have complex ones */
        const char *const id = info.id;
        char why[400] = "none of the types is its own";
        int ran = 0;
        for (int t = 0; t < TEST_COUNT(combinations); t++) {
            char own[64];
            snprintf(own, sizeof own, "gemm_%s%s%s_", strata_type_name(combinations[t].a),
                     strata_type_name(combinations[t].b), strata_type_name(combinations[t].c));
            for (int round = 0, tries = 0; round < test_rounds(1) && tries < 24; tries++) {
                case_ q = random_case(&r, &combinations[t], tries);
                if (strstr(id, "tf32")) q.math = STRATA_MATH_TF32;
                if (strstr(id, "skinny") && strstr(id, "_sk_")) { /* few rows are split where k is long */
                    q.m = test_int(&r, 1, 16);
                    q.n = test_int(&r, 64, 100);
                    q.k = (is_byte(q.t.a) || strstr(id, "f8") ? 16384 : 8192) + 16 * test_int(&r, 0, 60);
                }
                int rows, cols, deep;
                const char *shape = strstr(id, "_batch") ? strchr(id + 5, '_') : NULL;
                if (shape && sscanf(shape, "_%dx%dx%d", &rows, &cols, &deep) == 3) { /* small items */
                    q.m = tries % 2 ? rows : test_int(&r, 1, rows);
                    q.n = tries % 2 ? cols : test_int(&r, 1, cols);
                }
                const bool bytes = strstr(id, "_mma") && (is_byte(q.t.a) || strstr(id, "f8"));
                if (bytes && tries >= 8) { /* rows of whole 16 bytes, and k long enough to be split */
                    q.m = 16 * test_int(&r, 2, 4);
                    q.n = 16 * test_int(&r, 2, 4);
                    q.k = 64 * (strstr(id, "_sk_") ? test_int(&r, 300, 400) : test_int(&r, 64, 128));
                }
                test_problem("kernel %s types %d: %dx%dx%d alpha %g beta %g", id, t, (int)q.m, (int)q.n,
                             (int)q.k, q.alpha, q.beta);
                const bool ok = try(id, &q, &r, tries % 3 || (bytes && tries >= 8) ? 0 : TEST_PADDED);
                round += ok;
                ran += ok;
                /* other types, or types of its own that lie otherwise */
                if (!ok && strstr(strata_error(h), "there is no kernel") && !(strstr(id, own) && tries < 20))
                    break;
                if (!ok) snprintf(why, sizeof why, "%s", strata_error(h));
                if (ok && info.family[0] == 'r') break; /* takes all of them */
            }
        }
        if (!ran) {
            print_message("kernel %s took no problem: %s\n", id, why);
            never++;
        }
    }
    test_check(never == 0, "%d kernels took no problem", never);
}

/* Sizes that are zero, and alpha = 0 without operands. */
static void nothing(void **state)
{
    (void)state;
    if (!h->gpu) return;
    test_rng r = test_rng_make(33);
    for (int t = 0; t < 2; t++) {
        const strata_type type = t ? STRATA_F64 : STRATA_F32;
        test_array c = test_array_make(&r, type, 2, (int64_t[]){37, 21}, TEST_PACKED);
        test_array_set(&c, 3);
        float none = NAN;
        const strata_tensor a = strata_matrix(&none, type, 37, 0, STRATA_ROW_MAJOR, 0),
                            b = strata_matrix(&none, type, 0, 21, STRATA_ROW_MAJOR, 0);
        test_ok(h, strata_gemm(h, STRATA_ONE, a, b, strata_real(0.5), c.t, NULL));
        int64_t i[2] = {0};
        do test_close(test_get(&c.t, i), 1.5, 0, "k = 0");
        while (test_next(&c.t, i));
        test_array x = test_array_make(&r, type, 2, (int64_t[]){37, 9}, TEST_PACKED),
                   y = test_array_make(&r, type, 2, (int64_t[]){9, 21}, TEST_PACKED); /* full of NaN */
        test_ok(h, strata_gemm(h, STRATA_ZERO, x.t, y.t, STRATA_ONE, c.t, NULL));
        memset(i, 0, sizeof i);
        do test_close(test_get(&c.t, i), 1.5, 0, "alpha = 0");
        while (test_next(&c.t, i));
        test_array_free(&c);
        test_array_free(&x);
        test_array_free(&y);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kernel), cmocka_unit_test(nothing)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
