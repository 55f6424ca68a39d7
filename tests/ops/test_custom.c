/* SPDX-License-Identifier: Apache-2.0 */
/* test_custom.c - plans of a user's own kernels: on a GPU (or its double) launches, parameters, epilogues and every refusal; on the CPU the one refusal there. */
#include <stdlib.h>
#include <strata.h>
#include <string.h>
#include "handle.h"
#include "support.h"

static const char scale[] = "extern \"C\" __global__ void scale(const float *x, float *y, int n, float f)\n"
                            "{\n"
                            "    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                            "    if (i < n) y[i] = f * x[i];\n"
                            "}\n";
static const char rows[] =
    "#include \"types.cuh\"\n#include \"epilogue.cuh\"\n"
    "extern \"C\" __global__ void rows(const float *x, float *, const float *, i8 *y, st_epi e)\n"
    "{\n"
    "    const int m = blockIdx.x, n = threadIdx.x;\n"
    "    y[m * COLS + n] = from<i8>(st_epilogue(e, x[m * COLS + n], m, n, 0));\n"
    "}\n";

enum { N = 1000, ROWS = 7, COLS = 96 };

static void runs(void **s)
{
    (void)s;
    float x[N], y[N + 1];
    for (int i = 0; i < N; i++) x[i] = (float)i - 300;
    for (int i = 0; i <= N; i++) y[i] = 7;
    const strata_operand ops[] = {
        {"x", strata_vector(x, STRATA_F32, N, 1)}, {"y", strata_vector(y, STRATA_F32, N, 1)}, {NULL, {0}}};
    const struct {
        int n;
        float f;
    } params = {N, 3};
    strata_custom c = {.source = scale,
                       .entry = "scale",
                       .grid = {8},
                       .block = {128},
                       .params = &params,
                       .params_bytes = sizeof params};
    strata_plan *p;
    if (!on_gpu()) {
        test_error(h, strata_custom_plan(h, &c, ops, &p), STRATA_ERROR_UNSUPPORTED, "strata_custom_plan",
                   "CUDA C", "strata_fused");
        assert_null(p);
        return;
    }
    /* two parameters by value are one struct: the kernel takes them as its last two only where their layout is the same */
    static const char both[] = "struct st { int n; float f; };\n"
                               "extern \"C\" __global__ void scale(const float *x, float *y, st s)\n"
                               "{\n    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < "
                               "s.n) y[i] = s.f * x[i];\n}\n";
    c.source = both;
    test_ok(h, strata_custom_plan(h, &c, ops, &p));
    test_check(strstr(strata_plan_describe(p), "grid 8x1x1, block 128x1x1") != NULL, "%s",
               strata_plan_describe(p));
    test_ok(h, strata_plan_run(h, p, (void *[]){x, y}, NULL));
    test_ok(h, strata_synchronize(h));
    for (int i = 0; i < N && !test_values_ignored(); i++)
        test_check(y[i] == 3 * x[i], "y[%d] is %g", i, (double)y[i]);
    test_check(y[N] == 7, "the kernel wrote behind y");
    strata_plan_destroy(p);
}

static void epilogue(void **s)
{
    (void)s;
    static float x[ROWS * COLS], pre[ROWS * COLS], bias[COLS];
    static signed char y[ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++) x[i] = (float)(i % 41 - 20);
    for (int i = 0; i < COLS; i++) bias[i] = (float)(i % 5);
    const strata_operand ops[] = {{"x", strata_matrix(x, STRATA_F32, ROWS, COLS, STRATA_ROW_MAJOR, 0)},
                                  {"pre", strata_matrix(pre, STRATA_F32, ROWS, COLS, STRATA_ROW_MAJOR, 0)},
                                  {"bias", strata_vector(bias, STRATA_F32, COLS, 1)},
                                  {"y", strata_matrix(y, STRATA_I8, ROWS, COLS, STRATA_ROW_MAJOR, 0)},
                                  {NULL, {0}}};
    strata_custom c = {.source = rows,
                       .entry = "rows",
                       .options = (const char *const[]){"-DCOLS=96", NULL},
                       .grid = {ROWS},
                       .block = {COLS},
                       .epilogue = "pre = acc + bias[n]; out = sat_i8(relu(pre) * 2)",
                       .output = "y"};
    strata_plan *p;
    if (!on_gpu()) return;
    test_ok(h, strata_custom_plan(h, &c, ops, &p));
    test_ok(h, strata_plan_run(h, p, (void *[]){x, pre, bias, y}, NULL));
    test_ok(h, strata_synchronize(h));
    for (int i = 0; i < ROWS * COLS && !test_values_ignored(); i++) {
        const float z = x[i] + bias[i % COLS];
        test_check(pre[i] == z && y[i] == (z > 0 ? 2 * z : 0), "%d: pre %g, y %d", i, (double)pre[i], y[i]);
    }
    strata_plan_destroy(p);
    c.output = NULL;
    test_error(h, strata_custom_plan(h, &c, ops, &p), STRATA_ERROR_ARGUMENT, "output is NULL");
    c.output = "y";
    c.epilogue = "gelv(acc)";
    test_error(h, strata_custom_plan(h, &c, ops, &p), STRATA_ERROR_SYNTAX, "gelv", "gelu");
    c.epilogue = "acc + bias";
    test_error(h, strata_custom_plan(h, &c, ops, &p), STRATA_ERROR_SHAPE, "bias[n]");
    c.epilogue = "sum(acc)";
    test_error(h, strata_custom_plan(h, &c, ops, &p), STRATA_ERROR_ARGUMENT, "no reduction");
}

static void refusals(void **s)
{
    (void)s;
    float x[N] = {0};
    const strata_operand ops[] = {{"x", strata_vector(x, STRATA_F32, N, 1)}, {NULL, {0}}};
    strata_custom good = {.source = scale, .entry = "scale", .block = {128}}, c = good;
    strata_plan *p;
    test_error(h, strata_custom_plan(h, NULL, ops, &p), STRATA_ERROR_ARGUMENT, "description is NULL");
    test_error(h, strata_custom_plan(h, &c, ops, NULL), STRATA_ERROR_ARGUMENT, "address for the plan");
    c.reserved[1] = 1;
    test_error(h, strata_custom_plan(h, &c, ops, &p), STRATA_ERROR_ARGUMENT, "reserved");
    if (!on_gpu()) return;
#define BAD(field, value, status, ...)                                          \
    do {                                                                        \
        c = good;                                                               \
        c.field = value;                                                        \
        test_error(h, strata_custom_plan(h, &c, ops, &p), status, __VA_ARGS__); \
        assert_null(p);                                                         \
    } while (0)
    BAD(source, NULL, STRATA_ERROR_ARGUMENT, "both NULL");
    BAD(entry, "a b", STRATA_ERROR_ARGUMENT, "entry is 'a b'");
    BAD(entry, NULL, STRATA_ERROR_ARGUMENT, "entry is NULL");
    BAD(block[0], 2000, STRATA_ERROR_ARGUMENT, "2000 threads", "1024");
    BAD(shared_bytes, (size_t)1 << 30, STRATA_ERROR_ARGUMENT, "shared_bytes");
    BAD(params_bytes, 8, STRATA_ERROR_ARGUMENT, "params");
    c = good;
    c.source = NULL;
    c.file = "/nowhere/kernel.cu";
    test_error(h, strata_custom_plan(h, &c, ops, &p), STRATA_ERROR_IO, "/nowhere/kernel.cu", "No such file");
    const strata_operand twice[] = {ops[0], ops[0], {NULL, {0}}};
    test_error(h, strata_custom_plan(h, &good, twice, &p), STRATA_ERROR_ARGUMENT, "given twice");
    if (test_values_ignored()) return; /* the double of the compiler takes any text */
    BAD(source, "extern \"C\" __global__ void scale() { oops }", STRATA_ERROR_INTERNAL, "does not compile",
        "oops");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(runs), cmocka_unit_test(epilogue),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
