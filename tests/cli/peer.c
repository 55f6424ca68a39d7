/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c - a CBLAS of two functions, plain loops, for the tests of `strata bench`. With WRONG_ELEMENT its last element is off by a
 * little more than rounding could make it: the bench must notice. */
#include <stddef.h>

#define API __attribute__((visibility("default")))
#ifndef WRONG_ELEMENT
#    define WRONG_ELEMENT 0
#endif

API void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
                     const float *b, int ldb, float beta, float *c, int ldc);
API void cblas_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda,
                     const double *b, int ldb, double beta, double *c, int ldc);

#define PRODUCT(T)                                                                              \
    (void)order;                                                                                \
    for (int i = 0; i < m; i++)                                                                 \
        for (int j = 0; j < n; j++) {                                                           \
            T s = 0;                                                                            \
            for (int l = 0; l < k; l++)                                                         \
                s += (ta == 112 ? a[(size_t)l * lda + i] : a[(size_t)i * lda + l]) *            \
                     (tb == 112 ? b[(size_t)j * ldb + l] : b[(size_t)l * ldb + j]);             \
            T old = beta != 0 ? beta * c[(size_t)i * ldc + j] : 0;                              \
            c[(size_t)i * ldc + j] =                                                            \
                alpha * s + old + (WRONG_ELEMENT && i == m - 1 && j == n - 1 ? (T)1e-3 : (T)0); \
        }

void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc)
{
    PRODUCT(float)
}

void cblas_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda,
                 const double *b, int ldb, double beta, double *c, int ldc)
{
    PRODUCT(double)
}
