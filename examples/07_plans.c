/* SPDX-License-Identifier: Apache-2.0 */
/* 07_plans.c - describe, plan, run. A plan is an operator bound to shapes, types and a device. It says what was chosen and why, can
 * be held to conditions, and is run many times without a look-up or an allocation. */
#include <stdio.h>
#include <strata.h>
#include <string.h>

enum { N = 64 };
static float a[N * N], b[N * N], c[N * N], again[N * N];

int main(void)
{
    for (int i = 0; i < N * N; i++) a[i] = (float)(i % 7) - 3, b[i] = (float)(i % 5) - 2;
    strata_handle *h;
    if (strata_create(&h, "cpu")) {
        fprintf(stderr, "%s\n", strata_error(NULL));
        return 1;
    }
    strata_tensor A = strata_matrix(a, STRATA_F32, N, N, STRATA_ROW_MAJOR, 0);
    strata_tensor B = strata_matrix(b, STRATA_F32, N, N, STRATA_ROW_MAJOR, 0);
    strata_tensor C = strata_matrix(c, STRATA_F32, N, N, STRATA_ROW_MAJOR, 0);

    strata_plan *p;
    if (strata_gemm_plan(h, STRATA_ONE, A, B, STRATA_ZERO, C, NULL, NULL, &p)) {
        fprintf(stderr, "%s\n", strata_error(h));
        return 1;
    }
    printf("%s\n\nkernel %s, workspace %zu bytes\n", strata_plan_describe(p), strata_plan_kernel(p),
           strata_plan_workspace(p));

    /* the addresses come with each run, in the order of the maker's arguments */
    for (int i = 0; i < 1000; i++)
        if (strata_plan_run(h, p, (void *[]){a, b, c}, NULL)) {
            fprintf(stderr, "%s\n", strata_error(h));
            return 1;
        }
    memcpy(again, c, sizeof c);
    strata_plan_destroy(p);

    /* the choice may be limited: no workspace at all always works */
    strata_choice frugal = {.limit_workspace = true, .workspace_limit = 0};
    if (strata_gemm_plan(h, STRATA_ONE, A, B, STRATA_ZERO, C, NULL, &frugal, &p)) {
        fprintf(stderr, "%s\n", strata_error(h));
        return 1;
    }
    printf("without workspace: %s\n", strata_plan_kernel(p));
    strata_plan_destroy(p);
    strata_destroy(h);
    return memcmp(again, c, sizeof c) ? 1 : 0;
}
