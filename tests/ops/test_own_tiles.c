/* SPDX-License-Identifier: Apache-2.0 */
/* test_own_tiles.c - tiles that a caller asks for: products of whole numbers are exact in any tile that is taken, its code rebuilds it, and what is impossible is refused
 * with the number and the rule. On GPUs the tiles are such as no kernel of the table has. */
#include "support.h"
#include "runtime/gpu.h"
#include "runtime/handle.h"
#include "handle.h"
#include <math.h>

typedef struct kind {
    strata_type in, out;
    strata_math math;
} kind;
enum { BF16, F8, F8_EXACT, I8, TF32, X6, F32, F64, C64, C128 };
static const kind kinds[] = {
    [BF16] = {STRATA_BF16, STRATA_F32, 0},
    [F8] = {STRATA_F8E4M3, STRATA_F32, STRATA_MATH_FAST_ACCUM},
    [F8_EXACT] = {STRATA_F8E4M3, STRATA_BF16, 0},
    [I8] = {STRATA_I8, STRATA_I32, 0},
    [TF32] = {STRATA_F32, STRATA_F32, STRATA_MATH_TF32},
    [X6] = {STRATA_F32, STRATA_F32, STRATA_MATH_BF16X6},
    [F32] = {STRATA_F32, STRATA_F32, 0},
    [F64] = {STRATA_F64, STRATA_F64, 0},
    [C64] = {STRATA_C64, STRATA_C64, 0},
    [C128] = {STRATA_C128, STRATA_C128, 0},
};

typedef struct problem {
    test_array a, b, c;
    strata_tensor A, B;
    kind k;
} problem;

static bool is_complex(strata_type t) { return t == STRATA_C64 || t == STRATA_C128; }

static void element(const strata_tensor *t, int64_t i, int64_t j, double v[2])
{
    const int64_t at[STRATA_MAX_RANK] = {i, j};
    const void *p = test_at(t, at);
    v[1] = 0;
    if (t->type == STRATA_C64) {
        v[0] = ((const float *)p)[0];
        v[1] = ((const float *)p)[1];
    } else if (t->type == STRATA_C128)
        memcpy(v, p, 2 * sizeof *v);
    else
        v[0] = test_get(t, at);
}

static void fill(test_rng *r, test_array *a)
{
    if (!is_complex(a->t.type)) {
        test_array_integers(r, a, -2, 2);
        return;
    }
    int64_t i[STRATA_MAX_RANK] = {0};
    do {
        const double v[2] = {(double)test_int(r, -2, 2), (double)test_int(r, -2, 2)};
        const float f[2] = {(float)v[0], (float)v[1]};
        if (a->t.type == STRATA_C64)
            memcpy(test_at(&a->t, i), f, sizeof f);
        else
            memcpy(test_at(&a->t, i), v, sizeof v);
    } while (test_next(&a->t, i));
}

static problem make(test_rng *r, int k, int64_t m, int64_t n, int64_t depth)
{
    problem p = {.k = kinds[k]};
    const bool ta = test_int(r, 0, 1), tb = test_int(r, 0, 1);
    test_problem("%s %lldx%lldx%lld, stored transposed %d %d", strata_type_name(p.k.in), (long long)m,
                 (long long)n, (long long)depth, ta, tb);
    p.a = test_array_make(r, p.k.in, 2, ta ? (int64_t[]){depth, m} : (int64_t[]){m, depth}, 0);
    p.b = test_array_make(r, p.k.in, 2, tb ? (int64_t[]){n, depth} : (int64_t[]){depth, n}, 0);
    p.c = test_array_make(r, p.k.out, 2, (int64_t[]){m, n}, 0);
    fill(r, &p.a);
    fill(r, &p.b);
    p.A = ta ? strata_transpose(p.a.t) : p.a.t;
    p.B = tb ? strata_transpose(p.b.t) : p.b.t;
    return p;
}
static void drop(problem *p)
{
    test_array_free(&p->a);
    test_array_free(&p->b);
    test_array_free(&p->c);
}

static strata_status plan_of(const problem *p, const strata_choice *choice, strata_plan **plan)
{
    const strata_gemm_options o = {.math = p->k.math};
    return strata_gemm_plan(h, STRATA_ONE, p->A, p->B, STRATA_ZERO, p->c.t, &o, choice, plan);
}

static void check(problem *p, const strata_plan *plan)
{
    test_ok(h, strata_plan_run(h, plan, (void *[]){p->A.data, p->B.data, p->c.t.data}, NULL));
    if (test_values_ignored()) return;
    const int64_t m = p->c.t.dim[0], n = p->c.t.dim[1], k = p->A.dim[1];
    const int parts = is_complex(p->k.in) ? 2 : 1;
    for (int64_t i = 0; i < m; i += 1 + (i % 7))
        for (int64_t j = 0; j < n; j += 1 + (j % 5)) {
            double want[2] = {0, 0}, got[2] = {0, 0};
            for (int64_t l = 0; l < k; l++) {
                double a[2] = {0, 0}, b[2] = {0, 0};
                element(&p->A, i, l, a);
                element(&p->B, l, j, b);
                want[0] += a[0] * b[0] - a[1] * b[1];
                want[1] += a[0] * b[1] + a[1] * b[0];
            }
            element(&p->c.t, i, j, got);
            for (int h2 = 0; h2 < parts; h2++) {
                const double tol = p->k.out == STRATA_BF16 ? fabs(want[h2]) / 256 : 0;
                test_check(fabs(got[h2] - want[h2]) <= tol, "(%lld, %lld) is %g, not %g; %s", (long long)i,
                           (long long)j, got[h2], want[h2], strata_plan_kernel(plan));
            }
        }
}

typedef struct wish {
    int kind;
    strata_tile t;
    int64_t m, n, k;
} wish;
/* none of them is a row of the table */
static const wish hopper[] = {
    {BF16, {.block_m = 128, .block_n = 96}, 300, 200, 520},
    {BF16, {.block_m = 128, .block_n = 96, .stages = 3}, 301, 203, 517},
    {BF16, {.block_m = 192, .block_n = 64, .warp_m = 192}, 400, 200, 512},
    {BF16, {.block_m = 128, .block_n = 224, .warp_m = 64}, 512, 448, 640},
    {BF16, {.block_m = 256, .block_n = 64, .warp_m = 128}, 512, 300, 640},
    {BF16, {.block_m = 64, .block_n = 192, .stages = 5, .split_k = 1}, 200, 400, 520},
    {BF16, {.block_m = 64, .block_n = 48}, 130, 100, 1040},
    {BF16, {.block_m = 64, .block_n = 256}, 64, 1000, 512},
    {BF16, {.block_m = 128, .block_n = 128, .cluster_n = 2, .cluster_m = 1}, 512, 512, 640},
    {BF16, {.block_m = 128, .block_n = 192, .cluster_m = 2, .stages = 4}, 512, 400, 512},
    {BF16, {.block_m = 64, .block_n = 96, .split_k = 3}, 200, 200, 2048},
    {BF16, {.block_m = 128, .block_n = 128, .split_k = 5}, 256, 256, 2048},
    {BF16, {.raster = 3, .block_m = 128, .block_n = 128}, 1024, 512, 256},
    {F8, {.block_m = 128, .block_n = 144}, 300, 288, 512},
    {F8_EXACT, {.block_m = 128, .block_n = 96}, 300, 200, 520},
    {F8_EXACT, {.block_m = 64, .block_n = 128, .stages = 5}, 300, 200, 520},
    {I8, {.block_m = 128, .block_n = 80}, 256, 160, 512},
    {I8, {.block_m = 64, .block_n = 160}, 256, 320, 512},
    {TF32, {.block_m = 128, .block_n = 64}, 256, 300, 320},
    {TF32, {.block_m = 128, .block_n = 192, .stages = 3}, 256, 384, 320},
    {X6, {.block_m = 128, .block_n = 64, .stages = 5}, 256, 300, 320},
    {X6, {.block_m = 64, .block_n = 32, .stages = 3}, 256, 300, 320},
};
static const wish generic[] = {
    {F32, {.block_m = 64, .block_n = 64, .stages = 5}, 200, 180, 100},
    {F32, {.block_m = 128, .block_n = 64, .warp_m = 32, .warp_n = 32}, 300, 203, 77},
    {F32, {.block_m = 32, .block_n = 32, .block_k = 8, .warp_m = 32, .warp_n = 32}, 100, 100, 1000},
    {F32, {.block_m = 64, .block_n = 128, .block_k = 32, .stages = 2}, 200, 180, 100},
    {F32, {.block_m = 64, .block_n = 64, .split_k = 7}, 100, 100, 2000},
    {F64, {.block_m = 64, .block_n = 128, .warp_m = 32, .warp_n = 32}, 200, 180, 100},
    {F64, {.block_m = 32, .block_n = 64, .warp_m = 16, .warp_n = 32}, 77, 180, 100},
    {F64, {.block_m = 64, .block_n = 64, .block_k = 32, .stages = 2}, 200, 180, 100},
    {C64, {.block_m = 32, .block_n = 64}, 100, 180, 60},
    {C64, {.block_m = 64, .block_n = 64, .stages = 4}, 100, 180, 60},
    {C128, {.block_m = 32, .block_n = 32, .warp_m = 16, .warp_n = 16}, 100, 90, 60},
    {C128, {.block_m = 64, .block_n = 64, .stages = 3}, 100, 90, 60},
    {BF16,
     {.block_m = 64, .block_n = 128, .block_k = 64, .warp_m = 32, .warp_n = 64, .instruction_m = 0},
     200,
     200,
     520},
    {BF16,
     {.block_m = 128, .block_n = 64, .block_k = 32, .warp_m = 32, .warp_n = 32, .stages = 5},
     200,
     201,
     519},
    {I8, {.block_m = 64, .block_n = 64, .block_k = 128, .warp_m = 32, .warp_n = 32}, 200, 201, 519},
};
static const wish cpu[] = {
    {F32, {.block_k = 64, .block_m = 192}, 300, 200, 520},
    {F64, {.block_k = 128}, 300, 200, 520},
    {C64, {.block_k = 96}, 130, 100, 200},
};

static void try_wishes(const wish *w, int n, uint64_t seed)
{
    test_rng r = test_rng_make(seed);
    for (int i = 0; i < n; i++) {
        problem p = make(&r, w[i].kind, w[i].m, w[i].n, w[i].k);
        const strata_choice choice = {.tile = &w[i].t};
        strata_plan *plan, *again;
        strata_candidate c;
        int chosen = 0;
        test_ok(h, plan_of(&p, &choice, &plan));
        check(&p, plan);
        while (strata_plan_candidates(plan, chosen, &c) && !c.chosen) chosen++;
        assert_true(c.chosen);
        const int32_t *asked = &w[i].t.block_m, *has = &c.tile.block_m;
        for (int f = 0; f < 14; f++)
            test_check(!asked[f] || asked[f] == has[f], "wish %d: field %d is %d, not %d", i, f, has[f],
                       asked[f]);
        const strata_choice code = {.code = strata_plan_code(plan)};
        test_ok(h, plan_of(&p, &code, &again));
        assert_string_equal(strata_plan_kernel(again), strata_plan_kernel(plan));
        assert_string_equal(strata_plan_code(again), strata_plan_code(plan));
        assert_string_equal(strata_plan_order(again), strata_plan_order(plan));
        check(&p, again);
        strata_plan_destroy(plan);
        strata_plan_destroy(again);
        drop(&p);
    }
}

static void any_tile(void **state)
{
    (void)state;
    if (!on_gpu()) {
        try_wishes(cpu, TEST_COUNT(cpu), 1);
        return;
    }
    try_wishes(generic, TEST_COUNT(generic), 2);
    if (h->gpu->cc == 90) try_wishes(hopper, TEST_COUNT(hopper), 3);
}

typedef struct bad {
    int kind;
    strata_tile t;
    const char *number, *rule;
} bad;
static const bad bad_hopper[] = {
    {BF16, {.block_m = 96}, "block_m is 96", "multiples of"},
    {BF16, {.block_m = 128, .block_n = 264}, "block_n is 264", "multiples of 16 from"},
    {BF16, {.block_m = 128, .block_n = 256, .stages = 20}, "stages is 20", "bytes of shared memory"},
    {BF16, {.block_m = 256, .block_n = 256}, "block_n is 256", "more sums than registers"},
    {BF16, {.block_m = 128, .block_n = 128, .cluster_m = 4}, "cluster_m is 4", "two blocks"},
    {BF16, {.block_m = 128, .block_n = 128, .block_k = 48}, "block_k is 48", "128 bytes of k"},
    {BF16, {.block_m = 128, .block_n = 128, .split_k = 500}, "split_k is 500", "parts"},
};
static const bad bad_generic[] = {
    {F32, {.block_m = 40}, "block_m is 40", "multiple of"},
    {F32, {.block_m = 128, .block_n = 128, .block_k = 12}, "block_k is 12", "multiple of 8"},
    {F32, {.block_m = 128, .block_n = 128, .stages = 30}, "stages is 30", "2 to 16"},
    {F64, {.block_m = 128, .block_n = 128, .stages = 16}, "bytes of shared memory", "gives a block"},
    {F64, {.block_m = 64, .warp_m = 48}, "warp_m is 48", "divides block_m"},
    {F32, {.block_m = 128, .block_n = 128, .cluster_m = 2}, "cluster_m", "2 was asked for"},
};
static const bad bad_cpu[] = {
    {F32, {.block_k = 63}, "block_k is 63", "multiple of"},
    {F32, {.block_m = 7}, "block_m is 7", "multiple of"},
    {F32, {.cluster_m = 2}, "cluster_m", "2"},
};

static void refuse(const bad *b, int n)
{
    test_rng r = test_rng_make(9);
    for (int i = 0; i < n; i++) {
        problem p = make(&r, b[i].kind, 256, 256, 512);
        const strata_choice choice = {.tile = &b[i].t};
        strata_plan *plan = (strata_plan *)&p;
        test_error(h, plan_of(&p, &choice, &plan), STRATA_ERROR_UNSUPPORTED,
                   "with the tile that was asked for", b[i].number, b[i].rule);
        assert_null(plan);
        drop(&p);
    }
}

static void impossible(void **state)
{
    (void)state;
    if (!on_gpu()) {
        refuse(bad_cpu, TEST_COUNT(bad_cpu));
        return;
    }
    refuse(bad_generic, TEST_COUNT(bad_generic));
    if (h->gpu->cc == 90) refuse(bad_hopper, TEST_COUNT(bad_hopper));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_tile), cmocka_unit_test(impossible)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
