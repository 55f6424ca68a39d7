/* SPDX-License-Identifier: Apache-2.0 */
/* for.c - `strata doctor --for SUBJECT`: finds out what the subject is, has its loading replayed, prints what it takes. */
#include "doctor/for.h"
#include "doctor/json.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

st_group *st_for_group(st_for *f, const char *title)
{
    if (f->count == ST_FOR_GROUPS) return NULL;
    st_group *g = &f->group[f->count];
    if (!st_loader_open(&g->l, f->other ? f->other : &f->d->m, f->library_path)) {
        st_loader_close(&g->l);
        return NULL;
    }
    st_put(g->title, sizeof g->title, "%s", title);
    f->count++;
    return g;
}

/* a word without a slash is looked for along PATH; false: nowhere */
static bool find_program(const st_for *f, const char *word, char out[ST_PATH])
{
    st_root *root = f->d->m.root;
    char here[ST_PATH / 2];
    struct stat s;
    if (strchr(word, '/')) {
        bool relative = word[0] != '/' && st_root_is_host(root) && getcwd(here, sizeof here) &&
                        strlen(word) < ST_PATH / 2;
        st_put(out, ST_PATH, "%s%s%s", relative ? here : "", relative || word[0] != '/' ? "/" : "", word);
        return st_root_stat(root, out, &s) && S_ISREG(s.st_mode);
    }
    const char *path = st_environ(&f->d->m, "PATH");
    if (!path) path = "/usr/local/bin:/usr/bin:/bin";
    while (*path) {
        size_t k = strcspn(path, ":");
        st_put(out, ST_PATH, "%.*s/%s", k < 400 ? (int)k : 0, path, word);
        if (k && path[0] == '/' && st_root_stat(root, out, &s) && S_ISREG(s.st_mode) &&
            (s.st_mode & 0111 || !st_root_is_host(root)))
            return true;
        path += k;
        if (*path) path++;
    }
    return false;
}

static bool is_python(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (strncmp(name, "python", 6) != 0) return false;
    return strspn(name + 6, "0123456789.") == strlen(name + 6);
}

/* "#!/usr/bin/env python3": what runs a script; false when it is none */
static bool interpreter(const st_for *f, const char *path, char out[ST_PATH])
{
    char line[ST_PATH / 2], word[ST_PATH / 2];
    if (!st_root_line(f->d->m.root, path, line, sizeof line) || strncmp(line, "#!", 2)) return false;
    char *save = NULL, *first = strtok_r(line + 2, " \t", &save), *second = strtok_r(NULL, " \t", &save);
    if (!first) return false;
    size_t k = strlen(first);
    bool env = k >= 4 && strcmp(first + k - 4, "/env") == 0 && second && *second != '-';
    st_put(word, sizeof word, "%s", env ? second : first);
    return find_program(f, word, out);
}

/* pyenv puts scripts in front of its Pythons; the chosen version stands in its file */
static void through_pyenv(const st_for *f, char path[ST_PATH])
{
    char *shims = strstr(path, "/shims/"), version[64], file[ST_PATH], real[ST_PATH];
    if (!shims) return;
    const char *wish = st_environ(&f->d->m, "PYENV_VERSION");
    st_put(file, sizeof file, "%.*s/version", (int)(shims - path), path);
    if (wish && *wish)
        st_put(version, sizeof version, "%.*s", (int)strcspn(wish, ":"), wish);
    else if (!st_root_line(f->d->m.root, file, version, sizeof version) || !*version)
        return;
    st_put(file, sizeof file, "%.*s/versions/%s/bin/%s", (int)(shims - path), path, version, shims + 7);
    if (st_root_resolve(f->d->m.root, file, real)) st_put(path, ST_PATH, "%s", file);
}

static bool look(st_for *f, char *why, size_t n)
{
    char path[ST_PATH], runs[ST_PATH];
    bool number = f->subject[0] != 0;
    for (const char *p = f->subject; *p; p++) number = number && isdigit((unsigned char)*p);
    if (number) {
        f->kind = "process";
        return st_for_process(f, strtol(f->subject, NULL, 10), why, n);
    }
    if (!find_program(f, f->subject, path)) {
        st_put(why, n, "there is no program '%.200s'%s", f->subject,
               strchr(f->subject, '/') ? "" : " along PATH");
        return false;
    }
    if (is_python(path)) through_pyenv(f, path);
    if (!is_python(path) && interpreter(f, path, runs)) {
        st_put(f->note, sizeof f->note, "%.180s is a script that %.180s runs", path, runs);
        st_put(path, sizeof path, "%s", runs);
    }
    if (strlen(path) >= sizeof f->program) {
        st_put(why, n, "the path of '%.200s' is too long", f->subject);
        return false;
    }
    st_put(f->program, sizeof f->program, "%s", path);
    f->kind = is_python(path) ? "python" : "program";
    return is_python(path) ? st_for_python(f, path, why, n) : st_for_program(f, path, why, n);
}

/* ---- report ---------------------------------------------------------------------------------------------------------- */
static const char *asked_by(const st_loader *l, const st_object *o)
{
    if (o->parent < 0) return NULL;
    const char *slash = strrchr(l->o[o->parent].path, '/');
    return slash ? slash + 1 : l->o[o->parent].name;
}

/* other copies of the same name, which this choice hides: the first of another file */
static const st_copy *hidden_copy(const st_for *f, const st_object *o)
{
    const st_machine *m = &f->d->m;
    bool python = strcmp(f->kind, "python") == 0; /* other programs do not know of wheels */
    for (int i = 0; i < m->copy_count; i++) {
        const st_copy *c = &m->copies[i];
        if (!c->broken && !c->damaged && !c->narrow && c->route != ROUTE_STUB &&
            (python || c->route < ROUTE_WHEEL) && !strcmp(c->name, o->name) && strcmp(c->real, o->real))
            return c;
    }
    return NULL;
}

static bool shown(const st_object *o) { return o->copy.stem[0] || (o->missing && !o->later); }

static void print_group(const st_for *f, const st_group *g, FILE *out)
{
    const st_loader *l = &g->l;
    int others = 0, unseen = 0;
    fprintf(out, "\n%s\n", g->title);
    for (int i = 0; i < l->count; i++) {
        const st_object *o = &l->o[i];
        others += !shown(o) && !o->missing;
        unseen += o->missing && o->later;
        if (!shown(o)) continue;
        const char *by = asked_by(l, o);
        if (o->missing) {
            fprintf(out, "  %-34s MISSING, needed by %s\n", o->name, by ? by : "the program");
            continue;
        }
        fprintf(out, "  %-34s %-12s %s\n", o->name, o->copy.version[0] ? o->copy.version : "?", o->real);
        fprintf(out, "  %-34s %s%s%s%s%s\n", "", o->how, by ? ", for " : "", by ? by : "",
                o->later ? ", while it runs" : "", o->deleted ? ", file replaced since" : "");
        const st_copy *c = f->other ? NULL : hidden_copy(f, o);
        if (c)
            fprintf(out, "  %-34s not: %s %s (%s)\n", "", c->version[0] ? c->version : "?", c->real,
                    st_route_names[c->route]);
    }
    int listed = l->count - others - unseen;
    if (listed == 0) fprintf(out, "  none of the GPU libraries\n");
    fprintf(out, "  (%d other libraries%s)\n", others,
            unseen ? "; names that it would look for and that are not here are left out" : "");
}

static int print_text(const st_for *f, FILE *out)
{
    fprintf(out, "%s: %s%s%s\n", f->kind, f->program[0] ? f->program : f->subject, f->note[0] ? "; " : "",
            f->note);
    if (f->library_path && f->library_path[0]) fprintf(out, "LD_LIBRARY_PATH=%s\n", f->library_path);
    for (int i = 0; i < f->count; i++) print_group(f, &f->group[i], out);
    fputc('\n', out);
    for (int i = 0; i < st_doctor_count(f->d); i++) {
        const st_finding *x = st_doctor_finding(f->d, i);
        if (x->state == ST_FINDING_FAULT) continue;
        fprintf(out, "%-8s ", st_state_names[x->state]);
        st_wrap(out, 9, 9, x->text);
        fprintf(out, "%9s", "");
        st_wrap(out, 9, 9, x->evidence);
        if (x->fix[0]) {
            fprintf(out, "%9sfix: ", "");
            st_wrap(out, 14, 14, x->fix);
        }
    }
    if (!st_doctor_verdict(f->d)) {
        fprintf(out, "verdict: nothing is missing and nothing is mixed\n");
        return ST_HEALTHY;
    }
    return st_print_fault(f->d, out);
}

static int print_json(const st_for *f, FILE *out)
{
    st_json j = {.f = out};
    st_json_open(&j, NULL, '{');
    st_json_integer(&j, "format", 1);
    st_json_string(&j, "for", f->subject);
    st_json_string(&j, "kind", f->kind);
    st_json_string(&j, "program", f->program[0] ? f->program : NULL);
    st_json_string(&j, "note", f->note[0] ? f->note : NULL);
    st_json_string(&j, "library_path", f->library_path);
    st_json_open(&j, "groups", '[');
    for (int k = 0; k < f->count; k++) {
        const st_loader *l = &f->group[k].l;
        st_json_open(&j, NULL, '{');
        st_json_string(&j, "title", f->group[k].title);
        st_json_open(&j, "libraries", '[');
        for (int i = 0; i < l->count; i++) {
            const st_object *o = &l->o[i];
            if (!shown(o)) continue;
            const st_copy *c = o->missing || f->other ? NULL : hidden_copy(f, o);
            st_json_open(&j, NULL, '{');
            st_json_string(&j, "name", o->name);
            st_json_bool(&j, "missing", o->missing);
            st_json_string(&j, "path", o->missing ? NULL : o->path);
            st_json_string(&j, "file", o->missing ? NULL : o->real);
            st_json_string(&j, "version", o->copy.version[0] ? o->copy.version : NULL);
            st_json_string(&j, "version_from",
                           o->copy.stem[0] && o->copy.version_from[0] ? o->copy.version_from : NULL);
            st_json_string(&j, "how", o->how[0] ? o->how : NULL);
            st_json_string(&j, "asked_by", asked_by(l, o));
            st_json_bool(&j, "while_running", o->later);
            st_json_bool(&j, "replaced", o->deleted);
            st_json_string(&j, "hides", c ? c->real : NULL);
            st_json_string(&j, "hides_version", c && c->version[0] ? c->version : NULL);
            st_json_close(&j, '}');
        }
        st_json_close(&j, ']');
        st_json_close(&j, '}');
    }
    st_json_close(&j, ']');
    int code = st_json_findings(f->d, &j);
    st_json_close(&j, '}');
    return code;
}

int st_doctor_for(const char *root, const char *subject, FILE *out, bool json, char *why, size_t n)
{
    int error, code = ST_CANNOT_LOOK;
    st_for *f = calloc(1, sizeof *f);
    if (!f) {
        st_put(why, n, "out of memory");
        return code;
    }
    f->d = st_doctor_run(root, &error);
    if (!f->d)
        st_put(why, n, "%s: %s", root, strerror(error));
    else {
        st_doctor_forget(f->d);
        st_put(f->subject, sizeof f->subject, "%s", subject);
        const char *path = st_environ(&f->d->m, "LD_LIBRARY_PATH");
        f->library_path = path ? strdup(path) : NULL;
        if (look(f, why, n)) {
            for (int i = 0; i < f->count; i++) st_for_check(f, &f->group[i]);
            st_doctor_sort(f->d);
            code = json ? print_json(f, out) : print_text(f, out);
        }
    }
    for (int i = 0; i < f->count; i++) st_loader_close(&f->group[i].l);
    if (f->other) st_root_close(f->other->root);
    free(f->other);
    free(f->library_path);
    free(f->environ_text);
    st_doctor_free(f->d);
    free(f);
    return code;
}
