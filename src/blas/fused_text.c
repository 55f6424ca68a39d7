/* SPDX-License-Identifier: Apache-2.0 */
/* fused_text.c - takes a program with products apart, by its letters: see fused.h.
 *
 * A factor is a name, a call "f(...)", an expression in parentheses or a name with an index in brackets beside '@'. Only names reach the parser as
 * factors; the others are programs of their own, whose indices are taken out of the text and kept as places. */
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
    if (end > text && (end[-1] == ')' || end[-1] == ']')) {
        const char shut = end[-1], open = shut == ')' ? '(' : '[';
        int depth = 0;
        do {
            end--;
            depth += *end == shut ? 1 : *end == open ? -1 : 0;
        } while (depth && end > text);
        if (depth) return false;
        if (shut == ']')
            while (end > text && blank(end[-1])) end--;
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
    if (*skip(begin) == '(' || (*skip(begin) == '[' && begin > *from)) {
        begin = skip(begin);
        const char open = *begin, shut = open == '(' ? ')' : ']';
        int depth = 0;
        do {
            depth += *begin == open ? 1 : *begin == shut ? -1 : 0;
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

static strata_status bad_index(st_err *e, const char *who, const char *program, const char *at, size_t len,
                               const char *fmt, ...) ST_PRINTF(6, 7);
static strata_status bad_index(st_err *e, const char *who, const char *program, const char *at, size_t len,
                               const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const strata_status s =
        st_expr_vfail_text(e, program, who, (int)(at - program) + 1, len ? (int)len : 1, fmt, ap);
    va_end(ap);
    return s;
}

typedef struct reader {
    st_err *e;
    const char *who, *program;
    const strata_operand *o;
    int n;
    const char *from, *end; /* the index between its brackets */
    bool right;
} reader;

static strata_status unknown_index(const reader *r)
{
    return bad_index(r->e, r->who, r->program, r->from, (size_t)(r->end - r->from),
                     r->right
                         ? "this index of a factor right of '@' is none of [k], [n], [k/g], [n/g], [k, n], "
                           "[k/g, n], [k, n/g], [k/g, n/g] (g a whole number of at least 2)"
                         : "this index of a factor left of '@' is none of [m], [k], [m/g], [k/g], [m, k], "
                           "[m, k/g], [m/g, k], [m/g, k/g], [rows[m], k] (g a whole number of at least 2)");
}

/* One part of an index: the letter (0: none of the known), behind '/' the group. */
static strata_status read_part(const reader *r, const char **at, char *letter, int64_t *group, int *list)
{
    const char *p = skip(*at), *name = p;
    while (p < r->end && name_char(*p)) p++;
    const size_t len = (size_t)(p - name);
    *letter = 0, *group = 0, *list = -1;
    p = skip(p);
    if (p < r->end && *p == '[') {
        if ((*list = find(name, len, r->o, r->n)) < 0)
            return bad_index(r->e, r->who, r->program, name, len,
                             "unknown name '%.*s': it should be the operand "
                             "whose elements pick rows",
                             (int)len, name);
        p = skip(p + 1);
        if (*p != 'm' || r->right || *skip(p + 1) != ']') return unknown_index(r);
        *letter = 'm';
        *at = skip(skip(p + 1) + 1);
        return STRATA_OK;
    }
    if (len == 1) *letter = *name;
    if (p < r->end && *p == '/') {
        char *behind;
        p = skip(p + 1);
        if (*p < '0' || *p > '9') return unknown_index(r);
        const long long g = strtoll(p, &behind, 10);
        if (g < 2 || behind > r->end) return unknown_index(r);
        *group = g;
        p = skip(behind);
    }
    *at = p;
    return STRATA_OK;
}

static strata_status one_group(const reader *r, int64_t *all, int64_t g)
{
    if (g && *all && *all != g)
        return bad_index(r->e, r->who, r->program, r->from, (size_t)(r->end - r->from),
                         "one factor has groups of %lld and of %lld along one dim; one size is supported",
                         (long long)*all, (long long)g);
    if (g) *all = g;
    return STRATA_OK;
}

/* "[...]" behind operand o of a factor: its place. *at stands on '[' and is moved behind ']'. */
static strata_status read_index(reader *r, int o, const char **at, const char *to, st_fused_loader *l)
{
    const char row = r->right ? 'k' : 'm', col = r->right ? 'n' : 'k';
    char letter[2];
    int64_t group[2];
    int list[2] = {-1, -1}, parts = 0, depth = 0;
    const char *p = *at;
    do depth += *p == '[' ? 1 : *p == ']' ? -1 : 0;
    while (depth && ++p < to);
    r->from = skip(*at + 1);
    r->end = p;
    if (depth) return bad_index(r->e, r->who, r->program, *at, 1, "this bracket is never closed");
    *at = p + 1;
    st_fused_place x = {0};
    for (p = r->from; parts < 2; parts++) {
        const strata_status s = read_part(r, &p, &letter[parts], &group[parts], &list[parts]);
        if (s) return s;
        if (p >= r->end || *p != ',') {
            parts++;
            break;
        }
        p++;
    }
    if (p != r->end || list[1] >= 0 || (parts == 1 && list[0] >= 0)) return unknown_index(r);
    if (parts == 2) {
        if (letter[0] != row || letter[1] != col) return unknown_index(r);
        x.row_group = group[0], x.col_group = group[1];
        x.picks = list[0] + 1;
    } else {
        if (letter[0] != row && letter[0] != col) return unknown_index(r);
        x.along = letter[0] == row ? 1 : 2;
        *(x.along == 1 ? &x.row_group : &x.col_group) = group[0];
    }
    if (l->used >> o & 1 && memcmp(&l->place[o], &x, sizeof x))
        return bad_index(r->e, r->who, r->program, r->from, (size_t)(r->end - r->from),
                         "%s has another index elsewhere in this factor", r->o[o].name);
    l->place[o] = x;
    if (x.picks) {
        l->picks = true;
        l->lists |= 1u << (x.picks - 1);
    }
    const strata_status s = one_group(r, &l->row_group, x.row_group);
    return s ? s : one_group(r, &l->col_group, x.col_group);
}

/* The factor's text without indices, and the places that they say. */
static strata_status read_loader(reader *r, const char *from, const char *to, st_fused_loader *l, writer *w)
{
    while (from < to) {
        size_t len = 0;
        while (from + len < to && name_char(from[len])) len++;
        if (!len) {
            put(w, from++, 1);
            continue;
        }
        const int i = find(from, len, r->o, r->n);
        put(w, from, len);
        from += len;
        if (i < 0) continue;
        const char *next = skip(from);
        if (next < to && *next == '[') {
            const strata_status s = read_index(r, i, &next, to, l);
            if (s) return s;
            from = next;
        } else if (l->used >> i & 1 && memcmp(&l->place[i], &(st_fused_place){0}, sizeof(st_fused_place))) {
            return bad_index(r->e, r->who, r->program, from - len, len,
                             "%s has an index elsewhere in this factor", r->o[i].name);
        }
        l->used |= 1u << i;
    }
    return STRATA_OK;
}

static bool same_loader(const st_fused_loader *a, const st_fused_loader *b)
{
    return a->right == b->right && a->used == b->used &&
           !strcmp(strchr(a->text, '='), strchr(b->text, '=')) &&
           !memcmp(a->place, b->place, sizeof a->place);
}

static strata_status add_loader(st_err *e, const char *who, const char *program, const char *from,
                                const char *to, bool right, const strata_operand *o, int n, st_fused_text *t,
                                int *which)
{
    st_fused_loader l = {.right = right};
    const size_t room = 2 * (size_t)(to - from) + 16;
    if (memchr(from, '@', (size_t)(to - from)))
        return st_fail(e, STRATA_ERROR_UNSUPPORTED,
                       "%s: the factor \"%.*s\" holds a product itself; store the inner product first", who,
                       (int)st_min64(to - from, 80), from);
    if (!(l.text = malloc(room))) return st_fail(e, STRATA_ERROR_MEMORY, "%s: no memory for a program", who);
    const int64_t length = to - from;
    from = program + (strlen(program) - strlen(from)); /* the same letters as they were given */
    to = from + length;
    writer w = {l.text, l.text + room};
    reader r = {.e = e, .who = who, .program = program, .o = o, .n = n, .right = right};
    char head[16];
    put(&w, head, (size_t)snprintf(head, sizeof head, "_f%d = ", t->loaders));
    strata_status s = read_loader(&r, from, to, &l, &w);
    for (int i = 0; i < t->loaders && !s; i++)
        if (same_loader(&t->loader[i], &l)) {
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
        /* left first: what stands behind a factor is then as it was written, and messages can find its place */
        if (!is_name(lf, lt)) {
            if ((s = add_loader(e, who, program, lf, lt, false, o, n, t, &x))) break;
            at = t->program + replace(t, lf, lt, x);
            at = strchr(at, '@');
            left_factor(t->program, at, &lf, &lt);
            right_factor(at + 1, &rf, &rt);
        }
        if (!is_name(rf, rt)) {
            if ((s = add_loader(e, who, program, rf, rt, true, o, n, t, &w))) break;
            replace(t, rf, rt, w);
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
