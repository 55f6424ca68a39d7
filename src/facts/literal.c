/* SPDX-License-Identifier: Apache-2.0 */
/* literal.c - which fixed strings every match of a POSIX extended pattern contains.
 *
 * A recursive reader of the pattern. Each part gives the finite set of strings that it can be (exact) when that is small, and the
 * best set found inside it (best: the set whose shortest member is longest). A sequence multiplies exact sets until one part is not
 * exact, then starts anew. The idea is that of the prefilters of RE2; only what the tables use is handled: . * + ? {} [] () | \x ^ $. */
#include "facts/facts.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_CLASS = 10, MAX_DEPTH = 12 };
typedef struct set {
    int n; /* -1: not finite, or too large */
    char s[ST_LITERALS][ST_LITERAL_SIZE];
} set;
typedef struct part {
    set exact, best;
} part;
typedef struct reader {
    const char *p;
    int depth;
    bool failed;
} reader;

static int shortest(const set *a)
{
    size_t n = ST_LITERAL_SIZE;
    for (int i = 0; i < a->n; i++) {
        size_t k = strlen(a->s[i]);
        if (k < n) n = k;
    }
    return a->n > 0 ? (int)n : 0;
}

static void set_one(set *a, const char *s)
{
    a->n = 1;
    strcpy(a->s[0], s);
}

static void keep_better(set *best, const set *a)
{
    if (a->n > 0 && shortest(a) > shortest(best)) *best = *a;
}

/* a := a x b; false (a untouched) when it does not fit */
static bool multiply(set *a, const set *b)
{
    if (a->n < 0 || b->n < 0 || a->n * b->n > ST_LITERALS) return false;
    set *r = malloc(sizeof *r);
    if (!r) return false;
    r->n = 0;
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < b->n; j++) {
            size_t x = strlen(a->s[i]), y = strlen(b->s[j]);
            if (x + y >= ST_LITERAL_SIZE) {
                free(r);
                return false;
            }
            memcpy(r->s[r->n], a->s[i], x);
            memcpy(r->s[r->n++] + x, b->s[j], y + 1);
        }
    *a = *r;
    free(r);
    return true;
}

static bool unite(set *a, const set *b)
{
    if (a->n < 0 || b->n < 0 || a->n + b->n > ST_LITERALS) {
        a->n = -1;
        return false;
    }
    for (int i = 0; i < b->n; i++) strcpy(a->s[a->n++], b->s[i]);
    return true;
}

static void read_class(reader *r, set *out)
{
    bool member[256] = {false};
    const unsigned char *p = (const unsigned char *)r->p + 1;
    bool negated = *p == '^', wide = negated;
    if (negated) p++;
    for (bool first = true; *p && (*p != ']' || first); first = false) {
        if (p[0] == '[' && (p[1] == ':' || p[1] == '.' || p[1] == '=')) {
            wide = true;
            for (p += 2; *p && !(p[-1] == ']'); p++) {}
            continue;
        }
        unsigned lo = *p++, hi = lo;
        if (p[0] == '-' && p[1] && p[1] != ']') {
            hi = p[1];
            p += 2;
        }
        for (unsigned c = lo; c <= hi; c++) member[c] = true;
    }
    r->failed |= *p != ']';
    r->p = (const char *)p + (*p == ']');
    out->n = 0;
    for (int c = 1; c < 256 && !wide; c++)
        if (member[c]) {
            if (out->n == MAX_CLASS) {
                wide = true;
                break;
            }
            out->s[out->n][0] = (char)c;
            out->s[out->n++][1] = 0;
        }
    if (wide) out->n = -1;
}

static void read_alternatives(reader *r, part *out);

/* one atom with its quantifier; best only counts when the atom must occur */
static void read_atom(reader *r, part *out)
{
    out->best.n = 0;
    out->exact.n = -1;
    char c = *r->p;
    if (c == '(') {
        r->p++;
        if (++r->depth > MAX_DEPTH) r->failed = true;
        if (!r->failed) read_alternatives(r, out);
        r->depth--;
        if (*r->p == ')')
            r->p++;
        else
            r->failed = true;
    } else if (c == '[')
        read_class(r, &out->exact);
    else if (c == '.') {
        r->p++;
        out->exact.n = -1;
    } else if (c == '^' ||
               c == '$') { /* anchors stand for nothing, but what they anchor is more than a substring */
        r->p++;
        out->exact.n = -1;
    } else {
        if (c == '\\' && r->p[1]) c = *++r->p;
        r->p++;
        char s[2] = {c, 0};
        set_one(&out->exact, s);
    }
    for (bool first = true; !r->failed && (*r->p == '?' || *r->p == '*' || *r->p == '+' || *r->p == '{');
         first = false) {
        char q = *r->p++;
        if (q == '{') {
            while (*r->p && *r->p != '}') r->p++;
            if (*r->p) r->p++;
        }
        set *empty = q == '?' && first && out->exact.n >= 0 ? calloc(1, sizeof *empty) : NULL;
        if (q == '+')
            keep_better(&out->best, &out->exact);
        else
            out->best.n = 0;
        if (empty) {
            set_one(empty, "");
            unite(&out->exact, empty);
            free(empty);
        } else
            out->exact.n = -1;
    }
}

static void read_sequence(reader *r, part *out)
{
    part *a = calloc(1, sizeof *a);
    set *run = malloc(sizeof *run);
    bool all_exact = true;
    out->best.n = 0;
    out->exact.n = -1;
    if (!a || !run) r->failed = true;
    if (run) set_one(run, "");
    while (!r->failed && *r->p && *r->p != '|' && *r->p != ')') {
        read_atom(r, a);
        keep_better(&out->best, &a->best);
        if (a->exact.n >= 0 && multiply(run, &a->exact)) continue;
        keep_better(&out->best, run);
        all_exact = false;
        if (a->exact.n > 0)
            *run = a->exact;
        else
            set_one(run, "");
    }
    if (!r->failed) {
        keep_better(&out->best, run);
        if (all_exact) out->exact = *run;
    }
    free(a);
    free(run);
}

static void read_alternatives(reader *r, part *out)
{
    part *a = calloc(1, sizeof *a);
    if (!a) {
        r->failed = true;
        return;
    }
    read_sequence(r, out);
    while (!r->failed && *r->p == '|') {
        r->p++;
        read_sequence(r, a);
        unite(&out->exact, &a->exact);
        if (out->best.n > 0 && a->best.n > 0)
            unite(&out->best, &a->best);
        else
            out->best.n = -1; /* one branch without a literal spoils the set */
    }
    if (out->best.n < 0) out->best.n = 0;
    free(a);
}

void st_literals_of(const char *pattern, st_literals *out)
{
    reader r = {pattern, 0, false};
    part *top = calloc(1, sizeof *top);
    out->n = 0;
    out->exact = false;
    if (!top) return;
    read_alternatives(&r, top);
    if (!r.failed && *r.p == 0) {
        const set *from = &top->best;
        if (top->exact.n > 0 && shortest(&top->exact) >= shortest(from)) {
            from = &top->exact;
            out->exact = true;
        }
        for (int i = 0; i < from->n; i++) strcpy(out->s[out->n++], from->s[i]);
        if (shortest(from) == 0) out->n = 0;
    }
    if (out->n == 0) out->exact = false;
    free(top);
}
