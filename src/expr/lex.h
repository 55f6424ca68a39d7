/* SPDX-License-Identifier: Apache-2.0 */
/* lex.h - tokens of the expression language, and messages that point at them. */
#ifndef ST_EXPR_LEX_H
#define ST_EXPR_LEX_H
#include "expr/ir.h"

/* A token is a single character's code, or one of these. */
enum {
    ST_TOK_END = 0,
    ST_TOK_NUMBER = 256,
    ST_TOK_NAME,
    ST_TOK_POW,
    ST_TOK_EQ,
    ST_TOK_NE,
    ST_TOK_LE,
    ST_TOK_GE,
    ST_TOK_AND,
    ST_TOK_OR,
    ST_TOK_BAD
};

typedef struct st_token {
    int kind, column, length; /* column is 1-based in the whole text */
    double number;
} st_token;

st_token st_lex(const char *text, size_t *pos);
/* What is wrong with a token that is none (ST_TOK_BAD) and begins at s. */
void st_expr_bad_words(char *words, size_t n, const char *s, st_token t);
/* What is wrong with a side of '@' that begins at s with token t. Expressions in parentheses and calls have names before a program comes to the
 * parser, where products are taken at all. */
void st_expr_factor_words(char *words, size_t n, const char *s, st_token t, bool temporary);
/* The nearest of `count` names by edit distance, NULL when none is near enough to be a slip of the fingers. */
const char *st_expr_nearest(const char *name, size_t len, const char *const *names, int count);
#endif
