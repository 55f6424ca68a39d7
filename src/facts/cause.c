/* SPDX-License-Identifier: Apache-2.0 */
/* cause.c - one row of the embedded table of errors, found without parsing all of it. */
#include "facts/cause.h"
#include "facts/embedded.h"
#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct span {
    const char *p;
    size_t n;
} span;

/* the cell of `row` (a line) under the column `name` of `head` */
static span cell(span head, span row, const char *name)
{
    size_t k = strlen(name);
    const char *h = head.p, *he = head.p + head.n, *r = row.p, *re = row.p + row.n;
    while (h < he && r) {
        const char *ht = memchr(h, '\t', (size_t)(he - h)), *rt = memchr(r, '\t', (size_t)(re - r));
        if (!ht) ht = he;
        if ((size_t)(ht - h) == k && memcmp(h, name, k) == 0) return (span){r, (size_t)((rt ? rt : re) - r)};
        h = ht + 1;
        r = rt ? rt + 1 : NULL;
    }
    return (span){"", 0};
}

static void keep(char *out, size_t n, span s) { snprintf(out, n, "%.*s", (int)s.n, s.p); }

static bool word_char(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* the name stands in the pattern as a word of its own */
static bool names(span pattern, const char *name)
{
    size_t k = strlen(name);
    for (const char *p = pattern.p, *end = pattern.p + pattern.n;
         k && (p = memmem(p, (size_t)(end - p), name, k)) != NULL; p++)
        if ((p == pattern.p || !word_char(p[-1])) && (p + k == end || !word_char(p[k]))) return true;
    return false;
}

static bool matches(span pattern, const char *text)
{
    char copy[1024];
    regex_t re;
    if (pattern.n == 0 || pattern.n >= sizeof copy) return false;
    memcpy(copy, pattern.p, pattern.n);
    copy[pattern.n] = 0;
    if (regcomp(&re, copy, REG_EXTENDED | REG_NOSUB)) return false;
    bool yes = regexec(&re, text, 0, NULL, 0) == 0;
    regfree(&re);
    return yes;
}

static bool is_name(const char *s)
{
    while (word_char(*s)) s++;
    return *s == 0;
}

typedef bool (*row_test)(span head, span row, const char *want);
static bool row_names(span head, span row, const char *want)
{
    return names(cell(head, row, "pattern"), want);
}
static bool row_matches(span head, span row, const char *want)
{
    return matches(cell(head, row, "pattern"), want);
}
static bool row_is(span head, span row, const char *want)
{
    span id = cell(head, row, "id");
    return id.n == strlen(want) && memcmp(id.p, want, id.n) == 0;
}

static bool find_row(row_test test, const char *want, span *head, span *row)
{
    const st_embedded *e = st_facts_embedded;
    while (e->name && strcmp(e->name, "errors") != 0) e++;
    if (!e->name) return false;
    const char *end = e->text + e->size;
    head->p = NULL;
    for (const char *p = e->text; p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop) stop = end;
        span line = {p, (size_t)(stop - p)};
        p = stop + 1;
        if (line.n == 0 || line.p[0] == '#') continue;
        if (!head->p)
            *head = line;
        else if (test(*head, line, want)) {
            *row = line;
            return true;
        }
    }
    return false;
}

bool st_facts_cause(const char *name, st_cause *c)
{
    span head, row;
    memset(c, 0, sizeof *c);
    if (!name || strlen(name) < 4) return false;
    bool found = find_row(row_names, name, &head, &row) || find_row(row_matches, name, &head, &row);
    if (!found) return false;
    keep(c->id, sizeof c->id, cell(head, row, "id"));
    keep(c->layer, sizeof c->layer, cell(head, row, "layer"));
    span causes = cell(head, row, "causes");
    keep(c->causes, sizeof c->causes, causes);
    const char *bar = memmem(causes.p, causes.n, " | ", 3);
    keep(c->cause, sizeof c->cause, (span){causes.p, bar ? (size_t)(bar - causes.p) : causes.n});
    keep(c->confirm, sizeof c->confirm, cell(head, row, "confirm"));
    span fix = cell(head, row, "fix");
    for (int i = 0; i < 4 && fix.n > 4 && memcmp(fix.p, "see ", 4) == 0; i++) { /* "see OTHER_ROW" */
        char id[48];
        size_t n = 0;
        while (n + 4 < fix.n && n < sizeof id - 1 && word_char(fix.p[4 + n])) n++;
        memcpy(id, fix.p + 4, n);
        id[n] = 0;
        if (!find_row(row_is, id, &head, &row)) break;
        fix = cell(head, row, "fix");
    }
    keep(c->fix, sizeof c->fix, fix);
    return true;
}

void st_facts_explain(st_err *e, const char *name)
{
    st_cause c;
    if (!st_facts_cause(name, &c)) return;
    st_err_frame(e, "cause", "%s layer, likely: %s", c.layer, c.cause);
    if (!e->remedy[0] && c.fix[0])
        st_err_remedy(e, "%.180s%s%.48s%s", c.fix, is_name(name) ? "   (strata explain " : "",
                      is_name(name) ? name : "", is_name(name) ? ")" : "");
}
