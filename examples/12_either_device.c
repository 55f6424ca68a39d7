/* SPDX-License-Identifier: Apache-2.0 */
/* 12_either_device.c - one program for both devices. Memory comes from the handle, strata_copy carries numbers over; on a GPU the loop is then
 * recorded as a graph and runs without the program. The CPU runs the same calls at once. */
#include <math.h>
#include <stdio.h>
#include <strata.h>

enum { ROWS = 256, IN = 512, OUT = 128 };

static float *host_numbers(strata_handle *h, int n, float scale)
{
    void *p = NULL;
    if (strata_alloc_host(h, (size_t)n * sizeof(float), &p)) return NULL; /* page-locked where that helps */
    for (int i = 0; i < n; i++) ((float *)p)[i] = scale * (float)(i % 13 - 6);
    return p;
}

static strata_status layer(strata_handle *h, strata_tensor X, strata_tensor W, strata_tensor b,
                           strata_tensor Y)
{
    const float slope = 0.1f; /* one number that is only read may be the program's on both devices */
    strata_operand bias[] = {{"bias", b}, {NULL, {0}}};
    strata_status s = strata_gemm(h, STRATA_ONE, X, W, STRATA_ZERO, Y,
                                  &(strata_gemm_options){.epilogue = "acc + bias[n]", .operands = bias});
    strata_operand leaky[] = {{"y", Y}, {"slope", strata_point(&slope, STRATA_F32)}, {NULL, {0}}};
    return s ? s : strata_fused(h, "y = select(y > 0, y, slope * y)", leaky, NULL);
}

int main(int argc, char **argv)
{
    strata_handle *h;
    if (strata_create(&h, argc > 1 ? argv[1] : "auto")) { /* "cpu", "cuda:0", or the best there is */
        fprintf(stderr, "%s\n", strata_error(NULL));
        return 1;
    }
    printf("on %s\n", strata_handle_device(h));
    float *x = host_numbers(h, ROWS * IN, 1), *w = host_numbers(h, IN * OUT, 0.01f),
          *b = host_numbers(h, OUT, 0.5f), *y = host_numbers(h, ROWS * OUT, 0);
    const float *from[] = {x, w, b};
    const int64_t count[] = {ROWS * IN, IN * OUT, OUT, ROWS * OUT};
    void *d[4];
    strata_status s = x && w && b && y ? STRATA_OK : STRATA_ERROR_MEMORY;
    for (int i = 0; i < 4 && !s; i++) {
        s = strata_alloc(h, (size_t)count[i] * sizeof(float), &d[i]);
        if (!s && i < 3)
            s = strata_copy(h, strata_vector(from[i], STRATA_F32, count[i], 1),
                            strata_vector(d[i], STRATA_F32, count[i], 1));
    }
    strata_tensor X = strata_matrix(d[0], STRATA_F32, ROWS, IN, STRATA_ROW_MAJOR, 0),
                  W = strata_matrix(d[1], STRATA_F32, IN, OUT, STRATA_ROW_MAJOR, 0),
                  Y = strata_matrix(d[3], STRATA_F32, ROWS, OUT, STRATA_ROW_MAJOR, 0);
    if (!s) s = layer(h, X, W, strata_vector(d[2], STRATA_F32, OUT, 1), Y);
    if (!s)
        s = strata_copy(h, strata_vector(d[3], STRATA_F32, count[3], 1),
                        strata_vector(y, STRATA_F32, count[3], 1));

    /* the same calls as a graph: UNSUPPORTED on the CPU, where there is nothing to gain */
    strata_graph *g;
    if (!s && !strata_graph_begin(h)) {
        s = layer(h, X, W, strata_vector(d[2], STRATA_F32, OUT, 1), Y);
        if (!s && !strata_graph_end(h, &g)) {
            for (int i = 0; i < 100 && !s; i++) s = strata_graph_launch(h, g);
            strata_graph_destroy(g);
        }
    }
    if (!s) s = strata_synchronize(h);
    if (s) {
        fprintf(stderr, "%s\n", strata_error(h));
        return 1;
    }
    double want = b[7];
    for (int k = 0; k < IN; k++) want += (double)x[3 * IN + k] * w[k * OUT + 7];
    want = want > 0 ? want : 0.1 * want;
    printf("Y[3][7] = %.4f, by hand %.4f\n", y[3 * OUT + 7], want);
    const int wrong = !(fabs(y[3 * OUT + 7] - want) < 1e-2);
    for (int i = 0; i < 4; i++) strata_free(h, d[i]);
    strata_free_host(h, x), strata_free_host(h, w), strata_free_host(h, b), strata_free_host(h, y);
    strata_destroy(h);
    return wrong;
}
