/* SPDX-License-Identifier: Apache-2.0 */
/* 05_epilogue.c - what follows a product is an expression, run on each tile while it is in cache: no second pass over memory. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strata.h>

enum { M = 300, K = 200, N = 100 };
static float x[M * K], w[K * N], bias[N], skip[M * N], y[M * N], pre[M * N];

static void fill(float *p, int n)
{
    for (int i = 0; i < n; i++) p[i] = (float)rand() / (float)RAND_MAX - 0.5f;
}

int main(void)
{
    fill(x, M * K), fill(w, K * N), fill(bias, N), fill(skip, M * N);
    strata_handle *h;
    if (strata_create(&h, "auto")) {
        fprintf(stderr, "%s\n", strata_error(NULL));
        return 1;
    }
    strata_tensor X = strata_matrix(x, STRATA_F32, M, K, STRATA_ROW_MAJOR, 0);
    strata_tensor W = strata_matrix(w, STRATA_F32, K, N, STRATA_ROW_MAJOR, 0);
    strata_tensor Y = strata_matrix(y, STRATA_F32, M, N, STRATA_ROW_MAJOR, 0);

    /* acc is the product. [n]: the bias runs along the columns. The value before the activation is kept, too. */
    strata_operand operands[] = {{"bias", strata_vector(bias, STRATA_F32, N, 1)},
                                 {"skip", strata_matrix(skip, STRATA_F32, M, N, STRATA_ROW_MAJOR, 0)},
                                 {"pre", strata_matrix(pre, STRATA_F32, M, N, STRATA_ROW_MAJOR, 0)},
                                 {NULL, {0}}};
    strata_gemm_options o = {.epilogue = "pre = acc + bias[n]; out = gelu(pre) + skip", .operands = operands};
    if (strata_gemm(h, STRATA_ONE, X, W, STRATA_ZERO, Y, &o)) {
        fprintf(stderr, "%s\n", strata_error(h));
        return 1;
    }

    /* the same, slowly */
    double worst = 0;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = bias[j];
            for (int k = 0; k < K; k++) sum += (double)x[i * K + k] * w[k * N + j];
            double want = 0.5 * sum * (1 + erf(sum * sqrt(0.5))) + skip[i * N + j];
            worst = fmax(worst, fabs(y[i * N + j] - want));
        }
    printf("y = gelu(x w + bias) + skip, %d x %d: largest difference from double precision %.1e\n", M, N,
           worst);
    strata_destroy(h);
    return worst < 1e-5 ? 0 : 1;
}
