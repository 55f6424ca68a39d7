/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - a handle for every thread, and the error routines of the standard, each of which a program may replace by its own.
 *
 * Replacing works through the dynamic linker: xerbla_ and cblas_xerbla are weak here and are called by name, so the first definition that
 * the loader meets (the program's) is the one that is used. The standard's xerbla stops the program. Here it prints and returns, as in OpenBLAS
 * and MKL: LAPACK then reports its info to the caller, and an interpreter goes on living. */
#include "compat/blas/blas.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Thread_local strata_handle *st_blas_mine;
_Atomic(const strata_vectors *) st_blas_vectors[4];
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void thread_ends(void *h)
{
    st_blas_mine = NULL;
    strata_destroy(h);
}
static void make_key(void)
{
    if (pthread_key_create(&key, thread_ends)) {
        fputs("strata: libblas: this process has no thread-specific key left\n", stderr);
        abort();
    }
}

strata_handle *st_blas_handle_make(void)
{
    const char *device = secure_getenv("STRATA_BLAS_DEVICE");
    strata_handle *h;
    pthread_once(&once, make_key);
    if (strata_create(&h, device && *device ? device : "cpu"))
        st_blas_failed("the first call of a thread", false);
    st_blas_mine = h;
    static const strata_type types[] = {STRATA_F32, STRATA_F64, STRATA_C64, STRATA_C128};
    for (int i = 0; i < 4; i++) atomic_store(&st_blas_vectors[i], strata_vectors_of(h, types[i]));
    pthread_setspecific(key, h); /* when that fails the handle is lost with its thread, nothing else */
    return h;
}

void st_blas_failed(const char *routine, bool turned)
{
    fprintf(stderr, "strata: libblas: %s cannot be done: %s%s\n", routine, strata_error(st_blas_mine),
            turned ? " (said of the column-major call that this row-major one is: A and B, m and n trade "
                     "places, and so do the triangles)"
                   : "");
    abort();
}

/* ---- xerbla ------------------------------------------------------------------------------------------------------------------ */
#define WEAK __attribute__((weak))
/* What the reference CBLAS has for the same purpose: is the failing call row-major? Its xerbla, and those made after it, look here. */
STRATA_API int RowMajorStrg;
STRATA_API int CBLAS_CallFromC;
int RowMajorStrg, CBLAS_CallFromC;

STRATA_API WEAK void xerbla_(const char *name, const blas_int *info, size_t length);
WEAK void xerbla_(const char *name, const blas_int *info, size_t length)
{
    while (length && name[length - 1] == ' ') length--;
    fprintf(stderr, " ** On entry to %.*s parameter number %2lld had an illegal value\n",
            (int)(length > 64 ? 64 : length), name, (long long)*info);
}
#ifdef ST_BLAS_ILP64
STRATA_API WEAK void xerbla_64_(const char *name, const blas_int *info, size_t length);
WEAK void xerbla_64_(const char *name, const blas_int *info, size_t length) { xerbla_(name, info, length); }
#    define XERBLA xerbla_64_
#else
#    define XERBLA xerbla_
#endif

/* The same for a name given as an array of characters (LAPACK 3.2). */
FORTRAN(void, xerbla_array, (const char *name, const blas_int *length, const blas_int *info))
{
    char copy[32];
    memset(copy, ' ', sizeof copy);
    for (int i = 0; i < (int)sizeof copy && i < *length; i++) copy[i] = name[i];
    XERBLA(copy, info, sizeof copy);
}

FORTRAN(int, lsame, (const char *a, const char *b)) { return st_blas_letter(*a) == st_blas_letter(*b); }

/* Position `info` of the Fortran call that a row-major call became, as a position in the CBLAS call: what trades places there. */
static int row_major_position(const char *routine, int info)
{
    static const struct {
        const char *part;
        int a, b, c, d; /* a <-> b, c <-> d */
    } swaps[] = {{"gemm_batch_strided", 4, 5, 9, 12},
                 {"geadd", 2, 3, 0, 0},
                 {"gemmt", 0, 0, 9, 11}, /* before gemm: its sizes do not trade places */
                 {"gemm", 4, 5, 9, 11},
                 {"symm", 4, 5, 0, 0},
                 {"hemm", 4, 5, 0, 0},
                 {"trmm", 6, 7, 0, 0},
                 {"trsm", 6, 7, 0, 0},
                 {"gemv", 3, 4, 0, 0},
                 {"gbmv", 3, 4, 5, 6},
                 {"her2k", 0, 0, 0, 0},
                 {"her2", 6, 8, 0, 0},
                 {"hpr2", 6, 8, 0, 0},
                 {"ger", 2, 3, 6, 8}};
    for (size_t i = 0; i < sizeof swaps / sizeof *swaps; i++)
        if (strstr(routine, swaps[i].part)) {
            const int a = swaps[i].a, b = swaps[i].b, c = swaps[i].c, d = swaps[i].d;
            return !info ? 0 : info == a ? b : info == b ? a : info == c ? d : info == d ? c : info;
        }
    return info;
}

STRATA_API WEAK void cblas_xerbla(blas_int info, const char *routine, const char *form, ...);
WEAK void cblas_xerbla(blas_int info, const char *routine, const char *form, ...)
{
    va_list ap;
    if (RowMajorStrg) info = (blas_int)row_major_position(routine, (int)info);
    if (info) fprintf(stderr, "Parameter %lld to routine %s was incorrect\n", (long long)info, routine);
    va_start(ap, form);
    vfprintf(stderr, form, ap);
    va_end(ap);
}

/* The variables are set only here, so that calls without faults share nothing. */
static void from_c(st_caller who, int info, const char *form, int value)
{
    RowMajorStrg = who.row;
    CBLAS_CallFromC = 1;
    cblas_xerbla((blas_int)info, who.name, form, value);
    CBLAS_CallFromC = 0;
    RowMajorStrg = 0;
}

/* Fortran pads names to six characters: "DGEMM ". */
void st_blas_bad(st_caller who, int info)
{
    const blas_int i = (blas_int)info;
    char name[32];
    size_t n = 0;
    if (who.c) {
        from_c(who, info + 1, "", 0);
        return;
    }
    for (const char *p = who.name + strlen("cblas_"); *p && n < sizeof name; p++)
        name[n++] = st_blas_letter(*p);
    while (n < 6) name[n++] = ' ';
    XERBLA(name, &i, n);
}

/* ---- enumerations ------------------------------------------------------------------------------------------------------------- */
static int bad_enum(st_caller who, int position, const char *what, int value)
{
    char form[64];
    snprintf(form, sizeof form, "Illegal %s setting, %%d\n", what);
    from_c(who, position, form, value);
    return -1;
}
bool st_blas_order(st_caller who, int order)
{
    return order == ROW_MAJOR || order == COL_MAJOR || bad_enum(who, 1, "layout", order) >= 0;
}
int st_blas_enum_op(st_caller who, int position, const char *what, int value)
{
    switch (value) {
    case 111: return 0;
    case 112: return OP_TRANS;
    case 113: return OP_TRANS | OP_CONJ;
    case 114: return OP_CONJ;
    default: return bad_enum(who, position, what, value);
    }
}
static int pick(st_caller who, int position, const char *what, int value, int zero, int one)
{
    return value == zero ? 0 : value == one ? 1 : bad_enum(who, position, what, value);
}
int st_blas_enum_uplo(st_caller who, int position, int value)
{
    return pick(who, position, "Uplo", value, 121, 122);
}
int st_blas_enum_unit(st_caller who, int position, int value)
{
    return pick(who, position, "Diag", value, 131, 132);
}
int st_blas_enum_side(st_caller who, int position, int value)
{
    return pick(who, position, "Side", value, 141, 142);
}
