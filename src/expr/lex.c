/* SPDX-License-Identifier: Apache-2.0 */
/* lex.c - tokens and messages. Numbers are decimal or hexadecimal C literals without suffix, read in the C locale's form
 * whatever the process's locale is. */
#include "expr/lex.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool digit(char c) { return c >= '0' && c <= '9'; }

/* strtod obeys the locale's decimal point; the language does not. The literal is copied with the locale's own point in it. */
static double number(const char *s, size_t len)
{
    char buf[96], point[8];
    snprintf(point, sizeof point, "%.1f", 0.5); /* "0.5" or "0,5" */
    if (len >= sizeof buf) return NAN;
    for (size_t i = 0; i < len; i++) buf[i] = s[i] == '.' ? point[1] : s[i];
    buf[len] = 0;
    return strtod(buf, NULL);
}

static size_t number_length(const char *s)
{
    size_t i = 0;
    if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X') && isxdigit((unsigned char)s[2])) {
        for (i = 2; isxdigit((unsigned char)s[i]); i++) {}
        return i;
    }
    while (digit(s[i])) i++;
    if (s[i] == '.') i++;
    while (digit(s[i])) i++;
    if (s[i] == 'e' || s[i] == 'E') {
        size_t j = i + 1;
        if (s[j] == '+' || s[j] == '-') j++;
        if (digit(s[j])) {
            while (digit(s[j])) j++;
            i = j;
        }
    }
    return i;
}

st_token st_lex(const char *text, size_t *pos)
{
    static const struct {
        char text[3];
        int kind;
    } pairs[] = {{"**", ST_TOK_POW}, {"==", ST_TOK_EQ},  {"!=", ST_TOK_NE}, {"<=", ST_TOK_LE},
                 {">=", ST_TOK_GE},  {"&&", ST_TOK_AND}, {"||", ST_TOK_OR}};
    size_t p = *pos;
    while (text[p] == ' ' || text[p] == '\t' || text[p] == '\n' || text[p] == '\r') p++;
    st_token t = {ST_TOK_END, (int)p + 1, 1, 0};
    const char *s = text + p;
    if (!*s) {
        *pos = p;
        return t;
    }
    if (digit(*s) || (*s == '.' && digit(s[1]))) {
        t.kind = ST_TOK_NUMBER;
        t.length = (int)number_length(s);
        t.number = number(s, (size_t)t.length);
        if (letter(s[t.length]) || t.length >= 96) t.kind = ST_TOK_BAD;
        while (letter(s[t.length]) || digit(s[t.length])) t.length++;
    } else if (letter(*s)) {
        t.kind = ST_TOK_NAME;
        while (letter(s[t.length]) || digit(s[t.length])) t.length++;
    } else {
        t.kind = strchr("+-*/()<>!?:,;=[]@", *s) ? *s : ST_TOK_BAD;
        for (int i = 0; i < ST_COUNT(pairs); i++)
            if (s[0] == pairs[i].text[0] && s[1] == pairs[i].text[1]) t.kind = pairs[i].kind, t.length = 2;
        /* a character of several bytes is shown whole */
        if (t.kind == ST_TOK_BAD)
            while (((unsigned char)s[t.length] & 0xc0) == 0x80) t.length++;
    }
    *pos = p + (size_t)t.length;
    return t;
}

strata_status st_expr_vfail_text(st_err *e, const char *text, const char *who, int column, int length,
                                 const char *fmt, va_list ap)
{
    enum { WIDTH = 100, BEFORE = 60 };
    char what[460], line[WIDTH + 8], mark[WIDTH + 8], where[48];
    vsnprintf(what, sizeof what, fmt, ap);
    int at = column > 0 ? column - 1 : 0, total = (int)strlen(text);
    if (at > total) at = total;
    int begin = at, end = at, number = 1;
    while (begin > 0 && text[begin - 1] != '\n') begin--;
    while (text[end] && text[end] != '\n') end++;
    for (int i = 0; i < begin; i++) number += text[i] == '\n';
    if (number > 1 || text[end] == '\n')
        snprintf(where, sizeof where, "line %d, column %d", number, at - begin + 1);
    else
        snprintf(where, sizeof where, "column %d", at + 1);
    int from = at - begin > BEFORE + 10 ? at - BEFORE : begin, n = 0;
    const char *lead = from > begin ? "..." : "";
    if (end - from > WIDTH - 4) end = from + WIDTH - 4;
    for (int i = from; i < end; i++) line[n++] = text[i] == '\t' || text[i] == '\r' ? ' ' : text[i];
    line[n] = 0;
    int indent = at - from, m = 0;
    while (m < indent && m < WIDTH) mark[m++] = ' ';
    mark[m++] = '^';
    for (int i = 1; i < length && m < n && m < WIDTH; i++) mark[m++] = '~';
    mark[m] = 0;
    return st_fail(e, STRATA_ERROR_SYNTAX, "%s: %s: %s\n    %s%s\n    %*s%s", who, where, what, lead, line,
                   (int)strlen(lead), "", mark);
}

void st_expr_bad_words(char *words, size_t n, const char *s, st_token t)
{
    if (s[0] == '&' || s[0] == '|')
        snprintf(words, n, "'%c' alone is not an operator; did you mean '%c%c'?", s[0], s[0], s[0]);
    else if (s[0] == '^')
        snprintf(words, n, "'^' is not an operator; a power is written x ** y or pow(x, y)");
    else if (s[0] == '%')
        snprintf(words, n, "'%%' is not an operator; a remainder is written a - floor(a / b) * b");
    else if (digit(s[0]) || s[0] == '.')
        snprintf(words, n, "'%.*s' is not a number", t.length > 40 ? 40 : t.length, s);
    else
        snprintf(words, n, "the character '%.*s' has no meaning here", t.length, s);
}

void st_expr_factor_words(char *words, size_t n, const char *s, st_token t, bool temporary)
{
    if (t.kind == '-' || t.kind == '+' || t.kind == '!')
        snprintf(words, n,
                 "a factor of '@' with a sign needs parentheses: (%cX) @ W, or %c(X @ W) of the product", *s,
                 *s);
    else if (temporary)
        snprintf(
            words, n,
            "'%.*s' is a temporary; a factor of '@' is an operand by name, or an expression of operands in "
            "parentheses: write there what it holds",
            t.length, s);
    else
        snprintf(words, n,
                 "a factor of '@' is an operand by name, or an expression of operands in parentheses, as in "
                 "X @ W and "
                 "X @ (W * s[n])");
}

/* Damerau's distance (insert, delete, replace, swap neighbours) on short names */
static int distance(const char *a, int n, const char *b, int m)
{
    int d[3][ST_EXPR_NAME + 1];
    if (n > ST_EXPR_NAME || m > ST_EXPR_NAME) return 99;
    for (int j = 0; j <= m; j++) d[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = d[i % 3], *up = d[(i + 2) % 3], *up2 = d[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = up[j - 1] + (a[i - 1] != b[j - 1]);
            if (up[j] + 1 < best) best = up[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && up2[j - 2] + 1 < best)
                best = up2[j - 2] + 1;
            now[j] = best;
        }
    }
    return d[n % 3][m];
}

const char *st_expr_nearest(const char *name, size_t len, const char *const *names, int count)
{
    int most = len <= 4 ? 1 : len <= 7 ? 2 : 3, best = 2 * most + 2;
    const char *found = NULL;
    for (int i = 0; i < count; i++) {
        int m = (int)strlen(names[i]), d = distance(name, (int)len, names[i], m);
        int rank =
            2 * d + (m != (int)len); /* of two equally near, the one of the same length: letters swapped */
        if (d <= most && d < (int)len && rank < best) best = rank, found = names[i];
    }
    return found;
}

strata_status st_expr_fail_at(st_err *e, const st_expr *x, const char *who, int column, int length,
                              const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    strata_status s = st_expr_vfail_text(e, x->text, who, column, length, fmt, ap);
    va_end(ap);
    return s;
}
