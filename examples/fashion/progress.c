/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - never more than ten redraws a second, and nothing that a log file would not want. */
#include "progress.h"
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The caller has set the locale from the environment. */
bool terminal_speaks_utf8(void)
{
    const char *codes = nl_langinfo(CODESET);
    return codes && (!strcmp(codes, "UTF-8") || !strcmp(codes, "utf8"));
}

int terminal_columns(void)
{
    struct winsize w;
    const char *term = getenv("TERM");
    if (!isatty(STDOUT_FILENO) || (term && !strcmp(term, "dumb"))) return 0;
    return !ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) && w.ws_col ? w.ws_col : 80;
}

void progress_start(progress *p, int64_t total, int lines)
{
    *p = (progress){
        .total = total, .lines = lines, .terminal = terminal_columns() > 0, .utf8 = terminal_speaks_utf8()};
    p->start = seconds();
}

/* A bar of `width` cells; eighths of a cell where the terminal can show them. */
static void bar(const progress *p, double part, int width)
{
    static const char *eighth[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int filled = (int)(part * width * 8), whole = filled / 8, cells = 0;
    fputc('|', stdout);
    for (; cells < whole; cells++) fputs(p->utf8 ? "█" : "#", stdout);
    if (p->utf8 && filled % 8) fputs(eighth[filled % 8], stdout), cells++;
    for (; cells < width; cells++) fputc(p->utf8 ? ' ' : '.', stdout);
    fputc('|', stdout);
}

void progress_show(progress *p, int64_t done, const char *title, const char *detail)
{
    double now = seconds(), passed = now - p->start, part = (double)done / (double)p->total;
    double rate = passed > 0 ? (double)done / passed : 0,
           left = rate > 0 ? (double)(p->total - done) / rate : 0;
    if (p->terminal) {
        if (now - p->shown < 0.1 && done < p->total) return;
        p->shown = now;
        int width = terminal_columns() - 62;
        printf("\r%s ", title);
        if (width >= 8) {
            bar(p, part, width > 40 ? 40 : width);
            printf(" %3.0f %%  %6.0f images/s  %s  %3.0f s left\033[K", 100 * part, rate, detail, left);
        } else { /* a line that wrapped could not be redrawn */
            printf("%3.0f %%\033[K", 100 * part);
        }
        fflush(stdout);
    } else if (part * p->lines >= p->printed + 1) {
        p->printed = (int)(part * p->lines);
        printf("%s  %3.0f %%  %6.0f images/s  %s  %3.0f s left\n", title, 100 * part, rate, detail, left);
        fflush(stdout);
    }
}

double progress_clear(progress *p)
{
    if (p->terminal) fputs("\r\033[K", stdout);
    fflush(stdout);
    return seconds() - p->start;
}
