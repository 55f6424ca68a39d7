/* SPDX-License-Identifier: Apache-2.0 */
/* calls.h - one call or two of every operator in a few shapes each, on arrays of this file, for tests about what all operators have in common:
 * that they ask for no memory, give the same bits on any number of threads, live through fork. */
#ifndef TEST_CALLS_H
#define TEST_CALLS_H
#include "support.h"
#include <strata.h>

static strata_handle *h;
enum { FLOATS = 600 * 600 };
static float a[FLOATS], b[FLOATS], c[FLOATS], d[FLOATS];
static double da[300 * 300], db[300 * 300], dc[300 * 300];
static int32_t labels[512], arg[FLOATS];

static strata_tensor f32(float *p, int64_t m, int64_t n)
{
    return strata_matrix(p, STRATA_F32, m, n, STRATA_ROW_MAJOR, 0);
}

static strata_status gemm(int v)
{
    static const int64_t size[][3] = {{8, 8, 8},       {64, 64, 64},    {1, 500, 500}, {500, 3, 500},
                                      {300, 300, 300}, {513, 511, 257}, {30, 600, 2}};
    int64_t m = size[v][0], n = size[v][1], k = size[v][2];
    return strata_gemm(h, strata_real(1.5), f32(a, m, k), strata_transpose(f32(b, n, k)), strata_real(0.5),
                       f32(c, m, n), NULL);
}
static strata_status gemm_f64(int v)
{
    int64_t n = v ? 300 : 20;
    return strata_gemm(h, STRATA_ONE, strata_matrix(da, STRATA_F64, n, n, STRATA_COL_MAJOR, 0),
                       strata_matrix(db, STRATA_F64, n, n, STRATA_ROW_MAJOR, 0), STRATA_ZERO,
                       strata_matrix(dc, STRATA_F64, n, n, STRATA_COL_MAJOR, 0), NULL);
}
static strata_status gemm_batch(int v)
{
    int64_t n = v ? 65 : 7;
    return strata_gemm(h, STRATA_ONE, strata_batch(f32(a, n, n), 20, 0), f32(b, n, n), STRATA_ZERO,
                       strata_batch(f32(c, n, n), 20, 0), NULL);
}
static strata_status gemm_epilogue(int v)
{
    int64_t n = v ? 200 : 24;
    strata_operand operands[] = {
        {"bias", strata_vector(d, STRATA_F32, n, 1)}, {"r", f32(d, n, n)}, {NULL, {0}}};
    strata_gemm_options o = {.epilogue = "gelu(acc + bias[n]) + r", .operands = operands};
    return strata_gemm(h, STRATA_ONE, f32(a, n, n), f32(b, n, n), STRATA_ZERO, f32(c, n, n), &o);
}
static strata_status gemm_no_terms(int v)
{
    return strata_gemm(h, v ? STRATA_ONE : STRATA_ZERO, f32(a, 50, v ? 0 : 9), f32(b, v ? 0 : 9, 50),
                       strata_real(0.5), f32(c, 50, 50), NULL);
}

static strata_tensor image(float *p, int v, int64_t n, int64_t ch, int64_t y, int64_t x)
{
    return (v & 1 ? strata_nhwc : strata_nchw)(p, STRATA_F32, n, ch, y, x);
}
static strata_status conv_forward(int v)
{
    strata_conv o = {
        .pad = {1, 1},
        .epilogue = v & 2 ? "relu(acc + bias[n])" : NULL,
        .operands =
            v & 2 ? (strata_operand[]){{"bias", strata_vector(d, STRATA_F32, 16, 1)}, {NULL, {0}}} : NULL};
    return strata_conv_forward(h, &o, image(a, v, 4, 8, 20, 20), image(b, v, 16, 8, 3, 3),
                               image(c, v, 4, 16, 20, 20));
}
static strata_status conv_data(int v)
{
    strata_conv o = {.pad = {1, 1}};
    return strata_conv_backward_data(h, &o, image(a, v, 4, 16, 20, 20), image(b, v, 16, 8, 3, 3),
                                     image(c, v, 4, 8, 20, 20));
}
static strata_status conv_weights(int v)
{
    strata_conv o = {.pad = {1, 1}};
    return strata_conv_backward_weights(h, &o, image(a, v, 4, 8, 20, 20), image(b, v, 4, 16, 20, 20),
                                        image(c, v, 16, 8, 3, 3));
}

static strata_status fused_map(int v)
{
    int64_t n = v ? 500 : 10;
    return strata_fused(h, "y = gelu(x * 0.5 + z) + w[n]",
                        (strata_operand[]){{"x", f32(a, n, n)},
                                           {"z", f32(b, n, n)},
                                           {"w", strata_vector(d, STRATA_F32, n, 1)},
                                           {"y", f32(c, n, n)},
                                           {NULL, {0}}},
                        NULL);
}
static strata_status fused_rows(int v)
{
    int64_t n = v ? 500 : 10;
    return strata_fused(
        h, "y = (x - mean(x)) * rsqrt(var(x) + 1e-5) * w[n]",
        (strata_operand[]){
            {"x", f32(a, n, n)}, {"w", strata_vector(d, STRATA_F32, n, 1)}, {"y", f32(c, n, n)}, {NULL, {0}}},
        NULL);
}
static strata_status fused_columns(int v)
{
    int64_t n = v ? 500 : 10;
    return strata_fused(h, "s = sum(x)",
                        (strata_operand[]){{"x", f32(a, n, n)}, {"s", f32(c, 1, n)}, {NULL, {0}}},
                        &(strata_fused_options){.axes = 1});
}

static strata_status batch_norm(int v)
{
    strata_batch_norm_tensors t = {.x = image(a, v, 8, 16, 12, 12),
                                   .y = image(c, v, 8, 16, 12, 12),
                                   .scale = strata_vector(d, STRATA_F32, 16, 1),
                                   .shift = strata_vector(d + 16, STRATA_F32, 16, 1),
                                   .running_mean = strata_vector(d + 32, STRATA_F32, 16, 1),
                                   .running_var = strata_vector(d + 48, STRATA_F32, 16, 1),
                                   .save_mean = strata_vector(d + 64, STRATA_F32, 16, 1),
                                   .save_inv_std = strata_vector(d + 80, STRATA_F32, 16, 1)};
    strata_status s =
        v & 2 ? strata_batch_norm_inference(h, NULL, &t) : strata_batch_norm_training(h, NULL, &t);
    if (s || v & 2) return s;
    t.dy = image(b, v, 8, 16, 12, 12);
    t.dx = t.y;
    t.dscale = strata_vector(d + 96, STRATA_F32, 16, 1);
    t.dshift = strata_vector(d + 112, STRATA_F32, 16, 1);
    return strata_batch_norm_backward(h, NULL, &t);
}
static strata_status pool(int v)
{
    strata_pool o = {.kind = v & 2 ? STRATA_POOL_AVERAGE : STRATA_POOL_MAX, .window = {2, 2}};
    strata_tensor x = image(a, v, 8, 16, 12, 12), y = image(b, v, 8, 16, 6, 6), none = {0};
    strata_tensor where = v & 2 ? none : (v & 1 ? strata_nhwc : strata_nchw)(arg, STRATA_I32, 8, 16, 6, 6);
    strata_status s = strata_pool_forward(h, &o, x, y, where);
    return s ? s : strata_pool_backward(h, &o, x, y, where, image(c, v, 8, 16, 12, 12));
}
static strata_status softmax(int v)
{
    int64_t n = v & 1 ? 500 : 10;
    strata_softmax o = {.log = v & 2};
    strata_status s = strata_softmax_forward(h, &o, f32(a, n, n), f32(b, n, n));
    return s ? s : strata_softmax_backward(h, &o, f32(b, n, n), f32(a, n, n), f32(c, n, n));
}
static strata_status cross_entropy(int v)
{
    int64_t n = v ? 300 : 10;
    strata_tensor l = strata_vector(labels, STRATA_I32, n, 1);
    strata_status s =
        strata_cross_entropy_forward(h, NULL, f32(a, n, 10), l, strata_vector(d, STRATA_F32, n, 1));
    return s ? s
             : strata_cross_entropy_backward(h, NULL, f32(a, n, 10), l, strata_point(d, STRATA_F32),
                                             f32(c, n, 10));
}
static strata_status activation(int v)
{
    strata_activation o = {.kind = (strata_activation_kind)(v % STRATA_ACTIVATION_COUNT)};
    strata_status s = strata_activation_forward(h, &o, f32(a, 200, 200), f32(b, 200, 200));
    return s ? s : strata_activation_backward(h, &o, f32(a, 200, 200), f32(b, 200, 200), f32(c, 200, 200));
}
static strata_status copy_and_fill(int v)
{
    int64_t n = v ? 500 : 10;
    strata_status s = strata_fill(h, f32(a, n, n), STRATA_ONE);
    return s ? s : strata_copy(h, strata_transpose(f32(a, n, n)), f32(b, n, n));
}

typedef strata_status (*call_fn)(int variant);
static const struct {
    const char *name;
    call_fn call;
    int variants;
} calls[] = {
    {"gemm", gemm, 7},
    {"gemm f64", gemm_f64, 2},
    {"gemm batched", gemm_batch, 2},
    {"gemm with an epilogue", gemm_epilogue, 2},
    {"gemm without terms", gemm_no_terms, 2},
    {"convolution", conv_forward, 4},
    {"convolution, gradient of the data", conv_data, 2},
    {"convolution, gradient of the weights", conv_weights, 2},
    {"fused map", fused_map, 2},
    {"fused rows", fused_rows, 2},
    {"fused columns", fused_columns, 2},
    {"batch norm", batch_norm, 4},
    {"pooling", pool, 4},
    {"softmax", softmax, 4},
    {"cross-entropy", cross_entropy, 2},
    {"activations", activation, STRATA_ACTIVATION_COUNT},
    {"copy and fill", copy_and_fill, 2},
};

/* Values between -1 and 1 everywhere, labels between 0 and 9: the same every time. */
static void fill_arrays(void)
{
    test_rng r = {0x9e3779b97f4a7c15u};
    float *f[] = {a, b, c, d};
    double *g[] = {da, db, dc};
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < FLOATS; i++) f[k][i] = (float)test_real(&r, -1, 1);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 300 * 300; i++) g[k][i] = test_real(&r, -1, 1);
    for (int i = 0; i < 512; i++) labels[i] = (int32_t)test_int(&r, 0, 9);
    for (int i = 0; i < 600; i++) d[i] = (float)test_real(&r, 0.5, 1); /* variances lie here */
    memset(arg, 0, sizeof arg);
}
#endif
