/* SPDX-License-Identifier: Apache-2.0 */
/* test_custom.c - plans of a user's own kernels: on a GPU (or its double) launches, parameters, epilogues and every refusal; on
 * the CPU the same of functions: every piece once, scratch, threads, epilogues with edges and batches, failures. */
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
                   "cpu is NULL", "strata_fused");
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

/* ---- on the CPU ---------------------------------------------------------------------------------------------------------------- */

enum { G = 3, M = 37, NC = 53, T = 16 };

/* marks the piece, looks at the scratch, stores m * 1000 + n by tiles that stick out of the output */
static strata_status tiles(const strata_custom_call *c)
{
    float *acc = c->scratch;
    int *seen = c->data[0];
    const int *const params = c->params;
    const int m0 = (int)c->at[1] * T, n0 = (int)c->at[0] * T;
    if ((uintptr_t)acc % 64 || params[0] != 42 || c->grid[0] != 4 || c->grid[1] != 3 || c->grid[2] != G)
        return STRATA_ERROR_INTERNAL;
    seen[(c->at[2] * c->grid[1] + c->at[1]) * c->grid[0] + c->at[0]]++;
    for (int i = 0; i < T; i++)
        for (int j = 0; j < T; j++) acc[i * (T + 1) + j] = (float)((m0 + i) * 1000 + n0 + j);
    strata_custom_store(c, acc, T + 1, m0, n0, c->at[2], T, T);
    return STRATA_OK;
}
/* a tile that sticks out before the first row and column and behind the last */
static strata_status around(const strata_custom_call *c)
{
    float acc[7 * 7];
    for (int i = 0; i < 49; i++) acc[i] = (float)i;
    strata_custom_store(c, acc, 7, -2, -1, 0, 7, 7);
    return (strata_status) * (const int *)c->params;
}
static strata_status fails(const strata_custom_call *c)
{
    return c->at[0] == 2 ? STRATA_ERROR_MEMORY : STRATA_OK;
}

static void on_cpu(void **s)
{
    (void)s;
    if (on_gpu()) return;
    static int seen[4 * 3 * G];
    static float y[G * M * (NC + 3)], bias[NC], pre[G * M * NC], times[G];
    const int param = 42;
    for (int i = 0; i < NC; i++) bias[i] = (float)i;
    for (int i = 0; i < G; i++) times[i] = (float)(i + 1);
    strata_tensor Y = {.data = y,
                       .type = STRATA_F32,
                       .rank = 3,
                       .dim = {G, M, NC},
                       .stride = {M * (NC + 3), NC + 3, 1}},
                  P = {.data = pre,
                       .type = STRATA_F32,
                       .rank = 3,
                       .dim = {G, M, NC},
                       .stride = {M * NC, NC, 1}},
                  S = {.data = times, .type = STRATA_F32, .rank = 3, .dim = {G, 1, 1}, .stride = {1, 1, 1}};
    const strata_operand ops[] = {{"seen", strata_vector(seen, STRATA_I32, 36, 1)},
                                  {"bias", strata_vector(bias, STRATA_F32, NC, 1)},
                                  {"scale", S},
                                  {"pre", P},
                                  {"y", Y},
                                  {NULL, {0}}};
    strata_custom c = {.entry = "tiles",
                       .cpu = tiles,
                       .grid = {4, 3, G},
                       .params = &param,
                       .params_bytes = sizeof param,
                       .shared_bytes = T * (T + 1) * sizeof(float),
                       .epilogue = "pre = acc + bias[n]; out = pre * scale",
                       .output = "y"};
    for (int threads = 1; threads <= 3; threads++) {
        strata_plan *p;
        test_ok(h, strata_set_threads(h, threads));
        test_ok(h, strata_custom_plan(h, &c, ops, &p));
        test_check(strstr(strata_plan_describe(p), "custom_tiles_cpu") != NULL, "%s",
                   strata_plan_describe(p));
        memset(seen, 0, sizeof seen);
        for (int i = 0; i < TEST_COUNT(y); i++) y[i] = -7;
        test_ok(h, strata_plan_run(h, p, (void *[]){seen, bias, times, pre, y}, NULL));
        for (int i = 0; i < TEST_COUNT(seen); i++)
            test_check(seen[i] == 1, "piece %d ran %d times", i, seen[i]);
        for (int g = 0; g < G; g++)
            for (int m = 0; m < M; m++)
                for (int n = 0; n < NC + 3; n++) {
                    const float z = (float)(m * 1000 + n + n), got = y[(g * M + m) * (NC + 3) + n];
                    test_check(got == (n < NC ? z * (float)(g + 1) : -7), "y[%d][%d][%d] is %g", g, m, n,
                               (double)got);
                    test_check(n >= NC || pre[(g * M + m) * NC + n] == z, "pre[%d][%d][%d]", g, m, n);
                }
        strata_plan_destroy(p);
    }
    test_ok(h, strata_set_threads(h, 0));
    /* without an epilogue sums are converted to the output's type */
    static unsigned char small[3 * T * 4 * T];
    strata_plan *p;
    strata_operand narrow[] = {
        ops[0], {"y", strata_matrix(small, STRATA_BF16, 20, 30, STRATA_ROW_MAJOR, 0)}, {NULL, {0}}};
    c.epilogue = NULL;
    test_ok(h, strata_custom_plan(h, &c, narrow, &p));
    test_ok(h, strata_plan_run(h, p, (void *[]){seen, small}, NULL));
    uint16_t bits;
    memcpy(&bits, small + 2 * (1 * 30 + 24), 2);
    test_check(bits == 0x4480, "1024 as bf16 is %04x", bits);
    strata_plan_destroy(p);
    /* a tile around the whole output; an address that is missing; a status that is none */
    float whole[4 * 4];
    int returned = 0;
    const strata_operand four[] = {{"y", strata_matrix(whole, STRATA_F32, 4, 4, STRATA_ROW_MAJOR, 0)},
                                   {NULL, {0}}};
    c = (strata_custom){.entry = "around",
                        .cpu = around,
                        .params = &returned,
                        .params_bytes = sizeof returned,
                        .output = "y"};
    test_ok(h, strata_custom_plan(h, &c, four, &p));
    test_error(h, strata_plan_run(h, p, (void *[]){NULL}, NULL), STRATA_ERROR_ARGUMENT, "data[0] is NULL");
    test_ok(h, strata_plan_run(h, p, (void *[]){whole}, NULL));
    for (int i = 0; i < 16; i++) {
        const float want = (float)((i / 4 + 2) * 7 + (i & 3) + 1);
        test_check(whole[i] == want, "%d is %g", i, (double)whole[i]);
    }
    strata_plan_destroy(p);
    returned = 999;
    test_ok(h, strata_custom_plan(h, &c, four, &p));
    test_error(h, strata_plan_run(h, p, (void *[]){whole}, NULL), STRATA_ERROR_INTERNAL, "custom_around_cpu");
    strata_plan_destroy(p);
    /* what fails names the piece */
    c = (strata_custom){.entry = "fails", .cpu = fails, .grid = {5, 1, 2}};
    test_ok(h, strata_custom_plan(h, &c, ops, &p));
    test_error(h, strata_plan_run(h, p, (void *[]){seen, bias, times, pre, y}, NULL), STRATA_ERROR_MEMORY,
               "custom_fails_cpu", "piece (2, 0, ");
    strata_plan_destroy(p);
    c.shared_bytes = (size_t)2 << 30;
    test_error(h, strata_custom_plan(h, &c, ops, &p), STRATA_ERROR_ARGUMENT, "shared_bytes", "1073741824");
    c.shared_bytes = 0;
    c.grid[0] = c.grid[1] = 1u << 31;
    test_error(h, strata_custom_plan(h, &c, ops, &p), STRATA_ERROR_ARGUMENT, "grid", "2^40");
    c.grid[0] = c.grid[1] = 1;
    c.epilogue = "gelv(acc)";
    c.output = "y";
    test_error(h, strata_custom_plan(h, &c, ops, &p), STRATA_ERROR_SYNTAX, "gelv", "gelu");
    c.epilogue = "sum(acc)";
    test_error(h, strata_custom_plan(h, &c, ops, &p), STRATA_ERROR_ARGUMENT, "no reduction");
    c.output = "nobody";
    test_error(h, strata_custom_plan(h, &c, ops, &p), STRATA_ERROR_ARGUMENT, "output is 'nobody'");
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
    BAD(source, NULL, STRATA_ERROR_UNSUPPORTED, "no kernel for", "source and file are NULL");
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
                                       cmocka_unit_test(on_cpu), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
