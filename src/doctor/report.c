/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - the map of the six layers and the verdict: as text, as JSON (documented in docs/diagnosing.md), as one HTML page. */
#include "doctor/json.h"
#include "doctor/machine.h"
#include <string.h>

static const char *const titles[ST_LAYER_COUNT] = {"hardware",       "driver",     "runtime and toolkit",
                                                   "base libraries", "frameworks", "application"};

static int exit_code(const st_doctor *d) { return st_doctor_verdict(d) ? ST_FAULT : ST_HEALTHY; }

static int count_state(const st_doctor *d, enum st_state state)
{
    int n = 0;
    for (int i = 0; i < d->count; i++) n += d->findings[i].state == state;
    return n;
}

static void healthy_words(const st_doctor *d, char *out, size_t n)
{
    int warnings = count_state(d, ST_FINDING_WARNING);
    st_put(out, n, "%s%s",
           st_doctor_has_gpu(d) ? "no fault in any layer"
                                : "no GPU here, and nothing is wrong: healthy for work on the CPU",
           warnings == 0   ? ""
           : warnings == 1 ? "; one warning, see above"
                           : "; some warnings, see above");
}

int st_print_fault(const st_doctor *d, FILE *out)
{
    const st_finding *v = st_doctor_verdict(d);
    if (!v) return ST_HEALTHY;
    int more = count_state(d, ST_FINDING_FAULT) - 1;
    fprintf(out, "verdict: the fault is in layer %d, %s\n  what     ", (int)v->layer + 1, titles[v->layer]);
    st_wrap(out, 11, 11, v->text);
    fprintf(out, "  seen in  ");
    st_wrap(out, 11, 11, v->evidence);
    fprintf(out, "  fix      ");
    st_wrap(out, 11, 11, v->fix);
    if (v->avoid[0]) {
        fprintf(out, "  not      ");
        st_wrap(out, 11, 11, v->avoid);
    }
    if (more)
        fprintf(out, "  %d more fault%s above it: look again after this one is mended, it may be the cause\n",
                more, more == 1 ? "" : "s");
    return ST_FAULT;
}

int st_doctor_text(const st_doctor *d, FILE *out)
{
    static const char *const words[] = {"ok", "note", "warning", "FAULT", "-"};
    int layer = -1;
    fprintf(out, "%s\n", d->summary);
    for (int i = 0; i < d->count; i++) {
        const st_finding *f = st_doctor_finding(d, i);
        if ((int)f->layer != layer) fprintf(out, "\n%d %s\n", (layer = (int)f->layer) + 1, titles[f->layer]);
        fprintf(out, "  %-8s ", words[f->state]);
        st_wrap(out, 11, 11, f->text);
        if (f->evidence[0] &&
            (f->state == ST_FINDING_WARNING || f->state == ST_FINDING_OK || f->state == ST_FINDING_NOTE)) {
            fprintf(out, "%11s", "");
            st_wrap(out, 11, 11, f->evidence);
        }
        if (f->fix[0] && (f->state == ST_FINDING_WARNING || f->state == ST_FINDING_NOTE)) {
            fprintf(out, "%11sfix: ", "");
            st_wrap(out, 16, 16, f->fix);
        }
    }
    const st_finding *v = st_doctor_verdict(d);
    if (!v) {
        char text[160];
        healthy_words(d, text, sizeof text);
        fprintf(out, "\nverdict: %s\n", text);
        return ST_HEALTHY;
    }
    fputc('\n', out);
    return st_print_fault(d, out);
}

static void json_finding(const st_finding *f, const char *key, st_json *j)
{
    st_json_open(j, key, '{');
    st_json_string(j, "layer", st_layer_names[f->layer]);
    st_json_string(j, "state", st_state_names[f->state]);
    st_json_string(j, "id", f->id);
    st_json_string(j, "text", f->text);
    st_json_string(j, "evidence", f->evidence[0] ? f->evidence : NULL);
    st_json_string(j, "fix", f->fix[0] ? f->fix : NULL);
    st_json_string(j, "avoid", f->avoid[0] ? f->avoid : NULL);
    st_json_close(j, '}');
}

int st_json_findings(const st_doctor *d, st_json *j)
{
    const st_finding *v = st_doctor_verdict(d);
    st_json_bool(j, "healthy", !v);
    if (v)
        json_finding(v, "verdict", j);
    else
        st_json_string(j, "verdict", NULL);
    st_json_open(j, "findings", '[');
    for (int i = 0; i < d->count; i++) json_finding(st_doctor_finding(d, i), NULL, j);
    st_json_close(j, ']');
    return exit_code(d);
}

int st_doctor_json(const st_doctor *d, FILE *out)
{
    const st_machine *m = &d->m;
    st_json j = {.f = out};
    st_json_open(&j, NULL, '{');
    st_json_integer(&j, "format", 1);
    int code = st_json_findings(d, &j);
    st_json_open(&j, "machine", '{');
    st_json_string(&j, "os", m->os[0] ? m->os : NULL);
    st_json_string(&j, "kernel", m->kernel[0] ? m->kernel : NULL);
    st_json_bool(&j, "wsl", m->wsl);
    st_json_string(&j, "container", m->container[0] ? m->container : NULL);
    st_json_string(&j, "driver", m->driver[0] ? m->driver : NULL);
    st_json_string(&j, "driver_max_cuda", m->driver[0] ? st_driver_cuda(m->facts, m->driver, NULL) : NULL);
    st_json_open(&j, "gpus", '[');
    for (int i = 0; i < m->gpu_count; i++) {
        char id[16], cc[16];
        const st_pci_gpu *g = &m->gpus[i];
        st_put(id, sizeof id, "10de:%04x", g->device);
        st_put(cc, sizeof cc, "%d.%d", g->gpu.cc / 10, g->gpu.cc % 10);
        st_json_open(&j, NULL, '{');
        st_json_string(&j, "bus", g->bus);
        st_json_string(&j, "id", id);
        st_json_string(&j, "name", g->known ? g->gpu.name : NULL);
        st_json_string(&j, "compute_capability", g->gpu.cc ? cc : NULL);
        st_json_string(&j, "driver", g->driver[0] ? g->driver : NULL);
        st_json_close(&j, '}');
    }
    st_json_close(&j, ']');
    st_json_open(&j, "toolkits", '[');
    for (int i = 0; i < m->toolkit_count; i++) {
        st_json_open(&j, NULL, '{');
        st_json_string(&j, "path", m->toolkits[i].path);
        st_json_string(&j, "version", m->toolkits[i].version);
        st_json_bool(&j, "default", m->toolkits[i].is_default);
        st_json_close(&j, '}');
    }
    st_json_close(&j, ']');
    st_json_open(&j, "copies", '[');
    for (int i = 0; i < m->copy_count; i++) {
        const st_copy *c = &m->copies[i];
        st_json_open(&j, NULL, '{');
        st_json_string(&j, "name", c->name);
        st_json_string(&j, "path", c->path);
        st_json_string(&j, "file", c->real);
        st_json_string(&j, "route", st_route_names[c->route]);
        st_json_string(&j, "version", c->version[0] ? c->version : NULL);
        st_json_string(&j, "version_from", c->version_from[0] ? c->version_from : NULL);
        st_json_string(&j, "problem", c->broken ? "broken link" : c->damaged);
        st_json_close(&j, '}');
    }
    st_json_close(&j, ']');
    st_json_close(&j, '}');
    st_json_close(&j, '}');
    return code;
}

/* ---- HTML: one file without scripts or references, to be sent to a colleague ---------------------------------------------- */
static void escaped(FILE *out, const char *s)
{
    while (*s) {
        int n = st_utf8_length(s);
        if (*s == '<')
            fputs("&lt;", out);
        else if (*s == '>')
            fputs("&gt;", out);
        else if (*s == '&')
            fputs("&amp;", out);
        else if (*s == '"')
            fputs("&quot;", out);
        else if (n == 0 || (n == 1 && (unsigned char)*s < 32))
            fputs("&#xfffd;", out);
        else
            fwrite(s, 1, (size_t)n, out);
        s += n ? n : 1;
    }
}

static void row(FILE *out, const char *label, const char *text, bool code)
{
    if (!*text) return;
    fprintf(out, "<dt>%s</dt><dd>%s", label, code ? "<code>" : "");
    escaped(out, text);
    fprintf(out, "%s</dd>\n", code ? "</code>" : "");
}

int st_doctor_html(const st_doctor *d, FILE *out)
{
    static const char style[] =
        "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:60em;padding:0 "
        "1em;color:#1b1f24;background:#fff}"
        "h1{font-size:1.3em}section{border:1px solid "
        "#d0d7de;border-left-width:8px;border-radius:6px;margin:.6em 0;padding:.2em 1em}"
        ".ok{border-left-color:#2da44e}.warning{border-left-color:#bf8700}.fault{border-left-color:#cf222e;"
        "background:#fff5f5}"
        ".absent{border-left-color:#afb8c1}.note{border-left-color:#54aeff}h2{font-size:1.05em;margin:.4em "
        "0}ul{margin:.3em 0;padding-left:1.2em}"
        "li "
        "small{color:#57606a;overflow-wrap:anywhere}b.fault{color:#cf222e;background:none}b.warning{color:#"
        "9a6700}b.ok{color:#1a7f37}b.note{color:#0969da}"
        "b.absent{color:#57606a}dl{display:grid;grid-template-columns:6em 1fr;gap:.2em .8em;margin:.4em "
        "0}dt{color:#57606a}dd{margin:0}"
        "code{background:#f6f8fa;padding:.1em "
        ".3em;border-radius:4px;overflow-wrap:anywhere}.verdict{border:2px solid "
        "#cf222e;border-radius:6px;padding:.3em 1em}"
        ".verdict.fine{border-color:#2da44e}";
    const st_finding *v = st_doctor_verdict(d);
    fprintf(out,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
            "content=\"width=device-width\">"
            "<title>strata doctor</title><style>%s</style></head><body>\n<h1>strata doctor: ",
            style);
    escaped(out, d->summary);
    fprintf(out, "</h1>\n<div class=\"verdict%s\"><h2>Verdict: ", v ? "" : " fine");
    if (v) {
        fprintf(out, "the fault is in layer %d, %s</h2><dl>\n", (int)v->layer + 1, titles[v->layer]);
        row(out, "what", v->text, false);
        row(out, "seen in", v->evidence, false);
        row(out, "fix", v->fix, true);
        row(out, "not", v->avoid, false);
        fputs("</dl></div>\n", out);
    } else {
        char text[160];
        healthy_words(d, text, sizeof text);
        fprintf(out, "%s</h2></div>\n", text);
    }
    for (int layer = ST_LAYER_COUNT - 1; layer >= 0; layer--) { /* as a stack: what stands on what */
        static const int rank[] = {1, 2, 3, 4, 0};
        enum st_state worst = ST_FINDING_ABSENT;
        for (int i = 0; i < d->count; i++)
            if ((int)d->findings[i].layer == layer && rank[d->findings[i].state] > rank[worst])
                worst = d->findings[i].state;
        fprintf(out, "<section class=\"%s\"><h2>%d %s</h2><ul>\n", st_state_names[worst], layer + 1,
                titles[layer]);
        for (int i = 0; i < d->count; i++) {
            const st_finding *f = &d->findings[i];
            if ((int)f->layer != layer) continue;
            fprintf(out, "<li><b class=\"%s\">%s</b> ", st_state_names[f->state], st_state_names[f->state]);
            escaped(out, f->text);
            if (f->evidence[0]) {
                fputs("<br><small>", out);
                escaped(out, f->evidence);
                fputs("</small>", out);
            }
            if (f->fix[0] && f != v) {
                fputs("<br><small>fix: ", out);
                escaped(out, f->fix);
                fputs("</small>", out);
            }
            fputs("</li>\n", out);
        }
        fputs("</ul></section>\n", out);
    }
    fprintf(out, "<p><small>Made by strata doctor; files were read only, nothing was "
                 "changed.</small></p></body></html>\n");
    return exit_code(d);
}
