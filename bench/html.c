/* SPDX-License-Identifier: Apache-2.0 */
/* html.c - one page without any outside resource: the machine, the roofline, ratios by case, the table. Plots are inline SVG;
 * the number behind a point is its tooltip. */
#include "bench.h"
#include <errno.h>
#include <math.h>
#include <string.h>

enum { WIDTH = 860, HEIGHT = 410, LEFT = 60, BOTTOM = 96, TOP = 14, RIGHT = 14 };
static const char *const colours[] = {"#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf",
                                      "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#000080", "#006400",
                                      "#8b008b", "#b8860b", "#4682b4", "#fa8072"};
enum { COLOURS = sizeof colours / sizeof *colours };

typedef struct axes {
    double x0, x1, y0, y1; /* logarithms where `log` */
    bool logx, logy;
} axes;

static double sx(const axes *a, double x)
{
    return LEFT + ((a->logx ? log10(x) : x) - a->x0) / (a->x1 - a->x0) * (WIDTH - LEFT - RIGHT);
}
static double sy(const axes *a, double y)
{
    return HEIGHT - BOTTOM - ((a->logy ? log10(y) : y) - a->y0) / (a->y1 - a->y0) * (HEIGHT - BOTTOM - TOP);
}

static void frame(FILE *f, const char *xlabel, const char *ylabel)
{
    fprintf(f,
            "<svg viewBox=\"0 0 %d %d\" role=\"img\">\n<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
            "class=\"box\"/>\n",
            WIDTH, HEIGHT, LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - BOTTOM - TOP);
    fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", (LEFT + WIDTH - RIGHT) / 2,
            HEIGHT - 8, xlabel);
    fprintf(f, "<text transform=\"translate(14 %d) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
            (TOP + HEIGHT - BOTTOM) / 2, ylabel);
}

static void grid_y(FILE *f, const axes *a, double y)
{
    fprintf(f,
            "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" class=\"grid\"/><text x=\"%d\" y=\"%.1f\" "
            "text-anchor=\"end\">%g</text>\n",
            LEFT, WIDTH - RIGHT, sy(a, y), sy(a, y), LEFT - 5, sy(a, y) + 4, y);
}

static void legend(const bench *b, FILE *f)
{
    fputs("<p class=\"legend\">", f);
    for (int i = 0; i < b->column_count; i++) {
        fprintf(f, "<span style=\"color:%s\">&#9679;</span> ", colours[i % COLOURS]);
        cli_html_text(f, b->columns[i]);
        fputs(" &nbsp; ", f);
    }
    fputs("</p>\n", f);
}

/* Attainable GFLOP/s over intensity, and every contender's point. */
static void roofline(const bench *b, FILE *f)
{
    double lo = INFINITY, hi = 0, least = INFINITY, scale = 1;
    for (int i = 0; i < b->count; i++) {
        const bench_case *c = &b->rows[i];
        double x = c->flops / c->bytes;
        lo = x < lo ? x : lo;
        hi = x > hi ? x : hi;
        scale = c->peak_scale;
        for (int k = 0; k < c->n; k++)
            if (c->c[k].rate > 0 && c->c[k].rate < least) least = c->c[k].rate;
    }
    double peak = b->peak * scale;
    if (!(hi > 0) || !(peak > 0) || !(least < INFINITY)) return;
    axes a = {
        floor(log10(lo)), ceil(log10(hi) + 1e-9), floor(log10(least)), ceil(log10(peak) + 0.02), true, true};
    if (a.x1 <= a.x0) a.x1 = a.x0 + 1;
    fputs("<h2>Roofline</h2>\n<p>Work against the bytes that must move: the roof is the measured FMA peak, "
          "its slope the measured copy of memory. A point "
          "above the slope worked from the caches.</p>\n",
          f);
    frame(f, "flop per compulsory byte", "GFLOP/s");
    for (double e = a.x0; e <= a.x1; e++)
        fprintf(f,
                "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" class=\"grid\"/><text x=\"%.1f\" y=\"%d\" "
                "text-anchor=\"middle\">%g</text>\n",
                sx(&a, pow(10, e)), sx(&a, pow(10, e)), TOP, HEIGHT - BOTTOM, sx(&a, pow(10, e)),
                HEIGHT - BOTTOM + 16, pow(10, e));
    for (double e = a.y0; e <= a.y1; e++) grid_y(f, &a, pow(10, e));
    double knee = b->copy_gbs > 0 ? peak / b->copy_gbs : 0, x0 = pow(10, a.x0), x1 = pow(10, a.x1),
           bottom = pow(10, a.y0);
    double from = knee > x0 ? knee : x0;
    fprintf(f, "<path class=\"roof\" d=\"M%.1f %.1f L%.1f %.1f\"/>\n", sx(&a, from), sy(&a, peak), sx(&a, x1),
            sy(&a, peak));
    if (knee > x0) {
        double start = bottom / b->copy_gbs > x0 ? bottom / b->copy_gbs : x0;
        fprintf(f, "<path class=\"roof\" d=\"M%.1f %.1f L%.1f %.1f\"/>\n", sx(&a, start),
                sy(&a, start * b->copy_gbs), sx(&a, knee), sy(&a, peak));
    }
    /* the first column is Strata's: drawn last, on top */
    for (int k = b->column_count - 1; k >= 0; k--)
        for (int i = 0; i < b->count; i++) {
            const bench_case *c = &b->rows[i];
            const contender *t = report_find(c, b->columns[k]);
            if (!t || t->wrong || !(t->rate > 0)) continue;
            fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\"><title>",
                    sx(&a, c->flops / c->bytes), sy(&a, t->rate), k == 0 ? 5 : 4, colours[k % COLOURS]);
            cli_html_text(f, c->name);
            fprintf(f, ", %s: %.1f GFLOP/s</title></circle>\n", t->name, t->rate);
        }
    fputs("</svg>\n", f);
    legend(b, f);
}

/* the shape without type and transposes: "f32 NN 512x512x512" becomes "512x512x512" */
static const char *short_name(const char *name)
{
    return strncmp(name, "f32 ", 4) == 0 || strncmp(name, "f64 ", 4) == 0 ? name + 7 : name;
}

static void ratios(const bench *b, FILE *f)
{
    double hi = 1.2, lo = 0.8;
    for (int i = 0; i < b->count; i++)
        for (int k = 1; k < b->column_count; k++) {
            const contender *t = report_find(&b->rows[i], b->columns[k]);
            if (!t || t->wrong || !(t->ratio > 0)) continue;
            hi = t->ratio > hi ? t->ratio : hi;
            lo = t->ratio < lo ? t->ratio : lo;
        }
    axes a = {-0.5, b->count - 0.5, floor(log10(lo) * 10) / 10, ceil(log10(hi) * 10) / 10, false, true};
    fputs("<h2>Strata's rate over that of the others</h2>\n<p>Above the heavy line Strata is faster. Median "
          "of the ratios inside rounds.</p>\n",
          f);
    frame(f, "", "ratio");
    static const double ticks[] = {0.1,  0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1,  1.1,
                                   1.25, 1.5, 2,   3,   5,   10,  20,  50, 100};
    double last = 1e9;
    for (size_t i = 0; i < sizeof ticks / sizeof *ticks; i++) {
        if (log10(ticks[i]) < a.y0 || log10(ticks[i]) > a.y1) continue;
        /* labels a line apart; the one of 1 always */
        if (ticks[i] != 1 && (last - sy(&a, ticks[i]) < 14 || fabs(sy(&a, 1) - sy(&a, ticks[i])) < 14))
            continue;
        grid_y(f, &a, ticks[i]);
        last = sy(&a, ticks[i]);
    }
    fprintf(f, "<path class=\"roof\" d=\"M%d %.1f H%d\"/>\n", LEFT, sy(&a, 1), WIDTH - RIGHT);
    int every = 1 + b->count / 50;
    for (int i = 0; i < b->count; i += every) {
        fprintf(f, "<text transform=\"translate(%.1f %d) rotate(-35)\" text-anchor=\"end\">", sx(&a, i) + 4,
                HEIGHT - BOTTOM + 14);
        cli_html_text(f, short_name(b->rows[i].name));
        fputs("</text>\n", f);
    }
    for (int k = b->column_count - 1; k > 0; k--) {
        bool open = false;
        for (int i = 0; i < b->count; i++) {
            const contender *t = report_find(&b->rows[i], b->columns[k]);
            if (!t || t->wrong || !(t->ratio > 0)) continue;
            if (!open)
                fprintf(f, "<polyline fill=\"none\" stroke=\"%s\" stroke-opacity=\"0.5\" points=\"",
                        colours[k % COLOURS]);
            open = true;
            fprintf(f, "%.1f,%.1f ", sx(&a, i), sy(&a, t->ratio));
        }
        if (open) fputs("\"/>\n", f);
        for (int i = 0; i < b->count; i++) {
            const contender *t = report_find(&b->rows[i], b->columns[k]);
            if (!t || t->wrong || !(t->ratio > 0)) continue;
            fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"><title>", sx(&a, i),
                    sy(&a, t->ratio), colours[k % COLOURS]);
            cli_html_text(f, b->rows[i].name);
            fprintf(f, ": %.3f of %s</title></circle>\n", t->ratio, t->name);
        }
    }
    fputs("</svg>\n", f);
    legend(b, f);
}

static void cell(FILE *f, const contender *t, bool ours)
{
    if (!t)
        fputs("<td>-</td>", f);
    else if (t->wrong)
        fprintf(f, "<td class=\"bad\" title=\"error %.3g times its bound\">wrong</td>", t->error);
    else {
        fprintf(f, "<td title=\"%.4g us, %d rounds; ", t->us, t->rounds);
        cli_html_text(f, t->note);
        fprintf(f, "\"%s>%.*f<small> %.0f%%</small></td>", ours ? " class=\"ours\"" : "",
                t->rate < 10 ? 2 : 1, t->rate, t->percent);
    }
}

static void table(const bench *b, FILE *f)
{
    fprintf(f,
            "<h2>Every case</h2>\n<p>%s, with the percentage of %s beside it. Hover for times and "
            "kernels.</p>\n<table><tr><th>#</th><th>case</th>",
            b->rows[0].unit, b->rows[0].peak_scale > 0 ? "the FMA peak measured" : "the copy measured");
    for (int i = 0; i < b->column_count; i++) {
        fputs("<th>", f);
        cli_html_text(f, b->columns[i]);
        fputs("</th>", f);
    }
    fputs("<th>ratio</th><th>to</th></tr>\n", f);
    for (int i = 0; i < b->count; i++) {
        const bench_case *c = &b->rows[i];
        const char *best = "";
        double r = report_ratio(c, b->o.plan, &best);
        fprintf(f, "<tr><td>%d</td><th>", i + 1);
        cli_html_text(f, c->name);
        fprintf(f, "%s</th>", c->noisy ? " ~" : "");
        for (int k = 0; k < b->column_count; k++) cell(f, report_find(c, b->columns[k]), k == 0);
        if (r > 0)
            fprintf(f, "<td class=\"%s\">%.3f</td><td>", r >= 1 ? "good" : "bad", r);
        else
            fputs("<td>-</td><td>", f);
        cli_html_text(f, best);
        fputs("</td></tr>\n", f);
    }
    fputs("</table>\n", f);
}

static void machine(const bench *b, FILE *f)
{
    FILE *lines = tmpfile();
    char line[1024];
    if (!lines) return;
    report_head(b, lines, "");
    rewind(lines);
    fputs("<ul>\n", f);
    while (fgets(line, sizeof line, lines)) {
        line[strcspn(line, "\n")] = 0;
        fputs("<li>", f);
        cli_html_text(f, line);
        fputs("</li>\n", f);
    }
    fprintf(f, "<li>best FMA probe %.1f GFLOP/s (f32)", b->peak);
    if (b->copy_gbs > 0) fprintf(f, ", copy of memory %.1f GB/s", b->copy_gbs);
    fputs("</li>\n</ul>\n", f);
    fclose(lines);
}

bool report_html(const bench *b, const char *file)
{
    FILE *f = fopen(file, "w");
    if (!f) return false;
    int n;
    double mean = report_mean(b, NULL, b->o.plan, &n);
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
          "content=\"width=device-width\">\n<title>strata bench ",
          f);
    cli_html_text(f, b->o.what);
    fputs("</title>\n<style>\nbody{font:15px/1.5 system-ui,sans-serif;max-width:1000px;margin:2em "
          "auto;padding:0 1em;color:#222;background:#fff}\n"
          "svg{width:100%;height:auto;font-size:11px}svg "
          "text{fill:#555}.box{fill:none;stroke:#999}.grid{stroke:#ddd}.roof{stroke:#333;stroke-width:2;fill:"
          "none}\n"
          "table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px}td,th{padding:2px "
          "8px;border-bottom:1px solid #ddd;text-align:right}\n"
          "tr>th{font-weight:normal;text-align:left}tr:first-child>th{font-weight:bold}.ours{font-weight:"
          "bold}.good{color:#1a7f37}.bad{color:#b42318}\n"
          "small{color:#888}li{word-break:break-word}\n"
          "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}svg "
          "text{fill:#aaa}.grid{stroke:#333}.roof{stroke:#ccc}td,th{border-color:#333}}\n"
          "</style></head><body>\n<h1>strata bench ",
          f);
    cli_html_text(f, b->o.what);
    fputs("</h1>\n", f);
    if (n)
        fprintf(f, "<p><b>%.3f</b> times the best peer's rate, geometric mean over %d case%s.</p>\n", mean, n,
                n == 1 ? "" : "s");
    machine(b, f);
    if (b->rows[0].flops > 0) roofline(b, f);
    ratios(b, f);
    table(b, f);
    fputs("</body></html>\n", f);
    bool ok = !ferror(f);
    return fclose(f) == 0 && ok;
}
