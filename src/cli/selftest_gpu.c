/* SPDX-License-Identifier: Apache-2.0 */
/* selftest_gpu.c - the product through the public interface on a GPU: against the CPU's in f64, and how fast it is in f16. One line a step, as
 * doctor/steps.h describes; `strata doctor --deep` runs it in a child. */
#include "cli/cli.h"
#include "doctor/steps.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct product {
    int64_t m, n, k;
    strata_order a, b, c;
    double beta;
} product;

static uint64_t state = 88172645463325252u;
static float random_float(void)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (float)((double)(state >> 11) * 0x1p-52 - 1.0);
}

static void unable(st_steps *s, strata_handle *h, strata_status code, const char *id)
{
    char text[1200], *remedy;
    st_finding *f =
        st_step_result(s, code == STRATA_ERROR_UNSUPPORTED ? ST_FINDING_WARNING : ST_FINDING_FAULT, id,
                       "the library cannot use the GPU");
    snprintf(text, sizeof text, "%s", strata_error(h));
    remedy = strstr(text, "\n  try "); /* the last line of the error chain */
    if (remedy) {
        *remedy = 0;
        remedy += 7;
        remedy += strspn(remedy, " ");
    }
    for (char *p = text; *p; p++)
        if (*p == '\n') *p = ' ';
    snprintf(f->evidence, sizeof f->evidence, "%.390s", text);
    snprintf(f->fix, sizeof f->fix, "%.430s",
             remedy && *remedy ? remedy : "strata explain with that message");
}

/* a dense matrix in device memory, filled from the host; NULL with the status set */
static void *upload(strata_handle *h, const float *host, strata_tensor like, size_t bytes, strata_tensor *dev,
                    strata_status *code)
{
    void *p = NULL;
    strata_tensor from = like;
    if ((*code = strata_alloc(h, bytes, &p)) != STRATA_OK) return NULL;
    from.data = (void *)(uintptr_t)host;
    *dev = like;
    dev->data = p;
    if ((*code = strata_copy(h, from, *dev)) != STRATA_OK) {
        strata_free(h, p);
        return NULL;
    }
    return p;
}

/* the largest error in units of its bound; negative when a call failed (status in *code) */
static double compare(strata_handle *h, const product *g, strata_status *code)
{
    size_t na = (size_t)(g->m * g->k), nb = (size_t)(g->k * g->n), nc = (size_t)(g->m * g->n);
    float *host = malloc((na + nb + 2 * nc) * sizeof *host);
    *code = STRATA_ERROR_MEMORY;
    if (!host) return -1;
    float *a = host, *b = a + na, *c = b + nb, *out = c + nc;
    for (size_t i = 0; i < na + nb + nc; i++) host[i] = random_float();
    for (size_t i = 0; i < nc; i++) {
        if (g->beta == 0) c[i] = NAN; /* must not be read */
        out[i] = NAN;
    }
    strata_tensor A = strata_matrix(a, STRATA_F32, g->m, g->k, g->a, 0),
                  B = strata_matrix(b, STRATA_F32, g->k, g->n, g->b, 0),
                  C = strata_matrix(c, STRATA_F32, g->m, g->n, g->c, 0),
                  O = strata_matrix(out, STRATA_F32, g->m, g->n, g->c, 0), dA, dB, dC;
    void *pa = upload(h, a, A, na * sizeof *a, &dA, code),
         *pb = pa ? upload(h, b, B, nb * sizeof *b, &dB, code) : NULL,
         *pc = pb ? upload(h, c, C, nc * sizeof *c, &dC, code) : NULL;
    if (pc) *code = strata_gemm(h, strata_real(0.75), dA, dB, strata_real(g->beta), dC, NULL);
    if (pc && *code == STRATA_OK) *code = strata_copy(h, dC, O);
    double worst = pc && *code == STRATA_OK ? 0 : -1;
    for (int64_t i = 0; i < g->m && worst >= 0; i++)
        for (int64_t j = 0; j < g->n; j++) {
            int64_t at = i * C.stride[0] + j * C.stride[1];
            double want = g->beta != 0 ? g->beta * (double)c[at] : 0, size = fabs(want);
            for (int64_t l = 0; l < g->k; l++) {
                double x = 0.75 * (double)a[i * A.stride[0] + l * A.stride[1]] *
                           (double)b[l * B.stride[0] + j * B.stride[1]];
                want += x;
                size += fabs(x);
            }
            double e = fabs((double)out[at] - want) / ((double)(g->k + 3) * 0x1p-24 * size + 0x1p-126);
            if (!(e <= worst)) worst = e;
        }
    if (pa) strata_free(h, pa);
    if (pb) strata_free(h, pb);
    if (pc) strata_free(h, pc);
    free(host);
    return worst;
}

static bool check_products(st_steps *s, strata_handle *h, const char *device)
{
    const product list[] = {{64, 64, 64, STRATA_ROW_MAJOR, STRATA_ROW_MAJOR, STRATA_ROW_MAJOR, 0},
                            {127, 95, 33, STRATA_ROW_MAJOR, STRATA_COL_MAJOR, STRATA_ROW_MAJOR, 1},
                            {200, 129, 257, STRATA_COL_MAJOR, STRATA_ROW_MAJOR, STRATA_COL_MAJOR, -0.5},
                            {1, 300, 70, STRATA_COL_MAJOR, STRATA_COL_MAJOR, STRATA_ROW_MAJOR, 0}};
    int n = (int)(sizeof list / sizeof *list);
    double worst = 0;
    for (int i = 0; i < n; i++) {
        strata_status code = STRATA_OK;
        double e = compare(h, &list[i], &code);
        if (e < 0) {
            unable(s, h, code, "gemm_gpu");
            return false;
        }
        if (!(e <= worst)) worst = e;
    }
    if (!(worst <= 1)) {
        st_finding *f =
            st_step_result(s, ST_FINDING_FAULT, "gemm_gpu",
                           "strata_gemm on %s is wrong: %.3g times the bound of its error", device, worst);
        snprintf(f->evidence, sizeof f->evidence, "f32 products of up to 200x129x257 against f64 on the CPU");
        snprintf(f->fix, sizeof f->fix,
                 "report it with the output of strata info; STRATA_CACHE=off strata selftest --json --only "
                 "gpu shows whether a cached kernel is damaged");
        return false;
    }
    st_finding *f =
        st_step_result(s, ST_FINDING_OK, "gemm_gpu",
                       "strata_gemm on %s agrees with the CPU: %d f32 products, %.2f of the error's bound",
                       device, n, worst);
    snprintf(f->evidence, sizeof f->evidence, "against the same sums in f64 on the CPU");
    return true;
}

static void rate(st_steps *s, strata_handle *h, const char *device)
{
    enum { N = 8192, RUNS = 5 };
    strata_device_info info;
    void *p[3] = {NULL, NULL, NULL};
    strata_status code = STRATA_OK;
    for (int i = 0; i < 3 && code == STRATA_OK; i++) code = strata_alloc(h, (size_t)N * N * 2, &p[i]);
    strata_tensor A = strata_matrix(p[0], STRATA_F16, N, N, STRATA_ROW_MAJOR, 0),
                  B = strata_matrix(p[1], STRATA_F16, N, N, STRATA_ROW_MAJOR, 0),
                  C = strata_matrix(p[2], STRATA_F16, N, N, STRATA_ROW_MAJOR, 0);
    if (code == STRATA_OK) code = strata_fill(h, A, strata_real(0.5));
    if (code == STRATA_OK) code = strata_fill(h, B, strata_real(0.25));
    double best = 0;
    for (int r = 0; r < RUNS && code == STRATA_OK; r++) {
        code = strata_synchronize(h);
        double t = cli_seconds();
        for (int k = 0; k < 4 && code == STRATA_OK; k++)
            code = strata_gemm(h, strata_real(1), A, B, strata_real(0), C, NULL);
        if (code == STRATA_OK) code = strata_synchronize(h);
        t = (cli_seconds() - t) / 4;
        if (r && code == STRATA_OK && 2e-12 * N * N * N / t > best) best = 2e-12 * N * N * N / t;
    }
    if (code != STRATA_OK) {
        st_finding *f = st_step_result(s,
                                       code == STRATA_ERROR_UNSUPPORTED || code == STRATA_ERROR_TYPE ||
                                               code == STRATA_ERROR_MEMORY
                                           ? ST_FINDING_NOTE
                                           : ST_FINDING_FAULT,
                                       "gemm_rate", "the rate of an f16 product of %d was not measured", N);
        snprintf(f->evidence, sizeof f->evidence, "%.390s", strata_error(h));
    } else {
        double peak = strata_get_device_info(device, &info) == STRATA_OK ? st_steps_f16_figure(info.name) : 0;
        bool low = peak > 0 && best < 0.4 * peak;
        st_finding *f =
            st_step_result(s, low ? ST_FINDING_WARNING : ST_FINDING_OK, "gemm_rate",
                           peak > 0 ? "an f16 product of %d runs at %.0f TFLOP/s, the part's figure is %.0f"
                                    : "an f16 product of %d runs at %.0f TFLOP/s",
                           N, best, peak);
        snprintf(
            f->evidence, sizeof f->evidence,
            "strata_gemm, f16 with f32 sums, best of %d; a figure that power limits seldom let a GPU reach",
            RUNS - 1);
        if (low)
            snprintf(f->fix, sizeof f->fix,
                     "look at clocks and throttle reasons (strata doctor --watch) and at the kernel chosen "
                     "(STRATA_TRACE=1)");
    }
    for (int i = 0; i < 3; i++)
        if (p[i]) strata_free(h, p[i]);
}

int cli_selftest_gpu(const char *device)
{
    st_steps s = {.out = stdout};
    strata_handle *h = NULL;
    st_step(&s, ST_LIBRARIES, "strata_create");
    strata_status code = strata_create(&h, device);
    if (code)
        unable(&s, NULL, code, "strata_create");
    else {
        st_step(&s, ST_LIBRARIES, "strata_gemm against the CPU");
        if (check_products(&s, h, device)) {
            st_step(&s, ST_LIBRARIES, "an f16 product of 8192");
            rate(&s, h, device);
        }
    }
    strata_destroy(h);
    st_steps_end(&s);
    return s.faults ? CLI_FAILED : CLI_OK;
}
