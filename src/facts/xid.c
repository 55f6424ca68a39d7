/* SPDX-License-Identifier: Apache-2.0 */
/* xid.c - the Xid lines of the NVIDIA kernel driver, in the forms of every driver generation (data/doctor/xid_formats.tsv). */
#include "facts/facts.h"
#include <stdio.h>
#include <string.h>

typedef struct cursor {
    const char *p, *end;
} cursor;

static bool skip(cursor *c, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n)) return false;
    c->p += n;
    return true;
}

static bool digit(char c) { return c >= '0' && c <= '9'; }

static bool number(cursor *c, long *v)
{
    if (c->p == c->end || !digit(*c->p)) return false;
    for (*v = 0; c->p < c->end && digit(*c->p); c->p++)
        if (*v < 100000000) *v = *v * 10 + (*c->p - '0');
    return true;
}

static void copy(char *to, size_t size, const char *from, const char *end)
{
    size_t n = (size_t)(end - from) < size - 1 ? (size_t)(end - from) : size - 1;
    for (size_t i = 0; i < n; i++) to[i] = (unsigned char)from[i] < 32 ? ' ' : from[i];
    to[n] = 0;
    while (n && to[n - 1] == ' ') to[--n] = 0;
}

static const char *find(const char *p, const char *end, const char *word)
{
    return p < end ? memmem(p, (size_t)(end - p), word, strlen(word)) : NULL;
}

/* "(PCI:0000:41:00 GPU-I:05 GPU-CI:00): " */
static bool read_device(cursor *c, st_xid *x)
{
    if (!skip(c, "(")) return false;
    skip(c, "PCI:");
    const char *from = c->p;
    while (c->p < c->end && (digit(*c->p) || (*c->p >= 'a' && *c->p <= 'f') ||
                             (*c->p >= 'A' && *c->p <= 'F') || *c->p == ':' || *c->p == '.'))
        c->p++;
    if (c->p - from < 5) return false;
    copy(x->device, sizeof x->device, from, c->p);
    from = c->p;
    while (c->p < c->end && *c->p != ')' && c->p - from < 40) c->p++;
    if (from < c->p && *from == ' ') from++;
    copy(x->instance, sizeof x->instance, from, c->p);
    return skip(c, "): ");
}

/* ", pid=4242, name=python3, " and the forms with unknown values */
static void read_process(cursor *c, st_xid *x)
{
    skip(c, ",");
    while (c->p < c->end && *c->p == ' ') c->p++;
    if (skip(c, "pid=")) {
        skip(c, "'");
        if (!number(c, &x->pid)) x->pid = -1;
        while (c->p < c->end && *c->p != ',') c->p++;
        skip(c, ",");
        while (c->p < c->end && *c->p == ' ') c->p++;
    }
    if (skip(c, "name=")) {
        const char *stop = find(c->p, c->end, ", ");
        if (!stop) stop = c->end;
        if (c->p < c->end && *c->p != '<') copy(x->name, sizeof x->name, c->p, stop);
        c->p = stop;
        skip(c, ", ");
    }
}

bool st_xid_parse(const char *line, size_t n, st_xid *x) { return st_xid_next(&line, line + n, x); }

bool st_xid_next(const char **from, const char *end, st_xid *x)
{
    const char *line = *from;
    memset(x, 0, sizeof *x);
    x->pid = -1;
    for (const char *p = line; p < end; p++) {
        const char *at = find(p, end, "Xid"), *upper = find(p, at ? at : end, "XID");
        if (upper) at = upper;
        if (!at) return false;
        p = at + 2;
        char before = at > line ? at[-1] : ' ';
        if ((before >= 'a' && before <= 'z') || (before >= 'A' && before <= 'Z') || before == '_' ||
            digit(before))
            continue;
        cursor c = {at + 3, end};
        long v;
        while (c.p < end && (*c.p == ' ' || *c.p == ':' || *c.p == '=' || *c.p == '#')) c.p++;
        if (c.p == at + 3) continue;
        if (*at == 'X' && c.p < end && *c.p == '(') {
            if (!read_device(&c, x) || !number(&c, &v) || v < 1 || v > 9999) {
                x->device[0] = x->instance[0] = 0;
                continue;
            }
            read_process(&c, x);
        } else if (!number(&c, &v) || v < 1 || v > 999)
            continue;
        else
            skip(&c, ":"), skip(&c, ",");
        while (c.p < end && *c.p == ' ') c.p++;
        copy(x->message, sizeof x->message, c.p, end);
        x->number = (int)v;
        *from = c.p;
        const char *cause = find(c.p, end, "caused by previous Xid ");
        if (cause) {
            cursor number_at = {cause + 23, end};
            if (number(&number_at, &v) && v < 10000) x->caused_by = (int)v;
        }
        return true;
    }
    return false;
}

const char *st_xid_class(const st_facts *f, int number_)
{
    char key[16];
    snprintf(key, sizeof key, "%d", number_);
    const st_table *t = st_facts_table(f, "xid");
    int row = st_table_find(t, "xid", key);
    return row < 0 ? "unknown" : st_table_get(t, row, "cause_class");
}
