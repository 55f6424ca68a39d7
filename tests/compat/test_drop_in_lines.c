/* SPDX-License-Identifier: Apache-2.0 */
/* test_drop_in_lines.c - an element has the same bits however many rows and columns are computed with it: products, matrix-vector products and updates of a
 * part of a matrix against the same part of the whole. LAPACK's tests compare eigenvalues found with and without vectors to the last bit, and a call for
 * one line there is a call for many here. For every instruction set of this machine: the program calls itself with STRATA_ISA. */
#include "drop_in.h"
#include <sys/wait.h>
#include <unistd.h>

#ifndef LD
#    define LD 28
#endif
enum { ROOM = LD * LD };
static char a[16 * ROOM], b[16 * ROOM], whole[16 * ROOM], part[16 * ROOM], x[16 * LD], y[16 * LD];
static const blas_int ld = LD, one = 1;

static void random_numbers(test_rng *r, int type)
{
    for (int i = 0; i < ROOM; i++) put(type, a, i, complex_of(test_real(r, -1, 1), test_real(r, -1, 1)));
    for (int i = 0; i < ROOM; i++) put(type, b, i, complex_of(test_real(r, -1, 1), test_real(r, -1, 1)));
    for (int i = 0; i < LD; i++) put(type, x, i, complex_of(test_real(r, -1, 1), test_real(r, -1, 1)));
    for (int i = 0; i < LD; i++) put(type, y, i, complex_of(test_real(r, -1, 1), test_real(r, -1, 1)));
}
static char *at(int type, char *p, int64_t i, int64_t j) { return p + (size_t)(i + j * LD) * sizes[type]; }

/* rows i0.. of columns j0.. of both */
static void same(int type, int64_t i0, int64_t j0, int64_t m, int64_t n, const char *what)
{
    for (int64_t j = j0; j < j0 + n; j++)
        test_check(!memcmp(at(type, whole, i0, j), at(type, part, i0, j), (size_t)m * sizes[type]),
                   "%s: column %lld of the part has other bits", what, (long long)j);
}

static void products(void **state)
{
    (void)state;
    test_rng r = test_rng_make(61);
    typedef void gemm_f(V, V, I, I, I, V, V, I, V, I, V, void *, I, size_t, size_t);
    for (int type = F32; type <= C128; type++) {
        gemm_f *gemm = symbol(type, "?gemm", true);
        random_numbers(&r, type);
        char alpha[16], beta[2][16] = {{0}};
        put(type, alpha, 0, 1), put(type, beta[1], 0, 1);
        for (int round = 0; round < test_rounds(3000); round++) {
            const int64_t M = test_int(&r, 1, LD), N = test_int(&r, 1, LD),
                          K = test_chance(&r, 0.7) ? test_int(&r, 1, 16) : test_int(&r, 1, LD);
            const char ta = "NTC"[test_int(&r, 0, 2)], tb = "NTC"[test_int(&r, 0, 2)];
            const int64_t m = test_chance(&r, 0.3) ? 1 : test_int(&r, 1, M),
                          n = test_chance(&r, 0.3) ? 1 : test_int(&r, 1, N), i0 = test_int(&r, 0, M - m),
                          j0 = test_int(&r, 0, N - n);
            const void *be = beta[test_chance(&r, 0.4)];
            const blas_int wm = (blas_int)M, wn = (blas_int)N, k = (blas_int)K, pm = (blas_int)m,
                           pn = (blas_int)n;
            test_problem("%cgemm %c%c round %d: %lldx%lldx%lld, of it %lld+%lld by %lld+%lld", letters[type],
                         ta, tb, round, (long long)M, (long long)N, (long long)K, (long long)i0, (long long)m,
                         (long long)j0, (long long)n);
            memcpy(whole, b, sizeof whole), memcpy(part, b, sizeof part);
            gemm(&ta, &tb, &wm, &wn, &k, alpha, a, &ld, b, &ld, be, whole, &ld, 1, 1);
            gemm(&ta, &tb, &pm, &pn, &k, alpha, ta == 'N' ? at(type, a, i0, 0) : at(type, a, 0, i0), &ld,
                 tb == 'N' ? at(type, b, 0, j0) : at(type, b, j0, 0), &ld, be, at(type, part, i0, j0), &ld, 1,
                 1);
            same(type, i0, j0, m, n, "gemm");
        }
    }
}

static void vectors(void **state)
{
    (void)state;
    test_rng r = test_rng_make(62);
    typedef void gemv_f(V, I, I, V, V, I, V, I, V, void *, I, size_t);
    typedef void ger_f(I, I, V, V, I, V, I, void *, I);
    for (int type = F32; type <= C128; type++) {
        random_numbers(&r, type);
        char alpha[16], zero[16] = {0};
        put(type, alpha, 0, 1);
        for (int round = 0; round < test_rounds(3000); round++) {
            const int64_t M = test_int(&r, 1, LD), K = test_int(&r, 1, LD), m = test_int(&r, 1, M),
                          i0 = test_int(&r, 0, M - m);
            const char t = "NTC"[test_int(&r, 0, 2)];
            blas_int wm = (blas_int)M, k = (blas_int)K, pm = (blas_int)m;
            test_problem("%c round %d: %lld lines of %lld, of them %lld+%lld, op %c", letters[type], round,
                         (long long)M, (long long)K, (long long)i0, (long long)m, t);
            memset(whole, 0, sizeof whole), memset(part, 0, sizeof part);
            ((gemv_f *)symbol(type, "?gemv", true))(&t, t == 'N' ? &wm : &k, t == 'N' ? &k : &wm, alpha, a,
                                                    &ld, x, &one, zero, whole, &one, 1);
            ((gemv_f *)symbol(type, "?gemv", true))(&t, t == 'N' ? &pm : &k, t == 'N' ? &k : &pm, alpha,
                                                    t == 'N' ? at(type, a, i0, 0) : at(type, a, 0, i0), &ld,
                                                    x, &one, zero, at(type, part, i0, 0), &one, 1);
            same(type, i0, 0, m, 1, "gemv");
            memcpy(whole, b, sizeof whole), memcpy(part, b, sizeof part);
            ger_f *ger = symbol(type, is_complex(type) ? "?gerc" : "?ger", true);
            ger(&wm, &k, alpha, x, &one, y, &one, whole, &ld);
            ger(&pm, &k, alpha, at(type, x, i0, 0), &one, y, &one, at(type, part, i0, 0), &ld);
            same(type, i0, 0, m, K, "ger, rows");
            memcpy(whole, b, sizeof whole), memcpy(part, b, sizeof part);
            ger(&k, &wm, alpha, x, &one, y, &one, whole, &ld);
            ger(&k, &pm, alpha, x, &one, at(type, y, i0, 0), &one, at(type, part, 0, i0), &ld);
            same(type, 0, i0, K, m, "ger, columns");
        }
    }
}

int main(int argc, char **argv)
{
    static const char *const sets[] = {"portable", "avx2", "avx512"};
    int bad = 0;
    if (argc == 1) {
        for (int i = 0; i < 3; i++) {
            fflush(stdout);
            const pid_t child = fork();
            int status = 1;
            if (child == 0) {
                setenv("STRATA_ISA", sets[i], 1);
                execl("/proc/self/exe", argv[0], sets[i], (char *)NULL);
                _exit(127);
            }
            waitpid(child, &status, 0);
            if (status) fprintf(stderr, "STRATA_ISA=%s: status %d\n", sets[i], status);
            bad |= status != 0;
        }
        return bad;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(products), cmocka_unit_test(vectors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
