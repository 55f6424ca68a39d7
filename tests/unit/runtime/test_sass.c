/* SPDX-License-Identifier: Apache-2.0 */
/* The gate that reads machine code (tools/pack_sass.c): made-up files for its rule and its bounds, and a real matrix loop compiled both ways. */
#include "../../../tools/pack_sass.c"
#include "driver/driver.h"
#include "runtime/cuda/image.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const char loop[] = "extern \"C\" __global__ void __launch_bounds__(128) loop(float *out, unsigned "
                           "bar, unsigned long long da, int n)\n{\n"
                           "    float d[4] = {0, 0, 0, 0};\n"
                           "    for (int k = 0; k < n; k++) {\n"
                           "        asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");\n"
                           "        asm volatile(\"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
                           "{%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;\"\n"
                           "                     : \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3]) : "
                           "\"l\"(da + k), \"l\"(da + 2 * k));\n"
                           "        asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");\n"
                           "        asm volatile(\"wgmma.wait_group.sync.aligned 0;\" ::: \"memory\");\n"
                           "        asm volatile(\"mbarrier.arrive.\" HOW \".shared::cluster.b64 _, [%0];\" "
                           "::\"r\"(bar) : \"memory\");\n"
                           "    }\n"
                           "    for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = d[i];\n}\n";
const st_gpu_source st_gpu_source_rows[] = {{"loop.cu", loop, sizeof loop - 1}, {NULL, NULL, 0}};

/* A file with one code section of these operations. */
static size_t elf(unsigned char *b, const int *op, int n)
{
    uint64_t at = 64 + 16 * (uint64_t)n, offset = 64, size = 16 * (uint64_t)n, flags = 4;
    uint16_t each = 64, count = 1;
    uint32_t type = 1;
    memset(b, 0, 64 + 16 * (size_t)n + 64);
    memcpy(b, "\177ELF\2\1", 6);
    memcpy(b + 0x28, &at, 8);
    memcpy(b + 0x3a, &each, 2);
    memcpy(b + 0x3c, &count, 2);
    for (int i = 0; i < n; i++) {
        uint64_t w = 0xabcd000 | (uint64_t)op[i];
        memcpy(b + 64 + 16 * i, &w, 8);
    }
    memcpy(b + at + 4, &type, 4);
    memcpy(b + at + 8, &flags, 8);
    memcpy(b + at + 24, &offset, 8);
    memcpy(b + at + 32, &size, 8);
    return (size_t)at + 64;
}

static bool slow(const int *op, int n)
{
    unsigned char b[1024];
    sass_counts c;
    size_t bytes = elf(b, op, n);
    assert_true(sass_count(b, bytes, &c));
    assert_int_equal(c.instructions, n);
    return c.slow_arrive;
}

static void test_rule(void **state)
{
    (void)state;
    assert_true(slow((int[]){HGMMA, MEMBAR, MEMBAR, 0x9ab, ARRIVE}, 5));
    assert_true(slow((int[]){MEMBAR, QGMMA, 0x947, MEMBAR, ARRIVE}, 5));
    assert_true(slow((int[]){HGMMA, ARRIVE, HGMMA, MEMBAR, ARRIVE}, 5));
    assert_false(slow((int[]){MEMBAR, HGMMA, HGMMA, ARRIVE, MEMBAR, ARRIVE}, 6));
    assert_false(slow((int[]){HGMMA, ARRIVE, MEMBAR, SETMAXREG, ARRIVE}, 5));
    assert_false(slow((int[]){MEMBAR, ARRIVE}, 2));
}

static void test_bounds(void **state)
{
    (void)state;
    unsigned char b[1024];
    sass_counts c;
    size_t n = elf(b, (int[]){HGMMA, MEMBAR, ARRIVE}, 3);
    for (size_t cut = 0; cut < n; cut++) {
        unsigned char *exact = malloc(cut + 1); /* so that a sanitizer sees a read behind the end */
        memcpy(exact, b, cut);
        assert_false(sass_count(exact, cut, &c));
        free(exact);
    }
    for (size_t i = 0; i < n; i++)
        for (int v = 0; v < 256; v += 51) {
            unsigned char *other = malloc(n);
            memcpy(other, b, n);
            other[i] = (unsigned char)v;
            sass_count(other, n, &c);
            free(other);
        }
}

static void test_compiled(void **state)
{
    (void)state;
    static const struct {
        const char *how;
        bool slow;
    } want[] = {{"-DHOW=\"release.cluster\"", true}, {"-DHOW=\"relaxed.cluster\"", false}};
    st_err e = {0};
    if (!st_libnvrtc_open(&e, 90)) {
        printf("skipped: NVRTC is not here (%s)\n", e.text);
        skip();
    }
    for (int i = 0; i < 2; i++) {
        st_gpu_spec s = {.id = "loop", .source = "loop.cu", .entry = "loop", .option = {want[i].how}};
        st_gpu_image im;
        sass_counts c;
        if (st_gpu_compile(&e, &s, "sm_90a", &im)) fail_msg("%s: %s", e.text, e.frame[0].text);
        assert_true(sass_count(im.bytes, im.size, &c));
        assert_true(c.wgmma > 0);
        assert_int_equal(c.slow_arrive, want[i].slow);
        free(im.bytes);
        free(im.log);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rule), cmocka_unit_test(test_bounds),
                                       cmocka_unit_test(test_compiled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
