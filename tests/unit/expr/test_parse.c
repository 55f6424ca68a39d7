/* SPDX-License-Identifier: Apache-2.0 */
/* test_parse.c - what the language means, and what its errors say. */
#include "support.h"
#include <locale.h>
#include <math.h>
#include "expr/ir.h"

static const char *const names[] = {"x", "y", "X", "W", "bias", "s", "out", "rm", NULL};
static const double at_x = 1.75, at_y = -0.5;

/* the value of `text` at x = 1.75, y = -0.5, in f64 */
static double value(const char *text)
{
    st_err e;
    st_expr *x;
    if (st_expr_parse(&e, "eval", text, names, true, &x)) {
        test_fail(__FILE__, __LINE__, "%s", e.text);
        return NAN;
    }
    const st_expr_var *v;
    double out = NAN, in_x = at_x, in_y = at_y;
    st_expr_arg args[ST_EXPR_VARS];
    int n = st_expr_vars(x, &v);
    for (int i = 0; i < n; i++) {
        double *p = !strcmp(v[i].name, "x") ? &in_x : !strcmp(v[i].name, "y") ? &in_y : &out;
        args[i] = (st_expr_arg){p, STRATA_F64, 0, 0};
    }
    void *scratch = test_guard(st_expr_rows_scratch(x, 1), true);
    if (st_expr_reductions(x))
        st_expr_rows(x, args, 1, 1, 0, scratch);
    else
        st_expr_map(x, args, 1, 1, 0, 0, scratch);
    test_guard_free(scratch);
    st_expr_free(x);
    return out;
}

static void test_meaning(void **state)
{
    (void)state;
    const double x = at_x, y = at_y;
    const struct {
        const char *text;
        double want;
    } cases[] = {
        {"x + y * 2", x + y * 2},
        {"(x + y) * 2", (x + y) * 2},
        {"x - y - 1", x - y - 1},
        {"8 / 4 / 2", 1},
        {"2 ** 3 ** 2", 512},
        {"-x ** 2", -x * x},
        {"(-x) ** 2", x * x},
        {"2 ** -1", 0.5},
        {"pow(x, 3)", x * x * x},
        {"- - x", x},
        {"+x", x},
        {"!x", 0},
        {"!0", 1},
        {"x < y", 0},
        {"x > y", 1},
        {"x >= 1.75 && y <= -0.5", 1},
        {"x == y || x != y", 1},
        {"x < 0 ? 1 : y < 0 ? 2 : 3", 2},
        {"1 + (x > 0) * 2", 3},
        {"1 + x > 2", 1},
        {"select(x > y, x, y)", x},
        {"min(x, y) + max(x, y)", x + y},
        {"clamp(x, 0, 1)", 1},
        {"fma(x, y, 2)", fma(x, y, 2)},
        {"leaky_relu(y, 0.1)", y * 0.1},
        {"copysign(x, y)", -x},
        {"abs(y)", 0.5},
        {"sign(y) + sign(x)", 0},
        {"rint(2.5) + rint(3.5)", 6},
        {"floor(y) + ceil(y) + trunc(x)", 0},
        {"rint(x)", 2},
        {"1e3 + 0.5e-1 + .5 + 5.", 1005.55},
        {"0x10", 16},
        {"pi", M_PI},
        {"inf - x", INFINITY},
        {"isnan(nan) + isinf(-inf)", 2},
        {"max(nan, x)", NAN},
        {"min(x, nan)", NAN},
        {"relu(nan)", NAN},
        {"nan < 1 || nan > 1 || nan == nan", 0},
        {"nan != nan", 1},
        {"nan ? 1 : 2", 1},
        {"clamp(nan, 0, 1)", NAN},
        {"sat_i8(300) + sat_i8(-300) + sat_u8(-1) + sat_u8(300)", 127 - 128 + 255},
        {"sat_i8(2.9) + sat_i8(-2.9)", 0},
        {"sat_i8(nan)", 0},
        {"sat_i4(100) + sat_u4(100)", 22},
        {"sat_i32(1e20)", 2147483647.0},
        {"sum(x) + mean(x) + prod(x) + max(x) + min(x) + absmax(y)", 5 * x + 0.5},
        {"var(x)", 0},
        {"any(x) + all(x) + argmax(x)", 2},
        {"t = x * 2; u = t + 1; out = t * u", x * 2 * (x * 2 + 1)},
        {"t = x; t = t + 1; out = t", x + 1},
        {"out = x; out = out * 2", x * 2},
        {"out = x;", x},
        {"  out=\n x\t+ 1 ;\n", x + 1},
        {"log(exp(x))", x},
        {"sqrt(4) + rsqrt(4)", 2.5},
        {"1 / sqrt(x)", 1 / sqrt(x)},
        {"x / 3", x / 3},
        {"x ** 0.5", sqrt(x)},
        {"gelu(0) + silu(0) + tanh(0) + erf(0) + relu(-1) + sigmoid(0)", 0.5},
        {"softplus(0)", log(2)},
        {"elu(-1)", expm1(-1)},
        {"hard_swish(1)", 4.0 / 6},
        {"exp2(3) + log2(8) + expm1(0) + log1p(0)", 11},
        {"atan(1) + erfc(0) + sin(0) + cos(0) + tan(0)", M_PI / 4 + 2},
    };
    for (int i = 0; i < TEST_COUNT(cases); i++) {
        test_problem("%s", cases[i].text);
        test_close(value(cases[i].text), cases[i].want, fabs(cases[i].want) * 4e-16, "%s", cases[i].text);
    }
}

/* folded in f32 where the program is f32 */
static void test_folding(void **state)
{
    (void)state;
    st_err e;
    st_expr *x;
    assert_int_equal(st_expr_parse(&e, "f", "0.1 + 0.2 * x * (1e30 * 1e30)",
                                   (const char *const[]){"x", "out", NULL}, false, &x),
                     STRATA_OK);
    bool infinite = false;
    for (int i = 0; i < x->nvalues; i++) infinite |= x->value[i].op == ST_OP_CONST && isinf(x->value[i].imm);
    assert_true(infinite);
    st_expr_free(x);
    /* equal values are one value */
    assert_int_equal(st_expr_parse(&e, "f", "out = exp(x - max(x)) / sum(exp(x - max(x)))",
                                   (const char *const[]){"x", "out", NULL}, false, &x),
                     STRATA_OK);
    int exps = 0;
    for (int i = 0; i < x->nvalues; i++) exps += x->value[i].op == ST_OP_EXP;
    assert_int_equal(exps, 1);
    assert_int_equal(st_expr_reductions(x), 2);
    st_expr_free(x);
}

static void test_variables(void **state)
{
    (void)state;
    st_err e;
    st_expr *x;
    assert_int_equal(st_expr_parse(&e, "f", "rm[n] = rm[n] * 0.9; out = silu(X @ W) * s[m] + bias[n]; t = 1",
                                   names, false, &x),
                     STRATA_OK);
    const st_expr_var *v;
    assert_int_equal(st_expr_vars(x, &v), 6);
    assert_int_equal(st_expr_find(x, "X"), 2);
    assert_int_equal(st_expr_find(x, "t"), -1);
    assert_true(v[0].output && v[0].input && v[0].index == ST_INDEX_N && v[0].column == 1);
    assert_true(v[1].output && !v[1].input && v[1].index == ST_INDEX_NONE);
    assert_true(v[2].matmul && v[3].matmul && !v[4].matmul);
    assert_true(v[4].index == ST_INDEX_M && v[5].index == ST_INDEX_N && v[5].input && !v[5].output);
    assert_true(st_expr_has_matmul(x));
    assert_true(st_expr_cost(x) > 0);
    st_expr_fail_at(&e, x, "strata_fused", v[5].column, 4, "bias has %d elements, %d expected", 3, 4);
    assert_string_equal(e.text, "strata_fused: column 49: bias has 3 elements, 4 expected\n"
                                "    rm[n] = rm[n] * 0.9; out = silu(X @ W) * s[m] + bias[n]; t = 1\n"
                                "                                                    ^~~~");
    st_expr_free(x);
}

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"out = sat_i8(rint(gelv((X @ W) * s + bias[n]) * 2))",
         "f: column 19: unknown name 'gelv'; did you mean 'gelu'?\n"
         "    out = sat_i8(rint(gelv((X @ W) * s + bias[n]) * 2))\n"
         "                      ^~~~"},
        {"out = tahn(x)", "column 7: unknown name 'tahn'; did you mean 'tanh'?"},
        {"out = bais[n] + 1", "unknown name 'bais'; did you mean 'bias'?"},
        {"out = volume", "unknown name 'volume'; the names are x, y, X, W, bias, s, out, rm"},
        {"out = convolve(x)", "unknown function 'convolve'; the functions are abs sqrt"},
        {"out = relu", "'relu' is a function; its arguments go in parentheses"},
        {"out = x +",
         "column 10: expected a number, a name, a function or '(', found the end of the program"},
        {"out = (x + 1", "expected ')', found the end of the program"},
        {"out = x 3", "column 9: expected an operator, ';' or the end, found '3'"},
        {"out = x ^ 2", "'^' is not an operator; a power is written x ** y or pow(x, y)"},
        {"out = x & y", "'&' alone is not an operator; did you mean '&&'?"},
        {"out = x % 2", "a remainder is written a - floor(a / b) * b"},
        {"out = 3a", "column 7: '3a' is not a number"},
        {"out = x $ 2", "the character '$' has no meaning here"},
        {"out = x \xc3\xa9", "the character '\xc3\xa9' has no meaning here"},
        {"out = clamp(x)", "clamp takes 3 arguments (x, lo, hi), 1 given"},
        {"out = max()", "max takes 2 arguments (elementwise) or 1 (a reduction), 0 given"},
        {"out = exp(x, y)", "exp takes 1 argument, 2 given"},
        {"out = sum(x, y)", "sum takes 1 argument, 2 given"},
        {"out = var()", "var takes 1 argument, 0 given"},
        {"out = x < y < 2", "comparisons do not chain"},
        {"out = bias[n] + bias[m]",
         "'bias[m]' was written 'bias[n]' before (column 7): one operand, one index"},
        {"out = bias[k]", "expected m (along rows) or n (along columns) in the brackets"},
        {"t = x; out = t[n]", "'t' is a temporary; only operands take [m] or [n]"},
        {"t = x", "the program stores nothing"},
        {"", "the program is empty"},
        {"x; out = y", "of several statements each needs a name"},
        {"exp = x; out = 1", "'exp' is the language's own name and cannot be assigned to"},
        {"x + 1 = y", "the left side of '=' must be one name"},
        {"out = (x + 1) @ W",
         "a factor of '@' is an operand by name, or an expression of operands in parentheses"},
        {"out = -x @ W", "with a sign needs parentheses: (-X) @ W, or -(X @ W)"},
        {"out = x @ -W", "column 11: a factor of '@' with a sign"},
        {"t = x; out = t @ W", "column 14: 't' is a temporary; a factor of '@' is an operand by name"},
        {"t = x + 1; out = x @ t", "column 22: 't' is a temporary"},
        {"out = x @ W @ W", "a factor of '@' is an operand by name"},
        {"out = 2 * x @ W", "a factor of '@' is an operand by name"},
        {"out = index(x)", "index takes a dim as a number"},
        {"out = x ? y", "expected ':' between the two values of '?', found the end"},
        {"out = x +\n  gelv(y)",
         "f: line 2, column 3: unknown name 'gelv'; did you mean 'gelu'?\n      gelv(y)\n      ^~~~"},
    };
    for (int i = 0; i < TEST_COUNT(cases); i++) {
        st_err e = {0};
        st_expr *x = (st_expr *)&e;
        test_problem("%s", cases[i].text);
        strata_status s = st_expr_parse(&e, "f", cases[i].text, names, false, &x);
        test_check(s == STRATA_ERROR_SYNTAX && e.status == s && x == NULL, "%d %s", (int)s, e.text);
        test_check(strstr(e.text, cases[i].want) != NULL, "got: %s\nwanted: %s", e.text, cases[i].want);
    }
    st_err e = {0};
    st_expr *x;
    assert_int_equal(st_expr_parse(&e, "f", NULL, names, false, &x), STRATA_ERROR_ARGUMENT);
    assert_int_equal(st_expr_parse(&e, "f", "x + 1", (const char *const[]){"x", NULL}, false, &x),
                     STRATA_ERROR_SYNTAX);
    assert_non_null(strstr(e.text, "no operand is called 'out'"));
}

/* programs at and beyond every limit are refused, never crash */
static void test_limits(void **state)
{
    (void)state;
    enum { N = 20000 };
    char *text = malloc(N * 16);
    st_err e;
    st_expr *x;
    static const struct {
        const char *before, *unit, *after, *want;
        int n;
    } cases[] = {
        {"out = x", " + (", "", "nested deeper", 3000},
        {"out = ", "(", "x", "nested deeper", 3000},
        {"out = ", "-", "x", "nested deeper", 3000},
        {"out = x", " ** x", "", "nested deeper", 3000},
        {"out = ", "x ? x : ", "x", "nested deeper", 3000},
        {"out = ", "max(", "x", "nested deeper", 3000},
        {"out = x", " + x", "", NULL, 150},
        {"out = x", " * x + 1", "", "different values", 3000},
        {"out = ", "sum(x * ", "x))))))))))))))))))))))", "nested deeper", 20},
    };
    for (int i = 0; i < TEST_COUNT(cases); i++) {
        strcpy(text, cases[i].before);
        char *p = text + strlen(text);
        for (int k = 0; k < cases[i].n; k++) p += sprintf(p, "%s", cases[i].unit);
        strcpy(p, cases[i].after);
        strata_status s = st_expr_parse(&e, "f", text, names, false, &x);
        test_problem("limit %d", i);
        test_check((s == STRATA_OK) == (cases[i].want == NULL), "%s", e.text);
        if (s) test_check(strstr(e.text, cases[i].want) != NULL, "%s", e.text);
        if (!s) st_expr_free(x);
    }
    free(text);
    /* random bytes and random tokens */
    static const char *const tokens[] = {"x", "y",   "out", "=",   "+", "-",     "*",   "/", "(", ")",
                                         ",", "exp", "max", "sum", "?", ":",     "1.5", ";", "[", "n",
                                         "]", "@",   "**",  "<",   "!", "index", "t",   " "};
    test_rng r = test_rng_make(5);
    for (int i = 0; i < test_rounds(20000); i++) {
        char t[200] = "";
        bool bytes = test_chance(&r, 0.3);
        int n = (int)test_int(&r, 1, 20);
        for (int k = 0; k < n; k++) {
            if (bytes)
                t[k] = (char)test_int(&r, 1, 255), t[k + 1] = 0;
            else
                strcat(t, tokens[test_int(&r, 0, TEST_COUNT(tokens) - 1)]);
        }
        test_problem("%s", t);
        strata_status s = st_expr_parse(&e, "f", t, names, false, &x);
        test_check(s == STRATA_OK || (s == STRATA_ERROR_SYNTAX && x == NULL), "status %d", (int)s);
        if (!s) st_expr_free(x);
    }
}

static void test_locale(void **state)
{
    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8"))
        return; /* none here writes 0,5 */
    test_close(value("0.5 + x"), 2.25, 0, "decimal point");
    setlocale(LC_NUMERIC, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_meaning),   cmocka_unit_test(test_folding),
                                       cmocka_unit_test(test_variables), cmocka_unit_test(test_errors),
                                       cmocka_unit_test(test_limits),    cmocka_unit_test(test_locale)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
