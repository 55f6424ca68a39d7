/* SPDX-License-Identifier: Apache-2.0 */
/* 13_own_kernel.c - a kernel of one's own: a product whose tiles get bias, activation and quantisation before they are stored. The main loop is CUDA C in this
 * file, or, without a GPU, a function of it; the epilogue is an expression that the library compiles into either. Checked against three calls of the
 * library, and timed beside them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata.h>

enum { M = 2048, N = 2048, K = 64, TILE = 64 };

static const char kernel[] =
    "#include \"types.cuh\"\n"
    "#include \"epilogue.cuh\"\n" /* st_epilogue: the expression below */
    "struct sizes { int m, n, k; };\n"
    "extern \"C\" __global__ void __launch_bounds__(256) layer(const float *x, const float *w, const float "
    "*, const float *, i8 *y,\n"
    "                                                        sizes s, st_epi e)\n"
    "{\n"
    "    __shared__ float a[16][TILE + 4], b[16][TILE];\n"
    "    const int t = threadIdx.x, row = t / 16 * 4, col = t % 16 * 4, m0 = blockIdx.y * TILE, n0 = "
    "blockIdx.x * TILE;\n"
    "    float acc[4][4] = {};\n"
    "    for (int k0 = 0; k0 < s.k; k0 += 16) {\n"
    "        for (int i = t; i < 16 * TILE; i += 256) {\n"
    "            a[i % 16][i / 16] = x[(m0 + i / 16) * s.k + k0 + i % 16];\n"
    "            b[i / TILE][i % TILE] = w[(k0 + i / TILE) * s.n + n0 + i % TILE];\n"
    "        }\n"
    "        __syncthreads();\n"
    "        for (int k = 0; k < 16; k++)\n"
    "            for (int i = 0; i < 4; i++)\n"
    "                for (int j = 0; j < 4; j++) acc[i][j] += a[k][row + i] * b[k][col + j];\n"
    "        __syncthreads();\n"
    "    }\n"
    "    for (int i = 0; i < 4; i++)\n"
    "        for (int j = 0; j < 4; j++) {\n"
    "            const int m = m0 + row + i, n = n0 + col + j;\n"
    "            y[m * s.n + n] = from<i8>(st_epilogue(e, acc[i][j], m, n, 0));\n"
    "        }\n"
    "}\n";

/* The same tile on a CPU: TILE x TILE sums, rows of W along the vectors. */
static strata_status layer(const strata_custom_call *c)
{
    const float *x = c->data[0], *w = c->data[1];
    const int *size = c->params, n = size[1], k = size[2];
    const int m0 = (int)c->at[1] * TILE, n0 = (int)c->at[0] * TILE;
    float *acc = c->scratch;
    memset(acc, 0, TILE * TILE * sizeof *acc);
    for (int i = 0; i < TILE; i++)
        for (int l = 0; l < k; l++) {
            float *restrict sums = acc + i * TILE;
            const float *restrict row = w + l * n + n0;
            const float a = x[(m0 + i) * k + l];
            for (int j = 0; j < TILE; j++) sums[j] += a * row[j];
        }
    strata_custom_store(c, acc, TILE, m0, n0, 0, TILE, TILE);
    return STRATA_OK;
}

static float *numbers(strata_handle *h, int n, float scale)
{
    float *host = malloc((size_t)n * sizeof *host);
    void *p = NULL;
    for (int i = 0; host && i < n; i++) host[i] = scale * (float)((i * 7 + i / 31) % 23 - 11);
    if (!host || strata_alloc(h, (size_t)n * sizeof *host, &p) ||
        strata_copy(h, strata_vector(host, STRATA_F32, n, 1), strata_vector(p, STRATA_F32, n, 1)))
        p = NULL;
    free(host);
    return p;
}

static int fail(strata_handle *h)
{
    fprintf(stderr, "%s\n", strata_error(h));
    return 1;
}

static strata_status three_calls(strata_handle *h, strata_tensor X, strata_tensor W, strata_tensor bias,
                                 strata_tensor so, strata_tensor Z, strata_tensor Y)
{
    strata_status s = strata_gemm(h, STRATA_ONE, X, W, STRATA_ZERO, Z, NULL);
    if (!s)
        s = strata_fused(h, "z = gelu(z + bias[n])",
                         (strata_operand[]){{"z", Z}, {"bias", bias}, {NULL, {0}}}, NULL);
    return s ? s
             : strata_fused(h, "y = sat_i8(rint(z * so))",
                            (strata_operand[]){{"z", Z}, {"so", so}, {"y", Y}, {NULL, {0}}}, NULL);
}

int main(int argc, char **argv)
{
    strata_handle *h;
    strata_plan *plan;
    strata_event *at[3];
    static signed char got[M * N], want[M * N];
    if (strata_create(&h, argc > 1 ? argv[1] : "auto")) return fail(NULL);
    const int on_gpu = strstr(strata_handle_device(h), "cuda") != NULL;
    float *x = numbers(h, M * K, 0.05f), *w = numbers(h, K * N, 0.04f), *bias = numbers(h, N, 0.1f),
          *so = numbers(h, 1, -2);
    void *y[2], *z;
    if (!x || !w || !bias || !so || strata_alloc(h, M * N, &y[0]) || strata_alloc(h, M * N, &y[1]) ||
        strata_alloc(h, 4 * M * N, &z))
        return fail(h);
    const strata_tensor X = strata_matrix(x, STRATA_F32, M, K, STRATA_ROW_MAJOR, 0),
                        W = strata_matrix(w, STRATA_F32, K, N, STRATA_ROW_MAJOR, 0),
                        Z = strata_matrix(z, STRATA_F32, M, N, STRATA_ROW_MAJOR, 0),
                        B = strata_vector(bias, STRATA_F32, N, 1), S = strata_point(so, STRATA_F32),
                        Y = strata_matrix(y[0], STRATA_I8, M, N, STRATA_ROW_MAJOR, 0),
                        Y3 = strata_matrix(y[1], STRATA_I8, M, N, STRATA_ROW_MAJOR, 0);
    const strata_operand ops[] = {{"X", X}, {"W", W}, {"bias", B}, {"so", S}, {"y", Y}, {NULL, {0}}};
    const int sizes[3] = {M, N, K};
    const strata_custom own = {.source = kernel,
                               .file = "layer.cu", /* for messages */
                               .entry = "layer",
                               .options = (const char *const[]){"-DTILE=64", NULL},
                               .grid = {N / TILE, M / TILE},
                               .block = {256},
                               .params = sizes,
                               .params_bytes = sizeof sizes,
                               .epilogue = "sat_i8(rint(gelu(acc + bias[n]) * so))",
                               .output = "y",
                               .cpu = layer,
                               .shared_bytes = on_gpu ? 0 : TILE * TILE * sizeof(float),
                               .flops = 2.0 * M * N * K};
    if (strata_custom_plan(h, &own, ops, &plan)) return fail(h);
    printf("%s\n", strata_plan_describe(plan));
    double best[2] = {1e30, 1e30}, ms;
    for (int i = 0; i < 3; i++)
        if (strata_event_create(h, &at[i])) return fail(h);
    for (int i = 0; i < 20; i++) { /* in turn; the best of each */
        if (strata_event_record(h, at[0]) ||
            strata_plan_run(h, plan, (void *[]){x, w, bias, so, y[0]}, NULL) ||
            strata_event_record(h, at[1]) || three_calls(h, X, W, B, S, Z, Y3) ||
            strata_event_record(h, at[2]) || strata_synchronize(h))
            return fail(h);
        for (int k = 0; k < 2; k++)
            if (!strata_event_elapsed(at[k], at[k + 1], &ms) && ms < best[k]) best[k] = ms;
    }
    printf("own kernel %.1f us, three calls %.1f us\n", best[0] * 1e3, best[1] * 1e3);
    if (strata_copy(h, Y, strata_matrix(got, STRATA_I8, M, N, STRATA_ROW_MAJOR, 0)) ||
        strata_copy(h, Y3, strata_matrix(want, STRATA_I8, M, N, STRATA_ROW_MAJOR, 0)))
        return fail(h);
    int apart = 0; /* a product may round the other way at a half */
    for (int i = 0; i < M * N; i++) apart += abs(got[i] - want[i]) > 1;
    printf("%d of %d elements differ by more than one\n", apart, M * N);
    strata_plan_destroy(plan);
    strata_destroy(h);
    return apart != 0;
}
