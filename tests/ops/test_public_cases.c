/* SPDX-License-Identifier: Apache-2.0 */
/* test_public_cases.c - faults that users of other libraries reported in public, as small inputs with the right value. Each test's name says
 * what the fault was and its comment where it was reported; every kernel that takes the problem is forced in turn, and the plain
 * call comes last. */
#include "support.h"
#include "levels.h"
#include <fenv.h>
#include <math.h>
#include <strata.h>

static strata_handle *h;
enum { MOST_KERNELS = 64 };

/* Ids of the usable kernels of a family, and "" at the end for the plain call. */
static int kernels(const char *family, const char *const **out)
{
    static const char *id[MOST_KERNELS];
    int n = 0;
    strata_kernel_info k;
    for (int i = 0; strata_kernels(i, &k) && n < MOST_KERNELS - 1; i++)
        if (k.usable && (!strcmp(k.family, family) || !strcmp(k.family, "reference"))) id[n++] = k.id;
    id[n++] = "";
    *out = id;
    return n;
}

/* Runs the product by kernel `id`; false when that kernel does not take the problem. */
static bool gemm(const char *id, double alpha, strata_tensor A, strata_tensor B, double beta, strata_tensor C)
{
    if (!*id) {
        test_ok(h, strata_gemm(h, strata_real(alpha), A, B, strata_real(beta), C, NULL));
        return true;
    }
    strata_choice choice = {.kernel = id};
    strata_plan *p;
    strata_status s = strata_gemm_plan(h, strata_real(alpha), A, B, strata_real(beta), C, NULL, &choice, &p);
    if (s == STRATA_ERROR_UNSUPPORTED || s == STRATA_ERROR_ARGUMENT)
        return false; /* refuses, or is for another type */
    test_ok(h, s);
    test_ok(h, strata_plan_run(h, p, (void *[]){A.data, B.data, C.data}, NULL));
    strata_plan_destroy(p);
    return true;
}

static strata_tensor row_major(void *data, strata_type t, int64_t m, int64_t n)
{
    return strata_matrix(data, t, m, n, STRATA_ROW_MAJOR, 0);
}

/* ---- beta = 0 must not read the output: OpenMathLib/OpenBLAS#929, robertknight/rten#81, eth-cscs/COSMA#159 ---------------------------- */
static void beta_zero_type(strata_type type)
{
    static const int64_t sizes[] = {1, 3, 7, 8, 9, 15, 17, 33, 65}, depths[] = {1, 2, 5, 257};
    const char *const *id;
    int count = kernels("gemm", &id), used[MOST_KERNELS] = {0};
    test_rng r = test_rng_make(31);
    for (int mi = 0; mi < 9; mi++)
        for (int ni = 0; ni < 9; ni++)
            for (int ki = 0; ki < 4; ki++) {
                int64_t m = sizes[mi], n = sizes[ni], k = depths[ki];
                test_array a = test_array_make(&r, type, 2, (int64_t[]){m, k}, TEST_PACKED),
                           b = test_array_make(&r, type, 2, (int64_t[]){k, n}, TEST_PACKED),
                           c = test_array_make(&r, type, 2, (int64_t[]){m, n}, TEST_PADDED),
                           zero = test_array_make(&r, type, 2, (int64_t[]){m, n}, TEST_PACKED);
                test_array_random(&r, &a, -1, 1);
                test_array_random(&r, &b, -1, 1);
                for (int q = 0; q < count; q++) {
                    test_problem("beta 0: %s, %s %lldx%lldx%lld, C %s", *id[q] ? id[q] : "plain call",
                                 strata_type_name(type), (long long)m, (long long)n, (long long)k,
                                 test_say(c.t));
                    test_poison(c.base, c.bytes);
                    test_array_set(&zero, 0);
                    if (!gemm(id[q], 1, a.t, b.t, 0, c.t)) continue;
                    used[q]++;
                    assert_true(gemm(id[q], 1, a.t, b.t, 0, zero.t));
                    int64_t i[STRATA_MAX_RANK] = {0};
                    do { /* a number, and the very one that a zeroed output gets (in the same layout of C where the kernel looks at that) */
                        double got = test_get(&c.t, i), want = test_get(&zero.t, i), mag = 0, exact = 0;
                        for (int64_t p = 0; p < k; p++) {
                            double x = test_elem(a.t, i[0], p) * test_elem(b.t, p, i[1]);
                            exact += x;
                            mag += fabs(x);
                        }
                        double bound = (test_gamma(k + 3, type) + test_gamma(k, STRATA_F64)) * mag;
                        test_close(got, exact, bound, "C[%lld,%lld]", (long long)i[0], (long long)i[1]);
                        if (!memcmp(c.t.stride, zero.t.stride, 2 * sizeof *c.t.stride))
                            test_check(got == want, "C[%lld,%lld] depends on what C held", (long long)i[0],
                                       (long long)i[1]);
                    } while (test_next(&c.t, i));
                    test_array_intact(&c);
                }
                test_array_free(&a);
                test_array_free(&b);
                test_array_free(&c);
                test_array_free(&zero);
            }
    int rows = 0;
    for (int q = 0; q < count; q++) rows += used[q] > 0;
    if (strcmp(strata_handle_device(h), "cpu") == 0) /* several kernels did run */
        test_check(used[count - 1] == 324 && rows >= 3, "%d kernels took part", rows);
}
static void beta_zero_reads_nothing(void **state)
{
    (void)state;
    beta_zero_type(STRATA_F32);
    beta_zero_type(STRATA_F64);
}

/* The same for gemv's report (an output of NaN stayed NaN): 5x5 zeros times zeros. */
static void zero_times_zero_into_nan(void **state)
{
    (void)state;
    double a[25] = {0}, x[5] = {0}, y[5] = {NAN, NAN, NAN, NAN, NAN};
    test_ok(h, strata_gemm(h, STRATA_ONE, row_major(a, STRATA_F64, 5, 5), row_major(x, STRATA_F64, 5, 1),
                           STRATA_ZERO, row_major(y, STRATA_F64, 5, 1), NULL));
    for (int i = 0; i < 5; i++) assert_true(y[i] == 0);
}

/* Convolution, pooling and softmax without `accumulate` do not read theirs. */
static void outputs_of_networks_are_not_read(void **state)
{
    (void)state;
    test_rng r = test_rng_make(32);
    for (int nhwc = 0; nhwc < 2; nhwc++)
        for (int64_t c = 1; c <= 33; c += 4) {
            static float xs[2 * 33 * 49], ws[5 * 33 * 9], ys[2 * 5 * 49], ps[2 * 33 * 9];
            strata_tensor x = (nhwc ? strata_nhwc : strata_nchw)(xs, STRATA_F32, 2, c, 7, 7),
                          y = (nhwc ? strata_nhwc : strata_nchw)(ys, STRATA_F32, 2, 5, 7, 7),
                          w = strata_nchw(ws, STRATA_F32, 5, c, 3, 3),
                          p = (nhwc ? strata_nhwc : strata_nchw)(ps, STRATA_F32, 2, c, 3, 3);
            strata_conv conv = {.pad = {1, 1}};
            strata_pool pool = {
                .window = {3, 3}, .stride = {2, 2}, .kind = c & 4 ? STRATA_POOL_MAX : STRATA_POOL_AVERAGE};
            strata_tensor none = {0};
            test_problem("unread outputs, %lld channels, nhwc %d", (long long)c, nhwc);
            for (int i = 0; i < TEST_COUNT(xs); i++) xs[i] = (float)test_real(&r, -1, 1);
            for (int i = 0; i < TEST_COUNT(ws); i++) ws[i] = (float)test_real(&r, -1, 1);
            test_poison(ys, sizeof ys);
            test_poison(ps, sizeof ps);
            test_ok(h, strata_conv_forward(h, &conv, x, w, y));
            test_ok(h, strata_pool_forward(h, &pool, x, p, none));
            for (int i = 0; i < 2 * 5 * 49; i++) assert_false(isnan(ys[i]));
            for (int i = 0; i < 2 * c * 9; i++) assert_false(isnan(ps[i]));
            test_poison(xs, sizeof xs);
            test_poison(ws, sizeof ws);
            float dw[5 * 33 * 9], keep[2 * 5 * 49];
            memcpy(keep, ys, sizeof keep);
            for (int i = 0; i < TEST_COUNT(dw); i++) dw[i] = 1;
            test_ok(h, strata_conv_backward_data(h, &conv, y, strata_nchw(dw, STRATA_F32, 5, c, 3, 3), x));
            for (int i = 0; i < 2 * c * 49; i++) assert_false(isnan(xs[i]));
            test_ok(h, strata_conv_backward_weights(h, &conv, x, y, w));
            for (int i = 0; i < 5 * c * 9; i++) assert_false(isnan(ws[i]));
            assert_memory_equal(keep, ys, sizeof keep);
        }
}

/* ---- alpha = 0: A and B are not referenced: Reference-LAPACK/lapack#1077 ----------------------------------------------------------- */
static void alpha_zero_references_nothing(void **state)
{
    (void)state;
    const char *const *id;
    int count = kernels("gemm", &id), ran = 0;
    static const int64_t sizes[] = {2, 17, 65};
    for (int s = 0; s < 3; s++)
        for (int q = 0; q < count; q++) {
            int64_t n = sizes[s];
            double *a = test_guard((size_t)(n * n) * 8, true), *b = test_guard((size_t)(n * n) * 8, false);
            for (int64_t i = 0; i < n * n; i++) {
                a[i] = i & 1 ? NAN : INFINITY;
                b[i] = i & 1 ? -INFINITY : NAN;
            }
            static const double betas[] = {1, 0, 2};
            for (int k = 0; k < 3; k++) {
                double *c = test_guard((size_t)(n * n) * 8, true);
                for (int64_t i = 0; i < n * n; i++) c[i] = (double)(i + 1);
                test_problem("alpha 0: %s, %lld, beta %g", *id[q] ? id[q] : "plain call", (long long)n,
                             betas[k]);
                if (gemm(id[q], 0, row_major(a, STRATA_F64, n, n), row_major(b, STRATA_F64, n, n), betas[k],
                         row_major(c, STRATA_F64, n, n))) {
                    ran++;
                    for (int64_t i = 0; i < n * n; i++)
                        test_close(c[i], betas[k] * (double)(i + 1), 0, "C[%lld]", (long long)i);
                }
                test_guard_free(c);
            }
            test_guard_free(a);
            test_guard_free(b);
        }
    /* kernels that can be forced are the CPU's; another device has its choice */
    assert_true(ran >= 9 * (strcmp(test_device(), "cpu") ? 1 : 3));
    /* not read means that it need not even be readable */
    char *page = test_guard(0, true); /* ends where a page without access begins */
    double c[4] = {1, 2, 3, 4};
    test_ok(h,
            strata_gemm(h, STRATA_ZERO, row_major(page, STRATA_F64, 2, 2), row_major(page, STRATA_F64, 2, 2),
                        strata_real(2), row_major(c, STRATA_F64, 2, 2), NULL));
    for (int i = 0; i < 4; i++) assert_true(c[i] == 2 * (i + 1));
    test_guard_free(page);
}

/* ---- k = 0 is C := beta * C: pytorch/pytorch#33467, pytorch/pytorch#31421, ml-explore/mlx#2698, ROCm/rocBLAS#753 --------------------- */
static void empty_sums(void **state)
{
    (void)state;
    const char *const *id;
    int count = kernels("gemm", &id);
    for (int q = 0; q < count; q++) {
        float c2[2] = {1, 1}, c4[4] = {1, 1, 1, 1}, c9[9];
        test_problem("k = 0: %s", *id[q] ? id[q] : "plain call");
        test_poison(c9, sizeof c9);
        strata_tensor a = strata_batch(row_major(NULL, STRATA_F32, 1, 0), 2, 0),
                      b = strata_batch(row_major(NULL, STRATA_F32, 0, 1), 2, 0);
        if (gemm(id[q], 1, a, b, 1, strata_batch(row_major(c2, STRATA_F32, 1, 1), 2, 0)))
            for (int i = 0; i < 2; i++) test_close(c2[i], 1, 0, "batched, beta 1");
        if (gemm(id[q], 1, row_major(NULL, STRATA_F32, 2, 0), row_major(NULL, STRATA_F32, 0, 2), 2,
                 row_major(c4, STRATA_F32, 2, 2)))
            for (int i = 0; i < 4; i++) test_close(c4[i], 2, 0, "beta 2");
        if (gemm(id[q], 1, row_major(NULL, STRATA_F32, 3, 0), row_major(NULL, STRATA_F32, 0, 3), 0,
                 row_major(c9, STRATA_F32, 3, 3)))
            for (int i = 0; i < 9; i++) test_close(c9[i], 0, 0, "beta 0 over NaN");
        float a5[5] = {1, 2, 3, 4, 5};
        gemm(id[q], 1, row_major(NULL, STRATA_F32, 0, 5), row_major(a5, STRATA_F32, 5, 1), 0,
             row_major(NULL, STRATA_F32, 0, 1));
        gemm(id[q], 1, row_major(a5, STRATA_F32, 1, 5), row_major(NULL, STRATA_F32, 5, 0), 0,
             row_major(NULL, STRATA_F32, 1, 0));
        gemm(id[q], 1, strata_batch(row_major(NULL, STRATA_F32, 2, 2), 0, 0),
             strata_batch(row_major(NULL, STRATA_F32, 2, 2), 0, 0), 0,
             strata_batch(row_major(NULL, STRATA_F32, 2, 2), 0, 0));
    }
    /* the rules about leading dimensions hold there too */
    float c[9];
    test_error(h,
               strata_gemm(h, STRATA_ONE, strata_matrix(NULL, STRATA_F32, 3, 0, STRATA_COL_MAJOR, 2),
                           row_major(NULL, STRATA_F32, 0, 3), STRATA_ZERO, row_major(c, STRATA_F32, 3, 3),
                           NULL),
               STRATA_ERROR_LAYOUT, "strata_gemm: A", "leading dimension 2");
}

/* ---- no read past the buffer: OpenMathLib/OpenBLAS#494, flame/blis#635 -------------------------------------------------------------------- */
static void only_what_is_named_is_touched(void **state)
{
    (void)state;
    double *page = test_guard(24, true), out = NAN;
    page[0] = 1, page[1] = 2, page[2] = 3;
    const char *const *id;
    int count = kernels("gemm", &id);
    for (int q = 0; q < count; q++) {
        out = NAN;
        if (gemm(id[q], 1, row_major(page + 1, STRATA_F64, 1, 2), row_major(page, STRATA_F64, 2, 1), 0,
                 row_major(&out, STRATA_F64, 1, 1)))
            test_close(out, 8, 0, "2 * 1 + 3 * 2 by %s", id[q]);
    }
    test_guard_free(page);
    for (int side = 0; side < 2; side++)
        for (int64_t n = 1; n <= 33; n++) {
            size_t bytes = (size_t)(n * n) * 4;
            float *a = test_guard(bytes, side), *b = test_guard(bytes, side), *c = test_guard(bytes, side);
            for (int64_t i = 0; i < n * n; i++) {
                a[i] = (float)(i % 5 - 2);
                b[i] = (float)(i % 7 - 3);
            }
            for (int q = 0; q < count; q++)
                for (int layout = 0; layout < 4; layout++) {
                    strata_tensor A = strata_matrix(a, STRATA_F32, n, n,
                                                    layout & 1 ? STRATA_COL_MAJOR : STRATA_ROW_MAJOR, 0),
                                  B = strata_matrix(b, STRATA_F32, n, n,
                                                    layout & 2 ? STRATA_COL_MAJOR : STRATA_ROW_MAJOR, 0);
                    test_problem("guard pages: %s, %lld, side %d, layout %d", *id[q] ? id[q] : "plain call",
                                 (long long)n, side, layout);
                    test_poison(c, bytes);
                    if (!gemm(id[q], 1, A, B, 0, row_major(c, STRATA_F32, n, n))) continue;
                    for (int64_t i = 0; i<n; i += n> 8 ? 5 : 1)
                        for (int64_t j = 0; j < n; j++) {
                            double want = 0; /* whole numbers: exact */
                            for (int64_t k = 0; k < n; k++) want += test_elem(A, i, k) * test_elem(B, k, j);
                            test_close(c[i * n + j], want, 0, "C[%lld,%lld]", (long long)i, (long long)j);
                        }
                    assert_true(test_guard_intact(a) && test_guard_intact(b) && test_guard_intact(c));
                }
            test_guard_free(a);
            test_guard_free(b);
            test_guard_free(c);
        }
}

/* Lanes beyond the matrix may hold anything, but computing with them must not raise what the result does not: OpenMathLib/OpenBLAS#1924 */
static void no_invalid_operation_is_raised(void **state)
{
    (void)state;
    static double a[33 * 33], c[33 * 33];
    const char *const *id;
    int count = kernels("gemm", &id);
    for (int q = 0; q < count; q++) {
        test_poison(c, sizeof c);
        feclearexcept(FE_ALL_EXCEPT);
        bool ran =
            gemm(id[q], 1, row_major(a, STRATA_F64, 33, 33),
                 strata_transpose(row_major(a, STRATA_F64, 33, 33)), 0, row_major(c, STRATA_F64, 33, 33));
        test_problem("exceptions: %s", *id[q] ? id[q] : "plain call");
        if (!ran) continue;
        test_check(!fetestexcept(FE_INVALID), "invalid operation");
        for (int i = 0; i < 33 * 33; i++) assert_true(c[i] == 0);
    }
}

/* ---- cross-correlation against convolution: pytorch/pytorch#117534 ------------------------------------------------------------------------- */
typedef strata_status (*conv_plan_fn)(strata_handle *, const strata_conv *, strata_tensor, strata_tensor,
                                      strata_tensor, const strata_choice *, strata_plan **);

static bool conv(conv_plan_fn make, const char *id, const strata_conv *o, strata_tensor a, strata_tensor b,
                 strata_tensor out)
{
    strata_choice choice = {.kernel = *id ? id : NULL};
    strata_plan *p;
    strata_status s = make(h, o, a, b, out, &choice, &p);
    if (*id && (s == STRATA_ERROR_UNSUPPORTED || s == STRATA_ERROR_ARGUMENT)) return false;
    test_ok(h, s);
    test_ok(h, strata_plan_run(h, p, (void *[]){a.data, b.data, out.data}, NULL));
    strata_plan_destroy(p);
    return true;
}

static void kernel_is_flipped_only_on_request(void **state)
{
    (void)state;
    const char *const *id;
    int count = kernels("conv", &id), ran = 0;
    for (int q = 0; q < count; q++)
        for (int flip = 0; flip < 2; flip++)
            for (int nhwc = 0; nhwc < 2; nhwc++) {
                float xs[10], ws[2] = {1, 2}, ys[8], dxs[10], dws[2];
                for (int i = 0; i < 10; i++) xs[i] = (float)i;
                strata_tensor (*image)(const void *, strata_type, int64_t, int64_t, int64_t, int64_t) =
                    nhwc ? strata_nhwc : strata_nchw;
                strata_tensor x = image(xs, STRATA_F32, 1, 1, 5, 2), w = image(ws, STRATA_F32, 1, 1, 2, 1),
                              y = image(ys, STRATA_F32, 1, 1, 4, 2), dx = image(dxs, STRATA_F32, 1, 1, 5, 2),
                              dw = image(dws, STRATA_F32, 1, 1, 2, 1);
                strata_conv o = {.flip = flip};
                double tap[2] = {flip ? 2 : 1, flip ? 1 : 2};
                test_problem("flip %d: %s, nhwc %d", flip, *id[q] ? id[q] : "plain call", nhwc);
                test_poison(ys, sizeof ys);
                if (conv(strata_conv_forward_plan, id[q], &o, x, w, y)) {
                    static const float cross[8] = {4, 7, 10, 13, 16, 19, 22, 25},
                                       turned[8] = {2, 5, 8, 11, 14, 17, 20, 23};
                    ran++;
                    for (int i = 0; i < 8; i++) test_close(ys[i], flip ? turned[i] : cross[i], 0, "y[%d]", i);
                }
                for (int i = 0; i < 8; i++) ys[i] = (float)(i + 1); /* now dy */
                test_poison(dxs, sizeof dxs);
                test_poison(dws, sizeof dws);
                if (conv(strata_conv_backward_data_plan, id[q], &o, y, w, dx))
                    for (int i = 0; i < 10; i++)
                        test_close(dxs[i], (i < 8 ? tap[0] * (i + 1) : 0) + (i >= 2 ? tap[1] * (i - 1) : 0),
                                   0, "dx[%d]", i);
                if (conv(strata_conv_backward_weights_plan, id[q], &o, x, y, dw)) {
                    double first = 0, second = 0; /* under the taps 0 and 1 */
                    for (int i = 0; i < 8; i++) {
                        first += xs[i] * ys[i];
                        second += xs[i + 2] * ys[i];
                    }
                    test_close(dws[flip], first, 0, "dw of the first tap");
                    test_close(dws[!flip], second, 0, "dw of the second tap");
                }
            }
    if (strcmp(strata_handle_device(h), "cpu") == 0) assert_true(ran >= 12);
}

/* ---- average pooling, ceil mode with counted padding: sonos/tract#2851, robertknight/rten#1456, microsoft/onnxruntime#16203,
 *      apple/coremltools#2844 -------------------------------------------------------------------------------------------------------------- */
static void overhang_of_ceil_mode_is_not_counted(void **state)
{
    (void)state;
    for (int nhwc = 0; nhwc < 2; nhwc++)
        for (int type = 0; type < 2; type++) {
            strata_type t = type ? STRATA_F64 : STRATA_F32;
            strata_tensor (*image)(const void *, strata_type, int64_t, int64_t, int64_t, int64_t) =
                nhwc ? strata_nhwc : strata_nchw;
            double in[49], out[9];
            strata_tensor none = {0}, x = image(in, t, 1, 1, 1, 5), y = image(out, t, 1, 1, 1, 3);
            int64_t dim[4], i[STRATA_MAX_RANK] = {0};
            for (int64_t k = 0; k < 5; k++)
                test_put(&x, (int64_t[STRATA_MAX_RANK]){0, 0, 0, k}, (double)(k + 1));
            strata_pool o = {.kind = STRATA_POOL_AVERAGE,
                             .window = {1, 2},
                             .stride = {1, 2},
                             .ceil_mode = true,
                             .count_padding = true};
            test_ok(h, strata_pool_output(h, &o, x, dim));
            assert_true(dim[0] == 1 && dim[1] == 1 && dim[2] == 1 && dim[3] == 3);
            test_poison(out, sizeof out);
            test_ok(h, strata_pool_forward(h, &o, x, y, none));
            static const double a[3] = {1.5, 3.5, 5.0}, b[9] = {4, 7, 9.5, 25, 28, 30.5, 42.5, 45.5, 48};
            for (int64_t k = 0; k < 3; k++)
                test_close(test_elem(y, 0, 0, 0, k), a[k], 0, "row[%lld]", (long long)k);
            x = image(in, t, 1, 1, 7, 7);
            y = image(out, t, 1, 1, 3, 3);
            double v = 0;
            do test_put(&x, i, v++);
            while (test_next(&x, i));
            for (int counted = 0; counted < 2; counted++) {
                o = (strata_pool){.kind = STRATA_POOL_AVERAGE,
                                  .window = {2, 2},
                                  .stride = {3, 3},
                                  .ceil_mode = true,
                                  .count_padding = counted};
                test_ok(h, strata_pool_output(h, &o, x, dim));
                assert_true(dim[2] == 3 && dim[3] == 3);
                test_poison(out, sizeof out);
                test_ok(h, strata_pool_forward(h, &o, x, y, none));
                for (int64_t k = 0; k < 9; k++)
                    test_close(test_elem(y, 0, 0, k / 3, k % 3), b[k], 0, "square[%lld]", (long long)k);
            }
            /* padding that was asked for does count, the overhang beyond it does not: 5 wide, 1 before and after, windows of 3 by 2 */
            x = image(in, t, 1, 1, 1, 5);
            for (int64_t k = 0; k < 5; k++)
                test_put(&x, (int64_t[STRATA_MAX_RANK]){0, 0, 0, k}, (double)(k + 1));
            o = (strata_pool){.kind = STRATA_POOL_AVERAGE,
                              .window = {1, 4},
                              .stride = {1, 4},
                              .pad = {0, 1},
                              .ceil_mode = true,
                              .count_padding = true};
            test_ok(h, strata_pool_output(h, &o, x, dim));
            assert_true(dim[3] == 2); /* 0 1 2 3 | 4 5 0 and one that does not exist */
            y = image(out, t, 1, 1, 1, 2);
            test_ok(h, strata_pool_forward(h, &o, x, y, none));
            test_close(test_elem(y, 0, 0, 0, 0), 1.5, 0, "padded window");
            test_close(test_elem(y, 0, 0, 0, 1), 3, test_unit(t) * 4, "window with padding and overhang");
        }
}

/* ---- normalisation with a large mean: microsoft/onnxruntime#21935, tracel-ai/burn#5607 ------------------------------------------------- */
static void layer_norm(strata_tensor x, strata_tensor w, strata_tensor b, strata_tensor y)
{
    test_ok(h, strata_fused(h, "y = (x - mean(x)) * rsqrt(var(x) + 1e-5) * w[n] + b[n]",
                            (strata_operand[]){{"x", x}, {"w", w}, {"b", b}, {"y", y}, {NULL, {0}}}, NULL));
}

static void large_means_cost_no_digits(void **state)
{
    (void)state;
    static float x[256], w[256], b[256], y[256];
    for (int i = 0; i < 256; i++) {
        x[i] = 1234;
        w[i] = 1;
        b[i] = 0;
    }
    test_poison(y, sizeof y);
    layer_norm(strata_matrix(x, STRATA_F32, 1, 256, STRATA_ROW_MAJOR, 0),
               strata_vector(w, STRATA_F32, 256, 1), strata_vector(b, STRATA_F32, 256, 1),
               strata_matrix(y, STRATA_F32, 1, 256, STRATA_ROW_MAJOR, 0));
    for (int i = 0; i < 256; i++) test_close(y[i], 0, 0, "constant row [%d]", i);
    static const struct {
        float mean, first, last;
    } row[] = {{0, -1.34164f, 1.34164f}, {100, -1.3415f, 1.3414f}, {10000, -1.3313f, 1.3313f}};
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < 16; i++) x[i] = (float)(row[k].mean + i * 1e-3);
        test_problem("layer norm around %g", row[k].mean);
        layer_norm(strata_matrix(x, STRATA_F32, 1, 16, STRATA_ROW_MAJOR, 0),
                   strata_vector(w, STRATA_F32, 16, 1), strata_vector(b, STRATA_F32, 16, 1),
                   strata_matrix(y, STRATA_F32, 1, 16, STRATA_ROW_MAJOR, 0));
        /* The definition, from the rounded inputs. Deviations are from a mean of two parts, so that roundings are relative to the
         * deviations: some 64 of them, and the lower part's. */
        double mean = 0, var = 0;
        for (int i = 0; i < 16; i++) mean += x[i] / 16.0;
        for (int i = 0; i < 16; i++) var += (x[i] - mean) * (x[i] - mean) / 16;
        double deviation = sqrt(var + 1e-5), bound = 64 * 0x1p-24 * (1 + 0x1p-24 * row[k].mean / deviation);
        for (int i = 0; i < 16; i++) test_close(y[i], (x[i] - mean) / deviation, bound, "y[%d]", i);
        test_close((x[0] - mean) / deviation, row[k].first, 1e-4, "the reported value");
        test_close((x[15] - mean) / deviation, row[k].last, 1e-4, "the reported value");
        test_close(y[0], row[k].first, 2e-3, "first");
        test_close(y[15], row[k].last, 2e-3, "last");
    }
    /* a channel of one value: the batch's variance is 0 and no NaN may come of it */
    static float bx[2 * 3 * 8], by[2 * 3 * 8], mean[3], inv[3];
    for (int i = 0; i < 48; i++) bx[i] = 1234;
    strata_batch_norm_tensors t = {.x = strata_nchw(bx, STRATA_F32, 2, 3, 2, 4),
                                   .y = strata_nchw(by, STRATA_F32, 2, 3, 2, 4),
                                   .save_mean = strata_vector(mean, STRATA_F32, 3, 1),
                                   .save_inv_std = strata_vector(inv, STRATA_F32, 3, 1)};
    test_ok(h, strata_batch_norm_training(h, &(strata_batch_norm){.epsilon = 1e-5}, &t));
    for (int i = 0; i < 48; i++) test_close(by[i], 0, 0, "batch norm [%d]", i);
    for (int i = 0; i < 3; i++) test_close(inv[i], 1 / sqrt(1e-5), 316.3 * 0x1p-22, "inverse deviation");
}

int main(void)
{
    if (strata_create(&h, test_device())) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beta_zero_reads_nothing),
        cmocka_unit_test(zero_times_zero_into_nan),
        cmocka_unit_test(outputs_of_networks_are_not_read),
        cmocka_unit_test(alpha_zero_references_nothing),
        cmocka_unit_test(empty_sums),
        cmocka_unit_test(only_what_is_named_is_touched),
        cmocka_unit_test(no_invalid_operation_is_raised),
        cmocka_unit_test(kernel_is_flipped_only_on_request),
        cmocka_unit_test(overhang_of_ceil_mode_is_not_counted),
        cmocka_unit_test(large_means_cost_no_digits),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    strata_destroy(h);
    return failed + test_lower_levels();
}
