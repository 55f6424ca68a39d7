/* SPDX-License-Identifier: Apache-2.0 */
/* 02_product.c - C := alpha A B + beta C in any layout. A tensor is a view: an address, dims and strides. Row-major,
 * column-major and transposed matrices are all the same thing with other strides, so there are no flags for them. */
#include <stdio.h>
#include <strata.h>

enum { M = 2, K = 3, N = 2 };

static void print(const char *name, strata_tensor t)
{
    char text[100];
    strata_tensor_describe(t, text, sizeof text);
    printf("%s is %s\n", name, text);
    for (int64_t i = 0; i < t.dim[0]; i++) {
        for (int64_t j = 0; j < t.dim[1]; j++)
            printf(" %6g", ((float *)t.data)[i * t.stride[0] + j * t.stride[1]]);
        printf("\n");
    }
}

int main(void)
{
    float a[M * K] = {1, 2, 3, /* */ 4, 5, 6};         /* two rows */
    float b[N * 4] = {1, 0, 2, -1, /* */ 0, 1, 3, -1}; /* two columns of 3, 4 apart: -1 is never read */
    float c[M * N], g[N * K];

    strata_handle *h;
    if (strata_create(&h, "auto")) {
        fprintf(stderr, "%s\n", strata_error(NULL));
        return 1;
    }
    strata_tensor A = strata_matrix(a, STRATA_F32, M, K, STRATA_ROW_MAJOR, 0); /* 0: tightly packed */
    strata_tensor B = strata_matrix(b, STRATA_F32, K, N, STRATA_COL_MAJOR, 4); /* leading dimension 4 */
    strata_tensor C = strata_matrix(c, STRATA_F32, M, N, STRATA_ROW_MAJOR, 0);
    strata_tensor G = strata_matrix(g, STRATA_F32, N, K, STRATA_ROW_MAJOR, 0);

    /* beta = 0: what is in C is not read. NULL: no options. */
    strata_status s = strata_gemm(h, STRATA_ONE, A, B, STRATA_ZERO, C, NULL);
    /* the transpose of a matrix is a view of it, too */
    if (!s) s = strata_gemm(h, strata_real(0.5), strata_transpose(C), A, STRATA_ZERO, G, NULL);
    if (s) {
        fprintf(stderr, "%s\n", strata_error(h));
        return 1;
    }
    print("A", A);
    print("B", B);
    print("C = A B", C);
    print("G = C' A / 2", G);
    strata_destroy(h);
    return c[0] == 7 && c[1] == 11 && c[2] == 16 && c[3] == 23 ? 0 : 1;
}
