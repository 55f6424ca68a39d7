/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.c - see cuda.h. Every operation prints as a call of st_<id>_f32 or _f64, <id> being its name in ops.inc in lower case. */
#include "expr/cuda.h"
#include "expr/ir.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void st_text_put(st_text *t, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    const int k = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (k < 0) t->failed = true;
    if (!t->failed && t->n + (size_t)k + 1 > t->cap) {
        const size_t cap = 2 * (t->cap + (size_t)k) + 1024;
        char *s = realloc(t->s, cap);
        if (!s)
            t->failed = true;
        else
            t->s = s, t->cap = cap;
    }
    if (!t->failed) {
        vsnprintf(t->s + t->n, t->cap - t->n, fmt, again);
        t->n += (size_t)k;
    }
    va_end(again);
}

static bool is_reduction(int op) { return (st_expr_ops[op].flags & ST_OPF_R) != 0; }
static bool is_moment(int op)
{
    return op == ST_OP_MEAN_HI || op == ST_OP_MEAN_LO || op == ST_OP_VARIANCE || op == ST_OP_SCATTER;
}
static const char *width(const st_expr *x) { return x->f64 ? "f64" : "f32"; }
static const char *type(const st_expr *x) { return x->f64 ? "double" : "float"; }

/* ---- what a program needs ---------------------------------------------------------------------------------------------- */
void st_expr_cuda_analyse(const st_expr *x, const bool *element, bool row, bool col, st_cuda_program *p)
{
    memset(p, 0, sizeof *p);
    p->x = x;
    for (int i = 0; i < x->nstores; i++) {
        p->live[x->store[i].value] = true;
        p->uses[x->store[i].value]++;
    }
    for (int i = x->nvalues - 1; i >= 0; i--)
        for (int j = 0; j < ST_EXPR_ARGS && p->live[i]; j++)
            if (x->value[i].arg[j] >= 0) {
                p->live[x->value[i].arg[j]] = true;
                if (p->uses[x->value[i].arg[j]] < 255) p->uses[x->value[i].arg[j]]++;
            }
    for (int i = 0; i < x->nvalues; i++) {
        const st_value *v = &x->value[i];
        if (!p->live[i]) continue;
        if (v->phase > p->passes) p->passes = v->phase;
        if (v->op == ST_OP_VAR)
            p->element[i] = element[v->var];
        else if (v->op == ST_OP_INDEX)
            p->element[i] = v->var == -1 ? col : row;
        else if (!is_reduction(v->op))
            for (int j = 0; j < ST_EXPR_ARGS; j++)
                if (v->arg[j] >= 0) p->element[i] |= p->element[v->arg[j]];
        p->sums[i] = (int16_t)i;
        for (int k = i - 1; k >= 0 && is_moment(v->op); k--)
            if (p->live[k] && is_moment(x->value[k].op) && x->value[k].arg[0] == v->arg[0] &&
                x->value[k].arg[1] == v->arg[1])
                p->sums[i] = (int16_t)k;
        if (v->op == ST_OP_DIV && p->element[i] && !p->element[v->arg[1]] && x->value[v->arg[1]].phase > 0)
            p->inverse[v->arg[1]] = true;
    }
    int totals[256] = {0};
    for (int i = 0; i < x->nvalues; i++)
        if (p->live[i] && is_reduction(x->value[i].op) && ++totals[x->value[i].phase] > p->widest)
            p->widest = totals[x->value[i].phase];
}

static bool kept(const st_cuda_program *p, int i, int pass) { return p->keep[i] && p->first[i] < pass; }

/* marks the element values that value i is made of at this pass, itself included */
static void mark(const st_cuda_program *p, int i, int pass, bool *need)
{
    if (need[i] || !p->element[i]) return;
    need[i] = true;
    if (kept(p, i, pass)) return;
    for (int j = 0; j < ST_EXPR_ARGS; j++)
        if (p->x->value[i].arg[j] >= 0) mark(p, p->x->value[i].arg[j], pass, need);
}

static bool of_pass(const st_cuda_program *p, int i, int pass)
{
    return p->live[i] && is_reduction(p->x->value[i].op) && p->x->value[i].phase == pass + 1;
}

static void mark_pass(const st_cuda_program *p, int pass, bool *need)
{
    const st_expr *x = p->x;
    memset(need, 0, ST_EXPR_VALUES * sizeof *need);
    for (int i = 0; i < x->nvalues && pass < p->passes; i++)
        if (of_pass(p, i, pass)) mark(p, x->value[i].arg[0], pass, need);
    for (int i = 0; i < x->nstores && pass == p->passes; i++) mark(p, x->store[i].value, pass, need);
}

/* what it costs to compute value i again */
static double again(const st_cuda_program *p, int i)
{
    double c = p->element[i] ? (double)st_expr_ops[p->x->value[i].op].cost : 0;
    for (int j = 0; j < ST_EXPR_ARGS && p->element[i]; j++)
        if (p->x->value[i].arg[j] >= 0) c += again(p, p->x->value[i].arg[j]);
    return c;
}

int st_expr_cuda_keep(st_cuda_program *p)
{
    int users[ST_EXPR_VALUES] = {0}, best = -1;
    bool need[ST_EXPR_VALUES];
    for (int pass = 0; pass <= p->passes; pass++) {
        mark_pass(p, pass, need);
        for (int i = 0; i < p->x->nvalues; i++)
            if (need[i] && !users[i]++) p->first[i] = (uint8_t)pass;
    }
    /* the dearest, and of equal ones what is made last */
    for (int i = 0; i < p->x->nvalues; i++)
        if (users[i] > 1 && again(p, i) > 7 && (best < 0 || again(p, i) >= again(p, best))) best = i;
    if (best >= 0) p->keep[best] = true;
    return best >= 0;
}

bool st_expr_cuda_reads(const st_cuda_program *p, int pass, int var)
{
    bool need[ST_EXPR_VALUES];
    mark_pass(p, pass, need);
    for (int i = 0; i < p->x->nvalues; i++)
        if (need[i] && !kept(p, i, pass) && p->x->value[i].op == ST_OP_VAR && p->x->value[i].var == var)
            return true;
    return false;
}

bool st_expr_cuda_line_reads(const st_cuda_program *p, int var)
{
    for (int i = 0; i < p->x->nvalues; i++)
        if (p->live[i] && !p->element[i] && p->x->value[i].op == ST_OP_VAR && p->x->value[i].var == var)
            return true;
    return false;
}

bool st_expr_cuda_stores_element(const st_cuda_program *p, int var)
{
    for (int i = 0; i < p->x->nstores; i++)
        if (p->x->store[i].var == var && p->element[p->x->store[i].value]) return true;
    return false;
}

/* ---- values ------------------------------------------------------------------------------------------------------------ */
static void put_constant(st_text *t, const st_expr *x, double c)
{
    if (isnan(c))
        st_text_put(t, x->f64 ? "f64_of_bits(0x7ff8000000000000ull)" : "f32_of_bits(0x7fc00000u)");
    else if (isinf(c) && x->f64)
        st_text_put(t, "f64_of_bits(0x%sff0000000000000ull)", c < 0 ? "f" : "7");
    else if (isinf(c))
        st_text_put(t, "f32_of_bits(0x%sf800000u)", c < 0 ? "f" : "7");
    else
        st_text_put(t, x->f64 ? "%a" : "%af", c);
}

/* operand i: a constant by itself, anything else by name */
static void put_operand(st_text *t, const st_expr *x, int i)
{
    if (x->value[i].op == ST_OP_CONST)
        put_constant(t, x, x->value[i].imm);
    else
        st_text_put(t, "v%d", i);
}

static void put_call(const st_cuda_program *p, int i, st_text *t)
{
    const st_expr *x = p->x;
    const st_value *v = &x->value[i];
    char name[24] = "";
    for (int k = 0; st_expr_ops[v->op].id[k] && k < 23; k++)
        name[k] = (char)tolower((unsigned char)st_expr_ops[v->op].id[k]), name[k + 1] = 0;
    st_text_put(t, "st_%s_%s(", name, width(x));
    for (int j = 0; j < st_expr_ops[v->op].arity; j++) {
        if (j) st_text_put(t, ", ");
        put_operand(t, x, v->arg[j]);
    }
    st_text_put(t, ")");
}

/* a sum one of whose sides is a product that nobody else uses */
static bool put_fused(const st_cuda_program *p, int i, st_text *t)
{
    const st_expr *x = p->x;
    const st_value *v = &x->value[i];
    for (int j = 1; j >= 0 && (v->op == ST_OP_ADD || v->op == ST_OP_SUB); j--) {
        const int m = v->arg[j], other = v->arg[1 - j];
        if (x->value[m].op != ST_OP_MUL || p->uses[m] != 1 || p->keep[m] || p->element[m] != p->element[i])
            continue;
        st_text_put(t, "st_fma_%s(%s(", width(x), v->op == ST_OP_SUB && j == 1 ? "-" : "");
        put_operand(t, x, x->value[m].arg[0]);
        st_text_put(t, "), ");
        put_operand(t, x, x->value[m].arg[1]);
        st_text_put(t, v->op == ST_OP_SUB && j == 0 ? ", -(" : ", (");
        put_operand(t, x, other);
        st_text_put(t, "))");
        return true;
    }
    return false;
}

/* the right side of a value that is no reduction */
static void put_value(const st_cuda_program *p, int i, const st_cuda_names *names, st_text *t)
{
    const st_expr *x = p->x;
    const st_value *v = &x->value[i];
    if (v->op == ST_OP_VAR) {
        names->load(names->user, t, v->var);
    } else if (v->op == ST_OP_CONST) {
        put_constant(t, x, v->imm);
    } else if (v->op == ST_OP_INDEX) {
        st_text_put(t, "(%s)(%s)", type(x), v->var == -1 ? names->col : names->row);
    } else if (v->op == ST_OP_DIV && p->element[i] && p->inverse[v->arg[1]]) {
        st_text_put(t, "div_row_%s(", width(x));
        put_operand(t, x, v->arg[0]);
        st_text_put(t, ", r%d, s%d)", v->arg[1], v->arg[1]);
    } else if (!put_fused(p, i, t)) {
        put_call(p, i, t);
    }
}

/* is this product only part of a sum that is printed as one operation? */
static bool swallowed(const st_cuda_program *p, int i)
{
    const st_expr *x = p->x;
    if (x->value[i].op != ST_OP_MUL || p->uses[i] != 1 || p->keep[i]) return false;
    for (int k = i + 1; k < x->nvalues; k++) {
        const st_value *v = &x->value[k];
        if (!p->live[k]) continue;
        const bool sum = (v->op == ST_OP_ADD || v->op == ST_OP_SUB) && p->element[i] == p->element[k];
        for (int j = 0; j < ST_EXPR_ARGS; j++) {
            if (v->arg[j] != i) continue;
            /* of two products the right one goes */
            if (sum && (j == 1 || x->value[v->arg[1]].op != ST_OP_MUL || p->uses[v->arg[1]] != 1 ||
                        p->element[v->arg[1]] != p->element[k]))
                return true;
            return (v->op == ST_OP_SUM || v->op == ST_OP_MEAN) && p->element[i];
        }
    }
    return false;
}

static void declare(const st_cuda_program *p, int i, const st_cuda_names *names, st_text *t)
{
    st_text_put(t, "const %s v%d = ", type(p->x), i);
    put_value(p, i, names, t);
    st_text_put(t, ";\n");
}

/* loads before all else, then in order of evaluation */
static void declare_all(const st_cuda_program *p, int pass, const bool *need, const st_cuda_names *names,
                        st_text *t)
{
    const st_expr *x = p->x;
    for (int i = 0; i < x->nvalues; i++)
        if (need[i] && x->value[i].op == ST_OP_VAR) declare(p, i, names, t);
    for (int i = 0; i < x->nvalues; i++) {
        if (!need[i] || x->value[i].op == ST_OP_VAR || x->value[i].op == ST_OP_CONST) continue;
        if (kept(p, i, pass)) {
            st_text_put(t, "const %s v%d = k%d[k * W + j];\n", type(x), i, i);
        } else if (!swallowed(p, i)) {
            declare(p, i, names, t);
            if (p->keep[i]) st_text_put(t, "k%d[k * W + j] = v%d;\n", i, i);
        }
    }
}

static void put_store(const st_cuda_program *p, const st_store *s, const st_cuda_names *names, st_text *t)
{
    char name[32];
    if (p->x->value[s->value].op == ST_OP_CONST) {
        st_text_put(t, "{ const %s c = ", type(p->x));
        put_constant(t, p->x, p->x->value[s->value].imm);
        st_text_put(t, "; ");
        names->store(names->user, t, s->var, "c");
        st_text_put(t, " }\n");
        return;
    }
    snprintf(name, sizeof name, "v%d", s->value);
    names->store(names->user, t, s->var, name);
    st_text_put(t, "\n");
}

void st_expr_cuda_map(const st_expr *x, const st_cuda_names *names, st_text *t)
{
    st_cuda_program p;
    bool all[ST_EXPR_VARS];
    for (int i = 0; i < ST_EXPR_VARS; i++) all[i] = true;
    st_expr_cuda_analyse(x, all, true, true, &p);
    for (int i = 0; i < x->nvalues; i++) p.element[i] = p.live[i];
    declare_all(&p, 0, p.live, names, t);
    for (int i = 0; i < x->nstores; i++) put_store(&p, &x->store[i], names, t);
}

/* ---- lines --------------------------------------------------------------------------------------------------------------- */
void st_expr_cuda_members(const st_cuda_program *p, st_text *t)
{
    for (int i = 0; i < p->x->nvalues; i++) {
        if (!p->live[i] || p->element[i] || p->x->value[i].op == ST_OP_CONST) continue;
        st_text_put(t, "%s v%d;\n", type(p->x), i);
        if (p->inverse[i]) st_text_put(t, "%s r%d, s%d;\n", type(p->x), i, i);
    }
    for (int i = 0; i < p->x->nvalues; i++)
        if (p->keep[i]) st_text_put(t, "%s k%d[SLOTS * W];\n", type(p->x), i);
}

/* which pair of structs of reduce.cuh a reduction uses */
static const char *sums_of(int op)
{
    switch (op) {
    case ST_OP_SUM:
    case ST_OP_MEAN: return "sum";
    case ST_OP_PROD: return "prod";
    case ST_OP_RMAX: return "max";
    case ST_OP_RMIN: return "min";
    case ST_OP_ABSMAX: return "absmax";
    case ST_OP_ANY: return "any";
    case ST_OP_ALL: return "all";
    case ST_OP_ARGMAX: return "argmax";
    default: return "moments";
    }
}

void st_expr_cuda_types(const st_cuda_program *p, st_text *t)
{
    const st_expr *x = p->x;
    for (int pass = 0; pass < p->passes; pass++) {
        for (int tot = 0; tot < 2; tot++) {
            st_text_put(t, "struct %s%d {\n", tot ? "tot" : "acc", pass);
            for (int i = 0; i < x->nvalues; i++)
                if (of_pass(p, i, pass) && p->sums[i] == i)
                    st_text_put(t, tot ? "tot_%s<%s, A> a%d;\n" : "acc_%s<%s> a%d;\n",
                                sums_of(x->value[i].op), type(x), i);
            for (int f = 0; f < (tot ? 3 : 1); f++) {
                st_text_put(t, "METHOD ");
                if (f)
                    st_text_put(t, f == 1 ? "void take(const acc%d &b)" : "void merge(const tot%d &b)", pass);
                else
                    st_text_put(t, "void clear()");
                st_text_put(t, " { ");
                for (int i = 0; i < x->nvalues; i++)
                    if (of_pass(p, i, pass) && p->sums[i] == i) {
                        if (f == 0) st_text_put(t, "a%d.clear(); ", i);
                        if (f == 1) st_text_put(t, "a%d.take(b.a%d); ", i, i);
                        if (f == 2) st_text_put(t, "a%d.merge(b.a%d); ", i, i);
                    }
                st_text_put(t, "}\n");
            }
            st_text_put(t, "};\n");
        }
    }
}

static void put_result(const st_cuda_program *p, int i, st_text *t)
{
    const st_expr *x = p->x;
    const st_value *v = &x->value[i];
    const int a = p->sums[i];
    switch (v->op) {
    case ST_OP_MEAN: st_text_put(t, "t.a%d.mean(n)", a); break;
    case ST_OP_MEAN_HI:
    case ST_OP_MEAN_LO:
        st_text_put(t, "t.a%d.mean_%s(n, ", a, v->op == ST_OP_MEAN_HI ? "hi" : "lo");
        put_operand(t, x, v->arg[1]);
        st_text_put(t, ")");
        break;
    case ST_OP_VARIANCE: st_text_put(t, "t.a%d.variance(n)", a); break;
    case ST_OP_SCATTER: st_text_put(t, "t.a%d.scatter(n)", a); break;
    default: st_text_put(t, "t.a%d.value()", a);
    }
}

void st_expr_cuda_line(const st_cuda_program *p, int level, const st_cuda_names *names, st_text *t)
{
    const st_expr *x = p->x;
    for (int i = 0; i < x->nvalues; i++) {
        const st_value *v = &x->value[i];
        if (!p->live[i] || p->element[i] || v->phase != level || v->op == ST_OP_CONST) continue;
        st_text_put(t, "v%d = ", i);
        if (is_reduction(v->op))
            put_result(p, i, t);
        else if (!put_fused(p, i, t))
            put_value(p, i, names, t);
        st_text_put(t, ";\n");
        if (p->inverse[i]) st_text_put(t, "recip_%s(v%d, &r%d, &s%d);\n", width(x), i, i, i);
    }
}

static void put_add(const st_cuda_program *p, int i, st_text *t)
{
    const st_expr *x = p->x;
    const st_value *v = &x->value[i];
    const int a = v->arg[0];
    if (p->sums[i] != i) return;
    st_text_put(t, "a.a%d.add(", i);
    if ((v->op == ST_OP_SUM || v->op == ST_OP_MEAN) && p->element[a] && swallowed(p, a)) {
        put_operand(t, x, x->value[a].arg[0]);
        st_text_put(t, ", ");
        put_operand(t, x, x->value[a].arg[1]);
    } else {
        put_operand(t, x, a);
        if (v->op == ST_OP_ARGMAX) st_text_put(t, ", position");
        if (is_moment(v->op)) {
            st_text_put(t, ", ");
            put_operand(t, x, v->arg[1]);
        }
    }
    st_text_put(t, ");\n");
}

void st_expr_cuda_add(const st_cuda_program *p, int pass, const st_cuda_names *names, st_text *t)
{
    bool need[ST_EXPR_VALUES];
    mark_pass(p, pass, need);
    declare_all(p, pass, need, names, t);
    for (int i = 0; i < p->x->nvalues; i++)
        if (of_pass(p, i, pass)) put_add(p, i, t);
}

void st_expr_cuda_store(const st_cuda_program *p, bool element, const st_cuda_names *names, st_text *t)
{
    bool need[ST_EXPR_VALUES];
    mark_pass(p, p->passes, need);
    if (element) declare_all(p, p->passes, need, names, t);
    for (int i = 0; i < p->x->nstores; i++) put_store(p, &p->x->store[i], names, t);
}
