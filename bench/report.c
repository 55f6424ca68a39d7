/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - the table, TSV and JSON. Rows of table and TSV are written as cases finish, so that an interrupted run has shown
 * what it measured. */
#include "bench.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

void report_column(bench *b, const char *name, const char *suffix)
{
    char full[24];
    snprintf(full, sizeof full, suffix ? "%s-%s" : "%s", name, suffix);
    for (int i = 0; i < b->column_count; i++)
        if (strcmp(b->columns[i], full) == 0) return;
    if (b->column_count < BENCH_COLUMNS) memcpy(b->columns[b->column_count++], full, sizeof full);
}

const contender *report_find(const bench_case *c, const char *name)
{
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->c[i].name, name) == 0) return &c->c[i];
    return NULL;
}

double report_ratio(const bench_case *c, bool plan, const char **best)
{
    int at = plan ? c->best_pointer : c->best;
    const contender *ours = report_find(c, plan ? "strata-plan" : "strata");
    if (at < 0 || !ours || ours->wrong || !(ours->us > 0)) return 0;
    if (best) *best = c->c[at].name;
    /* ratios inside rounds are kept against the first contender of ours; the plan's follow from its own ratio to that one */
    return plan ? c->c[at].ratio / ours->ratio : c->c[at].ratio;
}

double report_mean(const bench *b, const char *name, bool plan, int *cases)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < b->count; i++) {
        const bench_case *c = &b->rows[i];
        double r = 0;
        if (!name)
            r = report_ratio(c, plan, NULL);
        else {
            const contender *k = report_find(c, name), *p = report_find(c, "strata-plan");
            if (k && !k->wrong) r = k->ratio;
            if (plan) r = p && !p->wrong && p->ratio > 0 ? r / p->ratio : 0;
        }
        if (isfinite(r) && r > 0) sum += log(r), n++;
    }
    if (cases) *cases = n;
    return n ? exp(sum / n) : 0;
}

double report_group(const bench *b, const char *group, int *cases, double *least, double *percent)
{
    double sum = 0, *p = malloc(sizeof *p * (size_t)(b->count ? b->count : 1));
    int n = 0, np = 0;
    *least = INFINITY;
    for (int i = 0; i < b->count; i++) {
        const bench_case *c = &b->rows[i];
        const contender *ours = report_find(c, "strata");
        const double r = report_ratio(c, false, NULL);
        if (!c->group || strcmp(c->group, group) != 0) continue;
        if (p && ours && isfinite(ours->percent)) p[np++] = ours->percent;
        if (!isfinite(r) || r <= 0) continue;
        sum += log(r), n++;
        if (r < *least) *least = r;
    }
    *percent = p && np ? bench_median(p, np) : NAN;
    free(p);
    *cases = n;
    return n ? exp(sum / n) : 0;
}

/* calls each(group, ...) once for every group, in the order of their first cases */
static void every_group(const bench *b, void (*each)(const bench *b, const char *group, void *arg), void *arg)
{
    for (int i = 0; i < b->count; i++) {
        bool first = b->rows[i].group != NULL;
        for (int j = 0; j < i && first; j++)
            first = !b->rows[j].group || strcmp(b->rows[i].group, b->rows[j].group) != 0;
        if (first) each(b, b->rows[i].group, arg);
    }
}

static void group_line(const bench *b, const char *group, void *mark)
{
    int n;
    double least, percent, m = report_group(b, group, &n, &least, &percent);
    printf("%s%-8s median %5.1f %%", (const char *)mark, group, percent);
    if (n) printf(", ratio to the best peer %.3f in geometric mean over %d, least %.3f", m, n, least);
    printf("\n");
}

static void group_json(const bench *b, const char *group, void *arg)
{
    cli_json *j = arg;
    int n;
    double least, percent, m = report_group(b, group, &n, &least, &percent);
    cli_json_open(j, NULL, '{');
    cli_json_string(j, "group", group);
    cli_json_number(j, "percent", percent);
    cli_json_number(j, "geometric_mean", n ? m : NAN);
    cli_json_number(j, "least", n ? least : NAN);
    cli_json_integer(j, "cases", n);
    cli_json_close(j, '}');
}

static void head_cuda(const bench *b, FILE *f, const char *mark)
{
    const strata_device_info *d = &b->device;
    char l2[32];
    fprintf(f,
            "%sStrata %s on %s: %s, compute capability %d.%d, %d multiprocessors at %.0f MHz, driver API "
            "%d.%d\n",
            mark, strata_version(), d->device, d->name, d->compute_capability / 10,
            d->compute_capability % 10, d->multiprocessors, d->clock_mhz, d->driver_version / 1000,
            d->driver_version % 1000 / 10);
    fprintf(f,
            "%sregime: %s; graphs of launches, operands rotate through more than three L2 caches of %s, "
            "random data\n",
            mark, b->o.sustained ? "sustained, blocks of 0.3 s in turn" : "burst, samples of 2 ms in turn",
            cli_bytes((double)d->l2, l2, sizeof l2));
    fprintf(f, "%speak: the data sheet's at that clock (Hopper's rates); pointwise: the copy beside it\n",
            mark);
}

static void head_cpu(const bench *b, FILE *f, const char *mark)
{
    const strata_device_info *d = &b->device;
    char l1[32], l2[32], l3[32];
    fprintf(f, "%sStrata %s on %s: %s, %d of %d processors used\n", mark, strata_version(), d->name, d->isa,
            b->o.threads, d->processors);
    fprintf(f, "%scaches L1d %s, L2 %s, L3 %s a core (%s)\n", mark, cli_bytes((double)d->l1d, l1, sizeof l1),
            cli_bytes((double)d->l2, l2, sizeof l2), cli_bytes((double)d->l3, l3, sizeof l3),
            d->cache_source);
    fprintf(f, "%speak: %s, measured beside every batch; percentages are against it (f64: half of it)\n",
            mark, bench_fma_best()->name);
}

void report_head(const bench *b, FILE *f, const char *mark)
{
    fprintf(f, "%s%s\n", mark, b->command);
    (b->device.multiprocessors > 0 ? head_cuda : head_cpu)(b, f, mark);
    for (int i = 0; i < b->peers.n; i++)
        fprintf(f, "%s%s: %s, %s\n", mark, b->peers.p[i].name, b->peers.p[i].version, b->peers.p[i].path);
    for (const char *n = b->peers.notes; *n;) {
        size_t len = strcspn(n, "\n");
        fprintf(f, "%snote: %.*s\n", mark, (int)len, n);
        n += len + (n[len] == '\n');
    }
}

static const char *const wrong_word = "WRONG";

static void number(char *buf, size_t n, double v)
{
    if (!isfinite(v))
        snprintf(buf, n, "-");
    else
        snprintf(buf, n, v < 10 ? "%.2f" : "%.1f", v);
}

static int width_of(const char *name) { return (int)strlen(name) > 8 ? (int)strlen(name) : 8; }

static void table_head(const bench *b)
{
    report_head(b, stdout, "");
    printf("\n%-32s", b->rows[0].unit);
    for (int i = 0; i < b->column_count; i++) {
        printf(" %*s", width_of(b->columns[i]), b->columns[i]);
        if (i == 0) printf("      %%");
    }
    printf("%s   ratio to\n", b->o.plan ? "    plan to            " : "");
}

static void table_row(const bench *b, const bench_case *c)
{
    char buf[32], name[100];
    snprintf(name, sizeof name, "%s%s", c->name, c->noisy ? " ~" : "");
    printf("%-32s", name);
    for (int i = 0; i < b->column_count; i++) {
        const contender *k = report_find(c, b->columns[i]);
        if (!k)
            snprintf(buf, sizeof buf, "-");
        else if (k->wrong)
            snprintf(buf, sizeof buf, "%s", wrong_word);
        else
            number(buf, sizeof buf, k->rate);
        printf(" %*s", width_of(b->columns[i]), buf);
        if (i == 0) {
            number(buf, sizeof buf, k ? k->percent : NAN);
            printf(" %6s", buf);
        }
    }
    for (int plan = b->o.plan; plan >= 0; plan--) {
        const char *best = "";
        double r = report_ratio(c, plan, &best);
        if (r > 0)
            printf(" %7.3f %-14s", r, best);
        else
            printf(" %7s %-14s", "-", "");
    }
    putchar('\n');
    for (int i = 0; i < c->n; i++)
        if (c->c[i].wrong)
            printf("    %s gives wrong results here (error %.3g times its bound): not timed, not counted\n",
                   c->c[i].name, c->c[i].error);
}

static void tsv_row(const bench_case *c)
{
    static const char *const kinds[] = {"ours", "peer", "prepared", "reference"};
    for (int i = 0; i < c->n; i++) {
        const contender *k = &c->c[i];
        printf("%s\t%s\t%s\t%.6g\t%s\t%.4g\t%.6g\t%.5g\t%.3g\t%d\t%d\t%d\t%s\n", c->name, k->name,
               kinds[k->kind], k->rate, c->unit, k->percent, k->us, k->ratio, k->error, k->wrong, k->rounds,
               c->noisy, k->note);
    }
}

void report_case(bench *b, const bench_case *c)
{
    cli_progress_end(&b->progress);
    if (!b->o.json) {
        if (!b->head_shown && b->o.tsv) {
            report_head(b, stdout, "# ");
            printf(
                "case\tcontender\tkind\trate\tunit\tpercent\tus\tratio\terror\twrong\trounds\tnoisy\tnote\n");
        } else if (!b->head_shown) {
            table_head(b);
        }
        b->head_shown = true;
        if (b->o.tsv)
            tsv_row(c);
        else
            table_row(b, c);
        fflush(stdout);
    }
}

static void table_end(const bench *b)
{
    int n;
    bool noisy = false;
    for (int i = 0; i < b->count; i++) noisy = noisy || b->rows[i].noisy;
    if (b->device.multiprocessors > 0)
        printf("\npeak by the data sheet %.1f GFLOP/s (f32)", b->peak);
    else
        printf("\nFMA peak %.1f GFLOP/s (f32, best probe of %d thread%s)", b->peak, b->o.threads,
               b->o.threads == 1 ? "" : "s");
    if (b->copy_gbs > 0)
        printf(b->device.multiprocessors > 0 ? ", memory %.1f GB/s" : ", copy of memory %.1f GB/s",
               b->copy_gbs);
    printf("\nrate of strata over that of");
    for (int i = 1; i < b->column_count; i++) {
        double m = report_mean(b, b->columns[i], false, &n);
        if (m > 0) printf("  %s %.3f (%d)", b->columns[i], m, n);
    }
    printf("\n");
    every_group(b, group_line, (char[]){""});
    if (noisy) printf("~ fewer than three quiet rounds: all rounds counted, less sure\n");
    for (int plan = b->o.plan; plan >= 0; plan--) {
        double m = report_mean(b, NULL, plan, &n);
        if (m > 0)
            printf("geometric mean of ratios to the best peer%s: %.3f over %d case%s\n",
                   plan ? " (plan)" : "", m, n, n == 1 ? "" : "s");
    }
}

static void json_case(cli_json *j, const bench_case *c)
{
    static const char *const kinds[] = {"ours", "peer", "prepared", "reference"};
    const char *best = NULL;
    double r = report_ratio(c, false, &best);
    cli_json_open(j, NULL, '{');
    cli_json_string(j, "case", c->name);
    cli_json_string(j, "unit", c->unit);
    cli_json_number(j, "flops", c->flops);
    cli_json_number(j, "bytes", c->bytes);
    cli_json_bool(j, "noisy", c->noisy);
    cli_json_number(j, "ratio", r > 0 ? r : NAN);
    cli_json_string(j, "best_peer", best);
    cli_json_open(j, "contenders", '[');
    for (int i = 0; i < c->n; i++) {
        const contender *k = &c->c[i];
        cli_json_open(j, NULL, '{');
        cli_json_string(j, "name", k->name);
        cli_json_string(j, "kind", kinds[k->kind]);
        cli_json_number(j, "rate", k->wrong ? NAN : k->rate);
        cli_json_number(j, "percent", k->wrong ? NAN : k->percent);
        cli_json_number(j, "us", k->wrong ? NAN : k->us);
        cli_json_number(j, "ratio", k->wrong ? NAN : k->ratio);
        cli_json_number(j, "error_over_bound", k->error);
        cli_json_bool(j, "wrong", k->wrong);
        cli_json_integer(j, "rounds", k->rounds);
        cli_json_string(j, "note", k->note);
        cli_json_close(j, '}');
    }
    cli_json_close(j, ']');
    cli_json_close(j, '}');
}

static void json_end(const bench *b)
{
    cli_json j = {.f = stdout};
    int n;
    double m = report_mean(b, NULL, false, &n);
    cli_json_open(&j, NULL, '{');
    cli_json_string(&j, "command", b->command);
    cli_json_string(&j, "version", strata_version());
    cli_json_string(&j, "processor", b->device.name);
    cli_json_string(&j, "isa", b->device.isa);
    cli_json_integer(&j, "threads", b->o.threads);
    cli_json_string(&j, "peak_kind", bench_fma_best()->name);
    cli_json_number(&j, "peak_gflops", b->peak);
    cli_json_number(&j, "copy_gbs", b->copy_gbs > 0 ? b->copy_gbs : NAN);
    cli_json_open(&j, "peers", '[');
    for (int i = 0; i < b->peers.n; i++) {
        cli_json_open(&j, NULL, '{');
        cli_json_string(&j, "name", b->peers.p[i].name);
        cli_json_string(&j, "version", b->peers.p[i].version);
        cli_json_string(&j, "path", b->peers.p[i].path);
        cli_json_close(&j, '}');
    }
    cli_json_close(&j, ']');
    cli_json_string(&j, "notes", b->peers.notes);
    cli_json_open(&j, "cases", '[');
    for (int i = 0; i < b->count; i++) json_case(&j, &b->rows[i]);
    cli_json_close(&j, ']');
    cli_json_open(&j, "groups", '[');
    every_group(b, group_json, &j);
    cli_json_close(&j, ']');
    cli_json_number(&j, "geometric_mean", n ? m : NAN);
    cli_json_integer(&j, "geometric_mean_cases", n);
    cli_json_close(&j, '}');
}

void report_end(const bench *b)
{
    if (b->o.json)
        json_end(b);
    else if (b->o.tsv) {
        int n;
        double m = report_mean(b, NULL, false, &n);
        every_group(b, group_line, (char[]){"# "});
        if (n) printf("# geometric mean of ratios to the best peer: %.4f over %d cases\n", m, n);
    } else if (b->count) {
        table_end(b);
    }
}
