/* SPDX-License-Identifier: Apache-2.0 */
/* args.c - arguments of the verbs. Whatever the command line holds, it is either understood or refused with what is known. */
#include "cli/cli.h"
#include "doctor/explain.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)CLI_CUT == (int)ST_CUT, "one function");
const char *cli_cut(const char *s, char room[CLI_CUT]) { return st_cut(s, room); }

bool cli_two_formats(const char *verb, const char *tsv, const char *json)
{
    if (!tsv || !json) return false;
    cli_bad(verb, "--tsv and --json exclude each other");
    return true;
}

/* No word of a message is longer than what a message repeats, whoever wrote it. */
int cli_bad(const char *verb, const char *fmt, ...)
{
    char text[4096], word[4096];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fprintf(stderr, "strata%s%s: ", *verb ? " " : "", verb);
    for (const char *p = text; *p;) {
        const size_t blanks = strspn(p, " \n"), letters = strcspn(p + blanks, " \n");
        memcpy(word, p + blanks, letters);
        word[letters] = 0;
        fprintf(stderr, "%.*s%s", (int)blanks, p, CLI_SHORT(word));
        p += blanks + letters;
    }
    fputc('\n', stderr);
    return CLI_USAGE;
}

int cli_failed(const char *verb, const strata_handle *h)
{
    fprintf(stderr, "strata %s: %s\n", verb, strata_error(h));
    return CLI_FAILED;
}

void cli_print_usage(FILE *f, const cli_usage *u)
{
    fprintf(f, "usage: %s\n", u->synopsis);
    if (u->text) fprintf(f, "\n%s\n", u->text);
    if (u->option_count) fprintf(f, "\noptions:\n");
    for (int i = 0; i < u->option_count; i++) {
        const cli_option *o = &u->options[i];
        char left[48];
        if (!o->help) continue;
        snprintf(left, sizeof left, "%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
        fprintf(f, "  %-26s %s\n", left, o->help);
    }
    fprintf(f, "  %-26s %s\n", "--help", "this text");
}

static const cli_option *find_option(const cli_usage *u, const char *name, size_t len)
{
    for (int i = 0; i < u->option_count; i++)
        if (strlen(u->options[i].name) == len && memcmp(u->options[i].name, name, len) == 0)
            return &u->options[i];
    return NULL;
}

static int unknown_option(const cli_usage *u, const char *verb, const char *word, size_t len)
{
    char whole[CLI_CUT], name[64];
    snprintf(name, sizeof name, "%.*s", (int)(len < 63 ? len : 63), word);
    const char *near =
        u->option_count ? cli_nearest(name, &u->options[0].name, u->option_count, sizeof *u->options) : NULL;
    fprintf(stderr, "strata %s: unknown option '%s'", verb, cli_cut(word, whole));
    if (near) fprintf(stderr, "; did you mean '%s'?", near);
    fprintf(stderr, "\n  known:");
    for (int i = 0; i < u->option_count; i++)
        if (u->options[i].help) fprintf(stderr, " %s", u->options[i].name);
    fprintf(stderr, " --help\n");
    return CLI_USAGE;
}

static bool store(const cli_option *o, const char *verb, const char *value)
{
    if (!o->count) {
        *o->out = value;
        return true;
    }
    if (*o->count == o->max) {
        cli_bad(verb, "%s given more than %d times", o->name, o->max);
        return false;
    }
    o->out[(*o->count)++] = value;
    return true;
}

int cli_parse(const cli_usage *u, int argc, char **argv, const char **words, int max_words, int *code)
{
    const char *verb = argv[0];
    int n = 0;
    bool only_words = false;
    *code = CLI_USAGE;
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (only_words || a[0] != '-' || a[1] != '-') {
            if (!only_words && strcmp(a, "-h") == 0) {
                cli_print_usage(stdout, u);
                *code = CLI_OK;
                return -1;
            }
            if (n == max_words) {
                if (max_words == 0)
                    cli_bad(verb, "takes no argument, but '%s' was given (see: strata help %s)", CLI_SHORT(a),
                            verb);
                else
                    cli_bad(verb, "too many arguments at '%s' (at most %d; see: strata help %s)",
                            CLI_SHORT(a), max_words, verb);
                return -1;
            }
            words[n++] = a;
            continue;
        }
        if (a[2] == 0) {
            only_words = true;
            continue;
        }
        if (strcmp(a, "--help") == 0) {
            cli_print_usage(stdout, u);
            *code = CLI_OK;
            return -1;
        }
        const char *eq = strchr(a, '=');
        size_t len = eq ? (size_t)(eq - a) : strlen(a);
        const cli_option *o = find_option(u, a, len);
        if (!o) {
            *code = unknown_option(u, verb, a, len);
            return -1;
        }
        const char *value = "1";
        if (!o->value) {
            if (eq) {
                cli_bad(verb, "%s takes no value, but '%s' was given", o->name, CLI_SHORT(eq + 1));
                return -1;
            }
        } else if (eq) {
            value = eq + 1;
        } else if (++i < argc) {
            value = argv[i];
        } else {
            cli_bad(verb, "%s needs a value: %s %s", o->name, o->name, o->value);
            return -1;
        }
        if (!store(o, verb, value)) return -1;
    }
    return n;
}

bool cli_integer(const char *s, int64_t lo, int64_t hi, int64_t *v)
{
    char *end;
    errno = 0;
    long long x = strtoll(s, &end, 10);
    if (end == s || *end || errno || x < lo || x > hi) return false;
    *v = x;
    return true;
}

bool cli_number(const char *s, double lo, double hi, double *v)
{
    char *end;
    errno = 0;
    double x = strtod(s, &end);
    if (end == s || *end || !isfinite(x) || x < lo || x > hi) return false;
    *v = x;
    return true;
}

int cli_dims(const char *s, int64_t lo, int64_t hi, int64_t *v, int max)
{
    int n = 0;
    while (n < max) {
        char *end;
        errno = 0;
        if (*s < '0' || *s > '9') return 0;
        long long x = strtoll(s, &end, 10);
        if (end == s || errno || x < lo || x > hi) return 0;
        v[n++] = x;
        if (*end == 0) return n;
        if (*end != 'x') return 0;
        s = end + 1;
    }
    return 0;
}

/* edit distance with swaps of neighbours (optimal string alignment) of words up to 31 letters */
static int distance(const char *a, const char *b)
{
    int la = (int)strlen(a), lb = (int)strlen(b), d[32][32];
    if (la > 31 || lb > 31) return 99;
    for (int i = 0; i <= la; i++) d[i][0] = i;
    for (int j = 0; j <= lb; j++) d[0][j] = j;
    for (int i = 1; i <= la; i++)
        for (int j = 1; j <= lb; j++) {
            int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best) best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best) best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[la][lb];
}

const char *cli_nearest(const char *word, const void *names, int n, size_t step)
{
    const char *best = NULL;
    int len = (int)strlen(word), limit = len < 4 ? 1 : len < 8 ? 2 : 3, least = limit + 1;
    for (int i = 0; i < n; i++) {
        const char *name = *(const char *const *)((const char *)names + (size_t)i * step);
        int d = distance(word, name);
        if (d < least) least = d, best = name;
        if (len >= 3 && strncmp(word, name, (size_t)len) == 0 && least > 0)
            least = 0, best = name; /* an abbreviation */
    }
    return best;
}

const char *cli_bytes(double bytes, char *buf, size_t n)
{
    static const char *const unit[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    int u = 0;
    while (u < 4 && bytes >= 1024.0) bytes /= 1024.0, u++;
    snprintf(buf, n, bytes == floor(bytes) ? "%.0f %s" : "%.1f %s", bytes, unit[u]);
    return buf;
}
