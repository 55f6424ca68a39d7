/* SPDX-License-Identifier: Apache-2.0 */
/* 09_perceptron.c - trains a tiny network: two numbers in, 32 hidden units, one number out, for the sign of a * b (which no linear
 * function can tell). Forward, backward and update are products and one-line expressions. */
#include <stdio.h>
#include <stdlib.h>
#include <strata.h>

enum { N = 256, HID = 32, PARAMS = 2 * HID + HID + HID + 1 };
static float x[N][2], want[N], hid[N][HID], out[N], d_out[N], d_hid[N][HID];
static float value[PARAMS], slope[PARAMS], wrong, rate = 2.0f;

#define TRY(call)                                 \
    if (call) {                                   \
        fprintf(stderr, "%s\n", strata_error(h)); \
        exit(1);                                  \
    }

static strata_tensor mat(void *p, int64_t rows, int64_t cols)
{
    return strata_matrix(p, STRATA_F32, rows, cols, STRATA_ROW_MAJOR, 0);
}

static float noise(void) { return 2 * (float)rand() / (float)RAND_MAX - 1; }

int main(void)
{
    for (int i = 0; i < N; i++) x[i][0] = noise(), x[i][1] = noise(), want[i] = x[i][0] * x[i][1] > 0;
    for (int i = 0; i < PARAMS; i++) value[i] = noise();
    strata_handle *h;
    if (strata_create(&h, "auto")) return 1;

    /* all parameters lie in one array, so that one call updates them; the matrices are views into it */
    strata_tensor X = mat(x, N, 2), A = mat(hid, N, HID), P = mat(out, N, 1), dP = mat(d_out, N, 1),
                  dA = mat(d_hid, N, HID);
    strata_tensor W = mat(value, 2, HID), V = mat(value + 3 * HID, HID, 1);
    strata_tensor dW = mat(slope, 2, HID), dV = mat(slope + 3 * HID, HID, 1);
    strata_operand b[] = {{"b", strata_vector(value + 2 * HID, STRATA_F32, HID, 1)}, {NULL, {0}}};
    strata_operand c[] = {{"c", strata_point(value + 4 * HID, STRATA_F32)}, {NULL, {0}}};
    strata_operand a[] = {{"a", A}, {NULL, {0}}};
    strata_operand db[] = {
        {"d", dA}, {"db", strata_vector(slope + 2 * HID, STRATA_F32, HID, 1)}, {NULL, {0}}};
    strata_operand loss[] = {
        {"p", strata_vector(out, STRATA_F32, N, 1)},   {"t", strata_vector(want, STRATA_F32, N, 1)},
        {"d", strata_vector(d_out, STRATA_F32, N, 1)}, {"dc", strata_point(slope + 4 * HID, STRATA_F32)},
        {"wrong", strata_point(&wrong, STRATA_F32)},   {NULL, {0}}};
    strata_operand all[] = {{"w", strata_vector(value, STRATA_F32, PARAMS, 1)},
                            {"g", strata_vector(slope, STRATA_F32, PARAMS, 1)},
                            {"rate", strata_point(&rate, STRATA_F32)},
                            {NULL, {0}}};

    strata_gemm_options hidden = {.epilogue = "tanh(acc + b[n])", .operands = b};
    strata_gemm_options output = {.epilogue = "sigmoid(acc + c)", .operands = c};
    strata_gemm_options through_tanh = {.epilogue = "acc * (1 - a * a)", .operands = a};
    for (int step = 0; step <= 2000; step++) {
        TRY(strata_gemm(h, STRATA_ONE, X, W, STRATA_ZERO, A, &hidden));
        TRY(strata_gemm(h, STRATA_ONE, A, V, STRATA_ZERO, P, &output));
        TRY(strata_fused(h,
                         "d = (p - t) / 256; dc = sum(d); wrong = sum(select((p > 0.5) == (t > 0.5), 0, 1))",
                         loss, NULL));
        TRY(strata_gemm(h, STRATA_ONE, strata_transpose(A), dP, STRATA_ZERO, dV, NULL));
        TRY(strata_gemm(h, STRATA_ONE, dP, strata_transpose(V), STRATA_ZERO, dA, &through_tanh));
        TRY(strata_gemm(h, STRATA_ONE, strata_transpose(X), dA, STRATA_ZERO, dW, NULL));
        TRY(strata_fused(h, "db = sum(d)", db, &(strata_fused_options){.axes = 1}));
        TRY(strata_fused(h, "w = w - rate * g", all, NULL));
        if (step % 500 == 0) printf("step %4d: %3.0f of %d wrong\n", step, wrong, N);
    }
    strata_destroy(h);
    return wrong < 13 ? 0 : 1;
}
