/* SPDX-License-Identifier: Apache-2.0 */
/* 03_errors.c - a mistake is answered in words: which argument, what it is, what is expected, what to do. The output stays as
 * it was. No function prints, aborts or exits. */
#include <stdio.h>
#include <strata.h>

static int refused;

static void show(const strata_handle *h, strata_status s)
{
    printf("%s\n%s\n\n", strata_status_name(s), strata_error(h));
    refused += s != STRATA_OK;
}

int main(void)
{
    static float a[512 * 256], b[128 * 256], c[512 * 128];
    strata_handle *h;

    /* no handle yet: the reason is kept for the thread */
    show(NULL, strata_create(&h, "abacus"));

    if (strata_create(&h, "cpu")) return 1;
    strata_tensor A = strata_matrix(a, STRATA_F32, 512, 256, STRATA_ROW_MAJOR, 0);
    strata_tensor B = strata_matrix(b, STRATA_F32, 128, 256, STRATA_ROW_MAJOR, 0);
    strata_tensor C = strata_matrix(c, STRATA_F32, 512, 128, STRATA_ROW_MAJOR, 0);

    /* dims that do not fit */
    show(h, strata_gemm(h, STRATA_ONE, A, B, STRATA_ZERO, C, NULL));

    /* a view that cannot be: it carries its error to the first operator that meets it */
    strata_tensor bad = strata_matrix(b, STRATA_F32, 256, 128, STRATA_ROW_MAJOR, 100);
    show(h, strata_gemm(h, STRATA_ONE, A, bad, STRATA_ZERO, C, NULL));

    /* the output overlaps an input */
    strata_tensor over = strata_matrix(a, STRATA_F32, 512, 128, STRATA_ROW_MAJOR, 0);
    show(h, strata_gemm(h, STRATA_ONE, A, strata_transpose(B), STRATA_ZERO, over, NULL));

    /* a misspelt function in an expression */
    strata_operand o[] = {{"x", C}, {"y", C}, {NULL, {0}}};
    show(h, strata_fused(h, "y = gelv(x) * 2", o, NULL));

    strata_destroy(h);
    return refused == 5 ? 0 : 1;
}
