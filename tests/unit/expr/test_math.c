/* SPDX-License-Identifier: Apache-2.0 */
/* test_math.c - every elementary function at every level this processor has, against libm in higher precision, over the whole range
 * of the type. The bounds are those that docs/expressions.md gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "expr/code.h"
#include "math_reference.h"

/* bounds in units in the last place; gelu_tanh's is relaxed by `tail` */
static const struct {
    const char *name;
    st_op op;
    real (*ref)(real);
    double f32, f64;
} functions[] = {
    {"sqrt", ST_OP_SQRT, sqrtl, 0.5001, 0.5001},
    {"rsqrt", ST_OP_RSQRT, r_rsqrt, 1.5, 1.5},
    {"exp", ST_OP_EXP, expl, 1.2, 1.0},
    {"exp2", ST_OP_EXP2, exp2l, 1.2, 1.0},
    {"expm1", ST_OP_EXPM1, expm1l, 2, 1.01},
    {"log", ST_OP_LOG, logl, 1.0, 1.0},
    {"log2", ST_OP_LOG2, log2l, 1.0, 1.0},
    {"log1p", ST_OP_LOG1P, log1pl, 1.0, 1.0},
    {"sin", ST_OP_SIN, sinl, 1.0, 1.0},
    {"cos", ST_OP_COS, cosl, 1.0, 1.0},
    {"tan", ST_OP_TAN, tanl, 1.0, 1.01},
    {"atan", ST_OP_ATAN, atanl, 1.0, 1.01},
    {"tanh", ST_OP_TANH, tanhl, 2.6, 2.1},
    {"erf", ST_OP_ERF, erfl, 2.7, 1.0},
    {"erfc", ST_OP_ERFC, erfcl, 6.5, 3.2},
    {"sigmoid", ST_OP_SIGMOID, r_sigmoid, 2.5, 2.5},
    {"gelu", ST_OP_GELU, r_gelu, 6.5, 5},
    {"silu", ST_OP_SILU, r_silu, 3, 4.5},
    {"softplus", ST_OP_SOFTPLUS, r_softplus, 2, 2},
    {"elu", ST_OP_ELU, r_elu, 2, 1.01},
    {"hard_swish", ST_OP_HARD_SWISH, r_hard_swish, 2.5, 2.5},
    {"gelu_tanh", ST_OP_GELU_TANH, r_gelu_tanh, 4, 4},
};

enum { CHUNK = 1 << 14 };

static void apply(int level, bool f64, st_op op, const void *x, void *y, int64_t n)
{
    st_loc L[2] = {{y, 0, 0, 0}, {(char *)(uintptr_t)x, 0, 0, 0}};
    st_insn in = {.dst = 0, .src = {1, 1, 1, 1, 1}};
    st_expr_kernels(level, f64)->op[op][0](L, &in, 1, n);
}

/* one chunk of arguments at every level */
static void check(int fn, bool f64, const double *x, int n, double *worst, double *at)
{
    static float xf[CHUNK], yf[CHUNK];
    static double y[CHUNK];
    static real ref[CHUNK];
    for (int i = 0; i < n; i++) {
        xf[i] = (float)x[i];
        ref[i] = f64 ? functions[fn].ref(x[i]) : (real)functions[fn].ref(xf[i]);
    }
    for (int level = 0; level <= st_cpu_get()->level; level++) {
        apply(level, f64, functions[fn].op, f64 ? (const void *)x : xf, f64 ? (void *)y : yf, n);
        for (int i = 0; i < n; i++) {
            double e =
                ulp_error(ref[i], f64 ? y[i] : yf[i], f64) - tail(functions[fn].op, f64, f64 ? x[i] : xf[i]);
            if (!(e <= worst[level])) worst[level] = e, at[level] = x[i];
        }
    }
}

static void sweep(bool f64)
{
    static double x[CHUNK];
    int points = f64 ? 150000 : 400000, bad = 0;
    for (int fn = 0; fn < ST_COUNT(functions); fn++) {
        double worst[ST_LEVELS] = {0}, at[ST_LEVELS] = {0},
               bound = f64 ? functions[fn].f64 : functions[fn].f32;
        uint64_t step = (f64 ? UINT64_MAX : UINT32_MAX) / (uint64_t)points, u = 1;
        for (int done = 0; done < points; done += CHUNK) { /* all bit patterns, evenly */
            for (int i = 0; i < CHUNK; i++, u += step) x[i] = from_bits(u, f64);
            check(fn, f64, x, CHUNK, worst, at);
        }
        static const double ranges[][2] = {{-1, 1}, {-6, 6}, {-20, 20}, {-110, 110}, {-800, 800}};
        for (int r = 0; r < ST_COUNT(ranges); r++)
            for (int part = 0; part < 4; part++) {
                for (int i = 0; i < CHUNK; i++) {
                    double t = (part * CHUNK + i + 0.37) / (4.0 * CHUNK);
                    x[i] = ranges[r][0] + (ranges[r][1] - ranges[r][0]) * t;
                }
                check(fn, f64, x, CHUNK, worst, at);
            }
        for (int level = 0; level <= st_cpu_get()->level; level++) {
            bool ok = worst[level] <= bound;
            bad += !ok;
            if (!ok || getenv("VERBOSE"))
                printf("%-10s %s level %d: %.3f ulp at %.9g (bound %g)%s\n", functions[fn].name,
                       f64 ? "f64" : "f32", level, worst[level], at[level], bound, ok ? "" : "  <--");
        }
    }
    assert_int_equal(bad, 0);
}

static void test_f32(void **state)
{
    (void)state;
    sweep(false);
}
static void test_f64(void **state)
{
    (void)state;
    sweep(true);
}

/* pow on random pairs of bit patterns, of ordinary numbers, and of special values */
static void test_pow(void **state)
{
    (void)state;
    enum { N = 60000 };
    static const double special[] = {0,  -0.0,     1,         -1,  2,     -2,     0.5,   3,
                                     -3, INFINITY, -INFINITY, NAN, 1e-40, -1e-40, 1e300, 2.5};
    static float xf[N], yf[N], zf[N];
    static double x[N], y[N], z[N];
    uint64_t s = 12345;
    for (int f64 = 0; f64 < 2; f64++)
        for (int kind = 0; kind < 3; kind++) {
            for (int i = 0; i < N; i++) {
                uint64_t u = s = s * 6364136223846793005u + 1442695040888963407u,
                         v = s = s * 6364136223846793005u + 1442695040888963407u;
                x[i] = kind == 0   ? from_bits(f64 ? u : u >> 32, f64)
                       : kind == 1 ? (double)(u >> 40) * 0x1p-20
                                   : special[u >> 60];
                y[i] = kind == 0   ? from_bits(f64 ? v : v >> 32, f64)
                       : kind == 1 ? (double)(v >> 40) * 0x1p-21 - 4
                                   : special[v >> 60];
                if (!f64) x[i] = xf[i] = (float)x[i], y[i] = yf[i] = (float)y[i];
            }
            for (int level = 0; level <= st_cpu_get()->level; level++) {
                st_loc L[3] = {{f64 ? (char *)z : (char *)zf, 0, 0, 0},
                               {f64 ? (char *)x : (char *)xf, 0, 0, 0},
                               {f64 ? (char *)y : (char *)yf, 0, 0, 0}};
                st_insn in = {.dst = 0, .src = {1, 2, 2, 2, 2}};
                st_expr_kernels(level, f64)->op[ST_OP_POW][0](L, &in, 1, N);
                for (int i = 0; i < N; i++) {
                    double e = ulp_error(powl(x[i], y[i]), f64 ? z[i] : zf[i], f64);
                    if (!(e <= 1.01)) {
                        printf("pow(%.17g, %.17g) %s level %d: %.17g, %.3f ulp\n", x[i], y[i],
                               f64 ? "f64" : "f32", level, f64 ? z[i] : zf[i], e);
                        fail();
                    }
                }
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_f32), cmocka_unit_test(test_f64),
                                       cmocka_unit_test(test_pow)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
