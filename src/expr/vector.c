/* SPDX-License-Identifier: Apache-2.0 */
/* vector.c - single functions and conversions on arrays, by the kernels that programs are made of; what a program costs; and what can be asked of one. */
#include "expr/code.h"
#include <string.h>

static const uint8_t fn1_op[ST_FN1_COUNT] = {[ST_FN_EXP] = ST_OP_EXP,
                                             [ST_FN_LOG] = ST_OP_LOG,
                                             [ST_FN_TANH] = ST_OP_TANH,
                                             [ST_FN_ERF] = ST_OP_ERF,
                                             [ST_FN_SIGMOID] = ST_OP_SIGMOID,
                                             [ST_FN_GELU] = ST_OP_GELU,
                                             [ST_FN_GELU_TANH] = ST_OP_GELU_TANH,
                                             [ST_FN_SILU] = ST_OP_SILU,
                                             [ST_FN_SQRT] = ST_OP_SQRT,
                                             [ST_FN_RSQRT] = ST_OP_RSQRT};

static void fn1(bool f64, st_fn1 f, int64_t n, const void *x, void *y)
{
    if ((unsigned)f >= ST_FN1_COUNT || n <= 0) return;
    st_loc L[2] = {{y, 0, 0, 0}, {(char *)(uintptr_t)x, 0, 0, 0}};
    st_insn in = {.dst = 0, .src = {1, 1, 1, 1, 1}};
    st_expr_kernels(st_cpu_get()->level, f64)->op[fn1_op[f]][0](L, &in, 1, n);
}

void st_fn1_f32(st_fn1 f, int64_t n, const float *x, float *y) { fn1(false, f, n, x, y); }
void st_fn1_f64(st_fn1 f, int64_t n, const double *x, double *y) { fn1(true, f, n, x, y); }

void st_convert(int from, const void *x, int64_t sx, int to, void *y, int64_t sy, int64_t n)
{
    enum { CHUNK = 256 };
    double buf[CHUNK];
    const int64_t fs = (int64_t)strata_type_bits((strata_type)from) / 8,
                  ts = (int64_t)strata_type_bits((strata_type)to) / 8;
    if (n <= 0 || !fs || !ts || st_type_is_complex(from) || st_type_is_complex(to)) return;
    if (from == to) {
        if (sx == 1 && sy == 1)
            memmove(y, x, (size_t)(n * fs));
        else
            for (int64_t i = 0; i < n; i++)
                memmove((char *)y + i * sy * ts, (const char *)x + i * sx * fs, (size_t)fs);
        return;
    }
    /* through f32 where both types lie inside it */
    bool wide = from == STRATA_F64 || from == STRATA_I64 || from == STRATA_I32 || to == STRATA_F64 ||
                to == STRATA_I64 || to == STRATA_I32;
    const st_kernels *k = st_expr_kernels(st_cpu_get()->level, wide);
    st_insn in = {.dst = 0, .src = {1, 1, 1, 1, 1}};
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t m = st_min64(CHUNK, n - i);
        st_loc in_loc[2] = {{(char *)buf, 0, 0, 0}, {(char *)(uintptr_t)x + i * sx * fs, 0, sx * fs, 0}};
        st_loc out_loc[2] = {{(char *)y + i * sy * ts, 0, sy * ts, 0}, {(char *)buf, 0, 0, 0}};
        k->load[from](in_loc, &in, 1, m);
        k->store[to][0](out_loc, &in, 1, m);
    }
}

double st_expr_cost(const st_expr *x)
{
    double c = 0;
    for (int i = 0; i < x->nvalues; i++) c += st_expr_ops[x->value[i].op].cost;
    c += x->nstores;
    return c / 16 * (x->f64 ? 2 : 1);
}

/* ---- asking ---------------------------------------------------------------------------------------------------------- */
int st_expr_vars(const st_expr *x, const st_expr_var **vars)
{
    if (vars) *vars = x->var;
    return x->nvars;
}
int st_expr_find(const st_expr *x, const char *name)
{
    for (int i = 0; i < x->nvars; i++)
        if (!strcmp(x->var[i].name, name)) return i;
    return -1;
}
bool st_expr_has_matmul(const st_expr *x) { return x->matmul; }
int st_expr_reductions(const st_expr *x) { return x->reductions; }
const char *st_expr_text(const st_expr *x) { return x->text; }
