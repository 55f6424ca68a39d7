/* SPDX-License-Identifier: Apache-2.0 */
/* expr.h - the expression language: parse, type, and run as vector code on rectangles.
 *
 * A program is a list of statements "name = expression" separated by ';' (a lone expression is "out = expression"). It is
 * parsed once into an immutable st_expr: a list of values in order of evaluation, each an operation on earlier values. Values
 * are f32 or f64 throughout (f64 when the caller says so at parse time). Reductions split the program into phases; a
 * program without reductions has one phase. */
#ifndef ST_EXPR_EXPR_H
#define ST_EXPR_EXPR_H
#include "base/base.h"
#include "base/cpu.h"

enum { ST_EXPR_VARS = 24, ST_EXPR_NAME = 24, ST_EXPR_VALUES = 192 };

typedef enum st_index { ST_INDEX_NONE, ST_INDEX_M, ST_INDEX_N } st_index;
typedef struct st_expr_var {
    char name[ST_EXPR_NAME];
    bool output;    /* is stored to */
    bool input;     /* is read before any store to it */
    st_index index; /* written name[m] or name[n] */
    int column;     /* 1-based position of its first use, for messages */
    bool matmul;    /* a factor of '@' */
} st_expr_var;

typedef struct st_expr st_expr;

/* names: the operand names the caller binds, NULL-terminated; a name on the left that is not among them is a temporary, a
 * name on the right that is neither is an error that lists near names. f64: evaluate in f64.
 * Errors (STRATA_ERROR_SYNTAX) carry column, caret line and what was expected. */
strata_status st_expr_parse(st_err *e, const char *who, const char *text, const char *const *names, bool f64,
                            st_expr **out);
void st_expr_free(st_expr *x);
int st_expr_vars(const st_expr *x, const st_expr_var **vars); /* variables in order of first appearance */
int st_expr_find(const st_expr *x, const char *name);         /* index among them, -1 */
bool st_expr_has_matmul(const st_expr *x);                    /* an '@' (only strata_fused takes it) */
int st_expr_reductions(const st_expr *x);
double st_expr_cost(const st_expr *x); /* rough cycles per element on AVX-512 */
const char *st_expr_text(const st_expr *x);
/* Points at a character of the program: for type and shape errors found by the callers. */
strata_status st_expr_fail_at(st_err *e, const st_expr *x, const char *who, int column, int length,
                              const char *fmt, ...) ST_PRINTF(6, 7);

/* "who: column 19: ..." and two more lines: the program's line, and ^~~~ below the characters meant */
strata_status st_expr_vfail_text(st_err *e, const char *text, const char *who, int column, int length,
                                 const char *fmt, va_list ap);

/* ---- running -------------------------------------------------------------------------------------------------------
 * One argument per variable, in st_expr_vars order: an address, a type, and strides in elements along the rows (m) and the
 * columns (n) of the rectangle. Stride 0 broadcasts. */
typedef struct st_expr_arg {
    void *ptr;
    int type; /* a real strata_type, or ST_EXPR_INDEX_*; of i4, u4 and bit plus 256 times the bits that its first element lies behind ptr */
    int64_t sm, sn;
} st_expr_arg;
/* An operand's address and type for its element `off`, which may lie inside a byte. */
ST_INLINE st_expr_arg st_expr_arg_at(const void *ptr, int type, int64_t off, int64_t sm, int64_t sn)
{
    const int64_t bits = (int64_t)strata_type_bits((strata_type)type), at = off * bits;
    if (bits >= 8) return (st_expr_arg){(char *)(uintptr_t)ptr + at / 8, type, sm, sn};
    return (st_expr_arg){(char *)(uintptr_t)ptr + (at >> 3), type | (int)(at & 7) << 8, sm, sn};
}
/* Types of an argument that is no memory but the position along the rows (from row0) or the columns (from col0). index(-1) and
 * index(-2) need no argument; every other index(d) of a program is a variable called "index(d)" that the caller binds: to one
 * of these, or to an i64 scalar (strides 0) that holds the position along an outer dim. */
enum { ST_EXPR_INDEX_M = -2, ST_EXPR_INDEX_N = -1 };
/* Bytes of scratch that a call needs (64-byte aligned), independent of the rectangle. */
size_t st_expr_scratch(const st_expr *x);
/* Evaluates a program without reductions on rows x cols. Columns are processed in blocks, rows in turn; an input that is the same
 * memory as an output is read before it is written at every position.
 * `row0`, `col0` are what index(-2) and index(-1) start from. */
/* All of these compile the program for the arguments' pattern (types, unit or zero strides, whether an output is an input's
 * memory) at its first use and keep the result in x (up to eight patterns; one small allocation each, without which they
 * compile into the scratch at every call); safe from several threads. */
void st_expr_map(const st_expr *x, const st_expr_arg *args, int64_t rows, int64_t cols, int64_t row0,
                 int64_t col0, void *scratch);
/* The same for many small rectangles (tiles): st_expr_bind does once what depends on types, strides and block shape, and keeps it
 * in the scratch, which then belongs to this program; st_expr_map_bound costs about half of st_expr_map
 * on a tile of 6 x 64 (45 ns instead of 85).
 * Its args have the types and strides given to st_expr_bind, other addresses (an output that begins where an input does
 * must do so in both), and rows and cols are at most what was bound for blocks to be as good as there; any size is right. */
void st_expr_bind(const st_expr *x, const st_expr_arg *args, int64_t rows, int64_t cols, void *scratch);
void st_expr_map_bound(const st_expr_arg *args, int64_t rows, int64_t cols, int64_t row0, int64_t col0,
                       void *scratch);
/* Evaluates a program with reductions over the columns of each row (any program; one phase after another per row). Values that
 * are reused across phases and dear (an exp) are kept in the scratch, which st_expr_rows_scratch sizes for cols. Outputs with
 * sn = 0 receive the row's value once. Two-pass variance; sums in eight or more lanes in a fixed order that depends on cols only. */
size_t st_expr_rows_scratch(const st_expr *x, int64_t cols);
void st_expr_rows(const st_expr *x, const st_expr_arg *args, int64_t rows, int64_t cols, int64_t row0,
                  void *scratch);
/* The same with the reduction running over the rows for each column (columns contiguous): one pass per phase over blocks of columns.
 * Reduction results live in scratch per column. Outputs with sm = 0 receive the column's value once. */
size_t st_expr_cols_scratch(const st_expr *x, int64_t cols);
void st_expr_cols(const st_expr *x, const st_expr_arg *args, int64_t rows, int64_t cols, int64_t col0,
                  void *scratch);

/* The same with the reduction running over the whole rectangle, row after row; reduction results are one number (argmax: the
 * position row * cols + column). Outputs with both strides 0 receive the value once. The scratch is st_expr_scratch. */
void st_expr_all(const st_expr *x, const st_expr_arg *args, int64_t rows, int64_t cols, int64_t row0,
                 int64_t col0, void *scratch);

/* ---- vector functions on arrays (also used by engines' own kernels); any length, any alignment, y may be x ------------- */
typedef enum st_fn1 {
    ST_FN_EXP,
    ST_FN_LOG,
    ST_FN_TANH,
    ST_FN_ERF,
    ST_FN_SIGMOID,
    ST_FN_GELU,
    ST_FN_GELU_TANH,
    ST_FN_SILU,
    ST_FN_SQRT,
    ST_FN_RSQRT,
    ST_FN1_COUNT
} st_fn1;
void st_fn1_f32(st_fn1 f, int64_t n, const float *x, float *y);
void st_fn1_f64(st_fn1 f, int64_t n, const double *x, double *y);
/* converts n elements; strides in elements */
void st_convert(int from, const void *x, int64_t sx, int to, void *y, int64_t sy, int64_t n);
#endif
