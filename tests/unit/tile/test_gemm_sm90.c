/* SPDX-License-Identifier: Apache-2.0 */
/* test_gemm_sm90.c - how the Hopper kernels would run a product, without a GPU: which row is chosen, what is copied, why a row is refused, and that ids name one
 * configuration each. */
#include "support.h"
#include "runtime/cuda/image.h"
#include "tile/cuda/gemm_sm90.h"
#include <math.h>

static const st_gpu h200 = {.cc = 90,
                            .sms = 132,
                            .smem_block = 232448,
                            .copy_bytes_per_us = 4.33e6,
                            .clock_mhz = 1980,
                            .device = "cuda:0"};

/* m x n x k; ak, bk: k is contiguous in A, in B; pad: elements more a row */
static st_contract product(int64_t m, int64_t n, int64_t k, int type, int tc, bool ak, bool bk, int64_t pad)
{
    st_contract c;
    memset(&c, 0, sizeof c);
    c.ta = c.tb = type;
    c.tc = tc;
    const int64_t lda = (ak ? k : m) + pad, ldb = (bk ? k : n) + pad;
    c.m = (st_axes){1, {{m, ak ? lda : 1, 0, n}}};
    c.n = (st_axes){1, {{n, 0, bk ? ldb : 1, 1}}};
    c.k = (st_axes){1, {{k, ak ? 1 : lda, bk ? 1 : ldb, 0}}};
    return c;
}

/* the best row's configuration and id; false when all refuse */
static bool best(const st_contract *c, st_sm90 *q, char *id)
{
    int count;
    const st_sm90_row *r = st_sm90_rows(&count);
    double us = INFINITY;
    for (int i = 0; i < count; i++) {
        st_sm90 x;
        char why[160] = "";
        if (!st_sm90_configure(&r[i], c, NULL, &h200, &x, why, sizeof why)) {
            test_check(why[0], "row %d refuses without a reason", i);
            continue;
        }
        test_check(x.us > 0 && st_sm90_smem(&x) <= (unsigned)h200.smem_block, "row %d: %g us, %u bytes", i,
                   x.us, st_sm90_smem(&x));
        if (x.us >= us) continue;
        us = x.us;
        *q = x;
        st_sm90_id(&r[i], (int)c->ta, (int)c->tb, (int)c->tc, x.a.mn, x.b.mn, id, 96);
    }
    return us < INFINITY;
}

static void expect(int64_t m, int64_t n, int64_t k, int type, int tc, bool ak, bool bk, const char *want)
{
    st_sm90 q;
    char id[96] = "";
    st_contract c = product(m, n, k, type, tc, ak, bk, 0);
    test_problem("%lldx%lldx%lld %s", (long long)m, (long long)n, (long long)k,
                 strata_type_name((strata_type)type));
    test_check(best(&c, &q, id), "no row takes it");
    test_check(!strcmp(id, want), "chose %s, not %s", id, want);
}

/* as measured on an H200: the fastest, or within a few percent of it */
static void choices(void **state)
{
    (void)state;
    const int b = STRATA_BF16;
    expect(1024, 1024, 1024, b, b, true, true, "gemm_bf16bf16bf16_tn_64x128x64_s8_sm90a");
    expect(2048, 2048, 2048, b, b, true, true, "gemm_bf16bf16bf16_tn_128x128x64_s6_pp_sm90a");
    expect(4096, 4096, 4096, b, b, true, true, "gemm_bf16bf16bf16_tn_128x256x64_s3_ts_sm90a");
    expect(4096, 4096, 4096, b, b, true, false, "gemm_bf16bf16bf16_tt_128x256x64_s3_ts_sm90a");
    expect(4096, 4096, 4096, b, b, false, true, "gemm_bf16bf16bf16_nn_128x256x64_s3_ts_sm90a");
    expect(8192, 8192, 8192, b, b, false, false, "gemm_bf16bf16bf16_nt_128x256x64_s3_ts_sm90a");
    expect(64, 4096, 4096, b, b, true, true, "gemm_bf16bf16bf16_tn_64x32x64_s16_sm90a");
    expect(128, 4096, 4096, b, b, true, true, "gemm_bf16bf16bf16_tn_64x64x64_s12_c2_sm90a");
    expect(256, 256, 262144, b, b, true, true, "gemm_bf16bf16bf16_tn_128x128x64_s6_sk_sm90a");
    expect(4096, 4096, 4104, b, b, true, true, "gemm_bf16bf16bf16_tn_128x256x64_s4_c2_sm90a");
    expect(4096, 4096, 4096, STRATA_I8, STRATA_I32, true, true, "gemm_i8i8i32_tn_128x128x128_s6_pp_sm90a");
}

static void copies(void **state)
{
    (void)state;
    st_sm90 q;
    char id[96];
    st_contract c = product(4095, 4097, 4099, STRATA_BF16, STRATA_BF16, true, false, 0);
    assert_true(best(&c, &q, id));
    assert_true(q.a.pack && q.b.pack && !q.a.mn && q.b.mn); /* B is copied as it lies */
    assert_true(q.a.pitch >= 4099 && q.a.pitch % 64 == 0 && q.b.pitch >= 4097 && q.b.pitch % 64 == 0);
    assert_true(q.workspace >= (size_t)(q.a.pitch * 4095 + q.b.pitch * 4099) * 2);
    c = product(512, 512, 512, STRATA_BF16, STRATA_BF16, true, true, 8);
    assert_true(best(&c, &q, id) && !q.workspace); /* a pitch of 1040 bytes suits TMA */
    c = product(512, 512, 512, STRATA_BF16, STRATA_BF16, true, true, 4);
    assert_true(best(&c, &q, id) && q.a.pack && q.b.pack); /* 1032 does not */
    c = product(512, 512, 512, STRATA_BF16, STRATA_BF16, true, true, 0);
    c.unaligned = 1;
    assert_true(best(&c, &q, id) && q.a.pack && q.b.pack && !q.row->tma_store);
    /* bytes have no instruction for contiguous rows */
    c = product(512, 512, 512, STRATA_I8, STRATA_I32, true, false, 0);
    assert_true(best(&c, &q, id) && !q.a.pack && q.b.pack && !q.b.mn);
    /* 777 columns are no multiple of 16 bytes, which is what TMA stores */
    c = product(512, 777, 512, STRATA_BF16, STRATA_BF16, true, true, 0);
    c.m.ax[0].c = 784;
    assert_true(best(&c, &q, id) && !q.row->tma_store);
}

/* Only what the caller allows: no tf32, no short sums of 8-bit floats, unless asked for. */
static void math_modes(void **state)
{
    (void)state;
    st_sm90 q;
    char id[96];
    st_contract c = product(512, 512, 512, STRATA_F32, STRATA_F32, true, true, 0);
    assert_false(best(&c, &q, id));
    c.math = STRATA_MATH_TF32;
    assert_true(best(&c, &q, id) && q.tf32 && strstr(id, "tf32"));
    c.math = STRATA_MATH_BF16X6;
    assert_true(best(&c, &q, id) && !q.tf32 && strstr(id, "_x6_") && q.a.part && q.b.part);
    c = product(512, 512, 512, STRATA_F8E4M3, STRATA_BF16, true, true, 0);
    assert_true(best(&c, &q, id) && strstr(id, "_exact_"));
    c.math = STRATA_MATH_FAST_ACCUM;
    assert_true(best(&c, &q, id) && !strstr(id, "_exact_"));
    c = product(512, 512, 512, STRATA_F64, STRATA_F64, true, true, 0);
    assert_false(best(&c, &q, id));
}

/* An f32 operand whose rows are contiguous goes through registers, on the side that the instruction lets it: C^T = B^T A^T where it is B. */
static void turned(void **state)
{
    (void)state;
    st_sm90 q;
    char id[96];
    st_contract c = product(4096, 2048, 4096, STRATA_F32, STRATA_F32, true, false, 0);
    c.math = STRATA_MATH_TF32;
    assert_true(best(&c, &q, id) && q.turned && !q.workspace && q.M == 2048 && q.N == 4096);
    c = product(4096, 2048, 4096, STRATA_F32, STRATA_F32, false, true, 0);
    c.math = STRATA_MATH_TF32;
    assert_true(best(&c, &q, id) && !q.turned && q.row->kind == ST_SM90_TURN && !q.workspace);
    c = product(4096, 2048, 4096, STRATA_F32, STRATA_F32, true, false,
                1); /* a pitch that TMA does not read */
    c.math = STRATA_MATH_TF32;
    assert_true(best(&c, &q, id) && q.row->kind != ST_SM90_TURN && q.b.pack);
}

/* Parts of f32 operands: all at a time while they fit the usual limit, else by panels that do. */
static void panels(void **state)
{
    (void)state;
    static const int64_t size[][3] = {
        {512, 512, 512}, {4096, 4096, 4096}, {8192, 8192, 8192}, {300, 20000, 30000}};
    for (int i = 0; i < 4; i++) {
        st_sm90 q;
        char id[96];
        const int64_t m = size[i][0], n = size[i][1], k = size[i][2];
        st_contract c = product(m, n, k, STRATA_F32, STRATA_F32, true, true, 0);
        c.math = STRATA_MATH_BF16X6;
        assert_true(best(&c, &q, id));
        test_check(q.workspace <= (size_t)256 << 20, "%zu bytes", q.workspace);
        assert_true(q.a.panel >= 1 && q.a.panel <= m && q.b.panel >= 1 && q.b.panel <= n);
        test_check((q.a.panel == m && q.b.panel == n) == (i < 2), "panels of %lld and %lld",
                   (long long)q.a.panel, (long long)q.b.panel);
    }
}

/* Other devices, windows, and views whose C has no dense side are other kernels' work. */
static void refusals(void **state)
{
    (void)state;
    st_sm90 q;
    char why[160];
    const st_sm90_row *r = st_sm90_rows(&(int){0});
    st_gpu other = h200;
    st_contract c = product(512, 512, 512, STRATA_BF16, STRATA_BF16, true, true, 0);
    other.cc = 80;
    assert_false(st_sm90_configure(r, &c, NULL, &other, &q, why, sizeof why));
    test_check(strstr(why, "compute capability 9.0"), "%s", why);
    c.bounds = 1;
    assert_false(st_sm90_configure(r, &c, NULL, &h200, &q, why, sizeof why));
    c.bounds = 0;
    c.n.ax[0].c = 2;
    c.m.ax[0].c = 2000;
    assert_false(st_sm90_configure(r, &c, NULL, &h200, &q, why, sizeof why));
    test_check(strstr(why, "stand together"), "%s", why);
    c = product(0, 512, 512, STRATA_BF16, STRATA_BF16, true, true, 0);
    assert_false(st_sm90_configure(r, &c, NULL, &h200, &q, why, sizeof why));
}

static void ids_are_unique(void **state)
{
    (void)state;
    static const char *seen[2048];
    strata_kernel_info info;
    int n = 0;
    for (; st_sm90_list(n, &info); n++) {
        for (int i = 0; i < n; i++)
            test_check(strcmp(seen[i], info.id), "two kernels are called %s", info.id);
        seen[n] = info.id;
        test_check(strlen(info.id) < 96 && info.order && info.types, "%s", info.id);
    }
    test_check(n > 100, "only %d", n);
}

/* Every header that a source names, indented or not, is part of its kernels' keys. */
static void headers_are_in_keys(void **state)
{
    (void)state;
    int count, found = 0;
    const st_gpu_source *row = st_gpu_sources(&count);
    for (int i = 0; i < count; i++)
        for (const char *line = row[i].text; line && *line;
             line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
            char header[64];
            if (sscanf(line, " # include \"%63[^\"\n]\"", header) != 1 || !st_gpu_source_find(header))
                continue;
            found++;
            if (!st_image_reaches(row[i].name, header)) fail_msg("%s does not reach %s", row[i].name, header);
        }
    if (found <= 40) fail_msg("only %d includes", found);
    assert_true(st_image_reaches("gemm_sm90.cu", "epilogue.cuh"));
    assert_true(st_image_reaches("gemm_sm90.cu", "math.cuh"));
    assert_false(st_image_reaches("copy.cu", "wgmma.cuh"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_are_in_keys),
        cmocka_unit_test(choices),
        cmocka_unit_test(copies),
        cmocka_unit_test(math_modes),
        cmocka_unit_test(turned),
        cmocka_unit_test(panels),
        cmocka_unit_test(refusals),
        cmocka_unit_test(ids_are_unique),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
