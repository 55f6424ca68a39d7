/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c - text to values, by recursive descent. One function per level of precedence, loosest first:
 *   c ? a : b     ||     &&     < <= > >= == !=     + -     * / @     unary - + !     **     call, name, number, ( )
 * The first fault ends the parse: `failed` is set and every level returns at once. */
#include "expr/code.h"
#include "expr/lex.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 100, MAX_TEMPS = 64, MAX_CALL = 4 };

typedef struct temp {
    char name[ST_EXPR_NAME];
    int value;
} temp;

typedef struct parser {
    st_expr *x;
    st_err *e;
    const char *who, *text;
    const char *const *names;
    size_t pos;
    st_token t, prev;
    strata_status failed;
    int depth, ntemps;
    int now[ST_EXPR_VARS]; /* the value last stored to a variable in this program, -1 before */
    temp temps[MAX_TEMPS];
} parser;

static int ternary(parser *p);

ST_PRINTF(4, 5) static int fail(parser *p, int column, int length, const char *fmt, ...)
{
    if (p->failed) return -1;
    va_list ap;
    va_start(ap, fmt);
    p->failed = st_expr_vfail_text(p->e, p->text, p->who, column, length, fmt, ap);
    va_end(ap);
    return -1;
}

static void next(parser *p)
{
    p->prev = p->t;
    p->t = st_lex(p->text, &p->pos);
    if (p->t.kind == ST_TOK_BAD && !p->failed) {
        char words[160];
        st_expr_bad_words(words, sizeof words, p->text + p->t.column - 1, p->t);
        fail(p, p->t.column, p->t.length, "%s", words);
    }
}

static const char *found(const parser *p, char *buf, size_t n)
{
    if (p->t.kind == ST_TOK_END) return "the end of the program";
    snprintf(buf, n, "'%.*s'", p->t.length > 40 ? 40 : p->t.length, p->text + p->t.column - 1);
    return buf;
}

static bool expect(parser *p, int kind, const char *what)
{
    char buf[64];
    if (p->failed) return false;
    if (p->t.kind != kind)
        return fail(p, p->t.column, p->t.length, "expected %s, found %s", what, found(p, buf, sizeof buf)) >=
               0;
    next(p);
    return !p->failed;
}

static int add(parser *p, st_op op, int a, int b, int c, int column)
{
    if (p->failed || a < 0) return -1;
    int below = p->x->value[b >= 0 && op == ST_OP_VARIANCE ? b : a].phase; /* the mean's */
    if (st_expr_ops[op].flags & ST_OPF_R && below + 2 > ST_PHASES)
        return fail(p, column, 1, "reductions of reductions are nested deeper than %d", ST_PHASES - 1);
    int v = st_ir_add(p->x, op, a, b, c, column);
    if (v < 0)
        return fail(p, column, 1,
                    "the program has more than %d different values; split it into several calls",
                    ST_EXPR_VALUES);
    return v;
}

static int leaf_or_fail(parser *p, int v, int column)
{
    if (v < 0 && !p->failed)
        return fail(p, column, 1,
                    "the program has more than %d different values; split it into several calls",
                    ST_EXPR_VALUES);
    return v;
}

/* ---- names ---------------------------------------------------------------------------------------------------------- */
static bool same(const char *name, const char *s, int len)
{
    return !strncmp(name, s, (size_t)len) && !name[len];
}

static int function_of(const char *s, int len)
{
    for (int i = 0; i < ST_OP_COUNT_; i++)
        if (st_expr_ops[i].name[0] && same(st_expr_ops[i].name, s, len)) return i;
    return -1;
}

static bool is_function(const char *s, int len)
{
    return function_of(s, len) >= 0 || same("var", s, len) || same("index", s, len);
}

static int known_names(const parser *p, const char **list, bool call)
{
    int n = 0;
    if (!call) {
        for (int i = 0; p->names && p->names[i] && n < 64; i++) list[n++] = p->names[i];
        for (int i = 0; i < p->ntemps && n < 128; i++) list[n++] = p->temps[i].name;
        return n;
    }
    for (int i = 0; i < ST_OP_COUNT_; i++)
        if (st_expr_ops[i].name[0]) list[n++] = st_expr_ops[i].name;
    list[n++] = "var";
    list[n++] = "index";
    return n;
}

static int unknown(parser *p, st_token t, bool call)
{
    const char *list[256], *s = p->text + t.column - 1, *near;
    int len = t.length > 40 ? 40 : t.length, n = known_names(p, list, call);
    near = st_expr_nearest(s, (size_t)t.length, list, n);
    if (!near && !call && is_function(s, t.length))
        return fail(p, t.column, t.length, "'%.*s' is a function; its arguments go in parentheses", len, s);
    /* the other kind: 'gelv' without parentheses, or an operand called like a function */
    if (!near) near = st_expr_nearest(s, (size_t)t.length, list + n, known_names(p, list + n, !call));
    if (near) return fail(p, t.column, t.length, "unknown name '%.*s'; did you mean '%s'?", len, s, near);
    char all[360];
    size_t at = 0;
    all[0] = 0;
    for (int i = 0; i < n && at + 30 < sizeof all; i++)
        at += (size_t)snprintf(all + at, sizeof all - at, "%s%s", i ? (call ? " " : ", ") : "", list[i]);
    if (!n) return fail(p, t.column, t.length, "unknown name '%.*s'; this program has no operands", len, s);
    return fail(p, t.column, t.length, "unknown %s '%.*s'; the %s are %s", call ? "function" : "name", len, s,
                call ? "functions" : "names", all);
}

static int variable(parser *p, const char *s, int len, int column)
{
    st_expr *x = p->x;
    for (int i = 0; i < x->nvars; i++)
        if (same(x->var[i].name, s, len)) return i;
    if (x->nvars >= ST_EXPR_VARS)
        return fail(p, column, len, "more than %d operands in one program", ST_EXPR_VARS);
    if (len >= ST_EXPR_NAME)
        return fail(p, column, len, "an operand's name has at most %d characters", ST_EXPR_NAME - 1);
    st_expr_var *v = &x->var[x->nvars];
    memcpy(v->name, s, (size_t)len);
    v->name[len] = 0;
    v->column = column;
    p->now[x->nvars] = -1;
    return x->nvars++;
}

static int operand_named(const parser *p, const char *s, int len)
{
    for (int i = 0; p->names && p->names[i]; i++)
        if (same(p->names[i], s, len)) return i;
    return -1;
}

static int temp_named(const parser *p, const char *s, int len)
{
    for (int i = 0; i < p->ntemps; i++)
        if (same(p->temps[i].name, s, len)) return i;
    return -1;
}

/* [m] or [n] after a name: the axis that a rank-1 operand runs along */
static bool suffix(parser *p, int var, st_token name, bool first)
{
    st_index index = ST_INDEX_NONE;
    if (p->t.kind == '[') {
        next(p);
        const char *s = p->text + p->t.column - 1;
        if (p->t.kind != ST_TOK_NAME || p->t.length != 1 || (*s != 'm' && *s != 'n')) {
            fail(p, p->t.column, p->t.length, "expected m (along rows) or n (along columns) in the brackets");
            return false;
        }
        index = *s == 'm' ? ST_INDEX_M : ST_INDEX_N;
        next(p);
        if (!expect(p, ']', "']'")) return false;
    }
    st_expr_var *v = &p->x->var[var];
    if (!first && v->index != index) {
        static const char *const text[] = {"", "[m]", "[n]"};
        fail(p, name.column, name.length,
             "'%s%s' was written '%s%s' before (column %d): one operand, one index", v->name, text[index],
             v->name, text[v->index], v->column);
        return false;
    }
    v->index = index;
    return true;
}

static int name_value(parser *p)
{
    st_token t = p->t;
    const char *s = p->text + t.column - 1;
    next(p);
    if (operand_named(p, s, t.length) >= 0) {
        int before = p->x->nvars, v = variable(p, s, t.length, t.column);
        if (v < 0 || !suffix(p, v, t, v == before)) return -1;
        if (p->now[v] >= 0) return p->now[v];
        p->x->var[v].input = true;
        return leaf_or_fail(p, st_ir_leaf(p->x, ST_OP_VAR, v, t.column), t.column);
    }
    int tmp = temp_named(p, s, t.length);
    if (tmp >= 0) {
        if (p->t.kind == '[')
            return fail(p, p->t.column, 1, "'%s' is a temporary; only operands take [m] or [n]",
                        p->temps[tmp].name);
        return p->temps[tmp].value;
    }
    if (same("pi", s, t.length)) return leaf_or_fail(p, st_ir_const(p->x, M_PI), t.column);
    if (same("inf", s, t.length)) return leaf_or_fail(p, st_ir_const(p->x, INFINITY), t.column);
    if (same("nan", s, t.length)) return leaf_or_fail(p, st_ir_const(p->x, NAN), t.column);
    return unknown(p, t, false);
}

/* ---- calls ---------------------------------------------------------------------------------------------------------- */
/* index(d): the position along dim d. -1 and -2 are the rectangle's own axes; any other is a scalar operand called
 * "index(d)" that the caller binds. */
static int index_call(parser *p, st_token t)
{
    const int column = p->t.column;
    const bool minus = p->t.kind == '-';
    if (minus) next(p);
    if (p->t.kind != ST_TOK_NUMBER || p->t.number != rint(p->t.number) || p->t.number > 8)
        return fail(p, column, p->t.column + p->t.length - column,
                    "index takes a dim as a number up to 8: -1 is the column, -2 the row, 0 the first dim");
    int d = (int)p->t.number;
    next(p);
    if (!expect(p, ')', "')' after the dim")) return -1;
    if (minus && d >= 1 && d <= 2)
        return leaf_or_fail(p, st_ir_leaf(p->x, ST_OP_INDEX, -d, t.column), t.column);
    char name[ST_EXPR_NAME];
    int len = snprintf(name, sizeof name, "index(%s%d)", minus && d ? "-" : "", d),
        v = variable(p, name, len, t.column);
    if (v < 0) return -1;
    p->x->var[v].input = true;
    return leaf_or_fail(p, st_ir_leaf(p->x, ST_OP_VAR, v, t.column), t.column);
}

static int variance(parser *p, int a, int column)
{
    return add(p, ST_OP_VARIANCE, a, add(p, ST_OP_MEAN, a, -1, -1, column), -1, column);
}

static int wrong_count(parser *p, st_token t, const char *takes, int given)
{
    const char *s = p->text + t.column - 1;
    return fail(p, t.column, t.length, "%.*s takes %s, %d given", t.length, s, takes, given);
}

static int call(parser *p)
{
    static const char *const counts[] = {"no argument", "1 argument", "2 arguments", "3 arguments"};
    st_token t = p->t;
    const char *s = p->text + t.column - 1;
    int arg[MAX_CALL] = {-1, -1, -1, -1}, n = 0;
    next(p); /* the name; '(' is the next token */
    if (!is_function(s, t.length)) return unknown(p, t, true);
    next(p);
    if (same("index", s, t.length)) return index_call(p, t);
    while (!p->failed && p->t.kind != ')') {
        if (n && !expect(p, ',', "',' or ')'")) return -1;
        int v = ternary(p);
        if (p->failed) return -1;
        if (n < MAX_CALL) arg[n] = v;
        n++;
    }
    if (!expect(p, ')', "',' or ')'")) return -1;
    if (same("var", s, t.length))
        return n == 1 ? variance(p, arg[0], t.column) : wrong_count(p, t, "1 argument", n);
    int op = function_of(s, t.length);
    if (op == ST_OP_MAX || op == ST_OP_MIN) {
        if (n != 1 && n != 2) return wrong_count(p, t, "2 arguments (elementwise) or 1 (a reduction)", n);
        if (n == 1) op = op == ST_OP_MAX ? ST_OP_RMAX : ST_OP_RMIN;
    } else if (n != st_expr_ops[op].arity) {
        const char *takes = op == ST_OP_CLAMP        ? "3 arguments (x, lo, hi)"
                            : op == ST_OP_SELECT     ? "3 arguments (condition, then, else)"
                            : op == ST_OP_LEAKY_RELU ? "2 arguments (x, slope)"
                                                     : counts[st_expr_ops[op].arity];
        return wrong_count(p, t, takes, n);
    }
    return add(p, (st_op)op, arg[0], arg[1], arg[2], t.column);
}

/* ---- levels ---------------------------------------------------------------------------------------------------------- */
static int primary(parser *p)
{
    char buf[64];
    if (p->failed) return -1;
    if (p->t.kind == ST_TOK_NUMBER) {
        int v = st_ir_const(p->x, p->t.number), column = p->t.column;
        next(p);
        return leaf_or_fail(p, v, column);
    }
    if (p->t.kind == '(') {
        next(p);
        int v = ternary(p);
        return expect(p, ')', "')'") ? v : -1;
    }
    if (p->t.kind == ST_TOK_NAME) {
        size_t pos = p->pos;
        return st_lex(p->text, &pos).kind == '(' ? call(p) : name_value(p);
    }
    return fail(p, p->t.column, p->t.length, "expected a number, a name, a function or '(', found %s",
                found(p, buf, sizeof buf));
}

static int unary(parser *p)
{
    st_token t = p->t;
    if (p->failed) return -1;
    if (t.kind != '-' && t.kind != '+' && t.kind != '!') {
        int v = primary(p);
        if (p->failed || p->t.kind != ST_TOK_POW) return v;
        int column = p->t.column;
        next(p);
        if (++p->depth > MAX_DEPTH)
            return fail(p, column, 1, "the expression is nested deeper than %d levels", MAX_DEPTH);
        int power = unary(p);
        p->depth--;
        return add(p, ST_OP_POW, v, power, -1, column);
    }
    if (++p->depth > MAX_DEPTH)
        return fail(p, t.column, 1, "the expression is nested deeper than %d levels", MAX_DEPTH);
    next(p);
    int v = unary(p);
    p->depth--;
    return t.kind == '+' ? v : add(p, t.kind == '-' ? ST_OP_NEG : ST_OP_NOT, v, -1, -1, t.column);
}

/* A side of '@', of value v, that begins with token t and ends before column `end`: an operand by name? */
static bool factor(parser *p, int v, st_token t, int end)
{
    char words[240];
    const char *s = p->text + t.column - 1;
    if (t.kind == ST_TOK_NAME && operand_named(p, s, t.length) >= 0 && p->x->value[v].op == ST_OP_VAR)
        return true;
    st_expr_factor_words(words, sizeof words, s, t, temp_named(p, s, t.length) >= 0);
    return fail(p, t.column, end > t.column ? end - t.column : 1, "%s", words) >= 0;
}

static int product(parser *p)
{
    const st_token first = p->t;
    int a = unary(p);
    while (!p->failed && (p->t.kind == '*' || p->t.kind == '/' || p->t.kind == '@')) {
        st_token t = p->t;
        next(p);
        const st_token second = p->t;
        int b = unary(p);
        if (p->failed) return -1;
        if (t.kind == '@') {
            if (!factor(p, a, first, t.column) || !factor(p, b, second, p->prev.column + p->prev.length))
                return -1;
            p->x->var[p->x->value[a].var].matmul = p->x->var[p->x->value[b].var].matmul = true;
            p->x->matmul = true;
        }
        a = add(p, t.kind == '*' ? ST_OP_MUL : t.kind == '/' ? ST_OP_DIV : ST_OP_MATMUL, a, b, -1, t.column);
    }
    return a;
}

static int sum(parser *p)
{
    int a = product(p);
    while (!p->failed && (p->t.kind == '+' || p->t.kind == '-')) {
        st_token t = p->t;
        next(p);
        a = add(p, t.kind == '+' ? ST_OP_ADD : ST_OP_SUB, a, product(p), -1, t.column);
    }
    return a;
}

static bool comparison_sign(int k)
{
    return k == '<' || k == '>' || k == ST_TOK_LE || k == ST_TOK_GE || k == ST_TOK_EQ || k == ST_TOK_NE;
}

static int comparison(parser *p)
{
    int a = sum(p);
    if (p->failed || !comparison_sign(p->t.kind)) return a;
    st_token t = p->t;
    next(p);
    int b = sum(p);
    if (p->failed) return -1;
    if (comparison_sign(p->t.kind))
        return fail(p, p->t.column, p->t.length, "comparisons do not chain; write a < b && b < c");
    const bool swap = t.kind == '>' || t.kind == ST_TOK_GE;
    st_op op = t.kind == '<' || t.kind == '>'               ? ST_OP_LT
               : t.kind == ST_TOK_LE || t.kind == ST_TOK_GE ? ST_OP_LE
               : t.kind == ST_TOK_EQ                        ? ST_OP_EQ
                                                            : ST_OP_NE;
    return add(p, op, swap ? b : a, swap ? a : b, -1, t.column);
}

static int conjunction(parser *p)
{
    int a = comparison(p);
    while (!p->failed && p->t.kind == ST_TOK_AND) {
        int column = p->t.column;
        next(p);
        a = add(p, ST_OP_AND, a, comparison(p), -1, column);
    }
    return a;
}

static int disjunction(parser *p)
{
    int a = conjunction(p);
    while (!p->failed && p->t.kind == ST_TOK_OR) {
        int column = p->t.column;
        next(p);
        a = add(p, ST_OP_OR, a, conjunction(p), -1, column);
    }
    return a;
}

static int ternary(parser *p)
{
    if (p->failed) return -1;
    if (++p->depth > MAX_DEPTH)
        return fail(p, p->t.column, 1, "the expression is nested deeper than %d levels", MAX_DEPTH);
    int c = disjunction(p);
    if (!p->failed && p->t.kind == '?') {
        int column = p->t.column;
        next(p);
        int a = ternary(p);
        if (expect(p, ':', "':' between the two values of '?'"))
            c = add(p, ST_OP_SELECT, c, a, ternary(p), column);
    }
    p->depth--;
    return p->failed ? -1 : c;
}

/* ---- statements ------------------------------------------------------------------------------------------------------ */
static void store(parser *p, int var, int value)
{
    st_expr *x = p->x;
    x->var[var].output = true;
    p->now[var] = value;
    for (int i = 0; i < x->nstores; i++)
        if (x->store[i].var == var) {
            x->store[i].value = (int16_t)value;
            return;
        }
    x->store[x->nstores++] = (st_store){(int16_t)var, (int16_t)value};
}

static void keep_temp(parser *p, const char *s, int len, int column, int value)
{
    int i = temp_named(p, s, len);
    if (i < 0) {
        if (p->ntemps == MAX_TEMPS) {
            fail(p, column, len, "more than %d temporaries in one program", MAX_TEMPS);
            return;
        }
        if (len >= ST_EXPR_NAME)
            return (void)fail(p, column, len, "a name has at most %d characters", ST_EXPR_NAME - 1);
        i = p->ntemps++;
        memcpy(p->temps[i].name, s, (size_t)len);
        p->temps[i].name[len] = 0;
    }
    p->temps[i].value = value;
}

/* true when the text at the current token is "name =" or "name[m] =" */
static bool assignment(const parser *p)
{
    size_t pos = p->pos;
    if (p->t.kind != ST_TOK_NAME) return false;
    st_token t = st_lex(p->text, &pos);
    if (t.kind == '[') {
        st_lex(p->text, &pos);
        st_lex(p->text, &pos);
        t = st_lex(p->text, &pos);
    }
    return t.kind == '=';
}

static void statement(parser *p, int number)
{
    st_token t = p->t;
    const char *s = p->text + t.column - 1;
    if (!assignment(p)) {
        const int v = ternary(p);
        if (p->failed) return;
        if (p->t.kind == '=') {
            fail(p, t.column, p->t.column - t.column,
                 "the left side of '=' must be one name, as in out = ...; equality is written '=='");
        } else if (p->t.kind == ';' || number) {
            size_t pos = p->pos;
            if (number || st_lex(p->text, &pos).kind != ST_TOK_END)
                fail(p, t.column, 1, "of several statements each needs a name: name = expression");
        }
        if (p->failed) return;
        if (operand_named(p, "out", 3) < 0) {
            fail(p, t.column, 1,
                 "a lone expression is stored to 'out', and no operand is called 'out'; write name = "
                 "expression");
            return;
        }
        int before = p->x->nvars, var = variable(p, "out", 3, t.column);
        if (var < 0) return;
        if (var == before) p->x->var[var].index = ST_INDEX_NONE;
        store(p, var, v);
        return;
    }
    bool bound = operand_named(p, s, t.length) >= 0;
    if (!bound && (is_function(s, t.length) || same("pi", s, t.length) || same("inf", s, t.length) ||
                   same("nan", s, t.length))) {
        fail(p, t.column, t.length, "'%.*s' is the language's own name and cannot be assigned to", t.length,
             s);
        return;
    }
    next(p);
    int var = -1;
    if (bound) {
        int before = p->x->nvars;
        var = variable(p, s, t.length, t.column);
        if (var < 0 || !suffix(p, var, t, var == before)) return;
    } else if (p->t.kind == '[') {
        fail(p, p->t.column, 1, "'%.*s' is a temporary; only operands take [m] or [n]", t.length, s);
        return;
    }
    if (!expect(p, '=', "'='")) return;
    int v = ternary(p);
    if (p->failed) return;
    if (bound)
        store(p, var, v);
    else
        keep_temp(p, s, t.length, t.column, v);
}

static void program(parser *p)
{
    char buf[64];
    next(p);
    for (int i = 0; !p->failed; i++) {
        if (p->t.kind == ST_TOK_END) {
            if (i == 0) fail(p, 1, 1, "the program is empty; expected name = expression");
            break;
        }
        statement(p, i);
        if (p->failed) return;
        if (p->t.kind != ';' && p->t.kind != ST_TOK_END)
            fail(p, p->t.column, p->t.length, "expected an operator, ';' or the end, found %s",
                 found(p, buf, sizeof buf));
        else if (p->t.kind == ';')
            next(p);
    }
    if (!p->failed && p->x->nstores == 0)
        fail(p, 1, 1, "the program stores nothing: no name on the left of '=' is an operand");
}

strata_status st_expr_parse(st_err *e, const char *who, const char *text, const char *const *names, bool f64,
                            st_expr **out)
{
    *out = NULL;
    if (!text)
        return st_fail(e, STRATA_ERROR_ARGUMENT,
                       "%s: the program is NULL; expected text such as \"out = x + 1\"", who);
    st_expr *x = calloc(1, sizeof *x);
    parser *p = calloc(1, sizeof *p);
    if (!x || !p || !(x->text = strdup(text))) {
        st_expr_free(x);
        free(p);
        return st_fail(e, STRATA_ERROR_MEMORY, "%s: no memory to parse a program of %zu characters", who,
                       strlen(text));
    }
    x->f64 = f64;
    *p = (parser){.x = x, .e = e, .who = who, .text = text, .names = names};
    program(p);
    strata_status s = p->failed;
    free(p);
    if (s) {
        st_expr_free(x);
        return s;
    }
    for (int i = 0; i < x->nvalues; i++) x->reductions += (st_expr_ops[x->value[i].op].flags & ST_OPF_R) != 0;
    st_expr_measure(x);
    *out = x;
    return STRATA_OK;
}
