/* SPDX-License-Identifier: Apache-2.0 */
/* activation.c - activations and their derivatives as programs of the pointwise engine. `%s` in a derivative is where accumulation
 * goes; a NaN in x gives NaN in every kind. Infinite x is clamped where a product 0 * Inf would appear in the formula: the
 * derivative has its limit long before. */
#include "dnn/args.h"
#include "pointwise/pointwise.h"
#include <math.h>
#include <stdio.h>
#include <strata/dnn.h>

typedef struct kind {
    const char *forward, *backward; /* with a slope: %.17g */
    bool slope;
    double usual;
} kind;

static const kind kinds[STRATA_ACTIVATION_COUNT] = {
    [STRATA_RELU] = {.forward = "y = relu(x)", .backward = "select(x > 0, dy, select(x <= 0, 0, x))"},
    [STRATA_LEAKY_RELU] = {.forward = "y = select(x > 0, x, x * %.17g)",
                           .backward = "dy * select(x > 0, 1, select(x <= 0, %.17g, x))",
                           .slope = true,
                           .usual = 0.01},
    [STRATA_RELU6] = {.forward = "y = min(max(x, 0), 6)",
                      .backward = "select(x <= 0, 0, select(x >= 6, 0, select(x > 0, dy, x)))"},
    [STRATA_ELU] = {.forward = "y = select(x > 0, x, expm1(x) * %.17g)",
                    .backward = "dy * select(x > 0, 1, exp(x) * %.17g)",
                    .slope = true,
                    .usual = 1},
    [STRATA_SIGMOID] = {.forward = "y = sigmoid(x)", .backward = "dy * (sigmoid(x) * sigmoid(-x))"},
    [STRATA_TANH] = {.forward = "y = tanh(x)", .backward = "dy * (1 - tanh(x) * tanh(x))"},
    [STRATA_GELU] =
        {.forward = "y = gelu(x)",
         .backward =
             "dy * (0.5 + 0.5 * erf(x * 0.70710678118654752) + clamp(x, -40, 40) * 0.39894228040143268 * "
             "exp(-0.5 * clamp(x, -40, 40) * clamp(x, -40, 40)))"},
    [STRATA_GELU_TANH] = {.forward = "y = gelu_tanh(x)",
                          .backward =
                              "dy * (s + c * s * sigmoid(-v) * 1.5957691216057308 * (1 + 0.134145 * c * c))"},
    [STRATA_SILU] = {.forward = "y = silu(x)",
                     .backward = "dy * sigmoid(x) * (1 + clamp(x, -800, 800) * sigmoid(-x))"},
    [STRATA_SOFTPLUS] = {.forward = "y = softplus(x)", .backward = "dy * sigmoid(x)"},
    [STRATA_HARD_SWISH] =
        {.forward = "y = hard_swish(x)",
         .backward = "select(x <= -3, 0, select(x >= 3, dy, dy * (x * 0.33333333333333333 + 0.5)))"},
    [STRATA_IDENTITY] = {.forward = "y = x", .backward = "dy"},
};

static const char *const gelu_tanh_prefix =
    "c = clamp(x, -40, 40); v = 1.5957691216057308 * (c + 0.044715 * c * c * c); s = sigmoid(v); ";

static strata_status check_options(strata_handle *h, const char *who, const strata_activation *o)
{
    strata_status s = st_dnn_reserved(h, who, o->reserved);
    if (s) return s;
    if ((unsigned)o->kind >= STRATA_ACTIVATION_COUNT)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "%s: kind is %d, which is no strata_activation_kind",
                       who, (int)o->kind);
    if (!isfinite(o->slope))
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "%s: slope is %g; it must be finite (0 means the usual)", who, o->slope);
    return STRATA_OK;
}

static void fill(char *buf, size_t n, const char *f, const kind *k, double slope)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
    if (k->slope)
        snprintf(buf, n, f, slope != 0 ? slope : k->usual); /* formats are the table's */
    else
        snprintf(buf, n, "%s", f);
#pragma GCC diagnostic pop
}

strata_status strata_activation_forward(strata_handle *h, const strata_activation *o, strata_tensor x,
                                        strata_tensor y)
{
    static const char who[] = "strata_activation_forward";
    static const strata_activation usual;
    strata_status s = st_handle_check(h, who);
    if (s) return s;
    if (!o) o = &usual;
    const st_dnn_arg args[] = {{"x", &x, .output = false}, {"y", &y, .output = true}};
    if ((s = check_options(h, who, o)) || (s = st_dnn_check(h, who, args, 2, true)) ||
        (s = st_dnn_same_dims(h, who, "x", &x, "y", &y)))
        return s;
    const kind *k = &kinds[o->kind];
    char text[256];
    if (k->slope) fill(text, sizeof text, k->forward, k, o->slope);
    return st_pw_run(h, who, k->slope ? text : k->forward,
                     (const strata_operand[]){{"x", x}, {"y", y}, {NULL, x}}, 0);
}

strata_status strata_activation_backward(strata_handle *h, const strata_activation *o, strata_tensor x,
                                         strata_tensor dy, strata_tensor dx)
{
    static const char who[] = "strata_activation_backward";
    static const strata_activation usual;
    strata_status s = st_handle_check(h, who);
    if (s) return s;
    if (!o) o = &usual;
    const st_dnn_arg args[] = {
        {"x", &x, .output = false}, {"dy", &dy, .output = false}, {"dx", &dx, .output = true}};
    if ((s = check_options(h, who, o)) || (s = st_dnn_check(h, who, args, 3, true)) ||
        (s = st_dnn_same_dims(h, who, "x", &x, "dy", &dy)) ||
        (s = st_dnn_same_dims(h, who, "x", &x, "dx", &dx)))
        return s;
    const kind *k = &kinds[o->kind];
    char body[256], text[512];
    fill(body, sizeof body, k->backward, k, o->slope);
    snprintf(text, sizeof text, "%sdx = %s%s", o->kind == STRATA_GELU_TANH ? gelu_tanh_prefix : "",
             o->accumulate ? "dx + " : "", body);
    const strata_operand with_x[] = {{"dy", dy}, {"dx", dx}, {"x", x}, {NULL, x}},
                         without[] = {{"dy", dy}, {"dx", dx}, {NULL, x}};
    return st_pw_run(h, who, text, o->kind == STRATA_IDENTITY ? without : with_x, 0);
}
