/* SPDX-License-Identifier: Apache-2.0 */
/* code.c - plan codes: a choice as text.
 *
 *     s1.KKKKKKKKKKK.OOOO[.A]...CCC
 *
 * K: 64 bits, hash of the kernel's id; O: 24 bits, hash of its order of summation; A: the candidate's arg[] in base 36, up to the last that is
 * not 0; C: 18 bits, hash of everything before, so that a mistyped code is seen. Hashes are in base 64 (A-Z a-z 0-9 - _). Nothing of the
 * problem is in it. */
#include "plan/plan.h"
#include <stdio.h>
#include <string.h>

static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
enum { KERNEL_DIGITS = 11, ORDER_DIGITS = 4, CHECK_DIGITS = 3, HEAD = 3 + KERNEL_DIGITS + 1 + ORDER_DIGITS };

static void put_bits(char *to, uint64_t v, int digits)
{
    for (int i = digits - 1; i >= 0; i--, v >>= 6) to[i] = digit[v & 63];
}

static bool get_bits(const char *from, int digits, uint64_t *v)
{
    *v = 0;
    for (int i = 0; i < digits; i++) {
        const char *d = from[i] ? strchr(digit, from[i]) : NULL;
        if (!d || *v >> 58) return false;
        *v = *v << 6 | (uint64_t)(d - digit);
    }
    return true;
}

uint64_t st_code_kernel(const char *id) { return st_hash(id, strlen(id), 1); }

uint32_t st_code_order(const st_candidate *c)
{
    const char *words = c->order ? c->order : "";
    return (uint32_t)st_hash(words, strlen(words), (uint64_t)c->order_arg) & 0xffffff;
}

static void check_digits(const char *code, size_t n, char to[CHECK_DIGITS])
{
    put_bits(to, st_hash(code, n, 2) & 0x3ffff, CHECK_DIGITS);
}

/* arg in base 36; false when it is negative or there is no room for it and the check */
static bool put_arg(char *code, size_t *n, int64_t arg)
{
    char back[16];
    int k = 0;
    if (arg < 0) return false;
    do back[k++] = "0123456789abcdefghijklmnopqrstuvwxyz"[arg % 36];
    while ((arg /= 36) && k < (int)sizeof back);
    if (arg || *n + 1 + (size_t)k + CHECK_DIGITS + 2 > STRATA_PLAN_CODE) return false;
    code[(*n)++] = '.';
    while (k) code[(*n)++] = back[--k];
    return true;
}

void st_code_write(const st_candidate *c, char code[STRATA_PLAN_CODE])
{
    size_t n = HEAD;
    memcpy(code, "s1.", 3);
    put_bits(code + 3, st_code_kernel(c->listed[0] ? c->listed : c->kernel), KERNEL_DIGITS);
    code[3 + KERNEL_DIGITS] = '.';
    put_bits(code + 4 + KERNEL_DIGITS, st_code_order(c), ORDER_DIGITS);
    int last = ST_COUNT(c->arg);
    while (last && !c->arg[last - 1]) last--;
    for (int i = 0; i < last; i++)
        if (!put_arg(code, &n, c->arg[i])) { /* a provider with numbers that codes do not hold: no code */
            code[0] = 0;
            return;
        }
    code[n++] = '.';
    check_digits(code, n, code + n);
    code[n + CHECK_DIGITS] = 0;
}

bool st_code_read(const char *text, st_code *code, const char **why)
{
    const size_t n = strnlen(text, STRATA_PLAN_CODE + 1);
    char check[CHECK_DIGITS];
    uint64_t order;
    memset(code, 0, sizeof *code);
    *why = "it is not one that strata_plan_code gave";
    if (n < HEAD + 1 + CHECK_DIGITS || n >= STRATA_PLAN_CODE || text[0] != 's' || text[2] != '.')
        return false;
    *why = "it is of another version of plan codes";
    if (text[1] != '1') return false;
    *why = "it is damaged (its last letters do not fit the rest)";
    check_digits(text, n - CHECK_DIGITS, check);
    if (memcmp(text + n - CHECK_DIGITS, check, CHECK_DIGITS) != 0 || text[n - CHECK_DIGITS - 1] != '.' ||
        !get_bits(text + 3, KERNEL_DIGITS, &code->kernel) || text[3 + KERNEL_DIGITS] != '.' ||
        !get_bits(text + 4 + KERNEL_DIGITS, ORDER_DIGITS, &order))
        return false;
    code->order = (uint32_t)order;
    const char *p = text + HEAD, *end = text + n - CHECK_DIGITS - 1;
    for (int i = 0; p < end; i++) {
        if (i == ST_COUNT(code->arg) || *p++ != '.' || p == end) return false;
        for (; p < end && *p != '.'; p++) {
            const int d = *p >= '0' && *p <= '9' ? *p - '0' : *p >= 'a' && *p <= 'z' ? *p - 'a' + 10 : -1;
            if (d < 0 || code->arg[i] > INT64_MAX / 72) return false;
            code->arg[i] = code->arg[i] * 36 + d;
        }
    }
    return true;
}
