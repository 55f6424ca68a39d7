/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - JSON and the progress line. */
#include "cli/cli.h"
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void quoted(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", f);
        else if (c < 32)
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

static void lead(cli_json *j, const char *key)
{
    if (j->depth) {
        fputs(j->first[j->depth] ? "\n" : ",\n", j->f);
        j->first[j->depth] = false;
        for (int i = 0; i < j->depth; i++) fputs("  ", j->f);
    }
    if (key) {
        quoted(j->f, key);
        fputs(": ", j->f);
    }
}

void cli_json_open(cli_json *j, const char *key, char bracket)
{
    lead(j, key);
    fputc(bracket, j->f);
    if (j->depth < 15) j->depth++;
    j->first[j->depth] = true;
}

void cli_json_close(cli_json *j, char bracket)
{
    bool empty = j->first[j->depth];
    j->depth--;
    if (!empty) {
        fputc('\n', j->f);
        for (int i = 0; i < j->depth; i++) fputs("  ", j->f);
    }
    fputc(bracket, j->f);
    if (j->depth == 0) fputc('\n', j->f);
}

void cli_json_string(cli_json *j, const char *key, const char *value)
{
    lead(j, key);
    if (value)
        quoted(j->f, value);
    else
        fputs("null", j->f);
}

void cli_json_integer(cli_json *j, const char *key, int64_t value)
{
    lead(j, key);
    fprintf(j->f, "%lld", (long long)value);
}

void cli_json_number(cli_json *j, const char *key, double value)
{
    lead(j, key);
    if (isfinite(value))
        fprintf(j->f, "%.6g", value);
    else
        fputs("null", j->f);
}

void cli_json_bool(cli_json *j, const char *key, bool value)
{
    lead(j, key);
    fputs(value ? "true" : "false", j->f);
}

double cli_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void cli_progress_begin(cli_progress *p, double total)
{
    memset(p, 0, sizeof *p);
    p->begin = cli_seconds();
    p->total = total;
    p->tty = isatty(STDERR_FILENO) != 0;
}

void cli_progress_update(cli_progress *p, double done, const char *what)
{
    double now = cli_seconds();
    if (!p->tty || now - p->begin < 2.0 || now - p->drawn < 0.1) return;
    double part = p->total > 0 ? done / p->total : 0;
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    enum { WIDTH = 30 };
    int full = (int)(part * WIDTH);
    char bar[WIDTH + 1];
    memset(bar, '-', WIDTH);
    memset(bar, '#', (size_t)full);
    bar[WIDTH] = 0;
    double left = part > 0.02 ? (now - p->begin) * (1 - part) / part : 0;
    fprintf(stderr, "\r[%s] %3.0f %%", bar, 100 * part);
    if (left > 0) fprintf(stderr, "  %.0f s left", left);
    fprintf(stderr, "  %.40s\033[K", what);
    fflush(stderr);
    p->drawn = now;
    p->shown = true;
}

void cli_progress_end(cli_progress *p)
{
    if (p->shown) fputs("\r\033[K", stderr);
    p->shown = false;
}

void cli_html_text(FILE *f, const char *s)
{
    for (; *s; s++) {
        if (*s == '<')
            fputs("&lt;", f);
        else if (*s == '>')
            fputs("&gt;", f);
        else if (*s == '&')
            fputs("&amp;", f);
        else if (*s == '"')
            fputs("&quot;", f);
        else
            fputc(*s, f);
    }
}
