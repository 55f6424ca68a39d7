/* SPDX-License-Identifier: Apache-2.0 */
/* 11_trace.c - a call says what it did: one line a layer on standard error, or a file that Perfetto and chrome://tracing open.
 * STRATA_TRACE=1 and STRATA_TRACE=file.json do the same for any program from outside. */
#include <stdio.h>
#include <strata.h>
#include <string.h>

enum { N = 256 };
static float a[N * N], c[N * N];

int main(void)
{
    strata_handle *h;
    if (strata_create(&h, "auto")) {
        fprintf(stderr, "%s\n", strata_error(NULL));
        return 1;
    }
    strata_tensor A = strata_matrix(a, STRATA_F32, N, N, STRATA_ROW_MAJOR, 0);
    strata_tensor C = strata_matrix(c, STRATA_F32, N, N, STRATA_ROW_MAJOR, 0);

    fprintf(stderr, "two calls on standard error: the first makes a plan, the second finds it\n");
    strata_status s = strata_set_trace("stderr");
    if (!s) s = strata_gemm(h, STRATA_ONE, A, A, STRATA_ZERO, C, NULL);
    if (!s) s = strata_gemm(h, STRATA_ONE, A, A, STRATA_ZERO, C, NULL);
    if (!s) s = strata_set_trace("11_trace.json");
    if (!s) s = strata_gemm(h, STRATA_ONE, A, strata_transpose(A), STRATA_ZERO, C, NULL);
    if (!s) s = strata_set_trace(NULL); /* off: closes the file */
    if (s) {
        fprintf(stderr, "%s\n", strata_error(h));
        return 1;
    }

    char line[1000];
    int events = 0;
    FILE *f = fopen("11_trace.json", "r");
    while (f && fgets(line, sizeof line, f)) events += strstr(line, "\"ph\":\"X\"") != NULL;
    if (f) fclose(f);
    printf("11_trace.json has %d events: open it in ui.perfetto.dev\n", events);
    strata_destroy(h);
    return events > 0 ? 0 : 1;
}
