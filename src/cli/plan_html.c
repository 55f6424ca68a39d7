/* SPDX-License-Identifier: Apache-2.0 */
/* plan_html.c - the page of `strata plan --html`: the roofline with the problem's intensity, a bar a candidate (predicted and measured
 * times), the refused ones with their reasons, the plan's own text. One page without any outside resource; plots are inline SVG. */
#include "cli/problem.h"
#include <math.h>
#include <string.h>

enum { WIDTH = 860, LEFT = 330, RIGHT = 90, ROW = 34 };

/* Rate against intensity, both logarithmic: the slope of memory, the roof of arithmetic, the problem's line, and the best measured rate on it. */
static void roofline(FILE *f, const cli_problem *p, const cli_roof *r, double best_us)
{
    enum { W = WIDTH, H = 330, L = 70, R = 20, T = 16, B = 50 };
    const double x = p->flops / p->bytes, knee = r->gflops / r->gbs;
    const double x0 = log10(x < knee ? x : knee) - 1, x1 = log10(x > knee ? x : knee) + 1;
    const double y1 = log10(r->gflops) + 0.3, y0 = y1 - (x1 - x0);
#define X(v) (L + (log10(v) - x0) / (x1 - x0) * (W - L - R))
#define Y(v) (H - B - (log10(v) - y0) / (y1 - y0) * (H - B - T))
    const double low = pow(10, x0), high = pow(10, x1), start = low * r->gbs, bottom = pow(10, y0);
    const double from = start > bottom ? low : bottom / r->gbs;
    fprintf(f, "<h2>Roofline</h2>\n<svg viewBox=\"0 0 %d %d\" role=\"img\">\n", W, H);
    fprintf(f, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"box\"/>\n", L, T, W - L - R,
            H - T - B);
    for (double e = ceil(x0); e <= x1; e++)
        fprintf(f,
                "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" class=\"grid\"/><text x=\"%.1f\" y=\"%d\" "
                "text-anchor=\"middle\">%g</text>\n",
                X(pow(10, e)), X(pow(10, e)), T, H - B, X(pow(10, e)), H - B + 16, pow(10, e));
    for (double e = ceil(y0); e <= y1; e++)
        fprintf(f,
                "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" class=\"grid\"/><text x=\"%d\" y=\"%.1f\" "
                "text-anchor=\"end\">%g</text>\n",
                L, W - R, Y(pow(10, e)), Y(pow(10, e)), L - 6, Y(pow(10, e)) + 4, pow(10, e));
    fprintf(f, "<path class=\"roof\" d=\"M%.1f %.1f L%.1f %.1f L%.1f %.1f\"/>\n", X(from), Y(from * r->gbs),
            X(knee), Y(r->gflops), X(high), Y(r->gflops));
    const double roof = x < knee ? x * r->gbs : r->gflops;
    fprintf(f, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%.1f\" class=\"problem\"/>\n", X(x), X(x), H - B,
            Y(roof));
    if (best_us > 0) {
        double rate = p->flops / best_us * 1e-3;
        if (rate < bottom) rate = bottom;
        if (rate > pow(10, y1)) rate = pow(10, y1);
        fprintf(
            f,
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" class=\"point\"><title>%.4g GFLOP/s</title></circle>\n",
            X(x), Y(rate), rate);
    }
    fprintf(
        f,
        "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">operations a compulsory byte (the problem: "
        "%.3g)</text>\n"
        "<text transform=\"translate(16 %d) rotate(-90)\" text-anchor=\"middle\">GFLOP/s</text>\n</svg>\n",
        (L + W - R) / 2, H - 12, x, (T + H - B) / 2);
#undef X
#undef Y
    fprintf(
        f,
        "<p>%s: arithmetic %.4g us at %.4g GFLOP/s, memory %.4g us at %.4g GB/s; floor about %.4g us.</p>\n",
        r->how, r->work_us, r->gflops, r->move_us, r->gbs, r->floor_us);
}

static void bar(FILE *f, double y, double us, double most, const char *class)
{
    const double w = us / most * (WIDTH - LEFT - RIGHT);
    fprintf(f,
            "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"12\" class=\"%s\"/><text x=\"%.1f\" "
            "y=\"%.1f\">%.4g</text>\n",
            LEFT, y, w > 1 ? w : 1, class, LEFT + (w > 1 ? w : 1) + 4, y + 10, us);
}

/* Bars up to eight times the best; slower ones are named below. */
static void bars(FILE *f, const cli_roof *roof, const strata_candidate *c, int n)
{
    double best = INFINITY, most = 0;
    int shown = 0;
    for (int i = 0; i < n; i++) {
        const double us = c[i].measured_us > 0 ? c[i].measured_us : c[i].predicted_us;
        if (us >= 0 && us < best) best = us;
    }
    for (int i = 0; i < n; i++) {
        if (c[i].predicted_us < 0 || (c[i].measured_us > 0 ? c[i].measured_us : c[i].predicted_us) > 8 * best)
            continue;
        shown++;
        if (c[i].predicted_us > most && c[i].predicted_us <= 16 * best) most = c[i].predicted_us;
        if (c[i].measured_us > most) most = c[i].measured_us;
    }
    if (!shown || !(most > 0)) return;
    fprintf(f, "<h2>Candidates, microseconds</h2>\n<svg viewBox=\"0 0 %d %d\" role=\"img\">\n", WIDTH,
            shown * ROW + 10);
    int row = 0;
    for (int i = 0; i < n; i++) {
        if (c[i].predicted_us < 0 || (c[i].measured_us > 0 ? c[i].measured_us : c[i].predicted_us) > 8 * best)
            continue;
        const double y = row++ * ROW + 4;
        fprintf(f, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\"%s>", LEFT - 6, y + 16,
                c[i].chosen ? " class=\"chosen\"" : "");
        cli_html_text(f, c[i].kernel);
        fprintf(f, "<title>%s</title></text>\n", c[i].code);
        if (c[i].measured_us > 0) bar(f, y, c[i].measured_us, most, "measured");
        bar(f, y + 13, c[i].predicted_us < most ? c[i].predicted_us : most, most, "predicted");
    }
    if (roof && roof->floor_us > 0 && roof->floor_us < most) {
        const double x = LEFT + roof->floor_us / most * (WIDTH - LEFT - RIGHT);
        fprintf(f,
                "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%d\" "
                "class=\"problem\"><title>floor</title></line>\n",
                x, x, shown * ROW);
    }
    fputs("</svg>\n<p><span class=\"key measured\"></span> measured <span class=\"key predicted\"></span> "
          "predicted; the "
          "dashed line is the roofline's floor; bold is the choice.</p>\n",
          f);
}

static void table(FILE *f, const strata_candidate *c, int n)
{
    fputs("<h2>All of them</h2>\n<table><tr><th>kernel</th><th>measured us</th><th>predicted "
          "us</th><th>workspace</th>"
          "<th>order of summation, or why it cannot</th><th>code</th></tr>\n",
          f);
    for (int i = 0; i < n; i++) {
        fprintf(f, "<tr%s><td>", c[i].chosen ? " class=\"chosen\"" : "");
        cli_html_text(f, c[i].kernel);
        if (c[i].measured_us > 0)
            fprintf(f, "</td><td>%.2f</td>", c[i].measured_us);
        else
            fputs("</td><td></td>", f);
        if (c[i].predicted_us >= 0)
            fprintf(f, "<td>%.2f</td><td>%zu</td><td>", c[i].predicted_us, c[i].workspace);
        else
            fputs("<td>refused</td><td></td><td>", f);
        cli_html_text(f, c[i].predicted_us >= 0 ? c[i].order : c[i].why);
        fprintf(f, "</td><td>%s</td></tr>\n", c[i].code);
    }
    fputs("</table>\n", f);
}

bool cli_plan_html(const char *path, strata_handle *h, const cli_problem *p, const cli_roof *roof,
                   const strata_candidate *c, int count, const char *verdict)
{
    double best = 0;
    FILE *f = fopen(path, "w");
    if (!f) return false;
    for (int i = 0; i < count; i++)
        if (c[i].measured_us > 0 && (best == 0 || c[i].measured_us < best)) best = c[i].measured_us;
    fputs("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>strata plan</title><style>\n"
          "body{font:14px sans-serif;max-width:900px;margin:2em "
          "auto;color:#222}svg{width:100%;font-size:11px}\n"
          ".box{fill:none;stroke:#999}.grid{stroke:#e4e4e4}.roof{fill:none;stroke:#444;stroke-width:2}\n"
          ".problem{stroke:#d62728;stroke-dasharray:4 "
          "3}.point{fill:#d62728}.measured{fill:#1f77b4;background:#1f77b4}\n"
          ".predicted{fill:#b8c9d9;background:#b8c9d9}.chosen{font-weight:bold}.key{display:inline-block;"
          "width:12px;height:12px}\n"
          "table{border-collapse:collapse;font-size:12px}td,th{border:1px solid #ddd;padding:2px "
          "6px;text-align:left}\n"
          "pre{background:#f6f6f6;padding:8px;overflow-x:auto;font-size:12px}</style></"
          "head><body>\n<h1>strata plan: ",
          f);
    const char *described = strata_plan_describe(p->plan);
    char title[256];
    snprintf(title, sizeof title, "%.*s", (int)strcspn(described, "\n"), described);
    cli_html_text(f, title);
    fprintf(f, "</h1>\n<p>%.6g operations, %.6g bytes at least, on %s. ", p->flops, p->bytes,
            strata_handle_device(h));
    cli_html_text(f, verdict);
    fputs("</p>\n", f);
    if (roof && p->flops > 0 && p->bytes > 0) roofline(f, p, roof, best);
    bars(f, roof, c, count);
    table(f, c, count);
    fputs("<h2>What the plan says</h2>\n<pre>", f);
    cli_html_text(f, described);
    fputs("</pre>\n</body></html>\n", f);
    const bool ok = !ferror(f);
    return fclose(f) == 0 && ok;
}
