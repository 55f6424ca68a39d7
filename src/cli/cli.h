/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h - what the verbs of the `strata` command (and the bench beside them) share: arguments, text, JSON, progress.
 *
 * A verb is one file with one function `int verb_<name>(int argc, char **argv)`; argv[0] is the verb itself. It returns the exit
 * code: 0 done, 1 the work failed (a wrong result, a failing device), 2 the command line cannot be understood. Verbs see the
 * public headers only; what they cannot learn there is a gap in the interface. */
#ifndef ST_CLI_CLI_H
#define ST_CLI_CLI_H
#include <strata.h>
#include <stdio.h>

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_MAX_WORDS = 64 };

typedef struct cli_verb {
    const char *name;
    const char *summary; /* one line */
    int (*run)(int argc, char **argv);
} cli_verb;
extern const cli_verb cli_verbs[];
extern const int cli_verb_count;

int verb_info(int argc, char **argv);
int verb_kernels(int argc, char **argv);
int verb_plan(int argc, char **argv);
int verb_tune(int argc, char **argv);
int verb_bench(int argc, char **argv);
int verb_selftest(int argc, char **argv);
int cli_selftest_gpu(const char *device);       /* selftest --only gpu */
int cli_doctor_child(const char *what, int fd); /* doctor.h, st_live: the steps in a program of its own */
int verb_doctor(int argc, char **argv);
int verb_explain(int argc, char **argv);
int verb_version(int argc, char **argv);
int verb_help(int argc, char **argv);

/* ---- arguments ------------------------------------------------------------------------------------------------------- */
/* One option of a verb. With `value` NULL it is a switch: *out becomes "1". With `count` it may be repeated: out is then an
 * array of `max` strings. An option whose help is NULL is not listed. */
typedef struct cli_option {
    const char *name;  /* "--threads" */
    const char *value; /* "N", or NULL for a switch */
    const char *help;
    const char **out;
    int *count, max;
} cli_option;
typedef struct cli_usage {
    const char *synopsis; /* "strata plan gemm M N K [TYPE]" */
    const char *text;     /* paragraphs under it */
    const cli_option *options;
    int option_count;
} cli_usage;
/* Sorts argv[1..] into options ("--name value" or "--name=value", "--" ends them) and words. Returns the number of words, or -1
 * when the verb must return *code at once: help was asked for and printed, or an argument was wrong and that was said on stderr. */
int cli_parse(const cli_usage *u, int argc, char **argv, const char **words, int max_words, int *code);
void cli_print_usage(FILE *f, const cli_usage *u);

/* Whole-string conversions; false for anything else. */
bool cli_integer(const char *s, int64_t lo, int64_t hi, int64_t *v);
bool cli_number(const char *s, double lo, double hi, double *v);
/* "MxN", "MxNxK" ... into v; returns how many numbers (each in [lo, hi]), 0 when it is something else. */
int cli_dims(const char *s, int64_t lo, int64_t hi, int64_t *v, int max);

/* The name nearest to `word` among the `n` strings at `names` (each `step` bytes after the last), or NULL when none is near. */
const char *cli_nearest(const char *word, const void *names, int n, size_t step);
/* What a message repeats of the command line: at most 80 bytes of it (the library's st_cut). */
enum { CLI_CUT = 84 };
const char *cli_cut(const char *s, char room[CLI_CUT]);
#define CLI_SHORT(s) cli_cut(s, (char[CLI_CUT]){0})
/* --tsv and --json given together: said on stderr; true when they were */
bool cli_two_formats(const char *verb, const char *tsv, const char *json);
/* "strata bench: ..." on stderr; returns CLI_USAGE. */
int cli_bad(const char *verb, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* strata_error(h) on stderr; returns CLI_FAILED. */
int cli_failed(const char *verb, const strata_handle *h);

/* "1.5 MiB" into buf */
const char *cli_bytes(double bytes, char *buf, size_t n);

/* ---- JSON: an object or array written to a stream; commas and escapes are taken care of --------------------------------- */
typedef struct cli_json {
    FILE *f;
    int depth;
    bool first[16];
} cli_json;
void cli_json_open(cli_json *j, const char *key, char bracket);
void cli_json_close(cli_json *j, char bracket);
void cli_json_string(cli_json *j, const char *key, const char *value); /* NULL value: null */
void cli_json_integer(cli_json *j, const char *key, int64_t value);
void cli_json_number(cli_json *j, const char *key, double value); /* not finite: null */
void cli_json_bool(cli_json *j, const char *key, bool value);

/* ---- progress: one line on stderr, only when that is a terminal and only after two seconds -------------------------------- */
typedef struct cli_progress {
    double begin, drawn, total;
    bool tty, shown;
} cli_progress;
void cli_progress_begin(cli_progress *p, double total);
void cli_progress_update(cli_progress *p, double done, const char *what);
void cli_progress_end(cli_progress *p); /* wipes the line */

void cli_html_text(FILE *f, const char *s); /* with < > & " escaped */
double cli_seconds(void);                   /* monotonic */

/* ---- from bench/ ---------------------------------------------------------------------------------------------------------- */
/* What this machine does now on so many threads: GFLOP/s of FMA (f32), GB/s of a copy of arrays of `bytes`. A few milliseconds. */
bool bench_roof(int threads, double bytes, double *gflops, double *gbs);

#endif
