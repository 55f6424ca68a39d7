/* SPDX-License-Identifier: Apache-2.0 */
/* 08_convolution.c - a convolution with bias and ReLU in one kernel, planned once. The dims of images are always (n, c, h, w);
 * strata_nhwc and strata_nchw differ only in the strides, and the two may be mixed. */
#include <math.h>
#include <stdio.h>
#include <strata.h>

enum { N = 2, C = 8, H = 14, W = 14, O = 16 };
static float x[N * C * H * W], w[O * C * 3 * 3], bias[O], y[N * O * H * W];

/* the formula of dnn.h, for one output */
static double slowly(int n, int o, int p, int q)
{
    double sum = bias[o];
    for (int c = 0; c < C; c++)
        for (int r = 0; r < 3; r++)
            for (int s = 0; s < 3; s++) {
                int i = p - 1 + r, j = q - 1 + s;
                if (i >= 0 && i < H && j >= 0 && j < W)
                    sum += (double)x[((n * H + i) * W + j) * C + c] * w[((o * C + c) * 3 + r) * 3 + s];
            }
    return fmax(sum, 0);
}

int main(void)
{
    for (int i = 0; i < N * C * H * W; i++) x[i] = (float)(i * 7 % 11) / 11 - 0.5f;
    for (int i = 0; i < O * C * 9; i++) w[i] = (float)(i * 5 % 13) / 13 - 0.5f;
    for (int o = 0; o < O; o++) bias[o] = 0.01f * (float)o;

    strata_handle *h;
    if (strata_create(&h, "cpu")) {
        fprintf(stderr, "%s\n", strata_error(NULL));
        return 1;
    }
    strata_tensor X = strata_nhwc(x, STRATA_F32, N, C, H, W), F = strata_nchw(w, STRATA_F32, O, C, 3, 3);
    strata_operand operands[] = {{"bias", strata_vector(bias, STRATA_F32, O, 1)}, {NULL, {0}}};
    strata_conv conv = {.pad = {1, 1}, .epilogue = "relu(acc + bias[n])", .operands = operands};

    int64_t dim[4];
    strata_plan *p;
    strata_status s = strata_conv_output(h, &conv, X, F, dim);
    strata_tensor Y = strata_nhwc(y, STRATA_F32, dim[0], dim[1], dim[2], dim[3]);
    if (!s) s = strata_conv_forward_plan(h, &conv, X, F, Y, NULL, &p);
    if (!s) printf("%s\n", strata_plan_describe(p));
    if (!s)
        s = strata_plan_run(h, p, (void *[]){x, w, y, bias}, NULL); /* the epilogue's operands come last */
    if (s) {
        fprintf(stderr, "%s\n", strata_error(h));
        return 1;
    }
    double worst = 0;
    for (int n = 0; n < N; n++)
        for (int i = 0; i < H * W; i++)
            for (int o = 0; o < O; o++)
                worst = fmax(worst, fabs(y[(n * H * W + i) * O + o] - slowly(n, o, i / W, i % W)));
    printf("largest difference from double precision: %.1e\n", worst);
    strata_plan_destroy(p);
    strata_destroy(h);
    return worst < 1e-5 ? 0 : 1;
}
