/* SPDX-License-Identifier: Apache-2.0 */
/* build.c - values of a program: constants are folded in the program's own precision, equal values become one, and the few
 * identities that hold for every number (NaN, Inf and -0 included) are applied. Nothing else is "simplified". */
#include "expr/code.h"
#include <math.h>
#include <string.h>

#define C ST_OPF_C
#define R ST_OPF_R
#define B ST_OPF_B
#define X ST_OPF_X
const st_op_info st_expr_ops[ST_OP_COUNT_] = {
#define ST_OP(id, name, arity, cost, flags) {#id, name, arity, cost, flags},
#include "expr/ops.inc"
#undef ST_OP
};
#undef C
#undef R
#undef B
#undef X

static double saturate(double a, double lo, double hi)
{
    if (isnan(a)) return 0;
    return trunc(a < lo ? lo : a > hi ? hi : a);
}

static double one_argument(st_op op, double a)
{
    switch (op) {
    case ST_OP_COPY: return a;
    case ST_OP_NEG: return -a;
    case ST_OP_NOT: return a == 0;
    case ST_OP_ABS: return fabs(a);
    case ST_OP_SQRT: return sqrt(a);
    case ST_OP_RSQRT: return 1 / sqrt(a);
    case ST_OP_EXP: return exp(a);
    case ST_OP_EXP2: return exp2(a);
    case ST_OP_EXPM1: return expm1(a);
    case ST_OP_LOG: return log(a);
    case ST_OP_LOG2: return log2(a);
    case ST_OP_LOG1P: return log1p(a);
    case ST_OP_SIN: return sin(a);
    case ST_OP_COS: return cos(a);
    case ST_OP_TAN: return tan(a);
    case ST_OP_ATAN: return atan(a);
    case ST_OP_TANH: return tanh(a);
    case ST_OP_ERF: return erf(a);
    case ST_OP_ERFC: return erfc(a);
    case ST_OP_SIGMOID: return a < 0 ? exp(a) / (1 + exp(a)) : 1 / (1 + exp(-a));
    case ST_OP_RELU: return a < 0 ? 0 : a;
    case ST_OP_GELU: return a == -INFINITY ? 0 : 0.5 * a * erfc(-a * M_SQRT1_2);
    case ST_OP_GELU_TANH:
        if (isinf(a)) return a < 0 ? 0 : a;
        return a / (1 + exp(-2 * 0.79788456080286535588 * (a + 0.044715 * a * a * a)));
    case ST_OP_SILU: return a == -INFINITY ? 0 : a / (1 + exp(-a));
    case ST_OP_SOFTPLUS: return isnan(a) ? a : fmax(a, 0) + log1p(exp(-fabs(a)));
    case ST_OP_ELU: return a > 0 ? a : expm1(a);
    case ST_OP_HARD_SWISH: return a <= -3 ? 0 : a >= 3 ? a : a * (a + 3) / 6;
    case ST_OP_RINT: return nearbyint(a);
    case ST_OP_FLOOR: return floor(a);
    case ST_OP_CEIL: return ceil(a);
    case ST_OP_TRUNC: return trunc(a);
    case ST_OP_SIGN: return a > 0 ? 1 : a < 0 ? -1 : a;
    case ST_OP_ISNAN: return isnan(a) != 0;
    case ST_OP_ISINF: return isinf(a) != 0;
    case ST_OP_SAT_I4: return saturate(a, -8, 7);
    case ST_OP_SAT_U4: return saturate(a, 0, 15);
    case ST_OP_SAT_I8: return saturate(a, -128, 127);
    case ST_OP_SAT_U8: return saturate(a, 0, 255);
    case ST_OP_SAT_I32: return saturate(a, -2147483648.0, 2147483647.0);
    default: return NAN;
    }
}

double st_ir_eval(st_op op, const double *p, bool f64)
{
    double a = p[0], b = st_expr_ops[op].arity > 1 ? p[1] : 0, c = st_expr_ops[op].arity > 2 ? p[2] : 0, r;
    switch (op) {
    case ST_OP_ADD: r = a + b; break;
    case ST_OP_SUB: r = a - b; break;
    case ST_OP_MUL: r = a * b; break;
    case ST_OP_DIV: r = a / b; break;
    case ST_OP_MIN: r = isnan(a) || isnan(b) ? NAN : a < b ? a : b; break;
    case ST_OP_MAX: r = isnan(a) || isnan(b) ? NAN : a > b ? a : b; break;
    case ST_OP_POW: r = pow(a, b); break;
    case ST_OP_COPYSIGN: r = copysign(a, b); break;
    case ST_OP_LEAKY_RELU: r = a > 0 ? a : a * b; break;
    case ST_OP_LT: r = a < b; break;
    case ST_OP_LE: r = a <= b; break;
    case ST_OP_EQ: r = a == b; break;
    case ST_OP_NE: r = a != b; break;
    case ST_OP_AND: r = a != 0 && b != 0; break;
    case ST_OP_OR: r = a != 0 || b != 0; break;
    case ST_OP_FMA: r = f64 ? fma(a, b, c) : (double)fmaf((float)a, (float)b, (float)c); break;
    case ST_OP_SELECT: r = a != 0 ? b : c; break;
    case ST_OP_CLAMP: r = isnan(a) ? a : a < b ? b : a > c ? c : a; break;
    default: r = one_argument(op, a);
    }
    return f64 ? r : (double)(float)r;
}

static int append(st_expr *x, st_value v)
{
    for (int i = 0; i < x->nvalues; i++) {
        const st_value *w = &x->value[i];
        if (w->op == v.op && !memcmp(w->arg, v.arg, sizeof v.arg) && w->var == v.var &&
            !memcmp(&w->imm, &v.imm, sizeof v.imm))
            return i;
    }
    if (x->nvalues >= ST_EXPR_VALUES) return -1;
    x->value[x->nvalues] = v;
    return x->nvalues++;
}

static st_value blank(st_op op, int column)
{
    return (st_value){.op = (uint8_t)op, .arg = {-1, -1, -1, -1, -1, -1}, .var = -1, .column = column};
}

int st_ir_const(st_expr *x, double c)
{
    st_value v = blank(ST_OP_CONST, 0);
    v.imm = x->f64 ? c : (double)(float)c;
    return append(x, v);
}

int st_ir_leaf(st_expr *x, st_op op, int var, int column)
{
    st_value v = blank(op, column);
    v.var = (int16_t)var;
    return append(x, v);
}

static bool is_const(const st_expr *x, int i, double *c)
{
    if (i < 0 || x->value[i].op != ST_OP_CONST) return false;
    *c = x->value[i].imm;
    return true;
}

static bool power_of_two(double c)
{
    int e;
    return isfinite(c) && fabs(frexp(c, &e)) == 0.5 && e > -100 && e < 100;
}

static int plain(st_expr *x, st_op op, const int *arg, int column)
{
    const st_op_info *info = &st_expr_ops[op];
    st_value n = blank(op, column);
    for (int i = 0; i < info->arity; i++) {
        if (arg[i] < 0) return -1;
        n.arg[i] = (int16_t)arg[i];
        if (x->value[arg[i]].phase > n.phase) n.phase = x->value[arg[i]].phase;
    }
    n.phase += (info->flags & ST_OPF_R) != 0;
    return append(x, n);
}

/* ---- deviations from a mean ------------------------------------------------------------------------------------------
 * A mean is rounded to one number, which costs every deviation half a unit of the mean: all of its digits where the values lie
 * close together far from zero. So e - mean(e) is (e - hi) - lo with hi + lo = mean(e) + mean(e - mean(e)), which needs a
 * further pass over e (var(e)'s, where that is asked for too). -2 when no further pass is left. */
static int deviation(st_expr *x, int e, int mean, bool turned, int column)
{
    if (x->value[mean].phase + 2 > ST_PHASES) return -2;
    int hi = plain(x, ST_OP_MEAN_HI, (int[]){e, mean}, column),
        lo = plain(x, ST_OP_MEAN_LO, (int[]){e, mean}, column),
        d = plain(x, ST_OP_SUB, (int[]){e, hi}, column);
    return plain(x, ST_OP_SUB, turned ? (int[]){lo, d} : (int[]){d, lo}, column);
}

static bool mean_of(const st_expr *x, int mean, int e)
{
    return x->value[mean].op == ST_OP_MEAN && x->value[mean].arg[0] == e;
}

/* the lo of a deviation of either sign, -1 when d is none */
static int lo_of(const st_expr *x, int d)
{
    const st_value *v = &x->value[d];
    for (int j = 0; j < 2 && v->op == ST_OP_SUB; j++) {
        const st_value *lo = &x->value[v->arg[j]], *d1 = &x->value[v->arg[1 - j]];
        if (lo->op != ST_OP_MEAN_LO || d1->op != ST_OP_SUB || d1->arg[0] != lo->arg[0]) continue;
        const st_value *hi = &x->value[d1->arg[1]];
        if (hi->op == ST_OP_MEAN_HI && hi->arg[0] == lo->arg[0] && hi->arg[1] == lo->arg[1]) return v->arg[j];
    }
    return -1;
}

/* identities; -2 when none applies */
static int identity(st_expr *x, st_op op, int a, int b, int column)
{
    double c;
    if (op == ST_OP_NEG && x->value[a].op == ST_OP_NEG) return x->value[a].arg[0];
    if (op == ST_OP_ABS && (x->value[a].op == ST_OP_ABS || x->value[a].op == ST_OP_NEG))
        return st_ir_add(x, ST_OP_ABS, x->value[a].arg[0], -1, -1, column);
    if (op == ST_OP_SUB && is_const(x, b, &c) && c == 0 && !signbit(c)) return a;
    if (op == ST_OP_ADD && is_const(x, b, &c) && c == 0 && signbit(c)) return a;
    if (op == ST_OP_ADD && x->value[b].op == ST_OP_NEG)
        return st_ir_add(x, ST_OP_SUB, a, x->value[b].arg[0], -1, column);
    if (op == ST_OP_SUB && x->value[b].op == ST_OP_NEG)
        return st_ir_add(x, ST_OP_ADD, a, x->value[b].arg[0], -1, column);
    if (op == ST_OP_MUL && is_const(x, b, &c)) {
        if (c == 1) return a;
        if (c == -1) return st_ir_add(x, ST_OP_NEG, a, -1, -1, column);
    }
    if (op == ST_OP_DIV && is_const(x, b, &c)) {
        if (c == 1) return a;
        if (power_of_two(c)) return st_ir_add(x, ST_OP_MUL, a, st_ir_const(x, 1 / c), -1, column);
    }
    if (op == ST_OP_DIV && is_const(x, a, &c) && c == 1 && x->value[b].op == ST_OP_SQRT)
        return st_ir_add(x, ST_OP_RSQRT, x->value[b].arg[0], -1, -1, column);
    if (op == ST_OP_POW && is_const(x, b, &c)) {
        if (c == 1) return a;
        if (c == 2) return st_ir_add(x, ST_OP_MUL, a, a, -1, column);
        if (c == 3) return st_ir_add(x, ST_OP_MUL, st_ir_add(x, ST_OP_MUL, a, a, -1, column), a, -1, column);
        if (c == -1) return st_ir_add(x, ST_OP_DIV, st_ir_const(x, 1), a, -1, column);
    }
    if (op == ST_OP_SUB && mean_of(x, b, a)) return deviation(x, a, b, false, column);
    if (op == ST_OP_SUB && mean_of(x, a, b)) return deviation(x, b, a, true, column);
    if ((op == ST_OP_MEAN || op == ST_OP_SUM) && x->value[a].op == ST_OP_MUL &&
        x->value[a].arg[0] == x->value[a].arg[1]) {
        int lo = lo_of(x, x->value[a].arg[0]);
        if (lo >= 0)
            return plain(x, op == ST_OP_MEAN ? ST_OP_VARIANCE : ST_OP_SCATTER,
                         (int[]){x->value[lo].arg[0], x->value[lo].arg[1]}, column);
    }
    if (op == ST_OP_MAX && is_const(x, b, &c) && c == 0) return st_ir_add(x, ST_OP_RELU, a, -1, -1, column);
    return -2;
}

int st_ir_add(st_expr *x, st_op op, int a, int b, int c, int column)
{
    const st_op_info *info = &st_expr_ops[op];
    int arg[3] = {a, b, c};
    double v[3];
    bool all = !(info->flags & ST_OPF_R) && op != ST_OP_MATMUL;
    for (int i = 0; i < info->arity; i++) {
        if (arg[i] < 0) return -1; /* the program is full */
        if (all) all = is_const(x, arg[i], &v[i]);
    }
    if (all) return st_ir_const(x, st_ir_eval(op, v, x->f64));
    if (info->flags & ST_OPF_C && x->value[a].op == ST_OP_CONST) arg[0] = b, arg[1] = a;
    int known = identity(x, op, arg[0], arg[1], column);
    if (known != -2) return known;
    if (op == ST_OP_SELECT && is_const(x, a, v)) return v[0] != 0 ? b : c;
    return plain(x, op, arg, column);
}
