/* SPDX-License-Identifier: Apache-2.0 */
/* fused_text.c - takes a program with products apart, by its letters: see fused.h.
 *
 * A factor is a name, a call "f(...)" or an expression in parentheses beside '@'. Only names reach the parser as factors; the others are
 * programs of their own, whose letters k are turned into m (right of '@') or n (left of it). */
#include "blas/fused.h"
#include "tile/tile.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
static bool blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
static bool is_token(const char *at, size_t n, const char *name)
{
    return strlen(name) == n && !memcmp(at, name, n);
}
static const char *skip(const char *p)
{
    while (blank(*p)) p++;
    return p;
}

static int find(const char *at, size_t len, const strata_operand *o, int n)
{
    for (int i = 0; i < n; i++)
        if (is_token(at, len, o[i].name)) return i;
    return -1;
}

/* The factor that ends before `end` (exclusive) or begins at `begin`: its first and one-past-last letter; false for unbalanced parentheses. */
static bool left_factor(const char *text, const char *end, const char **from, const char **to)
{
    while (end > text && blank(end[-1])) end--;
    *to = end;
    if (end > text && end[-1] == ')') {
        int depth = 0;
        do {
            end--;
            depth += *end == ')' ? 1 : *end == '(' ? -1 : 0;
        } while (depth && end > text);
        if (depth) return false;
    }
    while (end > text && name_char(end[-1])) end--;
    *from = end;
    return *from < *to;
}
static bool right_factor(const char *begin, const char **from, const char **to)
{
    begin = skip(begin);
    *from = begin;
    while (name_char(*begin)) begin++;
    if (*skip(begin) == '(') {
        begin = skip(begin);
        int depth = 0;
        do {
            depth += *begin == '(' ? 1 : *begin == ')' ? -1 : 0;
        } while (*begin++ && depth);
        if (depth) return false;
    }
    *to = begin;
    return *from < *to;
}
static bool is_name(const char *from, const char *to)
{
    for (const char *p = from; p < to; p++)
        if (!name_char(*p)) return false;
    return true;
}

/* ---- loaders ---------------------------------------------------------------------------------------------------------------- */

typedef struct writer {
    char *s, *end;
} writer;
static void put(writer *w, const char *s, size_t n)
{
    if (w->s + n < w->end) memcpy(w->s, s, n);
    w->s += n;
    if (w->s < w->end) *w->s = 0;
}

static strata_status bad_index(st_err *e, const char *who, const char *name, size_t len, bool right)
{
    return st_fail(
        e, STRATA_ERROR_SYNTAX,
        "%s: the index of %.*s in a factor %s of '@' is none of %s (g a whole number of at least 2)", who,
        (int)len, name, right ? "right" : "left", right ? "[k], [n] and [k/g, n]" : "[m], [k] and [m, k/g]");
}

/* "[...]" behind the operand: what it means for the loader; writes the program's own index. *at stands on '[' and is moved behind ']'. */
static strata_status put_index(st_err *e, const char *who, const char *name, size_t len, int operand,
                               const char **at, st_fused_loader *l, writer *w)
{
    char in[48];
    size_t k = 0;
    const char *p = *at + 1;
    for (; *p && *p != ']'; p++)
        if (!blank(*p) && k + 1 < sizeof in) in[k++] = *p;
    in[k] = 0;
    if (*p != ']') return bad_index(e, who, name, len, l->right);
    *at = p + 1;
    long long g = 0;
    int read = 0;
    const bool pair =
        l->right ? sscanf(in, "k/%lld,n%n", &g, &read) == 1 : sscanf(in, "m,k/%lld%n", &g, &read) == 1;
    if (pair && read == (int)k && g >= 2) {
        if (operand < 0) return bad_index(e, who, name, len, l->right);
        if (l->group && l->group != g)
            return st_fail(e, STRATA_ERROR_UNSUPPORTED,
                           "%s: one factor has groups of %lld and of %lld along k; one size is supported",
                           who, (long long)l->group, g);
        l->group = g;
        l->grouped |= 1u << operand;
        return STRATA_OK;
    }
    if (!strcmp(in, "k")) {
        if (operand >= 0) l->along_k |= 1u << operand;
        put(w, l->right ? "[m]" : "[n]", 3);
    } else if (!strcmp(in, l->right ? "n" : "m")) {
        put(w, l->right ? "[n]" : "[m]", 3);
    } else {
        return bad_index(e, who, name, len, l->right);
    }
    return STRATA_OK;
}

static strata_status add_loader(st_err *e, const char *who, const char *from, const char *to, bool right,
                                const strata_operand *o, int n, st_fused_text *t, int *which)
{
    st_fused_loader l = {.right = right};
    const size_t room = 2 * (size_t)(to - from) + 16;
    if (memchr(from, '@', (size_t)(to - from)))
        return st_fail(e, STRATA_ERROR_UNSUPPORTED,
                       "%s: the factor \"%.*s\" holds a product itself; store the inner product first", who,
                       (int)(to - from), from);
    if (!(l.text = malloc(room))) return st_fail(e, STRATA_ERROR_MEMORY, "%s: no memory for a program", who);
    writer w = {l.text, l.text + room};
    char head[16];
    put(&w, head, (size_t)snprintf(head, sizeof head, "_f%d = ", t->loaders));
    strata_status s = STRATA_OK;
    while (from < to && !s) {
        size_t len = 0;
        while (from + len < to && name_char(from[len])) len++;
        if (!len) {
            put(&w, from++, 1);
            continue;
        }
        const int i = find(from, len, o, n);
        if (i >= 0) l.used |= 1u << i;
        put(&w, from, len);
        const char *next = skip(from + len), *name = from;
        from += len;
        if (i >= 0 && next < to && *next == '[') {
            s = put_index(e, who, name, len, i, &next, &l, &w);
            from = next;
        }
    }
    for (int i = 0; i < t->loaders && !s; i++)
        if (t->loader[i].right == right && !strcmp(strchr(t->loader[i].text, '='), strchr(l.text, '=')) &&
            t->loader[i].group == l.group && t->loader[i].grouped == l.grouped) {
            free(l.text);
            *which = i;
            return STRATA_OK;
        }
    if (!s && t->loaders == ST_FUSED_LOADERS)
        s = st_fail(e, STRATA_ERROR_UNSUPPORTED, "%s: more than %d factors are expressions", who,
                    ST_FUSED_LOADERS);
    if (s) {
        free(l.text);
        return s;
    }
    *which = t->loaders;
    t->loader[t->loaders++] = l;
    return STRATA_OK;
}

/* Replaces the letters from..to of t->program by the name of loader i; gives the place behind it. */
static size_t replace(st_fused_text *t, const char *from, const char *to, int i)
{
    char name[8];
    const size_t at = (size_t)(from - t->program), gone = (size_t)(to - from),
                 len = (size_t)snprintf(name, sizeof name, "_f%d", i), rest = strlen(to) + 1;
    /* a factor that is no name has at least three letters: "f()" or "(x)" */
    memmove(t->program + at + len, t->program + at + gone, rest);
    memcpy(t->program + at, name, len);
    return at + len;
}

/* ---- products ---------------------------------------------------------------------------------------------------------------- */

static int factor(const char *from, size_t len, const strata_operand *o, int n, int loaders)
{
    if (len == 3 && from[0] == '_' && from[1] == 'f' && from[2] >= '0' && from[2] < '0' + loaders)
        return n + from[2] - '0';
    return find(from, len, o, n);
}

static strata_status add_product(st_err *e, const char *who, int x, int w, st_fused_text *t)
{
    for (int i = 0; i < t->products; i++)
        if (t->x[i] == x && t->w[i] == w) return STRATA_OK;
    if (t->products == ST_FUSED_PRODUCTS)
        return st_fail(e, STRATA_ERROR_UNSUPPORTED, "%s: more than %d different products in one program", who,
                       ST_FUSED_PRODUCTS);
    t->x[t->products] = x;
    t->w[t->products++] = w;
    return STRATA_OK;
}

strata_status st_fused_split(st_err *e, const char *who, const char *program, const strata_operand *o, int n,
                             st_fused_text *t)
{
    memset(t, 0, sizeof *t);
    strata_status s = STRATA_OK;
    if (!(t->program = strdup(program)))
        return st_fail(e, STRATA_ERROR_MEMORY, "%s: no memory for a program", who);
    for (const char *at = t->program; !s && (at = strchr(at, '@')); at++) {
        const char *lf, *lt, *rf, *rt;
        int x = -1, w = -1;
        if (!left_factor(t->program, at, &lf, &lt) || !right_factor(at + 1, &rf, &rt))
            continue; /* the parser's */
        if (!is_name(rf, rt)) {
            if ((s = add_loader(e, who, rf, rt, true, o, n, t, &w))) break;
            replace(t, rf, rt, w);
            right_factor(at + 1, &rf, &rt);
        }
        if (!is_name(lf, lt)) {
            if ((s = add_loader(e, who, lf, lt, false, o, n, t, &x))) break;
            at = t->program + replace(t, lf, lt, x);
            at = strchr(at, '@');
            left_factor(t->program, at, &lf, &lt);
            right_factor(at + 1, &rf, &rt);
        }
        x = factor(lf, (size_t)(lt - lf), o, n, t->loaders);
        w = factor(rf, (size_t)(rt - rf), o, n, t->loaders);
        if (x >= 0 && w >= 0) s = add_product(e, who, x, w, t);
    }
    if (!s) { /* who stands outside? the program with products replaced has only these */
        char *rest = st_fused_rewrite(t, o, n, -1, NULL);
        if (!rest) s = st_fail(e, STRATA_ERROR_MEMORY, "%s: no memory for a program", who);
        for (int i = 0; rest && i < n; i++)
            if (st_tile_epilogue_use(rest, o[i].name).used) t->outside |= 1u << i;
        free(rest);
    }
    if (s) st_fused_text_free(t);
    return s;
}

void st_fused_text_free(st_fused_text *t)
{
    for (int i = 0; i < t->loaders; i++) free(t->loader[i].text);
    free(t->program);
    memset(t, 0, sizeof *t);
}

char *st_fused_rewrite(const st_fused_text *t, const strata_operand *o, int n, int main, const char *out)
{
    const size_t room = 3 * strlen(t->program) + 1;
    char *text = malloc(room), name[16];
    writer w = {text, text ? text + room : NULL};
    if (!text) return NULL;
    text[0] = 0;
    for (const char *from = t->program; *from;) {
        size_t len = 0;
        while (name_char(from[len])) len++;
        if (!len) {
            put(&w, from++, 1);
            continue;
        }
        const char *next = skip(from + len), *rf, *rt;
        int x = -1, y = -1, p = 0;
        if (*next == '@' && right_factor(next + 1, &rf, &rt)) {
            x = factor(from, len, o, n, t->loaders);
            y = factor(rf, (size_t)(rt - rf), o, n, t->loaders);
        }
        for (; x >= 0 && y >= 0 && p < t->products; p++)
            if (t->x[p] == x && t->w[p] == y) break;
        if (x >= 0 && y >= 0 && p < t->products) {
            const int k =
                p == main ? snprintf(name, sizeof name, "acc") : snprintf(name, sizeof name, "_p%d", p);
            put(&w, name, (size_t)k);
            from = rt;
        } else if (main >= 0 && is_token(from, len, out)) {
            put(&w, "out", 3);
            from += len;
        } else {
            put(&w, from, len);
            from += len;
        }
    }
    return text;
}
