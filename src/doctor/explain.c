/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - the matcher's hits in words: what it means, whose fault it is, causes, how to confirm, what to do. */
#include "doctor/explain.h"
#include "doctor/json.h"
#include "doctor/root.h"
#include "facts/facts.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct st_explain {
    st_facts *facts;
    st_matcher *matcher;
    bool typed;
    char text[4096]; /* what was typed */
    int seen;        /* what the doctor finds on this machine */
    struct {
        char finding[32], text[360];
    } machine[24];
};

st_explain *st_explain_open(void)
{
    st_explain *e = calloc(1, sizeof *e);
    if (!e) return NULL;
    e->facts = st_facts_open();
    e->matcher = e->facts ? st_matcher_open(e->facts) : NULL;
    if (!e->matcher) {
        st_explain_close(e);
        return NULL;
    }
    return e;
}

void st_explain_close(st_explain *e)
{
    if (!e) return;
    st_matcher_close(e->matcher);
    st_facts_close(e->facts);
    free(e);
}

void st_explain_text(st_explain *e, const char *text)
{
    e->typed = true;
    snprintf(e->text + strlen(e->text), sizeof e->text - strlen(e->text), "%s%s", *e->text ? " " : "", text);
    st_matcher_feed(e->matcher, text, strlen(text));
    st_matcher_feed(e->matcher, "\n", 1);
}

int st_explain_fd(st_explain *e, int fd) { return st_matcher_read(e->matcher, fd); }

void st_explain_machine(st_explain *e, const char *finding, const char *text)
{
    if (e->seen == ST_COUNT(e->machine)) return;
    st_put(e->machine[e->seen].finding, sizeof e->machine[0].finding, "%s", finding);
    st_put(e->machine[e->seen++].text, sizeof e->machine[0].text, "%s", text);
}

/* "error 35", "Error 802:", "cudaError(209)" */
static int typed_number(const st_explain *e)
{
    char lower[sizeof e->text];
    size_t n = strlen(e->text);
    for (size_t i = 0; i <= n; i++) lower[i] = (char)tolower((unsigned char)e->text[i]);
    for (const char *p = lower; (p = strstr(p, "err")) != NULL; p += 3) {
        const char *q = p + 3;
        while (isalpha((unsigned char)*q) || *q == '_') q++;
        while (*q && strchr(" :=(#", *q)) q++;
        if (strncmp(q, "code", 4) == 0)
            for (q += 4; *q && strchr(" :=(#", *q);) q++;
        if (!isdigit((unsigned char)*q)) continue;
        char id[32];
        snprintf(id, sizeof id, "cuda_%d", atoi(q));
        int row = st_table_find(st_facts_table(e->facts, "errors"), "id", id);
        if (row >= 0) return row;
    }
    return -1;
}

/* the fix of a row; a fix that only names another row is followed */
static const char *fix_of(const st_table *t, int row)
{
    const char *fix = st_table_get(t, row, "fix");
    for (int i = 0; i < 4 && strncmp(fix, "see ", 4) == 0; i++) {
        char id[64];
        snprintf(id, sizeof id, "%.*s", (int)strcspn(fix + 4, " ;,."), fix + 4);
        int other = st_table_find(t, "id", id);
        if (other < 0) break;
        fix = st_table_get(t, other, "fix");
    }
    return fix;
}

/* the first of the doctor's findings on this machine, from `from` on, that explains the message (table answers); NULL: none */
static const char *machine_answers(const st_explain *e, const char *id, int *from)
{
    const st_table *t = st_facts_table(e->facts, "answers");
    size_t n = strlen(id);
    for (; *from < e->seen; (*from)++) {
        const char *list =
            st_table_get(t, st_table_find(t, "finding", e->machine[*from].finding), "messages");
        for (const char *p = list; (p = strstr(p, id)) != NULL; p += n)
            if ((p == list || p[-1] == ' ') && (p[n] == ' ' || !p[n])) return e->machine[(*from)++].text;
    }
    return NULL;
}

static void wrap(FILE *out, const char *label, const char *text)
{
    if (!*text) return;
    fprintf(out, "   %-9s ", label);
    st_wrap(out, 13, 13, text);
}

static void parts(FILE *out, const char *label, const char *text, const char *separator, bool numbered)
{
    for (int i = 1; *text; i++) {
        const char *stop = strstr(text, separator);
        char one[1024], left[24];
        snprintf(one, sizeof one, "%.*s", (int)(stop ? stop - text : (long)strlen(text)), text);
        if (numbered && (stop || i > 1))
            snprintf(left, sizeof left, "%s %d", i == 1 ? label : "", i);
        else
            snprintf(left, sizeof left, "%s", i == 1 ? label : "");
        wrap(out, left, one);
        text = stop ? stop + strlen(separator) : "";
    }
}

static void where(const st_explain *e, const st_hit *h, FILE *out)
{
    if (e->typed) return;
    if (h->count == 1)
        fprintf(out, "   line %lld\n", (long long)h->first_line);
    else
        fprintf(out, "   %lld times, first in line %lld, last in line %lld\n", (long long)h->count,
                (long long)h->first_line, (long long)h->last_line);
    fprintf(out, "   | %s\n", h->text);
}

static const char *class_in_words(const char *c)
{
    if (!strcmp(c, "application")) return "as a rule the program's own fault, not the hardware's";
    if (!strcmp(c, "driver")) return "driver or firmware";
    if (!strcmp(c, "hardware")) return "hardware: not the program";
    if (!strcmp(c, "bus")) return "PCIe or NVLink: hardware, not the program";
    if (!strcmp(c, "power")) return "power supply: hardware, not the program";
    if (!strcmp(c, "info")) return "information";
    return "no cause known";
}

/* the doctor's names of the layers */
static const char *layer_in_words(const char *layer)
{
    static const char *const names[][2] = {{"hardware", "1 hardware"},
                                           {"driver", "2 driver"},
                                           {"container", "2 driver (container)"},
                                           {"wsl", "2 driver (WSL)"},
                                           {"cuda", "3 runtime and toolkit"},
                                           {"libs", "4 base libraries"},
                                           {"framework", "5 frameworks"},
                                           {"application", "6 application"}};
    for (int i = 0; i < ST_COUNT(names); i++)
        if (strcmp(layer, names[i][0]) == 0) return names[i][1];
    return layer;
}

static void print_xid(const st_explain *e, const st_hit *h, FILE *out)
{
    const st_table *t = st_facts_table(e->facts, "xid");
    const st_xid *x = &h->xid;
    if (h->row < 0) {
        fprintf(out, "Xid %d%s%s: not in the catalogue\n", x->number, *x->device ? " on GPU " : "",
                x->device);
        where(e, h, out);
        wrap(out, "do", "look for a newer Strata, and the number in NVIDIA's Xid catalogue");
        return;
    }
    fprintf(out, "Xid %d%s%s%s%s: %s\n", x->number, *x->device ? " on GPU " : "", x->device,
            *x->instance ? " " : "", x->instance, st_table_get(t, h->row, "meaning"));
    where(e, h, out);
    wrap(out, "fault of", class_in_words(st_table_get(t, h->row, "cause_class")));
    wrap(out, "severity", st_table_get(t, h->row, "severity"));
    if (x->pid >= 0) {
        char who[128];
        snprintf(who, sizeof who, "%ld%s%s", x->pid, *x->name ? " " : "", x->name);
        wrap(out, "process", who);
    }
    if (x->caused_by) {
        char why[64];
        snprintf(why, sizeof why, "caused by Xid %d before it: read that one", x->caused_by);
        wrap(out, "follows", why);
    }
    wrap(out, "cause", st_table_get(t, h->row, "likely_cause"));
    wrap(out, "do first", st_table_get(t, h->row, "first_action"));
    wrap(out, "note", st_table_get(t, h->row, "note"));
    wrap(out, "source", st_table_get(t, h->row, "source"));
}

static void print_error(const st_explain *e, int row, const st_hit *h, FILE *out)
{
    const st_table *t = st_facts_table(e->facts, "errors");
    const char *id = st_table_get(t, row, "id");
    bool harmless = strcmp(st_table_get(t, row, "severity"), "harmless") == 0;
    fprintf(out, "%s%s\n", h ? h->text : st_table_get(t, row, "sample"), harmless ? "  (harmless)" : "");
    if (h && !e->typed) {
        if (h->count == 1)
            fprintf(out, "   line %lld\n", (long long)h->first_line);
        else
            fprintf(out, "   %lld times, first in line %lld, last in line %lld\n", (long long)h->count,
                    (long long)h->first_line, (long long)h->last_line);
    }
    wrap(out, "layer", layer_in_words(st_table_get(t, row, "layer")));
    wrap(out, "shown by", st_table_get(t, row, "printed_by"));
    int from = 0;
    for (const char *here; (here = machine_answers(e, id, &from)) != NULL;) wrap(out, "here", here);
    parts(out, "cause", st_table_get(t, row, "causes"), " | ", true);
    parts(out, "confirm", st_table_get(t, row, "confirm"), " ; ", false);
    wrap(out, "fix", fix_of(t, row));
    wrap(out, "note", st_table_get(t, row, "note"));
    const st_table *advice = st_facts_table(e->facts, "common_advice");
    for (int i = 0; i < advice->rows; i++)
        if (strcmp(st_table_get(advice, i, "see"), id) == 0)
            wrap(out, "beware", st_table_get(advice, i, "correction"));
    wrap(out, "source", st_table_get(t, row, "source"));
}

/* the correction is printed with the error that it belongs to, or by itself when that error was not found */
static bool advice_stands_alone(const st_explain *e, const st_hit *h)
{
    const char *see = st_table_get(st_facts_table(e->facts, "common_advice"), h->row, "see");
    for (int i = 0; i < st_matcher_count(e->matcher); i++) {
        const st_hit *o = st_matcher_hit(e->matcher, i);
        if (o->kind == ST_HIT_ERROR &&
            strcmp(st_table_get(st_facts_table(e->facts, "errors"), o->row, "id"), see) == 0)
            return false;
    }
    return true;
}

static void print_advice(const st_explain *e, const st_hit *h, FILE *out)
{
    const st_table *t = st_facts_table(e->facts, "common_advice");
    fprintf(out, "%s\n", h->text);
    if (!e->typed) fprintf(out, "   line %lld\n", (long long)h->first_line);
    wrap(out, "told", st_table_get(t, h->row, "belief"));
    wrap(out, "right", st_table_get(t, h->row, "correction"));
    wrap(out, "source", st_table_get(t, h->row, "source"));
}

static void json_hit(const st_explain *e, const st_hit *h, int row, st_json *j)
{
    st_json_open(j, NULL, '{');
    if (h) {
        st_json_integer(j, "count", h->count);
        st_json_integer(j, "first_line", h->first_line);
        st_json_integer(j, "last_line", h->last_line);
        st_json_string(j, "text", h->text);
    }
    if (h && h->kind == ST_HIT_XID) {
        const st_table *t = st_facts_table(e->facts, "xid");
        st_json_string(j, "kind", "xid");
        st_json_integer(j, "xid", h->xid.number);
        st_json_string(j, "device", *h->xid.device ? h->xid.device : NULL);
        st_json_string(j, "process", *h->xid.name ? h->xid.name : NULL);
        if (h->xid.pid >= 0) st_json_integer(j, "pid", h->xid.pid);
        if (h->xid.caused_by) st_json_integer(j, "caused_by", h->xid.caused_by);
        st_json_bool(j, "known", h->row >= 0);
        st_json_string(j, "meaning", st_table_get(t, h->row, "meaning"));
        st_json_string(j, "class", st_table_get(t, h->row, "cause_class"));
        st_json_string(j, "severity", st_table_get(t, h->row, "severity"));
        st_json_string(j, "layer", st_table_get(t, h->row, "layer"));
        st_json_string(j, "cause", st_table_get(t, h->row, "likely_cause"));
        st_json_string(j, "fix", st_table_get(t, h->row, "first_action"));
        st_json_string(j, "source", st_table_get(t, h->row, "source"));
    } else if (h && h->kind == ST_HIT_ADVICE) {
        const st_table *t = st_facts_table(e->facts, "common_advice");
        st_json_string(j, "kind", "advice");
        st_json_string(j, "id", st_table_get(t, h->row, "id"));
        st_json_string(j, "belief", st_table_get(t, h->row, "belief"));
        st_json_string(j, "correction", st_table_get(t, h->row, "correction"));
        st_json_string(j, "source", st_table_get(t, h->row, "source"));
    } else {
        const st_table *t = st_facts_table(e->facts, "errors");
        const char *id = st_table_get(t, row, "id");
        st_json_string(j, "kind", "error");
        st_json_string(j, "id", id);
        st_json_string(j, "layer", st_table_get(t, row, "layer"));
        st_json_string(j, "severity", st_table_get(t, row, "severity"));
        st_json_string(j, "printed_by", st_table_get(t, row, "printed_by"));
        int from = 0;
        st_json_string(j, "on_this_machine", machine_answers(e, id, &from));
        st_json_parts(j, "causes", st_table_get(t, row, "causes"), " | ");
        st_json_parts(j, "confirm", st_table_get(t, row, "confirm"), " ; ");
        st_json_string(j, "fix", fix_of(t, row));
        st_json_string(j, "note", st_table_get(t, row, "note"));
        st_json_string(j, "source", st_table_get(t, row, "source"));
    }
    st_json_close(j, '}');
}

static bool is_fault(const st_explain *e, const st_hit *h)
{
    if (h->kind == ST_HIT_ADVICE) return false;
    if (h->kind == ST_HIT_XID)
        return strcmp(st_table_get(st_facts_table(e->facts, "xid"), h->row, "severity"), "info") != 0;
    return strcmp(st_table_get(st_facts_table(e->facts, "errors"), h->row, "severity"), "harmless") != 0;
}

int st_explain_report(st_explain *e, FILE *out, bool json)
{
    st_matcher_finish(e->matcher);
    int n = st_matcher_count(e->matcher), number = -1, code = ST_HEALTHY;
    if (e->typed && n == 0) number = typed_number(e);
    for (int i = 0; i < n; i++)
        if (is_fault(e, st_matcher_hit(e->matcher, i))) code = ST_FAULT;
    if (number >= 0) code = ST_FAULT;
    if (e->typed && n == 0 && number < 0) code = ST_CANNOT_LOOK;
    if (json) {
        st_json j = {.f = out};
        st_json_open(&j, NULL, '{');
        st_json_string(&j, "verdict", code == ST_FAULT ? "fault" : code == ST_HEALTHY ? "clean" : "unknown");
        st_json_integer(&j, "lines", st_matcher_lines(e->matcher));
        st_json_integer(&j, "bytes", st_matcher_bytes(e->matcher));
        st_json_open(&j, "found", '[');
        for (int i = 0; i < n; i++)
            json_hit(e, st_matcher_hit(e->matcher, i), st_matcher_hit(e->matcher, i)->row, &j);
        if (number >= 0) json_hit(e, NULL, number, &j);
        st_json_close(&j, ']');
        st_json_close(&j, '}');
        return code;
    }
    for (int i = 0, shown = 0; i < n; i++) {
        const st_hit *h = st_matcher_hit(e->matcher, i);
        if (h->kind == ST_HIT_ADVICE && !advice_stands_alone(e, h)) continue;
        if (shown++) fputc('\n', out);
        if (h->kind == ST_HIT_XID)
            print_xid(e, h, out);
        else if (h->kind == ST_HIT_ADVICE)
            print_advice(e, h, out);
        else
            print_error(e, h->row, h, out);
    }
    if (number >= 0) print_error(e, number, NULL, out);
    if (code == ST_CANNOT_LOOK)
        fprintf(out,
                "not known: \"%s\"\n   None of the %d messages that Strata knows occurs in it. Give the "
                "whole line, or the whole log:"
                " strata explain < log\n",
                ST_SHORT(e->text), st_facts_table(e->facts, "errors")->rows);
    else if (n == 0 && number < 0)
        fprintf(out, "no known error in %lld lines\n", (long long)st_matcher_lines(e->matcher));
    return code;
}
