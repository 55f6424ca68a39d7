/* SPDX-License-Identifier: Apache-2.0 */
/* math_reference.h - the functions of the language in long double, and the error of a result in units in the last place. */
#ifndef TEST_MATH_REFERENCE_H
#define TEST_MATH_REFERENCE_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "expr/ir.h"

typedef long double real;

static real r_rsqrt(real x) { return 1 / sqrtl(x); }
static real r_sigmoid(real x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }
static real r_gelu(real x)
{
    if (x < -60) return -0.0L;
    return 0.5L * x * erfcl(-x * 0.707106781186547524400844362104849039L);
}
static real r_gelu_tanh(real x)
{
    if (x < -100) return -0.0L;
    return x / (1 + expl(-2 * 0.797884560802865355879892119868763737L * (x + 0.044715L * x * x * x)));
}
static real r_silu(real x) { return x < -11000 ? -0.0L : x / (1 + expl(-x)); }
static real r_softplus(real x) { return (x > 0 ? x : 0) + log1pl(expl(-fabsl(x))); }
static real r_elu(real x) { return x > 0 ? x : expm1l(x); }
static real r_hard_swish(real x) { return x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6; }

static double ulp_error(real ref, double got, bool f64)
{
    int digits = f64 ? 53 : 24, lowest = f64 ? -1074 : -149, top = f64 ? 1024 : 128, e;
    if (isnan(ref)) return isnan(got) ? 0 : INFINITY;
    if (isnan(got)) return INFINITY;
    if (isinf(ref)) return got == (double)ref ? 0 : INFINITY;
    real g = isinf(got) ? copysignl(ldexpl(1, top), got) : got;
    if (fabsl(ref) >= ldexpl(1, top) && isinf(got) && (got > 0) == (ref > 0)) return 0;
    frexpl(ref, &e);
    e -= digits;
    if (ref == 0 || e < lowest) e = lowest;
    return (double)(fabsl(g - ref) / ldexpl(1, e));
}

/* gelu_tanh below zero is x exp(2 u), and the rounding errors of u come out multiplied by it: 3 |2 u| more.
 * gelu of f64 below -37.5 is made from an erfc that is denormal already. */
static double tail(st_op op, bool f64, double x)
{
    if (op == ST_OP_GELU && f64 && x < -37.5) return 30;
    if (op != ST_OP_GELU_TANH || x > 0) return 0;
    double u2 = 1.5957691216057308 * -x * (1 + 0.044715 * x * x);
    return 3 * fmin(u2, 800);
}

static double from_bits(uint64_t u, bool f64)
{
    double d;
    float f;
    uint32_t v = (uint32_t)u;
    memcpy(&d, &u, 8);
    memcpy(&f, &v, 4);
    return f64 ? d : f;
}
#endif
