/* SPDX-License-Identifier: Apache-2.0 */
/* test_drop_in_level3.c - level 3 and the extensions by their Fortran and C names, in both orders, against sums written out, on arrays that end at guard
 * pages and hold NaN wherever nothing is stored. */
#include "drop_in.h"

typedef struct call {
    int type;
    bool fortran, row;
    int order;
    void *f;
} call;
static call some_call(test_rng *r)
{
    call c = {.type = (int)test_int(r, 0, 3), .fortran = test_chance(r, 0.5)};
    c.row = !c.fortran && test_chance(r, 0.6);
    c.order = c.row ? ROW : COL;
    return c;
}
/* a matrix that op makes rows x cols */
static matrix operand(test_rng *r, call c, char op, int64_t rows, int64_t cols)
{
    return matrix_make(r, c.type,
                       (matrix){.row = c.row, .m = op == 'N' ? rows : cols, .n = op == 'N' ? cols : rows});
}
static matrix square(test_rng *r, call c, int64_t n, bool unit_diagonal)
{
    return matrix_make(r, c.type,
                       (matrix){.row = c.row,
                                .m = n,
                                .n = n,
                                .triangle = true,
                                .upper = test_chance(r, 0.5),
                                .unit = unit_diagonal});
}
/* NaN in what beta = 0 or alpha = 0 says is not read */
static void poison(matrix *x)
{
    for (int64_t i = 0; i < x->m; i++)
        for (int64_t j = 0; j < x->n; j++)
            if (matrix_at(x, i, j) >= 0)
                memset(x->a.p + (size_t)matrix_at(x, i, j) * sizes[x->a.type], 0xff, sizes[x->a.type]);
    array_keep(&x->a);
}
static z before(const matrix *x, int64_t i, int64_t j)
{
    return get(x->a.type, x->a.before, matrix_at(x, i, j));
}
static z after(const matrix *x, int64_t i, int64_t j) { return get(x->a.type, x->a.p, matrix_at(x, i, j)); }
static z product(const matrix *A, meaning ma, char oa, const matrix *B, meaning mb, char ob, int64_t i,
                 int64_t j, int64_t k)
{
    z sum = 0;
    for (int64_t p = 0; p < k; p++) sum += matrix_op(A, ma, oa, i, p) * matrix_op(B, mb, ob, p, j);
    return sum;
}

/* gemm, gemm3m, gemmt */
static void gemm(void **state)
{
    (void)state;
    test_rng r = test_rng_make(31);
    for (int round = 0; round < test_rounds(600); round++) {
        call c = some_call(&r);
        const bool t = test_chance(&r, 0.3), m3 = !t && is_complex(c.type) && test_chance(&r, 0.3);
        const char oa = some_op(&r), ob = some_op(&r);
        const int64_t N = test_int(&r, 0, 12), M = t ? N : test_int(&r, 0, 12), K = test_int(&r, 0, 12);
        const char *name = t ? (test_chance(&r, 0.5) ? "?gemmt" : "?gemmtr") : m3 ? "?gemm3m" : "?gemm";
        test_problem("%s %d type %c %s ops %c%c m %lld n %lld k %lld", name, round, letters[c.type],
                     c.row ? "row" : "col", oa, ob, (long long)M, (long long)N, (long long)K);
        matrix A = operand(&r, c, oa, M, K), B = operand(&r, c, ob, K, N),
               C = t ? square(&r, c, N, false) : operand(&r, c, 'N', M, N);
        const z alpha = factor(&r, c.type), beta = factor(&r, c.type);
        if (alpha == 0) poison(&A), poison(&B);
        if (beta == 0) poison(&C);
        const blas_int m = (blas_int)M, n = (blas_int)N, k = (blas_int)K, lda = (blas_int)A.ld,
                       ldb = (blas_int)B.ld, ldc = (blas_int)C.ld;
        char fa[16], fb[16];
        put(c.type, fa, 0, alpha), put(c.type, fb, 0, beta);
        c.f = symbol(c.type, name, c.fortran);
#define GEMM(S, u, v)                                                                                    \
    ((void (*)(int, int, int, blas_int, blas_int, blas_int, S, V, blas_int, V, blas_int, S, void *,      \
               blas_int))c.f)(c.order, c_op(oa), c_op(ob), m, n, k, u, A.a.p, lda, B.a.p, ldb, v, C.a.p, \
                              ldc)
#define GEMMT(S, u, v)                                                                                       \
    ((void (*)(int, int, int, int, blas_int, blas_int, S, V, blas_int, V, blas_int, S, void *,               \
               blas_int))c.f)(c.order, c_uplo(C.upper), c_op(oa), c_op(ob), n, k, u, A.a.p, lda, B.a.p, ldb, \
                              v, C.a.p, ldc)
        if (c.fortran && t)
            ((void (*)(V, V, V, I, I, V, V, I, V, I, V, void *, I, size_t, size_t, size_t))c.f)(
                f_uplo(C.upper), &oa, &ob, &n, &k, fa, A.a.p, &lda, B.a.p, &ldb, fb, C.a.p, &ldc, 1, 1, 1);
        else if (c.fortran)
            ((void (*)(V, V, I, I, I, V, V, I, V, I, V, void *, I, size_t, size_t))c.f)(
                &oa, &ob, &m, &n, &k, fa, A.a.p, &lda, B.a.p, &ldb, fb, C.a.p, &ldc, 1, 1);
        else if (t)
            BY_TYPE(c.type, GEMMT, alpha, beta)
        else
            BY_TYPE(c.type, GEMM, alpha, beta)
        for (int64_t i = 0; i < M; i++)
            for (int64_t j = 0; j < N; j++) {
                if (matrix_at(&C, i, j) < 0) continue;
                const z want = (alpha == 0 ? 0 : alpha * product(&A, GENERAL, oa, &B, GENERAL, ob, i, j, K)) +
                               (beta == 0 ? 0 : beta * before(&C, i, j));
                close_to(c.type, after(&C, i, j), want, (double)(K + 4) * (m3 ? 64 : 16), "C", i, j);
            }
        matrix_untouched(&C);
        array_free(&A.a), array_free(&B.a), array_free(&C.a);
    }
}

static void symm(void **state)
{
    (void)state;
    test_rng r = test_rng_make(32);
    for (int round = 0; round < test_rounds(400); round++) {
        call c = some_call(&r);
        const bool her = is_complex(c.type) && test_chance(&r, 0.5), right = test_chance(&r, 0.5);
        const int64_t M = test_int(&r, 0, 12), N = test_int(&r, 0, 12), K = right ? N : M;
        const char *name = her ? "?hemm" : "?symm";
        matrix A = square(&r, c, K, false), B = operand(&r, c, 'N', M, N), C = operand(&r, c, 'N', M, N);
        test_problem("%s %d type %c %s %s %s m %lld n %lld", name, round, letters[c.type],
                     c.row ? "row" : "col", right ? "right" : "left", A.upper ? "upper" : "lower",
                     (long long)M, (long long)N);
        const z alpha = factor(&r, c.type), beta = factor(&r, c.type);
        if (beta == 0) poison(&C);
        const blas_int m = (blas_int)M, n = (blas_int)N, lda = (blas_int)A.ld, ldb = (blas_int)B.ld,
                       ldc = (blas_int)C.ld;
        char fa[16], fb[16];
        put(c.type, fa, 0, alpha), put(c.type, fb, 0, beta);
        c.f = symbol(c.type, name, c.fortran);
#define SYMM(S, u, v)                                                                                     \
    ((void (*)(int, int, int, blas_int, blas_int, S, V, blas_int, V, blas_int, S, void *, blas_int))c.f)( \
        c.order, c_side(right), c_uplo(A.upper), m, n, u, A.a.p, lda, B.a.p, ldb, v, C.a.p, ldc)
        if (c.fortran)
            ((void (*)(V, V, I, I, V, V, I, V, I, V, void *, I, size_t, size_t))c.f)(
                f_side(right), f_uplo(A.upper), &m, &n, fa, A.a.p, &lda, B.a.p, &ldb, fb, C.a.p, &ldc, 1, 1);
        else
            BY_TYPE(c.type, SYMM, alpha, beta)
        const meaning means = her ? HERMITIAN : SYMMETRIC;
        for (int64_t i = 0; i < M; i++)
            for (int64_t j = 0; j < N; j++) {
                const z sum = right ? product(&B, GENERAL, 'N', &A, means, 'N', i, j, K)
                                    : product(&A, means, 'N', &B, GENERAL, 'N', i, j, K);
                close_to(c.type, after(&C, i, j), alpha * sum + (beta == 0 ? 0 : beta * before(&C, i, j)),
                         (double)(K + 4) * 16, "C", i, j);
            }
        matrix_untouched(&C);
        array_free(&A.a), array_free(&B.a), array_free(&C.a);
    }
}

/* syrk, herk, syr2k, her2k */
static void rank_k(void **state)
{
    (void)state;
    test_rng r = test_rng_make(33);
    for (int round = 0; round < test_rounds(600); round++) {
        call c = some_call(&r);
        const bool her = is_complex(c.type) && test_chance(&r, 0.5), two = test_chance(&r, 0.5);
        const char turned = her                  ? 'C'
                            : is_complex(c.type) ? 'T'
                                                 : "TC"[test_int(&r, 0, 1)],
                   op = test_chance(&r, 0.5) ? 'N' : turned;
        const int64_t N = test_int(&r, 0, 12), K = test_int(&r, 0, 12);
        const char *name = her ? (two ? "?her2k" : "?herk") : two ? "?syr2k" : "?syrk";
        matrix A = operand(&r, c, op, N, K), B = operand(&r, c, op, N, K), C = square(&r, c, N, false);
        test_problem("%s %d type %c %s %s op %c n %lld k %lld", name, round, letters[c.type],
                     c.row ? "row" : "col", C.upper ? "upper" : "lower", op, (long long)N, (long long)K);
        const z alpha = her && !two ? creal(factor(&r, c.type)) : factor(&r, c.type),
                beta = her ? creal(factor(&r, c.type)) : factor(&r, c.type);
        if (beta == 0) poison(&C);
        const blas_int n = (blas_int)N, k = (blas_int)K, lda = (blas_int)A.ld, ldb = (blas_int)B.ld,
                       ldc = (blas_int)C.ld;
        const int real = is_single(c.type) ? F32 : F64, ta = her && !two ? real : c.type,
                  tb = her ? real : c.type;
        const int co = c_op(op), cu = c_uplo(C.upper);
        char fa[16], fb[16];
        put(ta, fa, 0, alpha), put(tb, fb, 0, beta);
        c.f = symbol(c.type, name, c.fortran);
#define SYRK(S, u, v)                                                                        \
    ((void (*)(int, int, int, blas_int, blas_int, S, V, blas_int, S, void *, blas_int))c.f)( \
        c.order, cu, co, n, k, u, A.a.p, lda, v, C.a.p, ldc)
#define SYR2K(S, u, v)                                                                                    \
    ((void (*)(int, int, int, blas_int, blas_int, S, V, blas_int, V, blas_int, S, void *, blas_int))c.f)( \
        c.order, cu, co, n, k, u, A.a.p, lda, B.a.p, ldb, v, C.a.p, ldc)
        if (c.fortran && two)
            ((void (*)(V, V, I, I, V, V, I, V, I, V, void *, I, size_t, size_t))c.f)(
                f_uplo(C.upper), &op, &n, &k, fa, A.a.p, &lda, B.a.p, &ldb, fb, C.a.p, &ldc, 1, 1);
        else if (c.fortran)
            ((void (*)(V, V, I, I, V, V, I, V, void *, I, size_t, size_t))c.f)(
                f_uplo(C.upper), &op, &n, &k, fa, A.a.p, &lda, fb, C.a.p, &ldc, 1, 1);
        else if (two && her && is_single(c.type))
            ((void (*)(int, int, int, blas_int, blas_int, V, V, blas_int, V, blas_int, float, void *,
                       blas_int))c.f)(c.order, cu, co, n, k, fa, A.a.p, lda, B.a.p, ldb, (float)creal(beta),
                                      C.a.p, ldc);
        else if (two && her)
            ((void (*)(int, int, int, blas_int, blas_int, V, V, blas_int, V, blas_int, double, void *,
                       blas_int))c.f)(c.order, cu, co, n, k, fa, A.a.p, lda, B.a.p, ldb, creal(beta), C.a.p,
                                      ldc);
        else if (two)
            BY_TYPE(c.type, SYR2K, alpha, beta)
        else
            BY_TYPE(tb, SYRK, alpha, beta)
        const char oa = op, ob = op == 'N' ? (her ? 'C' : 'T') : 'N';
        for (int64_t i = 0; i < N; i++)
            for (int64_t j = 0; j < N; j++) {
                if (matrix_at(&C, i, j) < 0) continue;
                z want = product(&A, GENERAL, oa, two ? &B : &A, GENERAL, ob, i, j, K) * alpha;
                if (two)
                    want += (her ? conj(alpha) : alpha) * product(&B, GENERAL, oa, &A, GENERAL, ob, i, j, K);
                const bool nothing = (alpha == 0 || K == 0) && beta == 1;
                z old = before(&C, i, j);
                if (her && i == j && !nothing) old = creal(old);
                if (beta != 0) want += beta * old;
                close_to(c.type, after(&C, i, j), want, (double)(K + 4) * 32, "C", i, j);
                if (her && i == j && !nothing) test_check(cimag(after(&C, i, j)) == 0, "a real diagonal");
            }
        matrix_untouched(&C);
        array_free(&A.a), array_free(&B.a), array_free(&C.a);
    }
}

static void triangular(void **state)
{
    (void)state;
    test_rng r = test_rng_make(34);
    for (int round = 0; round < test_rounds(600); round++) {
        call c = some_call(&r);
        const bool solve = test_chance(&r, 0.5), right = test_chance(&r, 0.5),
                   unit_diagonal = test_chance(&r, 0.5);
        const char op = some_op(&r), *name = solve ? "?trsm" : "?trmm";
        const int64_t M = test_int(&r, 0, 12), N = test_int(&r, 0, 12), K = right ? N : M;
        matrix A = square(&r, c, K, unit_diagonal), B = operand(&r, c, 'N', M, N);
        test_problem("%s %d type %c %s %s %s op %c unit %d m %lld n %lld", name, round, letters[c.type],
                     c.row ? "row" : "col", right ? "right" : "left", A.upper ? "upper" : "lower", op,
                     unit_diagonal, (long long)M, (long long)N);
        for (int64_t i = 0; i < K && solve; i++)
            for (int64_t j = 0; j < K; j++)
                if (matrix_at(&A, i, j) >= 0)
                    put(c.type, A.a.p, matrix_at(&A, i, j),
                        i == j ? 2 + some(&r, c.type) / 4 : some(&r, c.type) / 16);
        array_keep(&A.a);
        const z alpha = factor(&r, c.type);
        const blas_int m = (blas_int)M, n = (blas_int)N, lda = (blas_int)A.ld, ldb = (blas_int)B.ld;
        char fa[16];
        put(c.type, fa, 0, alpha);
        c.f = symbol(c.type, name, c.fortran);
#define TRMM(S, u, v)                                                                           \
    ((void)(v), ((void (*)(int, int, int, int, int, blas_int, blas_int, S, V, blas_int, void *, \
                           blas_int))c.f)(c.order, c_side(right), c_uplo(A.upper), c_op(op),    \
                                          c_unit(unit_diagonal), m, n, u, A.a.p, lda, B.a.p, ldb))
        if (c.fortran)
            ((void (*)(V, V, V, V, I, I, V, V, I, void *, I, size_t, size_t, size_t, size_t))c.f)(
                f_side(right), f_uplo(A.upper), &op, f_unit(unit_diagonal), &m, &n, fa, A.a.p, &lda, B.a.p,
                &ldb, 1, 1, 1, 1);
        else
            BY_TYPE(c.type, TRMM, alpha, alpha)
        for (int64_t i = 0; i < M; i++)
            for (int64_t j = 0; j < N; j++) {
                z sum = 0;
                for (int64_t p = 0; p < K; p++)
                    sum += right ? (solve ? after(&B, i, p) : before(&B, i, p)) *
                                       matrix_op(&A, TRIANGULAR, op, p, j)
                                 : matrix_op(&A, TRIANGULAR, op, i, p) *
                                       (solve ? after(&B, p, j) : before(&B, p, j));
                const z got = solve ? sum : after(&B, i, j),
                        want = solve ? alpha * before(&B, i, j) : alpha * sum;
                close_to(c.type, got, want, (double)(K + 4) * 32, solve ? "A X" : "B", i, j);
            }
        matrix_untouched(&B);
        array_free(&A.a), array_free(&B.a);
    }
}

/* geadd, omatcopy, imatcopy */
static void copies(void **state)
{
    (void)state;
    test_rng r = test_rng_make(35);
    for (int round = 0; round < test_rounds(400); round++) {
        call c = some_call(&r);
        const int kind = (int)test_int(&r, 0, 2);
        c.row = (kind || !c.fortran) && test_chance(&r, 0.5); /* Fortran's copies have an order */
        c.order = c.row ? ROW : COL;
        const char op = kind ? some_op(&r) : 'N', *letter = c.row ? "R" : "C";
        static const char *const names[] = {"?geadd", "?omatcopy", "?imatcopy"};
        const int64_t M = test_int(&r, 0, 9), N = test_int(&r, 0, 9);
        matrix A = operand(&r, c, 'N', M, N), C = operand(&r, c, op, M, N);
        test_problem("%s %d type %c %s op %c m %lld n %lld", names[kind], round, letters[c.type],
                     c.row ? "row" : "col", op, (long long)M, (long long)N);
        const z alpha = factor(&r, c.type), beta = factor(&r, c.type);
        const blas_int m = (blas_int)M, n = (blas_int)N, lda = (blas_int)A.ld, ldc = (blas_int)C.ld;
        char fa[16], fb[16];
        put(c.type, fa, 0, alpha), put(c.type, fb, 0, beta);
        c.f = symbol(c.type, names[kind], c.fortran);
        matrix out = C; /* imatcopy: A's memory with C's shape, in an array that holds both */
        if (kind == 2) {
            const int64_t room = A.a.count > C.a.count ? A.a.count : C.a.count;
            out.a = array_make(&r, c.type, room);
            memcpy(out.a.p, A.a.p, (size_t)A.a.count * sizes[c.type]);
            array_keep(&out.a);
        }
#define GEADD(S, u, v)                                                                                     \
    ((void (*)(int, blas_int, blas_int, S, V, blas_int, S, void *, blas_int))c.f)(c.order, m, n, u, A.a.p, \
                                                                                  lda, v, C.a.p, ldc)
#define OMAT(S, u, v)                                                                            \
    ((void)(v), ((void (*)(int, int, blas_int, blas_int, S, V, blas_int, void *, blas_int))c.f)( \
                    c.order, c_op(op), m, n, u, A.a.p, lda, C.a.p, ldc))
#define IMAT(S, u, v)                                                                         \
    ((void)(v), ((void (*)(int, int, blas_int, blas_int, S, void *, blas_int, blas_int))c.f)( \
                    c.order, c_op(op), m, n, u, out.a.p, lda, ldc))
        if (c.fortran && kind == 0)
            ((void (*)(I, I, V, V, I, V, void *, I))c.f)(&m, &n, fa, A.a.p, &lda, fb, C.a.p, &ldc);
        else if (c.fortran && kind == 1)
            ((void (*)(V, V, I, I, V, V, I, void *, I))c.f)(letter, &op, &m, &n, fa, A.a.p, &lda, C.a.p,
                                                            &ldc);
        else if (c.fortran)
            ((void (*)(V, V, I, I, V, void *, I, I))c.f)(letter, &op, &m, &n, fa, out.a.p, &lda, &ldc);
        else if (kind == 0)
            BY_TYPE(c.type, GEADD, alpha, beta)
        else if (kind == 1)
            BY_TYPE(c.type, OMAT, alpha, beta)
        else
            BY_TYPE(c.type, IMAT, alpha, beta)
        for (int64_t i = 0; i < out.m; i++)
            for (int64_t j = 0; j < out.n; j++) {
                z want = alpha * matrix_op(&A, GENERAL, op, i, j);
                if (kind == 0) want += beta * before(&C, i, j);
                close_to(c.type, after(&out, i, j), want, 16, "C", i, j);
            }
        if (kind < 2) matrix_untouched(&C);
        if (kind == 2) array_free(&out.a);
        array_free(&A.a), array_free(&C.a);
    }
}

enum { MOST = 4 };
/* gemm_batch: two groups of up to four products; gemm_batch_strided: one, an operand's stride of 0 among them */
static void batches(void **state)
{
    (void)state;
    test_rng r = test_rng_make(36);
    for (int round = 0; round < test_rounds(150); round++) {
        call c = some_call(&r);
        const bool strided = test_chance(&r, 0.4);
        const blas_int groups = strided ? 1 : (blas_int)test_int(&r, 0, 2);
        matrix A[2 * MOST], B[2 * MOST], C[2 * MOST];
        const void *pa[2 * MOST], *pb[2 * MOST];
        void *pc[2 * MOST];
        blas_int m[2], n[2], k[2], lda[2], ldb[2], ldc[2], size[2], total = 0;
        char oa[2], ob[2], fa[32], fb[32];
        int ca[2], cb[2];
        z alpha[2], beta[2];
        for (int g = 0; g < groups; g++) {
            oa[g] = some_op(&r), ob[g] = some_op(&r), ca[g] = c_op(oa[g]), cb[g] = c_op(ob[g]);
            m[g] = (blas_int)test_int(&r, 0, 6), n[g] = (blas_int)test_int(&r, 0, 6),
            k[g] = (blas_int)test_int(&r, 0, 6);
            size[g] = strided ? 1 : (blas_int)test_int(&r, 0, MOST);
            alpha[g] = factor(&r, c.type), beta[g] = factor(&r, c.type);
            put(c.type, fa, g, alpha[g]), put(c.type, fb, g, beta[g]);
            lda[g] = ldb[g] = ldc[g] = 7;
            for (int i = 0; i < size[g]; i++, total++) {
                /* one leading dimension a group */
                matrix *x[] = {&A[total], &B[total], &C[total]};
                const int64_t rows[] = {oa[g] == 'N' ? m[g] : k[g], ob[g] == 'N' ? k[g] : n[g], m[g]},
                              cols[] = {oa[g] == 'N' ? k[g] : m[g], ob[g] == 'N' ? n[g] : k[g], n[g]};
                for (int w = 0; w < 3; w++) {
                    *x[w] = (matrix){.row = c.row, .m = rows[w], .n = cols[w], .ld = 7};
                    const int64_t outer = c.row ? rows[w] : cols[w], inner = c.row ? cols[w] : rows[w];
                    x[w]->a = array_make(&r, c.type, outer && inner ? (outer - 1) * 7 + inner : 0);
                    for (int64_t u = 0; u < rows[w]; u++)
                        for (int64_t v = 0; v < cols[w]; v++)
                            put(c.type, x[w]->a.p, matrix_at(x[w], u, v), some(&r, c.type));
                    array_keep(&x[w]->a);
                }
                pa[total] = A[total].a.p, pb[total] = B[total].a.p, pc[total] = C[total].a.p;
            }
        }
        test_problem("gemm_batch %d type %c %s strided %d groups %d", round, letters[c.type],
                     c.row ? "row" : "col", strided, (int)groups);
        const blas_int stride = 0, one = 1;
        c.f = symbol(c.type, strided ? "?gemm_batch_strided" : "?gemm_batch", c.fortran);
#define STRIDED(S, u, v)                                                                                     \
    ((void (*)(int, int, int, blas_int, blas_int, blas_int, S, V, blas_int, blas_int, V, blas_int, blas_int, \
               S, void *, blas_int, blas_int, blas_int))c.f)(c.order, ca[0], cb[0], m[0], n[0], k[0], u,     \
                                                             pa[0], lda[0], stride, pb[0], ldb[0], stride,   \
                                                             v, pc[0], ldc[0], 64, one)
        if (c.fortran && strided)
            ((void (*)(V, V, I, I, I, V, V, I, I, V, I, I, V, void *, I, I, I, size_t, size_t))c.f)(
                oa, ob, m, n, k, fa, pa[0], lda, &stride, pb[0], ldb, &stride, fb, pc[0], ldc,
                &(blas_int){64}, &one, 1, 1);
        else if (strided)
            BY_TYPE(c.type, STRIDED, alpha[0], beta[0])
        else if (c.fortran)
            ((void (*)(V, V, I, I, I, V, const void **, I, const void **, I, V, void **, I, I, I, size_t,
                       size_t))c.f)(oa, ob, m, n, k, fa, pa, lda, pb, ldb, fb, pc, ldc, &groups, size, 1, 1);
        else
            ((void (*)(int, const int *, const int *, I, I, I, V, const void **, I, const void **, I, V,
                       void **, I, blas_int, I))c.f)(c.order, ca, cb, m, n, k, fa, pa, lda, pb, ldb, fb, pc,
                                                     ldc, groups, size);
        total = 0;
        for (int g = 0; g < groups; g++)
            for (int i = 0; i < size[g]; i++, total++) {
                for (int64_t u = 0; u < m[g]; u++)
                    for (int64_t v = 0; v < n[g]; v++)
                        close_to(c.type, after(&C[total], u, v),
                                 alpha[g] * product(&A[total], GENERAL, oa[g], &B[total], GENERAL, ob[g], u,
                                                    v, k[g]) +
                                     beta[g] * before(&C[total], u, v),
                                 200, "C", u, v);
                matrix_untouched(&C[total]);
                array_free(&A[total].a), array_free(&B[total].a), array_free(&C[total].a);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gemm),   cmocka_unit_test(symm),
                                       cmocka_unit_test(rank_k), cmocka_unit_test(triangular),
                                       cmocka_unit_test(copies), cmocka_unit_test(batches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
