/* SPDX-License-Identifier: Apache-2.0 */
/* drop_in.h - what the tests of the drop-in BLAS share: symbols by name, numbers of the four types as complex doubles, and matrices in the
 * standard's storage forms that lie against guard pages with NaN in every place that is not stored.
 *
 * Each program is built twice: against libblas.so.3, and with ST_BLAS_ILP64 against libblas64.so.3 (names with the suffix 64_). */
#ifndef TEST_DROP_IN_H
#define TEST_DROP_IN_H
#include "support.h"
#include <complex.h>
#include <dlfcn.h>
#undef I /* complex.h has it; here it is an integer argument of Fortran */

#ifdef ST_BLAS_ILP64
typedef int64_t blas_int;
#    define SUFFIX "64_"
#else
typedef int32_t blas_int;
#    define SUFFIX ""
#endif
typedef const blas_int *I;
typedef const void *V;
typedef double complex z;
enum { F32, F64, C64, C128 };
static const char letters[] = "sdcz";
static const size_t sizes[] = {4, 8, 8, 16};
static inline bool is_complex(int type) { return type >= C64; }
static inline bool is_single(int type) { return type == F32 || type == C64; }
static inline double unit(int type) { return is_single(type) ? 0x1p-24 : 0x1p-53; }

/* CMPLX, which clang 14 does not give to C11 */
static inline z complex_of(double re, double im)
{
    union {
        double parts[2];
        z value;
    } u = {{re, im}};
    return u.value;
}

static inline z get(int type, const void *p, int64_t i)
{
    const float *f = p;
    const double *d = p;
    return type == F32   ? f[i]
           : type == F64 ? d[i]
           : type == C64 ? complex_of(f[2 * i], f[2 * i + 1])
                         : complex_of(d[2 * i], d[2 * i + 1]);
}
static inline void put(int type, void *p, int64_t i, z v)
{
    float *f = p;
    double *d = p;
    if (type == F32) f[i] = (float)creal(v);
    if (type == F64) d[i] = creal(v);
    if (type == C64) f[2 * i] = (float)creal(v), f[2 * i + 1] = (float)cimag(v);
    if (type == C128) d[2 * i] = creal(v), d[2 * i + 1] = cimag(v);
}
static inline z some(test_rng *r, int type)
{
    const double re = (double)test_int(r, -64, 64) / 64, im = (double)test_int(r, -64, 64) / 64;
    return is_complex(type) ? complex_of(re, im) : re;
}
/* a factor: often 0 or 1, which the standard treats apart */
static inline z factor(test_rng *r, int type)
{
    const int64_t k = test_int(r, 0, 3);
    return k == 0 ? 0 : k == 1 ? 1 : some(r, type);
}

/* "?gemv" with ? the type's letter; C names begin with cblas_ */
static inline void *symbol(int type, const char *pattern, bool fortran)
{
    char name[64];
    size_t n = (size_t)snprintf(name, sizeof name, "%s", fortran ? "" : "cblas_");
    for (const char *p = pattern; *p && n < sizeof name - 8; p++) name[n++] = *p == '?' ? letters[type] : *p;
    snprintf(name + n, sizeof name - n, "%s" SUFFIX, fortran ? "_" : "");
    void *f = dlsym(RTLD_DEFAULT, name);
    if (!f) test_fail(__FILE__, __LINE__, "the library has no %s", name);
    return f;
}

/* ---- arrays ------------------------------------------------------------------------------------------------------------------ */
typedef struct array {
    int type;
    int64_t count;
    char *p;
    char *before; /* a copy, renewed by array_keep */
} array;
static inline array array_make(test_rng *r, int type, int64_t count)
{
    array a = {type, count, test_guard((size_t)count * sizes[type] + (count == 0), test_chance(r, 0.5)),
               NULL};
    return a;
}
static inline void array_keep(array *a)
{
    a->before = realloc(a->before, (size_t)a->count * sizes[a->type] + 1);
    memcpy(a->before, a->p, (size_t)a->count * sizes[a->type]);
}
static inline bool array_same(const array *a, int64_t i)
{
    return !memcmp(a->before + (size_t)i * sizes[a->type], a->p + (size_t)i * sizes[a->type], sizes[a->type]);
}
static inline void array_free(array *a)
{
    if (!test_guard_intact(a->p)) test_fail(__FILE__, __LINE__, "memory beside an array was written");
    free(a->before);
    test_guard_free(a->p);
}
/* a vector as BLAS stores it: element i of n */
static inline int64_t vector_at(int64_t n, int64_t inc, int64_t i)
{
    return inc < 0 ? (i - n + 1) * inc : i * inc;
}
static inline int64_t vector_room(int64_t n, int64_t inc)
{
    return n == 0 ? 0 : (n - 1) * (inc < 0 ? -inc : inc) + 1;
}
static inline int64_t increment(test_rng *r)
{
    const int64_t i = test_int(r, 1, 3);
    return test_chance(r, 0.5) ? i : -i;
}
static inline array vector_make(test_rng *r, int type, int64_t n, int64_t inc)
{
    array a = array_make(r, type, vector_room(n, inc));
    for (int64_t i = 0; i < n; i++) put(type, a.p, vector_at(n, inc, i), some(r, type));
    array_keep(&a);
    return a;
}

/* ---- matrices ----------------------------------------------------------------------------------------------------------------- */
typedef enum form { FULL, BAND, PACKED } form;
typedef struct matrix {
    form form;
    bool row, upper, triangle, unit; /* triangle: only one is stored */
    int64_t m, n, kl, ku, ld;
    array a;
} matrix;
/* where element (i, j) is, -1 when it is not stored */
static inline int64_t matrix_at(const matrix *x, int64_t i, int64_t j)
{
    const bool upper = x->row ? !x->upper : x->upper;
    const int64_t kl = x->row ? x->ku : x->kl, ku = x->row ? x->kl : x->ku, n = x->n;
    if (x->triangle && (x->upper ? i > j : i < j)) return -1;
    if (x->unit && i == j) return -1;
    if (x->form == BAND && (i - j > x->kl || j - i > x->ku)) return -1;
    if (x->row) {
        const int64_t t = i;
        i = j, j = t;
    }
    if (x->form == BAND) return kl >= 0 && i + ku >= j ? ku + i - j + j * x->ld : -1;
    if (x->form == PACKED) return upper ? i + j * (j + 1) / 2 : i + j * (2 * n - j - 1) / 2;
    return i + j * x->ld;
}
static inline matrix matrix_make(test_rng *r, int type, matrix x)
{
    const int64_t inner = x.row ? x.n : x.m, outer = x.row ? x.m : x.n;
    int64_t room = 0;
    x.ld = (x.form == BAND ? x.kl + x.ku + 1 : inner > 1 ? inner : 1) + test_int(r, 0, 2);
    for (int64_t i = 0; i < x.m; i++)
        for (int64_t j = 0; j < x.n; j++) {
            const int64_t at = matrix_at(&x, i, j);
            room = at + 1 > room ? at + 1 : room;
        }
    /* a unit diagonal has its place too */
    if (x.form == PACKED) room = x.n * (x.n + 1) / 2;
    if (x.form == FULL && x.unit && outer) room = (outer - 1) * x.ld + inner;
    x.a = array_make(r, type, room);
    for (int64_t i = 0; i < x.m; i++)
        for (int64_t j = 0; j < x.n; j++) {
            const int64_t at = matrix_at(&x, i, j);
            if (at >= 0) put(type, x.a.p, at, some(r, type));
        }
    array_keep(&x.a);
    return x;
}
typedef enum meaning { GENERAL, SYMMETRIC, HERMITIAN, TRIANGULAR } meaning;
/* the value that the matrix has at (i, j), before the call */
static inline z matrix_value(const matrix *x, meaning means, int64_t i, int64_t j)
{
    if (x->unit && i == j) return 1;
    int64_t at = matrix_at(x, i, j);
    if (at >= 0) {
        const z v = get(x->a.type, x->a.before, at);
        return means == HERMITIAN && i == j ? creal(v) : v;
    }
    if (means != SYMMETRIC && means != HERMITIAN) return 0;
    at = matrix_at(x, j, i);
    if (at < 0) return 0;
    const z v = get(x->a.type, x->a.before, at);
    return means == HERMITIAN ? conj(v) : v;
}
/* op: 'N', 'T', 'C' */
static inline z matrix_op(const matrix *x, meaning means, char op, int64_t i, int64_t j)
{
    const z v = op == 'N' ? matrix_value(x, means, i, j) : matrix_value(x, means, j, i);
    return op == 'C' ? conj(v) : v;
}
/* what is no element of the matrix is as it was */
static inline void matrix_untouched(const matrix *x)
{
    bool *own = calloc((size_t)x->a.count + 1, 1);
    for (int64_t i = 0; i < x->m; i++)
        for (int64_t j = 0; j < x->n; j++)
            if (matrix_at(x, i, j) >= 0) own[matrix_at(x, i, j)] = true;
    for (int64_t i = 0; i < x->a.count; i++)
        test_check(own[i] || array_same(&x->a, i), "place %lld of the array was written", (long long)i);
    free(own);
}
static inline void close_to(int type, z got, z want, double scale, const char *what, int64_t i, int64_t j)
{
    const double bound = scale * unit(type);
    test_close(creal(got), creal(want), bound, "%s[%lld,%lld].re", what, (long long)i, (long long)j);
    test_close(cimag(got), cimag(want), bound, "%s[%lld,%lld].im", what, (long long)i, (long long)j);
}

/* ---- calls: factors by value for real types, by address for complex ones -------------------------------------------------------------- */
#define BY_TYPE(type, CALL, u, v)                                   \
    switch (type) {                                                 \
    case F32: CALL(float, (float)creal(u), (float)creal(v)); break; \
    case F64: CALL(double, creal(u), creal(v)); break;              \
    default: {                                                      \
        char by_type_u[16], by_type_v[16];                          \
        put(type, by_type_u, 0, u), put(type, by_type_v, 0, v);     \
        CALL(const void *, by_type_u, by_type_v);                   \
    }                                                               \
    }
enum { ROW = 101, COL = 102 };
static inline int c_op(char c) { return c == 'N' ? 111 : c == 'T' ? 112 : 113; }
static inline int c_uplo(bool upper) { return upper ? 121 : 122; }
static inline int c_unit(bool unit_diagonal) { return unit_diagonal ? 132 : 131; }
static inline int c_side(bool right) { return right ? 142 : 141; }
static inline char some_op(test_rng *r) { return "NTC"[test_int(r, 0, 2)]; }
static inline const char *f_uplo(bool upper) { return upper ? "U" : "l"; }
static inline const char *f_unit(bool unit_diagonal) { return unit_diagonal ? "U" : "n"; }
static inline const char *f_side(bool right) { return right ? "R" : "l"; }
#endif
