/* SPDX-License-Identifier: Apache-2.0 */
/* path.c - reads only what Strata's own trace writes: one event a line, with the keys that are asked for below. */
#include "path.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS = 64, LINE = 2048, DEPTH = 16 };

typedef struct event {
    double begin, length; /* microseconds */
    char layer[16], name[100], detail[200];
} event;

static double number(const char *line, const char *key)
{
    const char *p = strstr(line, key);
    return p ? strtod(p + strlen(key), NULL) : 0;
}

/* Copies the string behind `key` up to its closing quote; false when there is none. */
static bool string(const char *line, const char *key, char *to, size_t n)
{
    const char *p = strstr(line, key);
    if (!p) return false;
    size_t used = 0;
    for (p += strlen(key); *p && *p != '"'; p++) {
        if (*p == '\\' && p[1]) p++;
        if (used + 1 < n) to[used++] = *p;
    }
    to[used] = 0;
    return true;
}

static int by_time(const void *x, const void *y)
{
    const event *a = x, *b = y;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return (a->length < b->length) - (a->length > b->length); /* what contains comes first */
}

static int read_events(FILE *f, event *e)
{
    char line[LINE];
    int n = 0;
    while (n < EVENTS && fgets(line, sizeof line, f)) {
        event *x = &e[n];
        if (!string(line, "\"cat\":\"", x->layer, sizeof x->layer)) continue;
        if (!string(line, "\"name\":\"", x->name, sizeof x->name)) continue;
        if (!string(line, "\"detail\":\"", x->detail, sizeof x->detail)) x->detail[0] = 0;
        x->begin = number(line, "\"ts\":");
        x->length = number(line, "\"dur\":");
        n++;
    }
    qsort(e, (size_t)n, sizeof *e, by_time);
    return n;
}

int path_show(FILE *out, const char *trace_file)
{
    static event e[EVENTS];
    double end[DEPTH];
    int depth = 0;
    FILE *f = fopen(trace_file, "r");
    if (!f) return -1;
    int n = read_events(f, e);
    fclose(f);
    for (int i = 0; i < n; i++) {
        /* the trace has three decimals */
        while (depth > 0 && e[i].begin + e[i].length > end[depth - 1] + 0.002) depth--;
        fprintf(out, "  %9.1f us  %*s%-9s %s%s%s\n", e[i].length, 2 * depth, "", e[i].layer, e[i].name,
                e[i].name[0] && e[i].detail[0] ? "  " : "", e[i].detail);
        if (depth < DEPTH) end[depth++] = e[i].begin + e[i].length;
    }
    return n;
}
