/* SPDX-License-Identifier: Apache-2.0 */
/* 04_batches.c - many products in one call: a batch is one more dim. A matrix that all of them share is a view with stride 0. */
#include <stdio.h>
#include <strata.h>

enum { BATCH = 4, M = 2, K = 3, N = 2 };

int main(void)
{
    float a[BATCH][M][K], w[K][N] = {{1, 0}, {0, 1}, {1, 1}}, c[BATCH][M][N];
    for (int i = 0; i < BATCH; i++)
        for (int r = 0; r < M; r++)
            for (int k = 0; k < K; k++) a[i][r][k] = (float)(100 * i + 10 * r + k);

    strata_handle *h;
    if (strata_create(&h, "auto")) {
        fprintf(stderr, "%s\n", strata_error(NULL));
        return 1;
    }
    /* dims (batch, rows, columns); 0: one packed matrix after the other */
    strata_tensor A = strata_batch(strata_matrix(a, STRATA_F32, M, K, STRATA_ROW_MAJOR, 0), BATCH, 0);
    strata_tensor C = strata_batch(strata_matrix(c, STRATA_F32, M, N, STRATA_ROW_MAJOR, 0), BATCH, 0);
    strata_tensor W = strata_matrix(w, STRATA_F32, K, N, STRATA_ROW_MAJOR, 0);

    /* the same W for every entry: nothing is copied */
    strata_tensor shared = strata_broadcast(W, 3, (int64_t[]){BATCH, K, N});
    if (strata_gemm(h, STRATA_ONE, A, shared, STRATA_ZERO, C, NULL)) {
        fprintf(stderr, "%s\n", strata_error(h));
        return 1;
    }
    for (int i = 0; i < BATCH; i++)
        printf("entry %d: %4g %4g / %4g %4g\n", i, c[i][0][0], c[i][0][1], c[i][1][0], c[i][1][1]);

    /* every second entry, last first: a slice with a step of -2 */
    strata_tensor some = strata_slice(A, 0, BATCH - 1, 2, -2);
    strata_tensor first_two = strata_slice(C, 0, 0, 2, 1);
    shared = strata_broadcast(W, 3, (int64_t[]){2, K, N});
    if (strata_gemm(h, STRATA_ONE, some, shared, STRATA_ZERO, first_two, NULL)) {
        fprintf(stderr, "%s\n", strata_error(h));
        return 1;
    }
    printf("entries 3 and 1 again: %g %g\n", c[0][0][0], c[1][0][0]);
    strata_destroy(h);
    return c[0][0][0] == 602 && c[1][0][0] == 202 ? 0 : 1;
}
