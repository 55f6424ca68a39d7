/* SPDX-License-Identifier: Apache-2.0 */
/* test_cuda_text.c - programs as GPU kernels, without a GPU: every function, reduction, type and way through memory is compiled for the oldest and for a
 * newer architecture, without warnings or spills. Skipped where there is no NVRTC.
 * STRATA_TEST_DUMP=<folder> keeps the generated headers. */
#include "pointwise/cuda/program_cuda.h"
#include "runtime/gpu.h"
#include "support.h"
#include <string.h>

typedef struct view {
    const char *name;
    strata_tensor t;
} view;

static char memory[64];
static strata_tensor tensor(strata_type type, int rank, const int64_t *dim)
{
    return strata_array(memory, type, rank, dim, NULL);
}
#define T(type, ...)                                                                 \
    tensor(STRATA_##type, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
           (const int64_t[]){__VA_ARGS__})

static const st_pw_device hopper = {.sms = 132, .cc = 90, .smem = 227 << 10, .l2 = 50 << 20},
                          ampere = {.sms = 108, .cc = 80, .smem = 163 << 10, .l2 = 40 << 20};
static int compiled, skipped;

static void shape_of(const char *text, uint32_t axes, const view *v, st_pw_shape *s)
{
    static int64_t key[ST_KEY_WORDS];
    int64_t *k = key + ST_KEY_HEAD;
    st_err e = {0};
    memset(key, 0, sizeof key);
    key[0] = ST_PW_PROGRAM, key[1] = 16, key[2] = axes;
    for (; v->name; v++, key[3]++) {
        const strata_tensor *t = &v->t;
        *k++ = t->type | (int64_t)t->rank << 8;
        memcpy(k, v->name, strlen(v->name));
        k += ST_KEY_NAME;
        memcpy(k, t->dim, (size_t)t->rank * sizeof *k), k += t->rank;
        memcpy(k, t->stride, (size_t)t->rank * sizeof *k), k += t->rank;
    }
    if (st_pw_shape_make(&e, "test", key, text, s)) fail_msg("%s: %s", text, e.text);
}

/* compiles, with more registers where they do not do, as a plan does */
static void compile(const char *title, st_pw_cuda *c, const char *arch)
{
    st_text t = {0};
    st_pw_cuda_text(c, &t);
    assert_false(t.failed);
    const char *folder = getenv("STRATA_TEST_DUMP");
    if (folder) {
        char path[512];
        snprintf(path, sizeof path, "%s/%03d_%s_%s.cuh", folder, compiled,
                 st_pw_cuda_spec(c, title, t.s).entry, arch);
        FILE *f = fopen(path, "w");
        if (f) fprintf(f, "/* %s */\n%s", title, t.s), fclose(f);
    }
    const st_gpu_spec spec = st_pw_cuda_spec(c, title, t.s);
    st_gpu_image im = {0};
    st_err e = {0};
    if (st_gpu_compile(&e, &spec, arch, &im)) {
        if (e.status == STRATA_ERROR_UNSUPPORTED || e.status == STRATA_ERROR_DEVICE) {
            skipped++;
        } else {
            fprintf(stderr, "%s\n", t.s);
            fail_msg("%s for %s: %s %s", title, arch, e.text, im.log ? im.log : "");
        }
    } else {
        compiled++;
        /* f64 divisions and logarithms are calls, around which a few registers are saved */
        const bool spills = im.spill_stores > (c->s->f64 ? 64 : 0);
        if (spills && st_pw_cuda_relax(c)) {
            compile(title, c, arch);
        } else if (spills || (im.log && strstr(im.log, "warning")))
            fail_msg("%s for %s: %d bytes of spills, %d registers\n%s", title, arch, im.spill_stores,
                     im.registers, im.log);
        if (getenv("STRATA_TEST_VERBOSE"))
            fprintf(stderr, "%-8s %3d registers %4d bytes of stack %5zu bytes %4.0f ms  %s\n", arch,
                    im.registers, im.stack, im.size, im.ms, title);
    }
    free(im.bytes);
    free(im.log);
    free(t.s);
}

static void both(const char *text, uint32_t axes, const view *v, st_pw_way way)
{
    st_pw_shape s;
    shape_of(text, axes, v, &s);
    for (int i = 0; i < 2 && !skipped; i++) {
        st_pw_cuda c;
        st_pw_cuda_make(&c, &s, i ? &hopper : &ampere, 16, true);
        if (c.way != way) fail_msg("%s goes way %d, not %d", text, c.way, way);
        compile(text, &c, i ? "sm_90a" : "sm_80");
    }
    st_expr_free(s.x);
}
#define BOTH(way, text, axes, ...) both(text, axes, (const view[]){__VA_ARGS__, {NULL, {0}}}, ST_PW_WAY_##way)

static void every_function(void **state)
{
    (void)state;
    static const char *const one[] = {
        "abs",        "sqrt",   "rsqrt",  "exp",       "exp2", "expm1", "log",   "log2",
        "log1p",      "sin",    "cos",    "tan",       "atan", "tanh",  "erf",   "erfc",
        "sigmoid",    "relu",   "gelu",   "gelu_tanh", "silu", "elu",   "rint",  "softplus",
        "hard_swish", "floor",  "ceil",   "trunc",     "sign", "isnan", "isinf", "sat_i4",
        "sat_u4",     "sat_i8", "sat_u8", "sat_i32",   "-",    "!"};
    char text[2048] = "";
    for (int wide = 0; wide < 2; wide++) {
        /* ten functions a kernel: that is quicker than one each */
        for (int i = 0; i < ST_COUNT(one); i += 10) {
            int n = snprintf(text, sizeof text, "y = 0 * x");
            for (int k = i; k < i + 10 && k < ST_COUNT(one); k++)
                n += snprintf(text + n, sizeof text - (size_t)n, " + %s(x)", one[k]);
            const strata_tensor t = wide ? T(F64, 4096, 64) : T(F32, 4096, 64);
            BOTH(MAP, text, 0, {"x", t}, {"y", t});
        }
        const strata_tensor t = wide ? T(F64, 300, 70) : T(F32, 300, 70);
        BOTH(MAP,
             "y = pow(x, a) + copysign(x, a) + leaky_relu(x, 0.1) + (x < a) + (x <= a) + (x == a) + (x != a) "
             "+ (x > 1 && a > 1) + (x > 2 || "
             "a > 2) + fma(x, a, -1.5) - select(x, a, 3) + clamp(x, -1, a) + min(x, a) - max(x, -a) + x / a "
             "- 2 * x + (x ** 3 - a * x) + nan "
             "- inf * a",
             0, {"x", t}, {"a", t}, {"y", t});
    }
}

static void every_type(void **state)
{
    (void)state;
    static const strata_type types[] = {STRATA_F16, STRATA_BF16, STRATA_F8E4M3, STRATA_F8E5M2, STRATA_I64,
                                        STRATA_I32, STRATA_I8,   STRATA_U8,     STRATA_BOOL};
    for (int i = 0; i < ST_COUNT(types); i++)
        for (int odd = 0; odd < 2; odd++) {
            const int64_t dim[2] = {64, odd ? 63 : 64};
            const strata_tensor a = tensor(types[i], 2, dim), f = tensor(STRATA_F32, 2, dim),
                                d = tensor(STRATA_F64, 2, dim);
            BOTH(MAP, "y = x + 1; z = x", 0, {"x", a}, {"y", a}, {"z", f});
            BOTH(ROWS, "y = x - mean(x)", 0, {"x", d}, {"y", a});
        }
}

/* less than a byte: read and written in whole bytes, inside them, along lines, and one a line */
static void every_part(void **state)
{
    (void)state;
    static const strata_type types[] = {STRATA_I4, STRATA_U4, STRATA_BIT};
    for (int i = 0; i < ST_COUNT(types); i++)
        for (int odd = 0; odd < 2; odd++) {
            const int64_t dim[2] = {512, odd ? 63 : 64}, turned[2] = {dim[1], dim[0]};
            const strata_tensor q = tensor(types[i], 2, dim), f = tensor(STRATA_F32, 2, dim),
                                c = strata_transpose(tensor(types[i], 2, turned)),
                                line = strata_matrix(memory, types[i], 512, 1, STRATA_COL_MAJOR, 0);
            BOTH(MAP, "y = x + 1; z = x", 0, {"x", q}, {"y", q}, {"z", f});
            BOTH(MAP, "y = x", 0, {"x", c}, {"y", f});
            BOTH(ROWS, "y = x - max(x); a = any(x)", 0, {"x", q}, {"y", f}, {"a", line});
            BOTH(ROWS, "y = x - mean(x) * s", 0, {"x", f}, {"y", q}, {"s", line});
        }
    BOTH(MAP, "y = (q - z) * s", 0, {"q", T(U4, 32, 128, 4096)}, {"z", T(U4, 32, 1, 4096)},
         {"s", T(F32, 32, 1, 4096)}, {"y", T(BF16, 32, 128, 4096)});
    BOTH(MAP, "mask = x > 0; y = relu(x)", 0, {"x", T(F32, 4096, 4096)}, {"mask", T(BIT, 4096, 4096)},
         {"y", T(BF16, 4096, 4096)});
}

static void every_reduction(void **state)
{
    (void)state;
    const char *text = "a = sum(x * x); b = mean(x); c = var(x) + prod(x); d = max(x) + min(x) + absmax(x); "
                       "e = any(x) + all(x); f = argmax(x); y = x "
                       "- mean(x)";
    for (int wide = 0; wide < 2; wide++) {
        const strata_type t = wide ? STRATA_F64 : STRATA_F32;
        const struct {
            int64_t rows, cols;
            uint32_t axes;
            st_pw_way way;
        } list[] = {{4096, 64, 2, ST_PW_WAY_ROWS},    {4096, 2048, 2, ST_PW_WAY_ROWS},
                    {512, 32768, 2, ST_PW_WAY_ROWS},  {512, 200000, 2, ST_PW_WAY_ROWS},
                    {2, 1000000, 2, ST_PW_WAY_SPLIT}, {64, 65536, 1, ST_PW_WAY_COLS},
                    {4096, 64, 1, ST_PW_WAY_SPLIT},   {37, 8191, 2, ST_PW_WAY_ROWS}};
        for (int i = 0; i < ST_COUNT(list); i++) {
            const int64_t d[2] = {list[i].rows, list[i].cols},
                          l[2] = {list[i].axes & 1 ? 1 : d[0], list[i].axes & 2 ? 1 : d[1]};
            const strata_tensor x = tensor(t, 2, d), s = tensor(t, 2, l);
            both(text, list[i].axes,
                 (const view[]){{"x", x},
                                {"y", x},
                                {"a", s},
                                {"b", s},
                                {"c", s},
                                {"d", s},
                                {"e", s},
                                {"f", s},
                                {NULL, {0}}},
                 list[i].way);
        }
    }
}

static void documented(void **state)
{
    (void)state;
    const strata_tensor x = T(BF16, 8192, 4096), y = T(F32, 8192, 4096), w = T(F32, 4096),
                        s = T(F32, 8192, 1), q = T(I8, 8192, 4096);
    BOTH(ROWS, "y = (x - mean(x)) * rsqrt(var(x) + 1e-5) * w[n] + b[n]", 0, {"x", x}, {"y", x}, {"w", w},
         {"b", w});
    BOTH(ROWS, "y = (x - mean(x)) * rsqrt(var(x) + 1e-5) * w[n] + b[n]", 0, {"x", y}, {"y", y}, {"w", w},
         {"b", w});
    BOTH(ROWS, "s = absmax(x) / 127; q = sat_i8(rint(x / s))", 0, {"x", x}, {"s", s}, {"q", q});
    BOTH(ROWS, "y = exp(x - max(x)); y = y / sum(y)", 0, {"x", x}, {"y", x});
    BOTH(ROWS, "t = x - max(x); y = t - log(sum(exp(t)))", 0, {"x", y}, {"y", y});
    BOTH(ROWS, "y = x * rsqrt(mean(x * x) + 1e-6) * w[n]", 0, {"x", x}, {"y", x}, {"w", w});
    for (int64_t n = 96; n < 70000; n = n * 3 + 8) { /* every kind of row kernel */
        const strata_tensor d = T(F64, 8192, n), f = T(F32, 8192, n), v = T(F64, n), dl = T(F64, 8192, 1);
        BOTH(ROWS, "e = exp(x - max(x)); y = e * (1 / sum(e))", 0, {"x", d}, {"y", d});
        BOTH(ROWS, "dx = y * (dy - sum(dy * y))", 0, {"y", d}, {"dy", d}, {"dx", d});
        BOTH(ROWS, "y = (x - mean(x)) * rsqrt(var(x) + 1e-5) * w[n]; l = log(sum(exp(x)))", 0, {"x", d},
             {"y", d}, {"w", v}, {"l", dl});
        BOTH(ROWS, "dx = dx + y * (dy - sum(dy * y))", 0, {"y", f}, {"dy", f}, {"dx", f});
    }
    BOTH(MAP, "y = gelu(x)", 0, {"x", x}, {"y", x});
    BOTH(MAP, "y = a * x + b * y", 0, {"x", y}, {"y", y}, {"a", strata_point(memory, STRATA_F32)},
         {"b", strata_point(memory, STRATA_F64)});
}

static void views(void **state)
{
    (void)state;
    const strata_tensor x = T(F32, 6, 5, 8, 7), y = T(F32, 6, 5, 8, 7);
    const int order[4] = {3, 1, 0, 2};
    BOTH(MAP, "y = x + z", 0, {"x", strata_permute(x, (const int[]){0, 2, 1, 3})}, {"y", T(F32, 6, 8, 5, 7)},
         {"z", T(F32, 8, 1, 7)});
    BOTH(MAP, "y = x + 1000 * index(-1) + 100 * index(-2) + index(0) + index(1)", 0, {"x", x}, {"y", y});
    BOTH(ROWS, "m = max(select(x == max(x), index(-1), -1)) + index(-2)", 0, {"x", x},
         {"m", T(F32, 6, 5, 8, 1)});
    BOTH(ROWS, "m = sum(x)", 1 | 4, {"x", strata_permute(x, order)}, {"m", T(F32, 1, 5, 1, 8)});
    BOTH(ROWS, "m = sum(x); y = x - m", 1 | 2 | 8, {"x", strata_slice(x, 3, 0, 6, 1)},
         {"m", T(F32, 1, 1, 8, 1)}, {"y", T(F32, 6, 5, 8, 6)});
    BOTH(ROWS, "y = x - run; run = 0.5 * run + 0.5 * mean(x)", 8, {"x", x}, {"y", y},
         {"run", T(F32, 6, 5, 8, 1)});
    BOTH(MAP, "y = x * 2", 0, {"x", strata_point(memory, STRATA_F32)},
         {"y", strata_point(memory, STRATA_F32)});
}

/* A line is summed in the same order whatever the number of lines: what fixes the order follows from its length, and only which blocks do it may differ. (One line that
 * stands alone among columns is a row.) */
static bool same_order(const st_pw_cuda *a, const st_pw_cuda *b)
{
    const bool parts = a->stream || a->way == ST_PW_WAY_SPLIT,
               others = b->stream || b->way == ST_PW_WAY_SPLIT;
    if (a->tall != b->tall || a->width != b->width || a->precise != b->precise) return false;
    if (a->tall) return a->parts == b->parts && a->chunk == b->chunk && a->slots == b->slots;
    if (parts || others)
        return parts == others && a->parts == b->parts && a->chunk == b->chunk && a->slots == b->slots &&
               a->threads == b->threads;
    /* of one block's slots some may be empty */
    return a->group == b->group && a->cluster == b->cluster && (a->cluster == 1 || a->slots == b->slots);
}
static void company(void **state)
{
    (void)state;
    static const int64_t lines[] = {2, 1, 7, 31, 200, 1000, 5000, 100000};
    for (int64_t n = 2; n < 3000000; n = n * 5 / 3 + 1)
        for (int kind = 0; kind < 8; kind++) {
            const bool cols = kind & 1, weights = kind & 4;
            const strata_type type = kind & 2 ? STRATA_F32 : STRATA_BF16;
            st_pw_cuda first = {0}, c;
            for (int i = 0; i < 2 * ST_COUNT(lines); i++) {
                const int64_t l = lines[i / 2], dim[2] = {cols ? n : l, cols ? l : n},
                              one[2] = {cols ? n : 1, cols ? 1 : n};
                st_pw_shape s;
                if (cols && l == 1) continue;
                shape_of(weights ? "y = (x - mean(x)) * rsqrt(var(x) + 1e-5) * w" : "y = x / sum(exp(x))",
                         cols ? 1 : 2,
                         (const view[]){{"x", tensor(type, 2, dim)},
                                        {"y", tensor(type, 2, dim)},
                                        {weights ? "w" : NULL, tensor(STRATA_F32, 2, one)},
                                        {NULL, {0}}},
                         &s);
                st_pw_cuda_make(&c, &s, &hopper, 16, i & 1);
                if (i == 0) first = c;
                if (!same_order(&c, &first))
                    fail_msg("kind %d, %lld elements: %lld lines are summed in another order than %lld", kind,
                             (long long)n, (long long)l, (long long)lines[0]);
                st_expr_free(s.x);
            }
        }
}

/* the numbers that kernels divide by */
static void divisions(void **state)
{
    (void)state;
    st_pw_shape s;
    for (int64_t d = 2; d < 3000; d = d * 3 / 2 + 1) {
        const int64_t dims[3] = {3, d, 5};
        const strata_tensor x = tensor(STRATA_F32, 3, dims);
        shape_of("y = x + index(0) + index(1) + index(2)", 0, (const view[]){{"x", x}, {"y", x}, {NULL, {0}}},
                 &s);
        st_pw_cuda c;
        int64_t w[ST_PW_WORDS];
        st_pw_cuda_make(&c, &s, &hopper, 16, true);
        st_pw_cuda_words(&c, w);
        assert_int_equal(c.ne, 3);
        const uint64_t by = (uint64_t)w[2 * s.nvars + 7 + 2 * 1 + 1];
        for (uint64_t x0 = 0; x0 < (1ull << 31); x0 = x0 * 5 / 4 + 1)
            for (uint64_t k = x0 / (uint64_t)d * (uint64_t)d, i = 0; i < 3; i++) {
                const uint32_t v = (uint32_t)(k + i - 1);
                if (v >> 31) continue;
                const uint32_t q =
                    (uint32_t)((uint32_t)(((uint64_t)v * (uint32_t)by) >> 32) + v) >> (by >> 32);
                assert_int_equal(q, v / (uint32_t)d);
            }
        st_expr_free(s.x);
    }
}

static int teardown(void **state)
{
    (void)state;
    if (skipped) printf("there is no NVRTC here: nothing was compiled\n");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(documented),      cmocka_unit_test(every_function),
                                       cmocka_unit_test(every_type),      cmocka_unit_test(every_part),
                                       cmocka_unit_test(every_reduction), cmocka_unit_test(views),
                                       cmocka_unit_test(divisions),       cmocka_unit_test(company)};
    return cmocka_run_group_tests(tests, NULL, teardown);
}
