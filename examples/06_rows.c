/* SPDX-License-Identifier: Apache-2.0 */
/* 06_rows.c - a program over rows. Reductions such as mean() and var() run along the last dim inside the expression, so layer norm,
 * softmax and their like are one line and one pass over memory. */
#include <math.h>
#include <stdio.h>
#include <strata.h>

enum { ROWS = 4, COLS = 1000 };
static float x[ROWS * COLS], w[COLS], b[COLS], y[ROWS * COLS], top[ROWS];

int main(void)
{
    for (int i = 0; i < ROWS * COLS; i++) x[i] = (float)(i % 17) + 10.0f * (float)(i / COLS);
    for (int j = 0; j < COLS; j++) w[j] = 1.0f, b[j] = 0.0f;

    strata_handle *h;
    if (strata_create(&h, "auto")) {
        fprintf(stderr, "%s\n", strata_error(NULL));
        return 1;
    }
    strata_operand o[] = {{"x", strata_matrix(x, STRATA_F32, ROWS, COLS, STRATA_ROW_MAJOR, 0)},
                          {"w", strata_vector(w, STRATA_F32, COLS, 1)},
                          {"b", strata_vector(b, STRATA_F32, COLS, 1)},
                          {"y", strata_matrix(y, STRATA_F32, ROWS, COLS, STRATA_ROW_MAJOR, 0)},
                          {"top", strata_matrix(top, STRATA_F32, ROWS, 1, STRATA_ROW_MAJOR, 0)},
                          {NULL, {0}}};
    /* [n] says that w and b run along the columns. `top` is one number a row: its last dim is 1. */
    const char *layer_norm = "y = (x - mean(x)) * rsqrt(var(x) + 1e-5) * w[n] + b[n]; top = absmax(y)";
    if (strata_fused(h, layer_norm, o, NULL)) {
        fprintf(stderr, "%s\n", strata_error(h));
        return 1;
    }
    int good = 1;
    for (int i = 0; i < ROWS; i++) {
        double sum = 0, squares = 0;
        for (int j = 0; j < COLS; j++)
            sum += y[i * COLS + j], squares += (double)y[i * COLS + j] * y[i * COLS + j];
        printf("row %d: mean %7.4f, variance %.4f, largest %.4f\n", i, sum / COLS, squares / COLS, top[i]);
        good &= fabs(sum / COLS) < 1e-4 && fabs(squares / COLS - 1) < 1e-3;
    }
    strata_destroy(h);
    return good ? 0 : 1;
}
