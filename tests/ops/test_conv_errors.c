/* SPDX-License-Identifier: Apache-2.0 */
/* test_conv_errors.c - what convolution says about bad input, and that nothing is written then; its epilogue; its plans. */
#include "support.h"
#include <math.h>
#include <strata.h>

static strata_handle *h;
static float x[2 * 4 * 6 * 6], w[6 * 4 * 3 * 3], y[2 * 6 * 6 * 6], other[2 * 6 * 6 * 6];

static strata_tensor tx(void) { return strata_nhwc(x, STRATA_F32, 2, 4, 6, 6); }
static strata_tensor tw(void) { return strata_nhwc(w, STRATA_F32, 6, 4, 3, 3); }
static strata_tensor ty(int64_t p, int64_t q) { return strata_nhwc(y, STRATA_F32, 2, 6, p, q); }

static void test_options(void **state)
{
    (void)state;
    const strata_conv bad_pad = {.pad = {-1, 0}}, bad_stride = {.stride = {1, -2}},
                      bad_dilation = {.dilation = {-1, 1}};
    const strata_conv bad_end = {.pad_end = {0, 1}}, bad_groups = {.groups = 3}, negative = {.groups = -1};
    const strata_conv reserved = {.reserved = {0, 1}};
    const strata_conv wide = {.dilation = {3, 1}}, huge = {.pad = {INT64_MAX, 0}};
    memset(y, 0xff, sizeof y);
    test_error(h, strata_conv_forward(h, &bad_pad, tx(), tw(), ty(4, 4)), STRATA_ERROR_ARGUMENT,
               "strata_conv_forward", "pad[0]", "-1");
    test_error(h, strata_conv_forward(h, &huge, tx(), tw(), ty(4, 4)), STRATA_ERROR_ARGUMENT, "pad[0]",
               "2^30");
    test_error(h, strata_conv_forward(h, &bad_stride, tx(), tw(), ty(4, 4)), STRATA_ERROR_ARGUMENT,
               "stride[1]", "-2");
    test_error(h, strata_conv_forward(h, &bad_dilation, tx(), tw(), ty(4, 4)), STRATA_ERROR_ARGUMENT,
               "dilation[0]", "-1");
    test_error(h, strata_conv_forward(h, &bad_end, tx(), tw(), ty(4, 4)), STRATA_ERROR_ARGUMENT, "pad_end[1]",
               "asymmetric");
    test_error(h, strata_conv_forward(h, &bad_groups, tx(), tw(), ty(4, 4)), STRATA_ERROR_SHAPE,
               "groups is 3", "divide");
    test_error(h, strata_conv_forward(h, &negative, tx(), tw(), ty(4, 4)), STRATA_ERROR_ARGUMENT,
               "groups is -1");
    test_error(h, strata_conv_forward(h, &reserved, tx(), tw(), ty(4, 4)), STRATA_ERROR_ARGUMENT,
               "reserved[1]");
    test_error(h, strata_conv_forward(h, &wide, tx(), tw(), ty(4, 4)), STRATA_ERROR_SHAPE, "reaches over 7",
               "padded image is 6", "rows");
    test_error(NULL, strata_conv_forward(NULL, NULL, tx(), tw(), ty(4, 4)), STRATA_ERROR_ARGUMENT,
               "strata_conv_forward", "handle");
    for (size_t i = 0; i < sizeof y / sizeof *y; i++) assert_true(isnan(y[i]));
}

static void test_shapes(void **state)
{
    (void)state;
    const strata_conv pad = {.pad = {1, 1}}, stride = {.pad = {1, 1}, .stride = {2, 2}};
    memset(y, 0xff, sizeof y);
    test_error(h, strata_conv_forward(h, &pad, tx(), tw(), ty(4, 4)), STRATA_ERROR_SHAPE, "y is 2x6x4x4",
               "must be 2x6x6x6", "padding 1,1");
    test_error(h, strata_conv_forward(h, &stride, tx(), tw(), ty(6, 6)), STRATA_ERROR_SHAPE,
               "must be 2x6x3x3", "stride 2,2");
    test_error(h, strata_conv_backward_data(h, &pad, ty(4, 4), tw(), tx()), STRATA_ERROR_SHAPE,
               "strata_conv_backward_data", "dy is 2x6x4x4");
    test_error(h, strata_conv_backward_weights(h, &pad, tx(), ty(4, 4), tw()), STRATA_ERROR_SHAPE,
               "strata_conv_backward_weights", "dy");
    test_error(h, strata_conv_forward(h, NULL, strata_nhwc(x, STRATA_F32, 2, 3, 6, 6), tw(), ty(4, 4)),
               STRATA_ERROR_SHAPE, "w's dim 1 is 4", "channels / groups = 3 / 1 = 3");
    test_error(
        h,
        strata_conv_forward(h, NULL, strata_matrix(x, STRATA_F32, 4, 4, STRATA_ROW_MAJOR, 0), tw(), ty(4, 4)),
        STRATA_ERROR_SHAPE, "x is 4x4", "rank 2", "(n, c, h, w)");
    test_error(
        h,
        strata_conv_forward(h, NULL, tx(), strata_matrix(w, STRATA_F32, 4, 4, STRATA_ROW_MAJOR, 0), ty(4, 4)),
        STRATA_ERROR_SHAPE, "w is 4x4", "rank 2");
    test_error(h, strata_conv_forward(h, NULL, tx(), strata_nhwc(w, STRATA_F32, 6, 4, 0, 3), ty(4, 4)),
               STRATA_ERROR_SHAPE, "w is 6x4x0x3", "at least one");
    test_error(h, strata_conv_forward(h, NULL, strata_nhwc(NULL, STRATA_F32, 2, 4, 6, 6), tw(), ty(4, 4)),
               STRATA_ERROR_ARGUMENT, "x", "NULL");
    test_error(h, strata_conv_forward(h, NULL, strata_nhwc(x, STRATA_F32, 2, -4, 6, 6), tw(), ty(4, 4)),
               STRATA_ERROR_SHAPE, "x", "-4");
    int64_t dim[4];
    test_error(h, strata_conv_output(h, NULL, tx(), tw(), NULL), STRATA_ERROR_ARGUMENT, "strata_conv_output",
               "dim is NULL");
    test_ok(h, strata_conv_output(h, &stride, strata_nhwc(NULL, STRATA_F32, 2, 4, 6, 6),
                                  strata_nhwc(NULL, STRATA_F32, 6, 4, 3, 3), dim));
    assert_true(dim[0] == 2 && dim[1] == 6 && dim[2] == 3 && dim[3] == 3);
    for (size_t i = 0; i < sizeof y / sizeof *y; i++) assert_true(isnan(y[i]));
}

static void test_types_and_memory(void **state)
{
    (void)state;
    memset(y, 0xff, sizeof y);
    test_error(h, strata_conv_forward(h, NULL, strata_nhwc(x, STRATA_BF16, 2, 4, 6, 6), tw(), ty(4, 4)),
               STRATA_ERROR_TYPE, "x is bf16", "f32 and f64");
    test_error(h, strata_conv_forward(h, NULL, strata_nhwc(x, STRATA_F64, 1, 4, 6, 6), tw(), ty(4, 4)),
               STRATA_ERROR_TYPE, "f64", "f32");
    test_error(h, strata_conv_forward(h, NULL, tx(), tw(), strata_nhwc(x, STRATA_F32, 2, 6, 4, 4)),
               STRATA_ERROR_ALIAS, "y overlaps x");
    test_error(h,
               strata_conv_backward_weights(h, NULL, tx(), ty(4, 4), strata_nhwc(y, STRATA_F32, 6, 4, 3, 3)),
               STRATA_ERROR_ALIAS, "dw overlaps dy");
    strata_tensor row = ty(4, 4);
    row.stride[3] = 0;
    test_error(h, strata_conv_forward(h, NULL, tx(), tw(), row), STRATA_ERROR_LAYOUT, "y", "stride 0");
    for (size_t i = 0; i < sizeof y / sizeof *y; i++) assert_true(isnan(y[i]));
}

static void test_plans(void **state)
{
    (void)state;
    strata_plan *p = (strata_plan *)&x;
    test_error(h, strata_conv_forward_plan(h, NULL, tx(), tw(), ty(4, 4), NULL, NULL), STRATA_ERROR_ARGUMENT,
               "plan is NULL");
    test_error(h, strata_conv_forward_plan(h, NULL, tx(), tw(), ty(3, 4), NULL, &p), STRATA_ERROR_SHAPE,
               "strata_conv_forward_plan");
    assert_null(p);
    test_error(h,
               strata_conv_forward_plan(h, NULL, tx(), tw(), ty(4, 4),
                                        &(strata_choice){.kernel = "conv_of_dreams"}, &p),
               STRATA_ERROR_ARGUMENT, "conv_of_dreams", "strata_kernels");
    test_ok(h, strata_conv_forward_plan(h, NULL, tx(), tw(), ty(4, 4),
                                        &(strata_choice){.limit_workspace = true}, &p));
    assert_true(strata_plan_workspace(p) == 0);
    strata_plan_destroy(p);
    test_ok(h, strata_conv_backward_data_plan(h, &(strata_conv){.stride = {2, 2}}, ty(2, 2), tw(), tx(), NULL,
                                              &p));
    assert_non_null(strstr(strata_plan_describe(p), "4 steps"));
    assert_non_null(strstr(strata_plan_describe(p), "nhwc"));
    /* too small a workspace of the run's own */
    if (strata_plan_workspace(p) > 0) {
        void *data[3] = {y, w, x};
        test_error(h, strata_plan_run(h, p, data, &(strata_run){.workspace = x, .workspace_bytes = 1}),
                   STRATA_ERROR_WORKSPACE, "workspace");
    }
    strata_plan_destroy(p);
}

/* out = relu(acc * scale[n] + bias[n]) + residual, with the sum itself kept, in every kernel. */
static void test_epilogue(void **state)
{
    (void)state;
    test_rng r = test_rng_make(201);
    static const char program[] = "pre = acc; out = max(acc * scale[n] + bias[n], 0) + residual";
    for (int round = 0; round < 6; round++) {
        const int64_t o = round % 2 ? 37 : 6, c = round % 3 ? 5 : 20, n = 2, s = 9, p = 7 + 2 * (round % 2);
        const strata_type type = round == 4 ? STRATA_F64 : STRATA_F32;
        const int order[4] = {0, 3, 1, 2};
        test_array ax = test_array_make(&r, type, 4, (int64_t[]){n, s, s, c}, TEST_PACKED),
                   aw = test_array_make(&r, type, 4, (int64_t[]){o, c, 3, 3}, TEST_ANY),
                   ay = test_array_make(&r, type, 4, (int64_t[]){n, p, p, o}, TEST_PACKED),
                   pre = test_array_make(&r, type, 4, (int64_t[]){n, o, p, p}, TEST_ANY),
                   res = test_array_make(&r, type, 4, (int64_t[]){n, o, p, p}, TEST_ANY),
                   bias = test_array_make(&r, type, 1, &o, TEST_ANY),
                   scale = test_array_make(&r, type, 1, &o, TEST_ANY);
        if (round < 3) {
            ax.t = strata_permute(ax.t, order);
            ay.t = strata_permute(ay.t, order);
        } else {
            test_array_free(&ax);
            test_array_free(&ay);
            ax = test_array_make(&r, type, 4, (int64_t[]){n, c, s, s}, TEST_PACKED);
            ay = test_array_make(&r, type, 4, (int64_t[]){n, o, p, p}, TEST_PACKED);
        }
        test_array *in[] = {&ax, &aw, &res, &bias, &scale};
        for (int i = 0; i < 5; i++) test_array_random(&r, in[i], -1, 1);
        const strata_operand operands[] = {
            {"pre", pre.t}, {"scale", scale.t}, {"bias", bias.t}, {"residual", res.t}, {NULL, {0}}};
        const strata_conv option = {.pad = {p == 9, p == 9}, .epilogue = program, .operands = operands};
        const strata_conv plain = {.pad = {p == 9, p == 9}};
        test_problem("epilogue round %d", round);
        test_array want = test_array_make(&r, type, 4, (int64_t[]){n, o, p, p}, TEST_PACKED);
        test_ok(h, strata_conv_forward(h, &plain, ax.t, aw.t, want.t));
        strata_kernel_info info;
        int used = 0;
        for (int k = -1; k < 0 || strata_kernels(k, &info); k++) {
            strata_plan *q;
            const strata_choice choice = {.kernel = k < 0 ? NULL : info.id};
            strata_status st = strata_conv_forward_plan(h, &option, ax.t, aw.t, ay.t, &choice, &q);
            if (k < 0) test_ok(h, st);
            if (st) continue;
            used++;
            test_problem("epilogue round %d %s", round, strata_plan_kernel(q));
            void *data[] = {ax.t.data,    aw.t.data,   ay.t.data, pre.t.data,
                            scale.t.data, bias.t.data, res.t.data};
            test_ok(h, strata_plan_run(h, q, data, NULL));
            strata_plan_destroy(q);
            int64_t i[STRATA_MAX_RANK] = {0};
            const double gamma = test_gamma(9 * c + 8, type);
            do { /* |x|, |w| <= 1: a sum of at most 9 c */
                const double acc = test_get(&want.t, i), bound = gamma * 9.0 * (double)c * 2;
                const double v = acc * test_get(&scale.t, &i[1]) + test_get(&bias.t, &i[1]);
                test_close(test_get(&pre.t, i), acc, bound, "pre");
                test_close(test_get(&ay.t, i), (v > 0 ? v : 0) + test_get(&res.t, i),
                           bound + 8 * test_unit(type) * (fabs(v) + 3), "out");
            } while (test_next(&want.t, i));
        }
        test_check(used > 3, "only %d kernels took the epilogue", used);
        test_array *all[] = {&ax, &aw, &ay, &pre, &res, &bias, &scale, &want};
        for (int i = 0; i < TEST_COUNT(all); i++) {
            test_array_intact(all[i]);
            test_array_free(all[i]);
        }
    }
}

static void test_epilogue_errors(void **state)
{
    (void)state;
    memset(y, 0xff, sizeof y);
    float bias[6] = {0};
    const strata_operand good[] = {{"bias", strata_vector(bias, STRATA_F32, 6, 1)}, {NULL, {0}}};
    const strata_operand longer[] = {{"bias", strata_vector(bias, STRATA_F32, 5, 1)}, {NULL, {0}}};
    const strata_operand same[] = {{"r", ty(4, 4)}, {NULL, {0}}};
    const strata_operand taken[] = {{"acc", strata_vector(bias, STRATA_F32, 6, 1)}, {NULL, {0}}};
    const strata_operand odd[] = {{"r", strata_nhwc(other, STRATA_F32, 2, 6, 4, 3)}, {NULL, {0}}};
#define E(text, ops) \
    strata_conv_forward(h, &(strata_conv){.epilogue = text, .operands = ops}, tx(), tw(), ty(4, 4))
    test_error(h, E(NULL, good), STRATA_ERROR_ARGUMENT, "operands", "no epilogue");
    test_error(h, E("acc + bais[n]", good), STRATA_ERROR_SYNTAX, "bais");
    test_error(h, E("acc * 2", good), STRATA_ERROR_ARGUMENT, "operand bias does not occur in the epilogue");
    test_error(h, E("acc + bias[n]", longer), STRATA_ERROR_SHAPE, "bias is 5", "6 output channels");
    test_error(h, E("acc + bias", good), STRATA_ERROR_SHAPE, "bias is 6", "bias[n]");
    test_error(h, E("acc + r", same), STRATA_ERROR_ALIAS, "r overlaps y");
    test_error(h, E("acc", taken), STRATA_ERROR_ARGUMENT, "acc", "taken");
    test_error(h, E("acc + r", odd), STRATA_ERROR_SHAPE, "r is 2x6x4x3", "2x6x4x4");
    test_error(h, E("acc + index(0)", NULL), STRATA_ERROR_UNSUPPORTED, "index()");
    test_error(h, strata_conv_backward_data(h, &(strata_conv){.epilogue = "acc"}, ty(4, 4), tw(), tx()),
               STRATA_ERROR_ARGUMENT, "epilogue", "strata_conv_forward only");
    for (size_t i = 0; i < sizeof y / sizeof *y; i++) assert_true(isnan(y[i]));
}

/* A workspace may not lie where an operand lies; nothing is written then. */
static void test_workspace_alias(void **state)
{
    (void)state;
    enum { C = 64, S = 9, N = C * S * S };
    if (strcmp(strata_handle_device(h), "cpu") != 0) skip(); /* a workspace in host memory is refused there */
    float *m = aligned_alloc(64, 16 << 20), *image = m, *filters = m + N, *result = filters + C * C * 9;
    char *ws = (char *)m + (8 << 20);
    const strata_conv o = {.pad = {1, 1}};
    strata_plan *p;
    for (int i = 0; i < N; i++) image[i] = result[i] = 1;
    for (int i = 0; i < C * C * 9; i++) filters[i] = 1;
    test_problem("workspace alias");
    test_ok(h, strata_conv_forward_plan(h, &o, strata_nhwc(image, STRATA_F32, 1, C, S, S),
                                        strata_nhwc(filters, STRATA_F32, C, C, 3, 3),
                                        strata_nhwc(result, STRATA_F32, 1, C, S, S), NULL, &p));
    const size_t bytes = strata_plan_workspace(p);
    assert_true(bytes > 0 && bytes < 4 << 20);
    void *const data[3] = {image, filters, result};
    /* over the image; over the last bytes of result */
    char *const bad[] = {(char *)m, (char *)((uintptr_t)(result + N - 1) & ~(uintptr_t)63)};
    for (int i = 0; i < 2; i++) {
        const strata_run r = {.workspace = bad[i], .workspace_bytes = bytes};
        test_error(h, strata_plan_run(h, p, data, &r), STRATA_ERROR_ALIAS,
                   "shares memory with the run's workspace", i ? "operand 2" : "operand 0");
        test_ok(h, strata_set_workspace(h, bad[i], 4 << 20));
        test_error(h, strata_plan_run(h, p, data, NULL), STRATA_ERROR_ALIAS, "the handle's workspace");
        test_ok(h, strata_set_workspace(h, NULL, 0));
    }
    for (int i = 0; i < N; i++) assert_true(image[i] == 1 && result[i] == 1);
    const strata_run good = {.workspace = ws, .workspace_bytes = bytes};
    test_ok(h, strata_plan_run(h, p, data, &good));
    assert_true(result[(4 * S + 4) * C] == 9 * C);
    strata_plan_destroy(p);
    free(m);
}

/* Infinite weights beside padding. A padded tap is left out or multiplied as a zero, as suits the kernel: an output whose window overhangs may
 * be NaN there, and is never another number; outputs whose windows lie inside are what they are. A NaN of the image reaches the outputs
 * whose windows hold it and no others. */
static void test_not_finite(void **state)
{
    (void)state;
    strata_kernel_info info;
    enum { C = 20, O = 18, S = 7 };
    static float image[C * S * S], filters[O * C * 9], result[O * S * S], clean[O * S * S];
    const strata_conv o = {.pad = {1, 1}};
    const strata_tensor ti = strata_nhwc(image, STRATA_F32, 1, C, S, S),
                        tf = strata_nhwc(filters, STRATA_F32, O, C, 3, 3),
                        tr = strata_nhwc(result, STRATA_F32, 1, O, S, S);
    for (int k = 0; strata_kernels(k, &info); k++) {
        strata_plan *p;
        if (!info.usable || (strcmp(info.family, "conv") && strcmp(info.family, "reference"))) continue;
        for (int i = 0; i < C * S * S; i++) image[i] = 1 + (float)(i % 3);
        for (int i = 0; i < O * C * 9; i++) filters[i] = (float)(i % 5) - 2;
        test_problem("not finite, %s", info.id);
        if (strata_conv_forward_plan(h, &o, ti, tf, tr, &(strata_choice){.kernel = info.id}, &p)) continue;
        test_ok(h, strata_plan_run(h, p, (void *[]){image, filters, result}, NULL));
        memcpy(clean, result, sizeof result);
        filters[0] = INFINITY; /* filter 0, tap (0, 0), channel 0 */
        test_ok(h, strata_plan_run(h, p, (void *[]){image, filters, result}, NULL));
        for (int i = 0; i < S * S; i++) {
            const bool overhangs = i / S == 0 || i % S == 0;
            if (overhangs)
                test_check(isnan(result[i * O]) || result[i * O] == clean[i * O], "output %d is %g", i,
                           (double)result[i * O]);
            else
                test_check(isinf(result[i * O]), "output %d is %g", i, (double)result[i * O]);
            for (int f = 1; f < O; f++)
                test_check(result[i * O + f] == clean[i * O + f], "output %d of filter %d", i, f);
        }
        filters[0] = -2;
        image[(3 * S + 3) * C + 5] = NAN;
        test_ok(h, strata_plan_run(h, p, (void *[]){image, filters, result}, NULL));
        for (int i = 0; i < S * S; i++) {
            const bool near = abs(i / S - 3) <= 1 && abs(i % S - 3) <= 1;
            for (int f = 0; f < O; f++)
                test_check(near ? isnan(result[i * O + f]) : result[i * O + f] == clean[i * O + f],
                           "output %d of filter %d", i, f);
        }
        strata_plan_destroy(p);
    }
}

static int setup(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) x[i] = (float)(i % 7) - 3;
    for (size_t i = 0; i < sizeof w / sizeof *w; i++) w[i] = (float)(i % 5) - 2;
    return strata_create(&h, test_device()) != STRATA_OK;
}
static int teardown(void **state)
{
    (void)state;
    strata_destroy(h);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),          cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_types_and_memory), cmocka_unit_test(test_workspace_alias),
        cmocka_unit_test(test_not_finite),       cmocka_unit_test(test_plans),
        cmocka_unit_test(test_epilogue),         cmocka_unit_test(test_epilogue_errors),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
