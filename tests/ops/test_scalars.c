/* SPDX-License-Identifier: Apache-2.0 */
/* test_scalars.c - factors that no maker gives (reserved word, a type without an address, a type that is none, an imaginary part for real operands): every
 * operator refuses them in either position, on the long way and on the short one, and writes nothing. */
#include "handle.h"
#include <math.h>

enum { N = 4 };
static double a[N * N], b[N * N], c[N * N], was[N * N];
static strata_tensor A, B, C, T, L, x, y;

typedef strata_status call(strata_scalar s, strata_scalar good);
#define CALL(name, expression)                                     \
    static strata_status name(strata_scalar s, strata_scalar good) \
    {                                                              \
        (void)good;                                                \
        return expression;                                         \
    }
CALL(gemm_alpha, strata_gemm(h, s, A, B, good, C, NULL))
CALL(gemm_beta, strata_gemm(h, good, A, B, s, C, NULL))
CALL(gemm_run_alpha, strata_gemm_run(h, &s, &A, &B, &good, &C, NULL))
CALL(gemm_run_beta, strata_gemm_run(h, &good, &A, &B, &s, &C, NULL))
CALL(symm_alpha, strata_gemm(h, s, strata_symmetric(A, STRATA_LOWER), B, good, C, NULL))
CALL(syrk_alpha, strata_syrk(h, s, A, good, T))
CALL(syrk_beta, strata_syrk(h, good, A, s, T))
CALL(syr2k_alpha, strata_syr2k(h, s, A, B, good, T))
CALL(herk_beta, strata_herk(h, good, A, s, T))
CALL(trmm, strata_trmm(h, s, L, C))
CALL(trsm, strata_trsm(h, s, L, C))
CALL(gemv_alpha, strata_gemv(h, s, A, x, good, y))
CALL(gemv_beta, strata_gemv(h, good, A, x, s, y))
CALL(symv_alpha, strata_gemv(h, s, strata_symmetric(A, STRATA_UPPER), x, good, y))
CALL(ger, strata_ger(h, s, x, strata_vector(b + N, STRATA_F64, N, 1), C))
CALL(syr, strata_syr(h, s, x, T))
CALL(syr2, strata_syr2(h, s, x, strata_vector(b + N, STRATA_F64, N, 1), T))
CALL(axpy, strata_axpy(h, s, x, y))
CALL(axpby_alpha, strata_axpby(h, s, x, good, y))
CALL(axpby_beta, strata_axpby(h, good, x, s, y))
CALL(scal, strata_scal(h, s, y))
CALL(rot_c, strata_rot(h, y, strata_vector(c + N, STRATA_F64, N, 1), s, good))
CALL(rot_s, strata_rot(h, y, strata_vector(c + N, STRATA_F64, N, 1), good, s))
CALL(geam_alpha, strata_geam(h, s, A, good, B, C))
CALL(geam_beta, strata_geam(h, good, A, s, B, C))
CALL(imatcopy, strata_imatcopy(h, s, strata_transpose(C), C))
CALL(fill, strata_fill(h, C, s))
static strata_status grouped(strata_scalar s, strata_scalar good)
{
    const strata_gemm_group g = {.alpha = good, .beta = s, .A = A, .B = B, .C = C};
    return strata_gemm_grouped(h, &g, 1, NULL);
}
static strata_status plan(strata_scalar s, strata_scalar good)
{
    strata_plan *p = NULL;
    const strata_status t = strata_gemm_plan(h, good, A, B, s, C, NULL, NULL, &p);
    strata_plan_destroy(p);
    return t;
}
static strata_plan *made;
static strata_status run_alpha(strata_scalar s, strata_scalar good)
{
    return strata_plan_run(h, made, (void *[]){a, b, c}, &(strata_run){.alpha = &s, .beta = &good});
}
static strata_status run_beta(strata_scalar s, strata_scalar good)
{
    return strata_plan_run(h, made, (void *[]){a, b, c}, &(strata_run){.alpha = &good, .beta = &s});
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        call *f;
    } row[] = {
#define ROW(f) {#f, f}
        ROW(gemm_alpha), ROW(gemm_beta),  ROW(gemm_run_alpha), ROW(gemm_run_beta), ROW(symm_alpha),
        ROW(syrk_alpha), ROW(syrk_beta),  ROW(syr2k_alpha),    ROW(herk_beta),     ROW(trmm),
        ROW(trsm),       ROW(gemv_alpha), ROW(gemv_beta),      ROW(symv_alpha),    ROW(ger),
        ROW(syr),        ROW(syr2),       ROW(axpy),           ROW(axpby_alpha),   ROW(axpby_beta),
        ROW(scal),       ROW(rot_c),      ROW(rot_s),          ROW(geam_alpha),    ROW(geam_beta),
        ROW(imatcopy),   ROW(fill),       ROW(grouped),        ROW(plan),          ROW(run_alpha),
        ROW(run_beta)};
    double value = 2;
    const strata_scalar bad[] = {{.re = 2, .reserved = 7},
                                 {.re = 2, .type = STRATA_F64},
                                 {.ptr = &value, .type = 99},
                                 {.ptr = &value, .type = STRATA_NONE},
                                 {.ptr = &value, .type = STRATA_BIT},
                                 {.ptr = &value, .type = STRATA_F64, .reserved = 1},
                                 {.re = 2, .im = 1},
                                 {.re = 2, .im = NAN}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
            if (k >= 6 && row[i].f == fill) continue; /* of a number that is written its real part counts */
            test_problem("%s with factor %d", row[i].name, (int)k);
            const strata_status s = row[i].f(bad[k], strata_real(2));
            test_check(s == STRATA_ERROR_ARGUMENT || s == STRATA_ERROR_TYPE, "status %d: %s", (int)s,
                       s ? strata_error(h) : "taken");
            test_check(!memcmp(c, was, sizeof c), "something was written");
        }
    /* the same calls with a number, and with its address */
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        test_problem("%s with a number", row[i].name);
        test_ok(h, row[i].f(strata_real(2), strata_real(2)));
        test_ok(h, row[i].f(strata_scalar_at(STRATA_F64, &value), strata_real(2)));
    }
}

int main(void)
{
    if (strcmp(test_device(), "cpu")) return 77;
    for (int i = 0; i < N * N; i++) a[i] = 1 + i % 5, b[i] = 1 - i % 3, c[i] = was[i] = i;
    A = strata_matrix(a, STRATA_F64, N, N, STRATA_ROW_MAJOR, 0);
    B = strata_matrix(b, STRATA_F64, N, N, STRATA_ROW_MAJOR, 0);
    C = strata_matrix(c, STRATA_F64, N, N, STRATA_ROW_MAJOR, 0);
    T = strata_triangular(C, STRATA_LOWER, STRATA_NON_UNIT);
    L = strata_triangular(A, STRATA_LOWER, STRATA_UNIT);
    x = strata_vector(b, STRATA_F64, N, 1);
    y = strata_vector(c, STRATA_F64, N, 1);
    setup(NULL);
    if (strata_gemm_plan(h, STRATA_ONE, A, B, STRATA_ONE, C, NULL, NULL, &made)) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(refused)};
    const int code = cmocka_run_group_tests(tests, NULL, NULL);
    strata_plan_destroy(made);
    teardown(NULL);
    return code;
}
