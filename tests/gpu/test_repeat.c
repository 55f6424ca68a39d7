/* SPDX-License-Identifier: Apache-2.0 */
/* test_repeat.c - the same call gives the same bits, every time: each operator runs alternately on two inputs, and every result is compared
 * with the first one of its input. Alternating makes a stale tile or a missing fence show, which the same input twice would hide.
 * STRATA_TEST_SHORT=1: fewer rounds and smaller problems, for runs under compute-sanitizer. Needs a GPU. */
#include <strata.h>
#include "support.h"

static strata_handle *h;
static bool brief;

/* ---- operands in device memory -------------------------------------------------------------------------------------------- */

static size_t type_bytes(int type)
{
    switch (type) {
    case STRATA_F64:
    case STRATA_I64: return 8;
    case STRATA_F32:
    case STRATA_I32: return 4;
    case STRATA_F16:
    case STRATA_BF16: return 2;
    default: return 1;
    }
}

/* Bits of a number in [-1, 1] with few digits, which every type here has: no rounding when it is stored */
static void fill(unsigned char *p, int type, int64_t n, uint64_t seed)
{
    test_rng r = test_rng_make(seed);
    for (int64_t i = 0; i < n; i++) {
        int v = (int)test_int(&r, -4, 4); /* v / 4 */
        double x = v / 4.0;
        float f = (float)x;
        uint32_t u;
        uint16_t half;
        memcpy(&u, &f, 4);
        switch (type) {
        case STRATA_F64: memcpy(p + 8 * i, &x, 8); break;
        case STRATA_F32: f = (float)test_real(&r, -1, 1), memcpy(p + 4 * i, &f, 4); break;
        case STRATA_BF16: half = (uint16_t)(u >> 16), memcpy(p + 2 * i, &half, 2); break;
        case STRATA_F16:
            half =
                v ? (uint16_t)((u >> 16 & 0x8000) | (((u >> 23 & 255) - 112) << 10) | (u >> 13 & 0x3ff)) : 0;
            memcpy(p + 2 * i, &half, 2);
            break;
        case STRATA_F8E4M3:
            p[i] = v ? (unsigned char)((u >> 24 & 0x80) | (((u >> 23 & 255) - 120) << 3) | (u >> 20 & 7)) : 0;
            break;
        default: p[i] = (unsigned char)(signed char)v; break; /* i8 */
        }
    }
}

static strata_tensor on_device(strata_tensor like, uint64_t seed)
{
    int64_t n = strata_count(like);
    size_t bytes = (size_t)n * type_bytes(like.type);
    unsigned char *host = malloc(bytes + 1);
    assert_non_null(host);
    if (seed)
        fill(host, like.type, n, seed);
    else
        memset(host, 0xff, bytes);
    strata_tensor from = like, to = like;
    from.data = host;
    test_ok(h, strata_alloc(h, bytes, &to.data));
    test_ok(h, strata_copy(h, from, to));
    free(host);
    return to;
}

static strata_tensor rows(int type, int64_t m, int64_t n)
{
    return strata_matrix(NULL, (strata_type)type, m, n, STRATA_ROW_MAJOR, 0);
}

/* ---- one operator ------------------------------------------------------------------------------------------------------------ */

enum { MAX_IN = 3 };
typedef struct op op;
struct op {
    const char *name;
    strata_tensor in[2][MAX_IN], out; /* two sets of inputs */
    strata_status (*run)(const op *o, const strata_tensor *in);
    strata_gemm_options gemm;
    strata_conv conv;
    const char *program;
};

static void repeat(op *o, int inputs)
{
    size_t bytes = (size_t)strata_count(o->out) * type_bytes(o->out.type);
    unsigned char *first[2] = {malloc(bytes), malloc(bytes)}, *now = malloc(bytes);
    int rounds = brief ? 2 : 25;
    for (int i = 0; i < 2 * rounds; i++) {
        test_problem("%s, run %d", o->name, i);
        strata_tensor host = o->out;
        strata_status s = o->run(o, o->in[i & 1]);
        if (s == STRATA_ERROR_UNSUPPORTED || s == STRATA_ERROR_TYPE) {
            printf("not on this GPU: %s: %s\n", o->name, strata_error(h));
            break;
        }
        test_ok(h, s);
        host.data = i < 2 ? first[i & 1] : now;
        test_ok(h, strata_copy(h, o->out, host));
        if (i < 2) continue;
        for (size_t b = 0; b < bytes; b++)
            if (now[b] != first[i & 1][b]) {
                int64_t e = (int64_t)(b / type_bytes(o->out.type)), w = o->out.dim[o->out.rank - 1];
                test_fail(__FILE__, __LINE__,
                          "element %lld (row %lld, column %lld) differs from the first run", (long long)e,
                          (long long)(e / w), (long long)(e % w));
            }
    }
    free(first[0]), free(first[1]), free(now);
    for (int s = 0; s < 2; s++)
        for (int k = 0; k < inputs; k++) test_ok(h, strata_free(h, o->in[s][k].data));
    test_ok(h, strata_free(h, o->out.data));
}

static void prepare(op *o, int inputs, const strata_tensor *like, strata_tensor out)
{
    for (int s = 0; s < 2; s++)
        for (int k = 0; k < inputs; k++) o->in[s][k] = on_device(like[k], (uint64_t)(1 + s * MAX_IN + k));
    o->out = on_device(out, 0);
}

/* ---- products ------------------------------------------------------------------------------------------------------------------ */

static strata_status run_gemm(const op *o, const strata_tensor *in)
{
    return strata_gemm(h, strata_real(1), in[0], in[1], strata_real(0), o->out, &o->gemm);
}

static void test_products(void **state)
{
    (void)state;
    static const struct {
        int a, c;
        const char *name;
    } type[] = {{STRATA_F32, STRATA_F32, "f32"},    {STRATA_F64, STRATA_F64, "f64"},
                {STRATA_BF16, STRATA_BF16, "bf16"}, {STRATA_F16, STRATA_F32, "f16"},
                {STRATA_I8, STRATA_I32, "i8"},      {STRATA_F8E4M3, STRATA_F32, "f8e4m3"}};
    /* square; odd; few rows; a long sum, which is split; one that the vector units do */
    static const int64_t size[][3] = {
        {512, 512, 512}, {333, 1000, 777}, {8, 4096, 2048}, {128, 16384, 128}, {1, 1000, 3000}};
    for (int t = 0; t < TEST_COUNT(type); t++)
        for (int s = 0; s < TEST_COUNT(size); s++)
            for (int layout = 0; layout < (brief ? 1 : 4); layout++) {
                /* every layout of the square, one of the others: each is a kernel that may have to be compiled */
                if (s && !brief && layout != ((s + t) & 3)) continue;
                int64_t m = size[s][0], k = size[s][1], n = size[s][2];
                char name[128];
                if (brief) m = (m < 160 ? m : 160), n = (n < 200 ? n : 200), k = (k < 520 ? k : 520);
                op o = {.name = name, .run = run_gemm};
                strata_tensor like[2] = {
                    layout & 1 ? strata_transpose(rows(type[t].a, k, m)) : rows(type[t].a, m, k),
                    layout & 2 ? strata_transpose(rows(type[t].a, n, k)) : rows(type[t].a, k, n)};
                snprintf(name, sizeof name, "product %s %lldx%lldx%lld layout %d", type[t].name, (long long)m,
                         (long long)k, (long long)n, layout);
                prepare(&o, 2, like, rows(type[t].c, m, n));
                repeat(&o, 2);
            }
}

static void test_epilogue(void **state)
{
    (void)state;
    op o = {.name = "product with an epilogue", .run = run_gemm};
    strata_tensor bias = on_device(strata_vector(NULL, STRATA_F32, 300, 0), 9);
    strata_operand operands[] = {{"bias", bias}, {NULL, bias}};
    o.gemm = (strata_gemm_options){.epilogue = "gelu(acc + bias[n])", .operands = operands};
    prepare(&o, 2, (strata_tensor[]){rows(STRATA_F32, 200, 500), rows(STRATA_F32, 500, 300)},
            rows(STRATA_F32, 200, 300));
    repeat(&o, 2);
    test_ok(h, strata_free(h, bias.data));
}

/* ---- rows and images ------------------------------------------------------------------------------------------------------------- */

static strata_status run_program(const op *o, const strata_tensor *in)
{
    strata_operand operands[] = {{"x", in[0]}, {"y", o->out}, {NULL, in[0]}};
    return strata_fused(h, o->program, operands, NULL);
}
static strata_status run_softmax(const op *o, const strata_tensor *in)
{
    return strata_softmax_forward(h, &(strata_softmax){.axis = 1, .axis_is_set = true}, in[0], o->out);
}
static strata_status run_conv(const op *o, const strata_tensor *in)
{
    return strata_conv_forward(h, &o->conv, in[0], in[1], o->out);
}
static strata_status run_conv_data(const op *o, const strata_tensor *in)
{
    return strata_conv_backward_data(h, &o->conv, in[0], in[1], o->out);
}
static strata_status run_conv_weights(const op *o, const strata_tensor *in)
{
    return strata_conv_backward_weights(h, &o->conv, in[0], in[1], o->out);
}

static void test_programs(void **state)
{
    (void)state;
    static const char *const program[] = {"y = gelu(x) * 2",
                                          "m = mean(x); y = (x - m) * rsqrt(var(x) + 1e-5)",
                                          "y = exp(x - max(x)) / sum(exp(x - max(x)))"};
    static const int64_t size[][2] = {{700, 1024}, {33, 5000}, {3, 100000}};
    for (int p = 0; p < TEST_COUNT(program); p++)
        for (int s = 0; s < TEST_COUNT(size) - (brief ? 1 : 0); s++) {
            char name[160];
            op o = {.name = name, .run = run_program, .program = program[p]};
            snprintf(name, sizeof name, "%s on %lldx%lld", program[p], (long long)size[s][0],
                     (long long)size[s][1]);
            prepare(&o, 1, (strata_tensor[]){rows(STRATA_F32, size[s][0], size[s][1])},
                    rows(STRATA_F32, size[s][0], size[s][1]));
            repeat(&o, 1);
        }
    op o = {.name = "softmax", .run = run_softmax};
    prepare(&o, 1, (strata_tensor[]){rows(STRATA_F32, 300, 1000)}, rows(STRATA_F32, 300, 1000));
    repeat(&o, 1);
}

static void test_convolution(void **state)
{
    (void)state;
    int64_t n = brief ? 2 : 16, c = 64, k = 96, e = brief ? 9 : 28;
    strata_conv conv = {.pad = {1, 1}};
    strata_tensor x = strata_nchw(NULL, STRATA_F32, n, c, e, e),
                  w = strata_nchw(NULL, STRATA_F32, k, c, 3, 3),
                  y = strata_nchw(NULL, STRATA_F32, n, k, e, e);
    op o = {.name = "convolution", .run = run_conv, .conv = conv};
    prepare(&o, 2, (strata_tensor[]){x, w}, y);
    repeat(&o, 2);
    o = (op){.name = "convolution, gradient of the image", .run = run_conv_data, .conv = conv};
    prepare(&o, 2, (strata_tensor[]){y, w}, x);
    repeat(&o, 2);
    o = (op){.name = "convolution, gradient of the filter", .run = run_conv_weights, .conv = conv};
    prepare(&o, 2, (strata_tensor[]){x, y}, w);
    repeat(&o, 2);
}

int main(void)
{
    brief = getenv("STRATA_TEST_SHORT") != NULL;
    if (strata_create(&h, "cuda:0")) {
        printf("skipped: %s\n", strata_error(NULL));
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products), cmocka_unit_test(test_epilogue),
                                       cmocka_unit_test(test_programs), cmocka_unit_test(test_convolution)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    strata_destroy(h);
    return failed;
}
