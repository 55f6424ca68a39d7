/* SPDX-License-Identifier: Apache-2.0 */
/* tune_trace.c - the products of a trace (lines or JSON) as problems for `strata tune --from-trace`, each once, in the order in which they
 * came. What has no words on a command line (batches, odd strides, mixed types) or is no whole event is left out, counted and said; a file without any
 * event, or without a product, is an error. */
#include "cli/problem.h"
#include <errno.h>
#include <string.h>

/* 'N' by rows, 'T' by columns, 0 neither */
static char layout(long long rows, long long cols, long long row, long long col)
{
    return col == 1 || cols <= 1 ? 'N' : row == 1 || rows <= 1 ? 'T' : 0;
}

/* The text of an epilogue: to the line's end, or to JSON's closing quote */
static void copy_epilogue(const char *from, char *to, size_t n)
{
    size_t at = 0;
    for (; *from && *from != '\n' && *from != '"' && at + 1 < n; from++) {
        if (*from == '\\' && from[1]) from++;
        to[at++] = *from;
    }
    to[at] = 0;
}

/* A line of the trace on standard error has " us  " behind its name, one of the file an event of Chrome's format. */
static bool is_event(const char *line) { return strstr(line, "\"ph\":\"X\"") || strstr(line, " us  "); }

typedef enum kind { NO_PRODUCT, PRODUCT, NO_WORDS, DAMAGED } kind;
static kind kind_of(const char *line, char *out, size_t n)
{
    const char *p = strstr(line, "strata_gemm"), *a = p ? strstr(p, "A ") : NULL;
    char ta[8], tb[8], epilogue[300] = "";
    long long m, k, kb, cols, as, at, bs, bt;
    if (!p) return NO_PRODUCT;
    if (!a) return DAMAGED;
    const int got =
        sscanf(a, "A %7[a-z0-9] %lldx%lld (stride %lld,%lld), B %7[a-z0-9] %lldx%lld (stride %lld,%lld)", ta,
               &m, &k, &as, &at, tb, &kb, &cols, &bs, &bt);
    if (got != 10) return strstr(a, "), C ") ? NO_WORDS : DAMAGED;
    if (m < 0 || k < 0 || cols < 0 || k != kb) return DAMAGED;
    const char la = layout(m, k, as, at), lb = layout(kb, cols, bs, bt);
    if (!la || !lb || strcmp(ta, tb) != 0) return NO_WORDS;
    const char *e = strstr(a, ", epilogue ");
    if (e) copy_epilogue(e + strlen(", epilogue "), epilogue, sizeof epilogue);
    snprintf(out, n, "gemm %lld %lld %lld %s --trans %c%c %s", m, cols, k, ta, la, lb, epilogue);
    return PRODUCT;
}

static int none(const char *path, int events)
{
    if (events)
        fprintf(stderr,
                "strata tune: %s has %d events and none is a product that can be tuned (strata_gemm of two "
                "matrices "
                "of one type)\n",
                CLI_SHORT(path), events);
    else
        fprintf(stderr,
                "strata tune: %s is no trace: no event is in it; STRATA_TRACE=FILE PROGRAM writes one\n",
                CLI_SHORT(path));
    return -1;
}

int cli_trace_problems(const char *path, char *lines, int size, int max)
{
    FILE *f = fopen(path, "r");
    static char line[8192];
    int n = 0, events = 0, seen[DAMAGED + 1] = {0}, convs = 0;
    if (!f) {
        fprintf(stderr, "strata tune: %s cannot be read: %s\n", CLI_SHORT(path), strerror(errno));
        return -1;
    }
    while (n < max && fgets(line, sizeof line, f)) {
        char *to = lines + (size_t)n * (size_t)size;
        if (!is_event(line)) continue;
        events++;
        convs += strstr(line, "strata_conv") != NULL;
        const kind is = kind_of(line, to, (size_t)size);
        seen[is]++;
        if (is != PRODUCT) continue;
        bool known = false;
        for (int i = 0; i < n && !known; i++) known = strcmp(lines + (size_t)i * (size_t)size, to) == 0;
        if (!known) n++;
    }
    const bool more = n == max && fgets(line, sizeof line, f) != NULL, failed = ferror(f) != 0;
    fclose(f);
    if (failed) {
        fprintf(stderr, "strata tune: %s cannot be read to its end\n", CLI_SHORT(path));
        return -1;
    }
    if (seen[NO_WORDS])
        fprintf(stderr,
                "strata tune: %d products are batches, oddly strided or of mixed types, and left out\n",
                seen[NO_WORDS]);
    if (seen[DAMAGED])
        fprintf(stderr, "strata tune: %d events of products are not whole, and left out\n", seen[DAMAGED]);
    if (convs)
        fprintf(stderr, "strata tune: %d convolutions are left out; --file takes them in words\n", convs);
    if (more) fprintf(stderr, "strata tune: only the first %d different products are taken\n", max);
    return n ? n : none(path, events);
}
