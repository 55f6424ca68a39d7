/* SPDX-License-Identifier: Apache-2.0 */
/* selftest.c - `strata selftest`: does each operator give right numbers on this machine? A few seconds, no test framework: for a
 * user who meets a new processor, container or build. Every usable product kernel is forced once. Errors are compared with bounds that
 * follow from the arithmetic; the tests of the repository go much further. */
#include "cli/cli.h"
#include "doctor/steps.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct tally {
    strata_handle *h;
    int passed, failed;
    bool verbose, json;
    st_steps steps;
} tally;

static void report(tally *t, const char *name, strata_status s, double error)
{
    bool ok = s == STRATA_OK && error <= 1.0;
    if (ok)
        t->passed++;
    else
        t->failed++;
    if (t->json) {
        st_step(&t->steps, ST_APPLICATION, name);
        st_finding *f =
            st_step_result(&t->steps, ok ? ST_FINDING_OK : ST_FINDING_FAULT, "operator", "%s: %s", name,
                           s    ? "failed"
                           : ok ? "right"
                                : "wrong");
        if (s)
            snprintf(f->evidence, sizeof f->evidence, "%.390s", strata_error(t->h));
        else
            snprintf(f->evidence, sizeof f->evidence, "error %.3g times its bound", error);
        st_steps_end(&t->steps);
        return;
    }
    if (s)
        printf("  FAILED  %-48s %s\n", name, strata_error(t->h));
    else if (!ok)
        printf("  FAILED  %-48s error %.3g times its bound\n", name, error);
    else if (t->verbose)
        printf("  ok      %-48s error %.2f of its bound\n", name, error);
}

static uint64_t state;
static double random_number(void)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (double)(state >> 11) * 0x1p-52 - 1.0;
}

/* one block for all operands of a check; a failed allocation ends the command in the caller */
static float *random_floats(size_t n)
{
    float *p = malloc(n * sizeof *p);
    for (size_t i = 0; p && i < n; i++) p[i] = (float)random_number();
    return p;
}

static void worse(double *worst, double got, double want, double bound)
{
    double e = fabs(got - want) / bound;
    if (!(e <= *worst)) *worst = e;
}

/* ---- matrix products ----------------------------------------------------------------------------------------------------- */
typedef struct gemm_case {
    int m, n, k;
    bool ta, tb, f64, c_column;
    double alpha, beta;
} gemm_case;

static double at(const void *p, bool f64, int i)
{
    return f64 ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

/* kernel NULL: the plain call, else a plan with that kernel. False when the kernel refuses the problem. */
static bool check_gemm(tally *t, const gemm_case *g, const char *kernel)
{
    int na = g->m * g->k, nb = g->k * g->n, nc = g->m * g->n;
    size_t size = g->f64 ? 8 : 4;
    char *block = malloc((size_t)(na + nb + 2 * nc) * size);
    if (!block) return false;
    void *a = block, *b = block + (size_t)na * size, *c = block + (size_t)(na + nb) * size,
         *c0 = block + (size_t)(na + nb + nc) * size;
    for (int i = 0; i < na + nb + nc; i++) {
        double v = random_number();
        if (g->f64)
            ((double *)block)[i] = v;
        else
            ((float *)block)[i] = (float)v;
    }
    memcpy(c0, c, (size_t)nc * size);
    if (g->beta == 0) memset(c, 0xff, (size_t)nc * size); /* NaN that must not be read */
    strata_type type = g->f64 ? STRATA_F64 : STRATA_F32;
    strata_tensor A = strata_matrix(a, type, g->m, g->k, g->ta ? STRATA_COL_MAJOR : STRATA_ROW_MAJOR, 0);
    strata_tensor B = strata_matrix(b, type, g->k, g->n, g->tb ? STRATA_COL_MAJOR : STRATA_ROW_MAJOR, 0);
    strata_tensor C =
        strata_matrix(c, type, g->m, g->n, g->c_column ? STRATA_COL_MAJOR : STRATA_ROW_MAJOR, 0);
    strata_plan *plan = NULL;
    strata_status s;
    if (kernel) {
        s = strata_gemm_plan(t->h, strata_real(g->alpha), A, B, strata_real(g->beta), C, NULL,
                             &(strata_choice){.kernel = kernel}, &plan);
        if (s) {
            free(block);
            return false;
        }
        s = strata_plan_run(t->h, plan, (void *const[]){a, b, c}, NULL);
    } else {
        s = strata_gemm(t->h, strata_real(g->alpha), A, B, strata_real(g->beta), C, NULL);
    }
    double worst = 0, u = (g->f64 ? DBL_EPSILON : FLT_EPSILON) / 2;
    for (int i = 0; i < g->m && s == STRATA_OK; i++)
        for (int j = 0; j < g->n; j++) {
            int ic = g->c_column ? j * g->m + i : i * g->n + j;
            double x0 = g->beta != 0 ? g->beta * at(c0, g->f64, ic) : 0, mag = fabs(x0);
            long double sum = x0;
            for (int l = 0; l < g->k; l++) {
                double x = at(a, g->f64, g->ta ? l * g->m + i : i * g->k + l),
                       y = at(b, g->f64, g->tb ? j * g->k + l : l * g->n + j);
                sum += (long double)g->alpha * x * y;
                mag += fabs(g->alpha * x * y);
            }
            worse(&worst, at(c, g->f64, ic), (double)sum, (g->k + 3) * u * mag + FLT_MIN);
        }
    char name[160];
    snprintf(name, sizeof name, "%s %s %c%c %dx%dx%d%s", kernel ? kernel : "gemm", g->f64 ? "f64" : "f32",
             g->ta ? 'T' : 'N', g->tb ? 'T' : 'N', g->m, g->n, g->k, g->beta != 0 ? " beta" : "");
    report(t, name, s, worst);
    strata_plan_destroy(plan);
    free(block);
    return true;
}

static void products(tally *t)
{
    static const int shapes[][3] = {{1, 1, 1},    {3, 5, 7},     {8, 8, 8},    {17, 33, 20},
                                    {64, 64, 64}, {1, 257, 100}, {255, 2, 64}, {130, 147, 300}};
    for (int f64 = 0; f64 < 2; f64++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            for (int tr = 0; tr < 4; tr++) {
                gemm_case g = {shapes[i][0], shapes[i][1], shapes[i][2],       tr & 1,         tr >> 1,
                               f64,          tr == 2,      tr == 3 ? -0.5 : 1, tr == 1 ? 2 : 0};
                check_gemm(t, &g, NULL);
            }
    strata_kernel_info k;
    for (int i = 0; strata_kernels(i, &k); i++) {
        if (strcmp(k.family, "gemm") != 0 || !k.usable) continue;
        bool f64 = strncmp(k.types, "f64", 3) == 0;
        static const gemm_case tries[] = {{70, 130, 65, false, true, false, false, 1, 0},
                                          {2, 130, 65, false, false, false, false, 1, 0},
                                          {20, 20, 20, false, false, false, false, 1, 0}};
        for (size_t s = 0; s < sizeof tries / sizeof *tries; s++) {
            gemm_case g = tries[s];
            g.f64 = f64;
            if (check_gemm(t, &g, k.id)) break;
        }
    }
}

/* ---- an epilogue ----------------------------------------------------------------------------------------------------------- */
static void epilogue(tally *t)
{
    enum { M = 37, N = 50, K = 64 };
    float *a = random_floats(M * K), *b = random_floats(K * N), *bias = random_floats(N),
          *c = random_floats(M * N);
    double worst = 0;
    strata_status s = STRATA_ERROR_MEMORY;
    if (a && b && bias && c) {
        strata_operand ops[] = {{"bias", strata_vector(bias, STRATA_F32, N, 1)}, {0}};
        strata_gemm_options o = {.epilogue = "relu(acc + bias[n])", .operands = ops};
        s = strata_gemm(t->h, STRATA_ONE, strata_matrix(a, STRATA_F32, M, K, STRATA_ROW_MAJOR, 0),
                        strata_matrix(b, STRATA_F32, K, N, STRATA_ROW_MAJOR, 0), STRATA_ZERO,
                        strata_matrix(c, STRATA_F32, M, N, STRATA_ROW_MAJOR, 0), &o);
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                double sum = bias[j], mag = fabs(sum);
                for (int l = 0; l < K; l++)
                    sum += (double)a[i * K + l] * b[l * N + j],
                        mag += fabs((double)a[i * K + l] * b[l * N + j]);
                worse(&worst, c[i * N + j], sum > 0 ? sum : 0, (K + 4) * (FLT_EPSILON / 2) * mag);
            }
    }
    report(t, "gemm with epilogue relu(acc + bias[n])", s, worst);
    free(a), free(b), free(bias), free(c);
}

/* ---- convolution: forward by its definition, then both gradients through the inner product that defines them ------------------ */
static void convolution(tally *t, bool nchw, int groups, int stride)
{
    enum { N = 2, C = 12, H = 13, W = 11, O = 18, R = 3 };
    int P = (H + 2 - R) / stride + 1, Q = (W + 2 - R) / stride + 1, cg = C / groups, og = O / groups;
    int nx = N * C * H * W, nw = O * cg * R * R, ny = N * O * P * Q;
    float *x = random_floats((size_t)nx), *w = random_floats((size_t)nw), *y = random_floats((size_t)ny),
          *dy = random_floats((size_t)ny);
    float *dx = random_floats((size_t)nx), *dw = random_floats((size_t)nw);
    if (x && w && y && dy && dx && dw) {
        strata_tensor (*image)(const void *, strata_type, int64_t, int64_t, int64_t, int64_t) =
            nchw ? strata_nchw : strata_nhwc;
        strata_tensor X = image(x, STRATA_F32, N, C, H, W), Wt = strata_nchw(w, STRATA_F32, O, cg, R, R),
                      Y = image(y, STRATA_F32, N, O, P, Q);
        strata_tensor DX = X, DY = Y, DW = Wt;
        DX.data = dx, DY.data = dy, DW.data = dw;
        strata_conv o = {.pad = {1, 1}, .stride = {stride, stride}, .groups = groups};
        strata_status s = strata_conv_forward(t->h, &o, X, Wt, Y),
                      sd = strata_conv_backward_data(t->h, &o, DY, Wt, DX);
        strata_status sw = strata_conv_backward_weights(t->h, &o, X, DY, DW);
        double worst = 0, through_y = 0, mag = 0, through_x = 0, through_w = 0;
        for (int n = 0; n < N; n++)
            for (int k = 0; k < O; k++)
                for (int p = 0; p < P; p++)
                    for (int q = 0; q < Q; q++) {
                        double sum = 0, m = 0;
                        for (int c = 0; c < cg; c++)
                            for (int r = 0; r < R; r++)
                                for (int v = 0; v < R; v++) {
                                    int i = p * stride - 1 + r, j = q * stride - 1 + v, ch = k / og * cg + c;
                                    if (i < 0 || i >= H || j < 0 || j >= W) continue;
                                    double e = (double)x[n * X.stride[0] + ch * X.stride[1] +
                                                         i * X.stride[2] + j * X.stride[3]] *
                                               w[((k * cg + c) * R + r) * R + v];
                                    sum += e, m += fabs(e);
                                }
                        int64_t to = n * Y.stride[0] + k * Y.stride[1] + p * Y.stride[2] + q * Y.stride[3];
                        if (s == STRATA_OK)
                            worse(&worst, y[to], sum, (cg * R * R + 3) * (FLT_EPSILON / 2) * m + FLT_MIN);
                        through_y += sum * dy[to], mag += m * fabs((double)dy[to]);
                    }
        /* <conv(x, w), dy> = <x, dx> = <w, dw>: each sum of the whole is bounded by its terms' magnitudes */
        for (int i = 0; i < nx; i++) through_x += (double)x[i] * dx[i];
        for (int i = 0; i < nw; i++) through_w += (double)w[i] * dw[i];
        char name[96], full[128];
        snprintf(name, sizeof name, "%s groups %d stride %d", nchw ? "nchw" : "nhwc", groups, stride);
        snprintf(full, sizeof full, "convolution forward %s", name);
        report(t, full, s, worst);
        double e = 0;
        worse(&e, through_x, through_y, (og * R * R + 3) * (FLT_EPSILON / 2) * mag);
        snprintf(full, sizeof full, "convolution backward data %s", name);
        report(t, full, sd, e);
        e = 0;
        worse(&e, through_w, through_y, (N * P * Q + 3) * (FLT_EPSILON / 2) * mag);
        snprintf(full, sizeof full, "convolution backward weights %s", name);
        report(t, full, sw, e);
    }
    free(x), free(w), free(y), free(dy), free(dx), free(dw);
}

/* ---- elementwise and row operators ---------------------------------------------------------------------------------------- */
static double activation(int kind, double x)
{
    double inner = 0.79788456080286535588 * (x + 0.044715 * x * x * x);
    switch (kind) {
    case STRATA_RELU: return x > 0 ? x : 0;
    case STRATA_LEAKY_RELU: return x > 0 ? x : 0.01 * x;
    case STRATA_RELU6: return x < 0 ? 0 : x > 6 ? 6 : x;
    case STRATA_ELU: return x > 0 ? x : expm1(x);
    case STRATA_SIGMOID: return 1 / (1 + exp(-x));
    case STRATA_TANH: return tanh(x);
    case STRATA_GELU: return 0.5 * x * erfc(-x * 0.70710678118654752440);
    case STRATA_GELU_TANH: return 0.5 * x * (1 + tanh(inner));
    case STRATA_SILU: return x / (1 + exp(-x));
    case STRATA_SOFTPLUS: return x > 30 ? x : log1p(exp(x));
    case STRATA_HARD_SWISH: return x * (x < -3 ? 0 : x > 3 ? 1 : (x + 3) / 6);
    default: return x;
    }
}

static void elementwise(tally *t)
{
    static const char *const names[] = {"relu", "leaky relu",  "relu6", "elu",      "sigmoid",    "tanh",
                                        "gelu", "gelu (tanh)", "silu",  "softplus", "hard swish", "identity"};
    enum { N = 3000 };
    float *x = random_floats(N), *y = random_floats(N);
    for (int i = 0; x && i < N; i++) x[i] *= 8;
    for (int k = 0; x && y && k < STRATA_ACTIVATION_COUNT; k++) {
        strata_activation o = {.kind = (strata_activation_kind)k};
        strata_status s = strata_activation_forward(t->h, &o, strata_vector(x, STRATA_F32, N, 1),
                                                    strata_vector(y, STRATA_F32, N, 1));
        double worst = 0;
        for (int i = 0; i < N && s == STRATA_OK; i++) {
            double want = activation(k, x[i]);
            worse(&worst, y[i], want, 8 * FLT_EPSILON * (fabs(want) + 0.5));
        }
        char name[64];
        snprintf(name, sizeof name, "activation %s",
                 k < (int)(sizeof names / sizeof *names) ? names[k] : "?");
        report(t, name, s, worst);
    }
    free(x), free(y);
}

static void rows(tally *t)
{
    enum { M = 19, N = 100 };
    float *x = random_floats(M * N), *y = random_floats(M * N), *loss = random_floats(M);
    int32_t label[M];
    if (x && y && loss) {
        strata_tensor X = strata_matrix(x, STRATA_F32, M, N, STRATA_ROW_MAJOR, 0),
                      Y = strata_matrix(y, STRATA_F32, M, N, STRATA_ROW_MAJOR, 0);
        for (int i = 0; i < M * N; i++) x[i] *= 10;
        for (int i = 0; i < M; i++) label[i] = (i * 37) % N;
        double soft = 0, norm = 0, cross = 0;
        strata_status s1 = strata_softmax_forward(t->h, NULL, X, Y);
        for (int i = 0; i < M; i++) {
            double sum = 0;
            for (int j = 0; j < N; j++) sum += exp(x[i * N + j]);
            for (int j = 0; j < N && s1 == STRATA_OK; j++) {
                double want = exp(x[i * N + j]) / sum;
                worse(&soft, y[i * N + j], want, (N + 32) * FLT_EPSILON * want);
            }
        }
        strata_status s2 = strata_cross_entropy_forward(t->h, NULL, X, strata_vector(label, STRATA_I32, M, 1),
                                                        strata_vector(loss, STRATA_F32, M, 1));
        for (int i = 0; i < M && s2 == STRATA_OK; i++) {
            double sum = 0;
            for (int j = 0; j < N; j++) sum += exp(x[i * N + j]);
            worse(&cross, loss[i], log(sum) - x[i * N + label[i]],
                  (N + 32) * FLT_EPSILON * (fabs(log(sum)) + 10));
        }
        strata_operand ops[] = {{"x", X}, {"y", Y}, {0}};
        strata_status s3 = strata_fused(t->h, "y = (x - mean(x)) * rsqrt(var(x) + 1e-5)", ops, NULL);
        for (int i = 0; i < M && s3 == STRATA_OK; i++) {
            double mean = 0, var = 0;
            for (int j = 0; j < N; j++) mean += x[i * N + j] / (double)N;
            for (int j = 0; j < N; j++) var += (x[i * N + j] - mean) * (x[i * N + j] - mean) / N;
            for (int j = 0; j < N; j++)
                worse(&norm, y[i * N + j], (x[i * N + j] - mean) / sqrt(var + 1e-5),
                      (N + 32) * FLT_EPSILON * 4);
        }
        report(t, "softmax", s1, soft);
        report(t, "cross-entropy", s2, cross);
        report(t, "fused row program (layer norm)", s3, norm);
    }
    free(x), free(y), free(loss);
}

static void images(tally *t, bool nchw)
{
    enum { N = 2, C = 5, H = 9, W = 8, P = 4, Q = 4, S = N * H * W };
    float *x = random_floats(N * C * H * W), *y = random_floats(N * C * H * W),
          *p = random_floats(N * C * P * Q), mean[C], inv[C];
    if (x && y && p) {
        strata_tensor (*image)(const void *, strata_type, int64_t, int64_t, int64_t, int64_t) =
            nchw ? strata_nchw : strata_nhwc;
        strata_tensor X = image(x, STRATA_F32, N, C, H, W), Y = image(y, STRATA_F32, N, C, H, W),
                      PO = image(p, STRATA_F32, N, C, P, Q);
#define AT(T, v, n, c, i, j) \
    (v)[(n) * (T).stride[0] + (c) * (T).stride[1] + (i) * (T).stride[2] + (j) * (T).stride[3]]
        double pool = 0, norm = 0;
        strata_pool po = {.kind = STRATA_POOL_MAX, .window = {2, 2}};
        strata_status s1 = strata_pool_forward(t->h, &po, X, PO, (strata_tensor){0});
        strata_batch_norm_tensors b = {.x = X,
                                       .y = Y,
                                       .save_mean = strata_vector(mean, STRATA_F32, C, 1),
                                       .save_inv_std = strata_vector(inv, STRATA_F32, C, 1)};
        strata_status s2 = strata_batch_norm_training(t->h, NULL, &b);
        for (int c = 0; c < C; c++) {
            double m = 0, v = 0;
            for (int i = 0; i < S; i++) m += AT(X, x, i / (H * W), c, i / W % H, i % W) / (double)S;
            for (int i = 0; i < S; i++) v += pow(AT(X, x, i / (H * W), c, i / W % H, i % W) - m, 2) / S;
            for (int i = 0; i < S && s2 == STRATA_OK; i++)
                worse(&norm, AT(Y, y, i / (H * W), c, i / W % H, i % W),
                      (AT(X, x, i / (H * W), c, i / W % H, i % W) - m) / sqrt(v + 1e-5),
                      (S + 32) * FLT_EPSILON * 4);
            for (int i = 0; i < N * P * Q && s1 == STRATA_OK; i++) {
                int n = i / (P * Q), r = i / Q % P * 2, q = i % Q * 2;
                float most = fmaxf(fmaxf(AT(X, x, n, c, r, q), AT(X, x, n, c, r, q + 1)),
                                   fmaxf(AT(X, x, n, c, r + 1, q), AT(X, x, n, c, r + 1, q + 1)));
                worse(&pool, AT(PO, p, n, c, r / 2, q / 2), most, FLT_MIN);
            }
        }
#undef AT
        report(t, nchw ? "max pooling nchw" : "max pooling nhwc", s1, pool);
        report(t, nchw ? "batch norm training nchw" : "batch norm training nhwc", s2, norm);
    }
    free(x), free(y), free(p);
}

/* what the doctor tries in a child; always as lines of JSON */
static int one_part(const char *only, const char *device)
{
    if (strcmp(only, "gpu") == 0) return cli_selftest_gpu(device);
    int code = st_steps_run(only, stdout);
    if (code == 2)
        return cli_bad("selftest", "--only takes ops, nvml, driver, deep, compile or gpu, not '%s'",
                       CLI_SHORT(only));
    return code;
}

int verb_selftest(int argc, char **argv)
{
    const char *verbose = NULL, *threads = NULL, *json = NULL, *only = NULL, *device = "cuda:0";
    const cli_option options[] = {
        {"--verbose", NULL, "a line for every check, not only for failed ones", &verbose, NULL, 0},
        {"--threads", "N", "threads to use (default: all)", &threads, NULL, 0},
        {"--json", NULL, "one JSON object a line: each step when it begins, and its results", &json, NULL, 0},
        {"--only", "WHAT",
         "ops (the default), nvml, driver, deep, compile or gpu: what strata doctor runs in a process of its "
         "own",
         &only, NULL, 0},
        {"--device", "cuda:N", "the GPU of --only gpu", &device, NULL, 0},
    };
    const cli_usage usage = {"strata selftest [options]",
                             "Runs every operator on small random problems and compares with slow "
                             "references. Exit code 1 when one is wrong.",
                             options, (int)(sizeof options / sizeof *options)};
    int code;
    int64_t n = 0;
    argv[0] = "selftest";
    if (cli_parse(&usage, argc, argv, NULL, 0, &code) < 0) return code;
    if (threads && !cli_integer(threads, 1, 256, &n))
        return cli_bad("selftest", "--threads takes 1 to 256, not '%s'", CLI_SHORT(threads));
    if (only && strcmp(only, "ops") != 0) return one_part(only, device);
    tally t = {.verbose = verbose != NULL, .json = json != NULL, .steps = {.out = stdout}};
    if (strata_create(&t.h, "cpu")) return cli_failed("selftest", NULL);
    if (strata_set_threads(t.h, (int)n)) {
        code = cli_failed("selftest", t.h);
        strata_destroy(t.h);
        return code;
    }
    state = 88172645463325252u;
    double begin = cli_seconds();
    products(&t);
    epilogue(&t);
    for (int i = 0; i < 6; i++) convolution(&t, i & 1, i < 2 ? 1 : i < 4 ? 3 : 6, i < 4 ? 1 : 2);
    elementwise(&t);
    rows(&t);
    images(&t, false);
    images(&t, true);
    strata_destroy(t.h);
    if (!json) printf("%d checks passed, %d failed (%.1f s)\n", t.passed, t.failed, cli_seconds() - begin);
    return t.failed ? CLI_FAILED : CLI_OK;
}
