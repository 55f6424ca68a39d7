/* SPDX-License-Identifier: Apache-2.0 */
/* tune.c - `strata tune`: measures the candidates of problems and keeps the times in the tuning database; shows, exports and imports it; and
 * says how far the model's choices are from the fastest (--model). */
#include "cli/problem.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 300, MOST_PROBLEMS = 2000, LINE = 512 };

typedef struct asked {
    double seconds; /* a problem */
    bool reorder, model, forget;
    cli_problem_words words;
    const char *out;
} asked;

/* What --model looks at when no problem is named: small, skinny, square, both layouts of B. M N K, transposition */
static const struct {
    int m, n, k;
    const char *trans;
} usual[] = {
    {4, 4, 4, "NN"},        {8, 8, 8, "NN"},       {16, 16, 16, "NN"},    {24, 24, 24, "NN"},
    {32, 32, 32, "NN"},     {48, 48, 48, "NN"},    {64, 64, 64, "NN"},    {96, 96, 96, "NN"},
    {128, 128, 128, "NN"},  {192, 192, 192, "NN"}, {256, 256, 256, "NN"}, {384, 384, 384, "NN"},
    {512, 512, 512, "NN"},  {768, 768, 768, "NN"}, {32, 32, 32, "NT"},    {64, 64, 64, "NT"},
    {128, 128, 128, "NT"},  {256, 256, 256, "NT"}, {512, 512, 512, "NT"}, {64, 64, 64, "TN"},
    {256, 256, 256, "TN"},  {1, 1024, 1024, "NN"}, {1, 1024, 1024, "NT"}, {2, 2048, 512, "NN"},
    {4, 1024, 1024, "NN"},  {4, 1024, 1024, "NT"}, {8, 1024, 256, "NN"},  {8, 1024, 256, "NT"},
    {16, 1024, 512, "NN"},  {16, 512, 2048, "NT"}, {1024, 1, 1024, "NN"}, {1024, 4, 1024, "NN"},
    {2048, 8, 256, "NN"},   {1024, 16, 512, "NN"}, {1024, 16, 64, "TN"},  {32, 1024, 64, "NN"},
    {64, 1024, 32, "NN"},   {1024, 64, 32, "NN"},  {100, 300, 50, "NN"},  {300, 100, 50, "NT"},
    {512, 64, 64, "NN"},    {64, 512, 64, "NN"},   {64, 64, 2048, "NN"},  {16, 16, 4096, "NN"},
    {128, 128, 2048, "NN"}, {1000, 10, 784, "NN"}, {128, 784, 256, "NN"}, {128, 10, 128, "NN"},
    {33, 17, 129, "NN"},    {257, 255, 63, "NT"},
};

static bool progress(void *user, double done, const strata_candidate *best)
{
    char text[160];
    snprintf(text, sizeof text, "%.60s %.4g us", best->kernel, best->measured_us);
    cli_progress_update(user, done, text);
    return true;
}

typedef struct tally {
    double log_sum, worst;
    int n;
    char worst_is[120];
} tally;

static void report(const cli_problem *p, const asked *a, const strata_candidate *c, int n, FILE *tsv,
                   tally *t)
{
    const strata_candidate *chosen = NULL;
    char title[160];
    const char *text = strata_plan_describe(p->plan);
    snprintf(title, sizeof title, "%.*s", (int)strcspn(text, "\n"), text);
    int measured = 0;
    for (int i = 0; i < n; i++) {
        measured += c[i].measured_us > 0;
        if (c[i].chosen && c[i].measured_us > 0) chosen = &c[i];
    }
    if (!chosen || !measured) return;
    const double ratio = chosen->measured_us / c[0].measured_us;
    t->log_sum += log(ratio);
    t->n++;
    if (ratio > t->worst) {
        t->worst = ratio;
        snprintf(t->worst_is, sizeof t->worst_is, "%.119s", title);
    }
    if (a->model)
        printf("%6.3f  %-52s chosen %-34s %9.2f us, best %-34s %9.2f us%s\n", ratio, title, chosen->kernel,
               chosen->measured_us, c[0].kernel, c[0].measured_us, c[0].same_order ? "" : " (another order)");
    else
        printf("%-52s %3d measured, best %s %s %.2f us, %.2f times the usual choice's speed\n", title,
               measured, c[0].kernel, c[0].code, c[0].measured_us, ratio);
    if (tsv)
        fprintf(tsv, "%s\t%s\t%.3f\t%s\t%.3f\t%.4f\n", title, chosen->kernel, chosen->measured_us,
                c[0].kernel, c[0].measured_us, ratio);
    fflush(stdout);
}

static int tune_one(strata_handle *h, int n, const char **w, const asked *a, cli_progress *bar, FILE *tsv,
                    tally *t)
{
    static strata_candidate c[MOST];
    cli_problem p = {0};
    int count = 0, status = cli_problem_plan("tune", h, n, w, &a->words, NULL, &p);
    if (status != CLI_OK) return status;
    const strata_tune_options o = {.seconds = a->seconds,
                                   .allow_reordering = a->reorder,
                                   .forget = a->forget,
                                   .progress = progress,
                                   .user = bar};
    const strata_status s = strata_tune(h, p.plan, NULL, &o, c, MOST, &count);
    cli_progress_end(bar);
    if (s)
        status = cli_failed("tune", h);
    else
        report(&p, a, c, count < MOST ? count : MOST, tsv, t);
    strata_plan_destroy(p.plan);
    return status;
}

/* ---- several problems -------------------------------------------------------------------------------------------------------------- */

static char lines[MOST_PROBLEMS][LINE];

/* A file's problems, one a line; # begins a comment. Returns how many, or -1 (said). */
static int read_problems(const char *path)
{
    FILE *f = fopen(path, "r");
    int n = 0;
    if (!f) {
        fprintf(stderr, "strata tune: %s cannot be read: %s\n", CLI_SHORT(path), strerror(errno));
        return -1;
    }
    while (n < MOST_PROBLEMS && fgets(lines[n], LINE, f)) {
        lines[n][strcspn(lines[n], "#\r\n")] = 0;
        if (lines[n][strspn(lines[n], " \t")]) n++;
    }
    fclose(f);
    return n;
}

/* The words of a line; the rest after the fifth is the epilogue. "--trans NT" may stand in it. */
static int words_of(char *line, const char **w, const char **trans)
{
    int n = 0;
    char *p = line;
    *trans = NULL;
    while (n < 7) {
        p += strspn(p, " \t");
        if (!*p) break;
        char *end = p + strcspn(p, " \t");
        const bool last = n == 5;
        const bool option = (size_t)(end - p) == 7 && memcmp(p, "--trans", 7) == 0;
        if (option) {
            p = end + strspn(end, " \t");
            end = p + strcspn(p, " \t");
            *trans = p;
        } else
            w[n++] = p;
        if (!*end || (last && !option)) break;
        *end = 0;
        p = end + 1;
    }
    return n;
}

static int tune_many(strata_handle *h, int count, bool built_in, const asked *a, cli_progress *bar, FILE *tsv,
                     tally *t)
{
    int status = CLI_OK;
    for (int i = 0; i < count && status == CLI_OK; i++) {
        const char *w[8], *trans = NULL;
        asked mine = *a;
        int n = 0;
        if (built_in)
            snprintf(lines[i], LINE, "gemm %d %d %d f32 --trans %s", usual[i].m, usual[i].n, usual[i].k,
                     usual[i].trans);
        n = words_of(lines[i], w, &trans);
        if (trans) mine.words.trans = trans;
        if (n) status = tune_one(h, n, w, &mine, bar, tsv, t);
    }
    return status;
}

/* ---- the database ------------------------------------------------------------------------------------------------------------------- */

static int show_info(void)
{
    strata_tuning_info i;
    if (strata_get_tuning_info(&i)) return cli_failed("tune", NULL);
    printf("database: %s\n  %lld measurements, %lld problems, by this version (%s)\n", i.path,
           (long long)i.measurements, (long long)i.problems, strata_version());
    if (i.warning[0]) printf("  warning: %s\n", i.warning);
    return CLI_OK;
}

/* What a file's trouble cost is said once, at the end. */
static void warn(void)
{
    strata_tuning_info i;
    if (!strata_get_tuning_info(&i) && i.warning[0]) fprintf(stderr, "strata tune: warning: %s\n", i.warning);
}

int verb_tune(int argc, char **argv)
{
    asked a = {0};
    const char *device = NULL, *threads = NULL, *seconds = NULL, *file = NULL, *export = NULL, *import = NULL,
               *info = NULL, *reorder = NULL, *model = NULL, *trace = NULL;
    const cli_option options[] = {
        {"--seconds", "S", "budget of a problem (default 1)", &seconds, NULL, 0},
        {"--file", "FILE", "tune the problems of a file, one a line", &file, NULL, 0},
        {"--from-trace", "FILE", "tune the products of a trace (STRATA_TRACE=FILE)", &trace, NULL, 0},
        {"--reorder", NULL, "measure kernels that sum in another order, too", &reorder, NULL, 0},
        {"--device", "DEVICE", "cpu (default) or cuda:N", &device, NULL, 0},
        {"--threads", "N", "threads to tune for", &threads, NULL, 0},
        {"--info", NULL, "where the database is and what it holds", &info, NULL, 0},
        {"--export", "FILE", "write the database as text", &export, NULL, 0},
        {"--import", "FILE", "take measurements from such a text", &import, NULL, 0},
        {"--model", NULL, "store nothing: how far are the model's choices from the fastest?", &model, NULL,
         0},
        {"--tsv", "FILE", "with the results: a table of them", &a.out, NULL, 0},
        CLI_PROBLEM_OPTIONS(a.words),
    };
    const cli_usage usage_text = {
        "strata tune gemm M N K [TYPE] [EPILOGUE]   or   strata tune conv NxCxHxW OxRxS [TYPE]   or   strata "
        "tune --file FILE",
        "Measures every kernel (and several tiles of the best ones) that could do the problem and keeps the "
        "times: from\n"
        "then on every program of this user takes the fastest that sums in the usual order.",
        options, (int)(sizeof options / sizeof *options)};
    const char *w[8];
    int status, n;
    int64_t v = 0, taken = 0;
    argv[0] = "tune";
    if ((n = cli_parse(&usage_text, argc, argv, w, 8, &status)) < 0) return status;
    a.seconds = 1;
    a.model = model != NULL;
    a.forget = a.model;
    a.reorder = reorder != NULL || a.model;
    if (seconds && !cli_number(seconds, 0.001, 86400, &a.seconds))
        return cli_bad("tune", "--seconds takes 0.001 to 86400, not '%s'", CLI_SHORT(seconds));
    if (threads && !cli_integer(threads, 1, 256, &v))
        return cli_bad("tune", "--threads takes 1 to 256, not '%s'", CLI_SHORT(threads));
    if (n == 0 && !file && !trace && !export && !import && !info && !model)
        return cli_bad("tune", "tune what? known: gemm conv (see: strata help tune)");
    if (import) {
        if (strata_tuning_import(import, &taken)) return cli_failed("tune", NULL);
        printf("%lld measurements imported from %s\n", (long long)taken, import);
    }
    strata_handle *h;
    if (strata_create(&h, device ? device : "cpu")) return cli_failed("tune", NULL);
    status = threads && strata_set_threads(h, (int)v) ? cli_failed("tune", h) : CLI_OK;
    FILE *tsv = a.out ? fopen(a.out, "w") : NULL;
    if (a.out && !tsv && status == CLI_OK) {
        fprintf(stderr, "strata tune: %s cannot be written: %s\n", CLI_SHORT(a.out), strerror(errno));
        status = CLI_FAILED;
    }
    if (tsv) fprintf(tsv, "problem\tchosen\tus\tbest\tbest us\tratio\n");
    cli_progress bar;
    tally t = {0};
    cli_progress_begin(&bar, 1);
    if (status == CLI_OK && n) status = tune_one(h, n, w, &a, &bar, tsv, &t);
    if (status == CLI_OK && file) {
        const int count = read_problems(file);
        status = count < 0 ? CLI_FAILED : tune_many(h, count, false, &a, &bar, tsv, &t);
    }
    if (status == CLI_OK && trace) {
        const int count = cli_trace_problems(trace, lines[0], LINE, MOST_PROBLEMS);
        status = count < 0 ? CLI_FAILED : tune_many(h, count, false, &a, &bar, tsv, &t);
    }
    if (status == CLI_OK && model && !n && !file && !trace)
        status = tune_many(h, (int)(sizeof usual / sizeof *usual), true, &a, &bar, tsv, &t);
    if (status == CLI_OK && a.model && t.n)
        printf("geometric mean over %d problems: the choice takes %.3f times the fastest's time; worst %.3f, "
               "%s\n",
               t.n, exp(t.log_sum / t.n), t.worst, t.worst_is);
    if (tsv && fclose(tsv) && status == CLI_OK) status = CLI_FAILED;
    strata_destroy(h);
    if (export && status == CLI_OK && strata_tuning_export(export)) status = cli_failed("tune", NULL);
    if (info && status == CLI_OK) status = show_info();
    warn();
    return status;
}
