/* SPDX-License-Identifier: Apache-2.0 */
/* tune_trace.c - the products of a trace (lines or JSON) as problems for `strata tune --from-trace`, each once, in the order in which they
 * came. Matrices with neither rows nor columns of unit stride, and batches, are left out and counted. */
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

/* 1: a problem; 0: no product; -1: one that has no words */
static int problem_of(const char *line, char *out, size_t n)
{
    const char *p = strstr(line, "strata_gemm"), *a = p ? strstr(p, "A ") : NULL;
    char ta[8], tb[8], epilogue[300] = "";
    long long m, k, kb, cols, as, at, bs, bt;
    if (!a) return 0;
    if (sscanf(a, "A %7[a-z0-9] %lldx%lld (stride %lld,%lld), B %7[a-z0-9] %lldx%lld (stride %lld,%lld)", ta,
               &m, &k, &as, &at, tb, &kb, &cols, &bs, &bt) != 10)
        return -1;
    const char la = layout(m, k, as, at), lb = layout(kb, cols, bs, bt);
    if (!la || !lb || strcmp(ta, tb) != 0) return -1;
    const char *e = strstr(a, ", epilogue ");
    if (e) copy_epilogue(e + strlen(", epilogue "), epilogue, sizeof epilogue);
    snprintf(out, n, "gemm %lld %lld %lld %s --trans %c%c %s", m, cols, k, ta, la, lb, epilogue);
    return 1;
}

int cli_trace_problems(const char *path, char *lines, int size, int max)
{
    FILE *f = fopen(path, "r");
    static char line[8192];
    int n = 0, left_out = 0;
    if (!f) {
        fprintf(stderr, "strata tune: %s cannot be read: %s\n", path, strerror(errno));
        return -1;
    }
    while (n < max && fgets(line, sizeof line, f)) {
        char *to = lines + (size_t)n * (size_t)size;
        const int is = problem_of(line, to, (size_t)size);
        left_out += is < 0;
        if (is != 1) continue;
        bool known = false;
        for (int i = 0; i < n && !known; i++) known = strcmp(lines + (size_t)i * (size_t)size, to) == 0;
        if (!known) n++;
    }
    fclose(f);
    if (left_out)
        fprintf(stderr, "strata tune: %d calls of the trace are batches or oddly strided, and left out\n",
                left_out);
    return n;
}
