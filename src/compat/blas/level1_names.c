/* SPDX-License-Identifier: Apache-2.0 */
/* level1_names.c - the names of level 1, four times from level1.inc, and the few that only one type has. */
#include "compat/blas/level1.h"
#include <math.h>

typedef float _Complex complex_float;
typedef double _Complex complex_double;

/* arguments, by value in C and by address in Fortran; O: written */
#define N blas_int n
#define X const void *x, blas_int incx
#define XO void *x, blas_int incx
#define Y const void *y, blas_int incy
#define YO void *y, blas_int incy
#define FN const blas_int *n
#define FX const void *x, const blas_int *incx
#define FXO void *x, const blas_int *incx
#define FY const void *y, const blas_int *incy
#define FYO void *y, const blas_int *incy

/* T: element; R: its real part's type; P: letter; RP(x): names whose result is real (scnrm2); MIXED(x): complex by real (csscal, csrot) */
#define T float
#define R float
#define P s
#define TYPE STRATA_F32
#include "compat/blas/level1.inc"
#define T double
#define R double
#define P d
#define TYPE STRATA_F64
#include "compat/blas/level1.inc"
#define COMPLEX
#define T complex_float
#define R float
#define P c
#define PR sc
#define MIXED cs
#define TYPE STRATA_C64
#include "compat/blas/level1.inc"
#define T complex_double
#define R double
#define P z
#define PR dz
#define MIXED zd
#define TYPE STRATA_C128
#include "compat/blas/level1.inc"

/* products and sums of float vectors in double */
static double wide_dot(const char *name, blas_int n, const float *x, blas_int incx, const float *y,
                       blas_int incy)
{
    double r;
    st_blas_dot(name, STRATA_F32, n, x, incx, y, incy, false, true, &r);
    return r;
}
FORTRAN(double, dsdot,
        (const blas_int *n, const float *x, const blas_int *incx, const float *y, const blas_int *incy))
{
    return wide_dot("DSDOT ", *n, x, *incx, y, *incy);
}
CBLAS(double, dsdot, (blas_int n, const float *x, blas_int incx, const float *y, blas_int incy))
{
    return wide_dot("cblas_dsdot", n, x, incx, y, incy);
}
FORTRAN(float, sdsdot,
        (const blas_int *n, const float *add, const float *x, const blas_int *incx, const float *y,
         const blas_int *incy))
{
    return (float)(wide_dot("SDSDOT", *n, x, *incx, y, *incy) + (double)*add);
}
CBLAS(float, sdsdot, (blas_int n, float add, const float *x, blas_int incx, const float *y, blas_int incy))
{
    return (float)(wide_dot("cblas_sdsdot", n, x, incx, y, incy) + (double)add);
}

FORTRAN(float, scabs1, (const float *z)) { return fabsf(z[0]) + fabsf(z[1]); }
FORTRAN(double, dcabs1, (const double *z)) { return fabs(z[0]) + fabs(z[1]); }
CBLAS(float, scabs1, (const float *z)) { return fabsf(z[0]) + fabsf(z[1]); }
CBLAS(double, dcabs1, (const double *z)) { return fabs(z[0]) + fabs(z[1]); }
