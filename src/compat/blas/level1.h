/* SPDX-License-Identifier: Apache-2.0 */
/* level1.h - the operations of level1.c. n, increments and addresses as in BLAS; `type` is the vectors' strata_type. */
#ifndef ST_COMPAT_BLAS_LEVEL1_H
#define ST_COMPAT_BLAS_LEVEL1_H
#include "compat/blas/blas.h"
void st_blas_axpy(const char *name, int type, int64_t n, const void *alpha, const void *x, int64_t incx,
                  void *y, int64_t incy);
void st_blas_axpby(const char *name, int type, int64_t n, const void *alpha, const void *x, int64_t incx,
                   const void *beta, void *y, int64_t incy);
void st_blas_copy(const char *name, int type, int64_t n, const void *x, int64_t incx, void *y, int64_t incy);
void st_blas_swap(const char *name, int type, int64_t n, void *x, int64_t incx, void *y, int64_t incy);
void st_blas_scal(const char *name, int type, int64_t n, strata_scalar alpha, void *x, int64_t incx);
void st_blas_dot(const char *name, int type, int64_t n, const void *x, int64_t incx, const void *y,
                 int64_t incy, bool conjugate, bool wide, void *result);
double st_blas_nrm2(const char *name, int type, int64_t n, const void *x, int64_t incx);
double st_blas_asum(const char *name, int type, int64_t n, const void *x, int64_t incx);
int64_t st_blas_iamax(const char *name, int type, int64_t n, const void *x, int64_t incx, bool least);
void st_blas_rot(const char *name, int type, int64_t n, void *x, int64_t incx, void *y, int64_t incy,
                 double c, double s);
void st_blas_rotg(const char *name, int type, void *a, const void *b, void *c, void *s);
void st_blas_rotm(const char *name, int type, int64_t n, void *x, int64_t incx, void *y, int64_t incy,
                  const void *param);
void st_blas_rotmg(const char *name, int type, void *d1, void *d2, void *x1, const void *y1, void *param);
#endif
