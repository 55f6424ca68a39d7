/* SPDX-License-Identifier: Apache-2.0 */
/* blas.h - what the files of the drop-in BLAS share: its integers and names, the thread's handle, views, and where faults go.
 *
 * The same sources are compiled twice. Plainly: 32-bit integers and the standard's names, for libblas.so.3 and libcblas.so.3. With
 * ST_BLAS_ILP64: 64-bit integers, for libblas64.so.3 and libcblas64.so.3, which have the standard's names (as Debian's libblas64 does) and
 * beside each the same name with the suffix 64_ (dgemm_64_, cblas_dgemm64_, and cblas_dgemm_64 as LAPACK 3.12 writes it).
 *
 * Everything is column-major inside, as in Fortran. A row-major matrix is its transpose in column-major order, so CBLAS calls with
 * CblasRowMajor become calls of the same routine with other arguments; where that asks for the conjugate of a matrix that is not
 * transposed, the operand's view is conjugated, which no Fortran routine can say. Nothing is copied.
 *
 * Callers of Fortran routines pass the lengths of character arguments behind all other arguments. Only xerbla_ and xerbla_array_ need them;
 * the other definitions leave them out, which the System V ABI allows. Functions of complex type return as gfortran's do: like C's. */
#ifndef ST_COMPAT_BLAS_BLAS_H
#define ST_COMPAT_BLAS_BLAS_H
#include <stdatomic.h>
#include <strata/blas.h>
#include <strata/runtime.h>

#ifdef ST_BLAS_ILP64
typedef int64_t blas_int;
#else
typedef int32_t blas_int;
#endif

/* ---- names ------------------------------------------------------------------------------------------------------------
 * FORTRAN(void, daxpy, (arguments)) { body } defines daxpy_ and its other names, CBLAS(...) cblas_daxpy. A name may be a macro. */
#define ST_JOIN_(a, b) a##b
#define ST_JOIN(a, b) ST_JOIN_(a, b)
#ifdef ST_BLAS_ILP64
#    define ST_ALIAS(ret, from, to, args) extern STRATA_API ret to args __attribute__((alias(#    from)));
#else
#    define ST_ALIAS(ret, from, to, args)
#endif
#define ST_FORTRAN_(ret, name, args)         \
    STRATA_API ret name##_ args;             \
    ST_ALIAS(ret, name##_, name##_64_, args) \
    ret name##_ args
#define ST_CBLAS_(ret, name, args)                       \
    STRATA_API ret cblas_##name args;                    \
    ST_ALIAS(ret, cblas_##name, cblas_##name##64_, args) \
    ST_ALIAS(ret, cblas_##name, cblas_##name##_64, args) \
    ret cblas_##name args
#define FORTRAN(ret, name, args) ST_FORTRAN_(ret, name, args)
#define CBLAS(ret, name, args) ST_CBLAS_(ret, name, args)

/* ---- the thread's handle and faults -------------------------------------------------------------------------------------- */
/* Made at a thread's first call, destroyed with it; on the CPU unless STRATA_BLAS_DEVICE names another device. */
extern _Thread_local strata_handle *st_blas_mine;
strata_handle *st_blas_handle_make(void);
static inline strata_handle *st_blas_handle(void)
{
    strata_handle *h = st_blas_mine;
    return __builtin_expect(h != NULL, 1) ? h : st_blas_handle_make();
}
/* The kernels of short vectors by st_blas_index, the same for every thread; NULL before the first handle was made, and on a GPU. */
extern _Atomic(const strata_vectors *) st_blas_vectors[4];

/* What a BLAS has no way to report (no memory, a lost device): says why on stderr and aborts, since going on would mean wrong results. `turned`: the words
 * are about the transposed problem that a row-major call became. */
void st_blas_failed(const char *routine, bool turned) __attribute__((noreturn, cold));
static inline void st_blas_done(const char *routine, strata_status s)
{
    if (__builtin_expect(s != STRATA_OK, 0)) st_blas_failed(routine, false);
}

/* Who is called: "cblas_dgemm" (Fortran's DGEMM too, then c is false), and whether its matrices are row-major. */
typedef struct st_caller {
    const char *name;
    bool c, row;
} st_caller;
#define ST_STRING_(x) #x
#define ST_STRING(x) ST_STRING_(x)
#define FROM_FORTRAN(name) ((st_caller){"cblas_" ST_STRING(name), false, false})
#define FROM_C(name, order) ((st_caller){"cblas_" ST_STRING(name), true, (order) == ROW_MAJOR})
static inline void st_blas_done_by(st_caller who, strata_status s)
{
    if (__builtin_expect(s != STRATA_OK, 0)) st_blas_failed(who.name, who.row);
}
/* Reports that argument `info` of the Fortran routine is wrong, counted from 1, through what the program has for xerbla_ or cblas_xerbla. */
void st_blas_bad(st_caller who, int info) __attribute__((cold));

/* ---- views ------------------------------------------------------------------------------------------------------------------ */
static inline size_t st_blas_size(int type) { return type == STRATA_F32 ? 4 : type == STRATA_C128 ? 16 : 8; }
static inline int st_blas_index(int type)
{
    return type == STRATA_F32 ? 0 : type == STRATA_F64 ? 1 : type == STRATA_C64 ? 2 : 3;
}
static inline bool st_blas_complex(int type) { return type == STRATA_C64 || type == STRATA_C128; }
/* the number at p */
static inline strata_scalar st_blas_number(int type, const void *p)
{
    switch (type) {
    case STRATA_F32: return strata_real(*(const float *)p);
    case STRATA_F64: return strata_real(*(const double *)p);
    case STRATA_C64: return strata_complex(((const float *)p)[0], ((const float *)p)[1]);
    default: return strata_complex(((const double *)p)[0], ((const double *)p)[1]);
    }
}
static inline bool st_blas_is(strata_scalar s, double re) { return s.re == re && s.im == 0; }
/* What a view says beyond its dims. Dims and strides past its rank are never read and stay as they are: clearing all 176 bytes of a view takes as long as
 * a product of a few elements. */
static inline strata_tensor st_blas_view(const void *data, int type, int rank, uint32_t flags)
{
    strata_tensor t;
    t.data = (void *)(uintptr_t)data;
    t.type = type, t.rank = rank;
    t.flags = flags, t.error = 0;
    t.error_arg = 0, t.reserved = 0;
    return t;
}
/* n elements, of which BLAS says that with a negative increment the last one comes first in memory; inc = 0 repeats one element */
static inline strata_tensor st_blas_vector(const void *x, int type, int64_t n, int64_t inc)
{
    const int64_t first = inc < 0 ? (1 - n) * inc : 0;
    strata_tensor t = st_blas_view((const char *)x + first * (int64_t)st_blas_size(type), type, 1, 0);
    t.dim[0] = n, t.stride[0] = inc;
    return t;
}
/* op(A), rows x cols, of a column-major array */
static inline strata_tensor st_blas_matrix(const void *a, int type, int op, int64_t rows, int64_t cols,
                                           int64_t ld)
{
    strata_tensor t = st_blas_view(a, type, 2, op & 2 && st_blas_complex(type) ? STRATA_TENSOR_CONJ : 0);
    t.dim[0] = rows, t.dim[1] = cols;
    t.stride[0] = op & 1 ? ld : 1, t.stride[1] = op & 1 ? 1 : ld;
    return t;
}
/* op(A), n x n, of which one triangle is stored; `structure`: more flags */
static inline strata_tensor st_blas_triangle(const void *a, int type, int op, int uplo, int64_t n, int64_t ld,
                                             uint32_t structure)
{
    strata_tensor t = st_blas_matrix(a, type, op, n, n, ld);
    t.flags |= structure | (uplo ^ (op & 1) ? STRATA_TENSOR_LOWER : STRATA_TENSOR_UPPER);
    return t;
}
static inline strata_tensor st_blas_point(void *p, int type) { return st_blas_view(p, type, 0, 0); }

/* ---- arguments ---------------------------------------------------------------------------------------------------------------
 * What letters (Fortran) and enumerations (CBLAS) say, as numbers; -1 is none of them. An enumeration that is none is reported here,
 * as `position` in the CBLAS call, and the function returns at once. */
enum { ROW_MAJOR = 101, COL_MAJOR = 102 };
enum { OP_TRANS = 1, OP_CONJ = 2 }; /* op(A): bits */
static inline char st_blas_letter(char c) { return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c; }
static inline int st_blas_op(const char *c)
{
    const char l = st_blas_letter(*c);
    return l == 'N' ? 0 : l == 'T' ? OP_TRANS : l == 'C' ? OP_TRANS | OP_CONJ : -1;
}
static inline int st_blas_pick(const char *c, char zero, char one)
{
    const char l = st_blas_letter(*c);
    return l == zero ? 0 : l == one ? 1 : -1;
}
enum { IS_UPPER = 0, IS_LOWER = 1, IS_LEFT = 0, IS_RIGHT = 1 };
static inline int st_blas_uplo(const char *c) { return st_blas_pick(c, 'U', 'L'); }
static inline int st_blas_unit(const char *c) { return st_blas_pick(c, 'N', 'U'); }
static inline int st_blas_side(const char *c) { return st_blas_pick(c, 'L', 'R'); }
/* the same from CBLAS: 111 112 113 (114: conjugated without being transposed, as OpenBLAS has it), 121 122, 131 132, 141 142 */
bool st_blas_order(st_caller who, int order);
int st_blas_enum_op(st_caller who, int position, const char *what, int value);
int st_blas_enum_uplo(st_caller who, int position, int value);
int st_blas_enum_unit(st_caller who, int position, int value);
int st_blas_enum_side(st_caller who, int position, int value);

static inline int64_t st_blas_max1(int64_t n) { return n > 1 ? n : 1; }

/* ---- operands that overlap ---------------------------------------------------------------------------------------------------
 * The standard forbids an output to overlap an input, and the native operators refuse it. Programs do it all the same (rows that meet beyond what is
 * used, say), and a BLAS has no way to refuse: the inputs are then copied first, what is stored of them, and the call is made on the copies. */
typedef struct st_copies {
    int n;
    void *memory[2];
} st_copies;
void st_blas_copy_input(st_copies *c, strata_tensor *t); /* t then is the copy; NULL is allowed */
void st_blas_copies_free(st_copies *c);
#define ST_RUN(who, call, input1, input2)                            \
    do {                                                             \
        strata_status run_status = (call);                           \
        if (__builtin_expect(run_status == STRATA_ERROR_ALIAS, 0)) { \
            st_copies run_copies = {0};                              \
            st_blas_copy_input(&run_copies, input1);                 \
            st_blas_copy_input(&run_copies, input2);                 \
            run_status = (call);                                     \
            st_blas_copies_free(&run_copies);                        \
        }                                                            \
        st_blas_done_by(who, run_status);                            \
    } while (0)
#endif
