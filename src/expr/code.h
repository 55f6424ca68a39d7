/* SPDX-License-Identifier: Apache-2.0 */
/* code.h - a program compiled for one pattern of arguments.
 *
 * The rectangle is cut into blocks that fit the first-level cache. Every value has a class: it is one number (U), depends on
 * the row only (M, one number a row), on the column only (N, one row of numbers) or on both (MN, a block). An instruction runs
 * one kernel over the shape of its class; its operands and its result are places (st_loc): scratch, or the caller's
 * memory in place. So a bias is never expanded, a row's scale is a scalar in a register, and exp(bias[n]) is computed once
 * a column block. Reductions cut the program into phases; each phase loops over the blocks again and recomputes what it needs,
 * except for dear values that are kept. */
#ifndef ST_EXPR_CODE_H
#define ST_EXPR_CODE_H
#include "expr/ir.h"

enum { ST_CLS_U = 0, ST_CLS_M = 1, ST_CLS_N = 2, ST_CLS_MN = 3 };
enum { ST_MODE_MAP, ST_MODE_ROWS, ST_MODE_COLS, ST_MODE_ALL };
enum {
    ST_SLOT_BYTES =
        8192 + 256, /* one block of one value; the skew keeps slots out of each other's cache sets */
    ST_SLOT_USED = 8192,
    ST_BLOCK_BYTES = 4096,     /* what a block is meant to have */
    ST_IN_PLACE_BYTES = 16384, /* the same where every value stands in the caller's memory */
    ST_ROWS_MAX = 128,         /* rows in a block */
    ST_COLS_GROUP = 8,         /* st_expr_cols sums groups of so many rows before it goes to f64 */
    ST_ACC_BYTES = 4096,
    ST_ACC_HALF = ST_ACC_BYTES / 2, /* where the second sums of a pair begin */
    ST_PHASES = 16,
};

/* A place: address, bytes between rows, bytes between columns (used by loads, stores and for positions only). Of types of less than a byte the
 * distances are bits, and the place begins `bit` bits behind the address. */
typedef struct st_loc {
    char *p;
    int64_t rs, cs, bit;
} st_loc;

typedef struct st_insn st_insn;
typedef void (*st_kernel)(const st_loc *L, const st_insn *in, int64_t m, int64_t n);
struct st_insn {
    st_kernel fn;
    uint16_t dst, src[ST_EXPR_ARGS];
    uint8_t shape, op, variant;
    bool late; /* a store to memory that is also read: only where the loop comes by for the last time */
};

/* Kernels of one instruction set and one element type. A variant has bit i set when operand i is one number a row. */
typedef struct st_kernels {
    int width;
    st_kernel op[ST_OP_COUNT_][8];
    st_kernel cols[ST_OP_COUNT_];          /* reductions along the rows */
    st_kernel load[STRATA_TYPE_COUNT];     /* any stride and type to contiguous */
    st_kernel store[STRATA_TYPE_COUNT][2]; /* contiguous, or one number a row, to any stride and type */
} st_kernels;
const st_kernels *st_expr_kernels(int level, bool f64);

/* where a kernel of four or five operands stands in op[][8]; -1 when it cannot be there */
int st_expr_variant(st_op op, unsigned bits);

typedef enum st_place {
    ST_AT_SLOT_MN,
    ST_AT_SLOT_N,
    ST_AT_MVEC,
    ST_AT_UNI,
    ST_AT_CONST,
    ST_AT_ARG_MN,
    ST_AT_ARG_N,
    ST_AT_ARG_M,
    ST_AT_ARG_U,
    ST_AT_ROWBUF,
    ST_AT_ACC,
    ST_AT_INDEX_M,
    ST_AT_INDEX_N,
    ST_AT_POSITION
} st_place;
typedef struct st_place_at {
    uint8_t place;
    uint16_t index;      /* which slot, argument, constant */
    uint16_t last, real; /* while slots are assigned */
} st_place_at;

typedef struct st_red {
    uint8_t op;
    bool mean, shared;           /* shared: a result more of the accumulators of one before it */
    uint16_t acc, result, about; /* places; about: the mean of which deviations were summed */
} st_red;

/* reductions that come from the sums of deviations and of their squares */
ST_INLINE bool is_moment(int op)
{
    return op == ST_OP_MEAN_HI || op == ST_OP_MEAN_LO || op == ST_OP_VARIANCE || op == ST_OP_SCATTER;
}

typedef struct st_phase {
    int16_t begin[5]; /* instructions of shape s: begin[s] .. begin[s + 1] */
    int16_t red, nred;
} st_phase;

typedef struct st_key {
    uint16_t mode, whole, alias, swapped, level;
    uint16_t arg[ST_EXPR_VARS]; /* st_expr_pattern of each variable */
} st_key;

typedef struct st_code {
    st_key key;
    int nphase, ninsn, nplace, nconst, nred, nrowbuf, nslot, nmvec;
    st_phase phase[ST_PHASES];
    uint32_t consts, places, reds, insns, bytes; /* offsets from the start */
} st_code;

/* upper bounds for any pattern */
typedef struct st_caps {
    int consts, places, insns, reds, slots, mvecs, unis;
    size_t code;
} st_caps;
st_caps st_expr_caps(const st_expr *x);
unsigned st_expr_pattern(const st_expr_arg *a);
/* Compiles into memory of caps.code bytes. */
void st_expr_compile(const st_expr *x, const st_key *key, st_code *into);
#endif
