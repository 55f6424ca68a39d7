/* SPDX-License-Identifier: Apache-2.0 */
/* for_check.c - what is wrong with the libraries that one program takes: missing ones, releases that do not go together, a driver too old. */
#include "doctor/for.h"
#include "facts/cause.h"
#include <stdlib.h>
#include <string.h>

static bool cudnn(const st_object *o) { return strncmp(o->copy.stem, "libcudnn", 8) == 0; }

static void three(const char *v, int out[3])
{
    out[0] = out[1] = out[2] = 0;
    sscanf(v, "%d.%d.%d", out, out + 1, out + 2);
}
static bool same_release(const char *a, const char *b)
{
    int x[3], y[3];
    three(a, x), three(b, y);
    return memcmp(x, y, sizeof x) == 0;
}
static bool same_minor(const char *a, const char *b)
{
    int x[3], y[3];
    three(a, x), three(b, y);
    return x[0] == y[0] && x[1] == y[1];
}

static const st_object *by_stem(const st_loader *l, const char *stem)
{
    for (int i = 0; i < l->count; i++)
        if (!l->o[i].missing && strcmp(l->o[i].copy.stem, stem) == 0) return &l->o[i];
    return NULL;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void missing(st_for *f, const st_loader *l)
{
    int said = 0;
    for (int i = 0; i < l->count && said < 6; i++) {
        const st_object *o = &l->o[i];
        if (!o->missing || o->later) continue;
        char stem[48], message[200];
        bool ours = st_stem_of(o->name, stem);
        st_finding *x =
            st_report(f->d, ours ? ST_LIBRARIES : ST_APPLICATION, ST_FINDING_FAULT, "for_missing",
                      "%s is found nowhere: the program does not start (or the import fails)", o->name);
        const st_copy *elsewhere = NULL;
        for (int k = 0; k < f->d->m.copy_count && !elsewhere; k++) {
            const st_copy *c = &f->d->m.copies[k];
            if (strcmp(c->name, o->name) == 0 && !c->broken && !c->damaged && !c->narrow) elsewhere = c;
        }
        st_evidence(x,
                    "needed by %s; not in its RPATH or RUNPATH, LD_LIBRARY_PATH, /etc/ld.so.cache and the "
                    "default directories%s%s",
                    o->parent >= 0 ? l->o[o->parent].path : "the program", elsewhere ? "; a copy is at " : "",
                    elsewhere ? elsewhere->path : "");
        st_cause c;
        st_put(message, sizeof message, "%s: cannot open shared object file", o->name);
        if (elsewhere)
            st_fix(x,
                   "LD_LIBRARY_PATH=%.*s before this program only, or an RPATH to it (patchelf --set-rpath); "
                   "not in the shell's start-up file",
                   (int)(strrchr(elsewhere->path, '/') - elsewhere->path), elsewhere->path);
        else if (ours && st_facts_cause(message, &c))
            st_fix(x, "%s", c.fix);
        else
            st_fix(x, "install the package that holds %s (apt-file search %s)", o->name, o->name);
        st_avoid(x, "linking another major version under that name: its interface differs");
        said++;
    }
}

static void mixed_cudnn(st_for *f, const st_loader *l)
{
    const st_object *a = NULL;
    for (int i = 0; i < l->count; i++) {
        const st_object *b = &l->o[i];
        if (b->missing || !cudnn(b) || !b->copy.version[0]) continue;
        if (!a) a = b;
        if (same_release(a->copy.version, b->copy.version)) continue;
        st_finding *x = st_report(f->d, ST_LIBRARIES, ST_FINDING_FAULT, "cudnn_mix",
                                  "two cuDNN releases come together in this program: %s %s and %s %s",
                                  a->name, a->copy.version, b->name, b->copy.version);
        st_evidence(x, "%s (%s) and %s (%s)", a->path, a->how, b->path, b->how);
        if (!strcmp(a->how, "LD_LIBRARY_PATH") || !strcmp(b->how, "LD_LIBRARY_PATH"))
            st_fix(x, "unset LD_LIBRARY_PATH for this program");
        else
            st_fix(x, "keep one complete release: remove the other one's files or package");
        st_avoid(x, "reinstalling the driver or CUDA: the files are whole, the mixture is the fault");
        return;
    }
    for (int i = 0; i < l->count; i++) { /* a sub-library that is found nowhere fails at its first use */
        const st_object *o = &l->o[i];
        if (!o->missing || !o->later || strncmp(o->name, "libcudnn", 8) || !a || o->parent < 0 ||
            !cudnn(&l->o[o->parent]))
            continue;
        st_finding *x = st_report(f->d, ST_LIBRARIES, ST_FINDING_FAULT, "cudnn_incomplete",
                                  "cuDNN %s lacks its sub-library %s", a->copy.version, o->name);
        st_evidence(x, "%s opens it by name; it is found nowhere", l->o[o->parent].path);
        st_fix(x, "install that cuDNN release whole");
        return;
    }
}

static void mixed_cublas(st_for *f, const st_loader *l)
{
    const st_object *a = by_stem(l, "libcublas"), *b = by_stem(l, "libcublasLt");
    if (!a || !b || !a->copy.version[0] || !b->copy.version[0] ||
        same_minor(a->copy.version, b->copy.version))
        return;
    st_finding *x = st_report(f->d, ST_LIBRARIES, ST_FINDING_FAULT, "shadowed",
                              "%s %s and %s %s are of two releases (undefined symbol in libcublas)", a->name,
                              a->copy.version, b->name, b->copy.version);
    st_evidence(x, "%s (%s) and %s (%s)", a->path, a->how, b->path, b->how);
    st_fix(x, "let both come from one place: unset LD_LIBRARY_PATH, or name one toolkit in it");
}

/* An older nvJitLink than the wheel's own: cuSPARSE asks for symbols of its release (__nvJitLinkComplete_12_4). */
static void hidden(st_for *f, const st_loader *l)
{
    for (int i = 0; i < l->count; i++) {
        const st_object *o = &l->o[i];
        if (o->missing || !o->copy.stem[0] || !o->copy.version[0] || o->parent < 0) continue;
        const char *home = l->o[o->parent].path, *site = strstr(home, "/site-packages/");
        size_t k = site ? (size_t)(site - home) : 0;
        for (int c = 0; c < f->d->m.copy_count && site; c++) {
            const st_copy *w = &f->d->m.copies[c];
            if (w->route != ROUTE_WHEEL || strcmp(w->name, o->name) || strncmp(w->path, home, k) ||
                !strcmp(w->real, o->real) || !w->version[0] || same_minor(w->version, o->copy.version) ||
                st_version_cmp(o->copy.version, w->version) >= 0)
                continue;
            bool jit = strcmp(o->copy.stem, "libnvJitLink") == 0;
            st_finding *x =
                st_report(f->d, ST_LIBRARIES, jit ? ST_FINDING_FAULT : ST_FINDING_WARNING, "shadowed",
                          "%s %s is taken before the wheel's own %s%s", o->name, o->copy.version, w->version,
                          jit ? " (undefined symbol at import)" : "");
            st_evidence(x, "%s (%s, for %s) hides %s", o->path, o->how, base_name(home), w->path);
            st_fix(x, !strcmp(o->how, "LD_LIBRARY_PATH") ? "unset LD_LIBRARY_PATH: wheels need none"
                                                         : "reinstall the wheels whole: pip install "
                                                           "--force-reinstall torch");
            st_avoid(x, "reinstalling CUDA: it is whole");
            return;
        }
    }
}

static void against_driver(st_for *f, const st_loader *l)
{
    static const char *const stems[] = {"libcudart", "libcublas", "libnvrtc"};
    const st_machine *m = &f->d->m;
    if (!m->driver[0] || m->wsl || !m->gpu_count) return;
    if (m->libcuda && strstr(m->libcuda->real, "/compat/")) return;
    for (int i = 0; i < ST_COUNT(stems); i++) {
        const st_object *o = by_stem(l, stems[i]);
        const char *so = o ? strstr(o->name, ".so.") : NULL;
        char version[16];
        if (!so) continue;
        st_put(version, sizeof version, "%d.0", atoi(so + 4));
        const char *need = st_cuda_min_driver(m->facts, version, false);
        if (!need || st_version_cmp(m->driver, need) >= 0) continue;
        st_finding *x =
            st_report(f->d, ST_RUNTIME, ST_FINDING_FAULT, "toolkit_needs_driver",
                      "%s needs driver %s or newer; %s is loaded (error 35)", o->name, need, m->driver);
        st_evidence(x, "%s; %s", o->path, m->driver_from);
        st_fix(x, "update the driver to branch %d or newer, or use a build for CUDA %s", atoi(need),
               st_driver_cuda(m->facts, m->driver, NULL));
        st_avoid(x, "reinstalling the library");
        return;
    }
}

static void two_at_once(st_for *f, const st_loader *l)
{
    for (int i = 0; i < l->count; i++)
        for (int k = 0; k < i; k++) {
            const st_object *a = &l->o[k], *b = &l->o[i];
            if (a->missing || b->missing || !a->copy.stem[0] || strcmp(a->copy.stem, b->copy.stem) ||
                !strcmp(a->real, b->real))
                continue;
            if (!strcmp(a->copy.stem, "libcuda") && !strstr(a->real, "/stubs/") &&
                !strstr(b->real, "/stubs/"))
                continue;
            if ((a->later || b->later) && strcmp(f->kind, "process"))
                continue; /* names that a program tries one after the other */
            st_finding *x = st_report(f->d, ST_LIBRARIES, ST_FINDING_WARNING, "for_two_copies",
                                      "two copies of %s in one program: %s and %s", a->copy.stem,
                                      a->copy.version[0] ? a->copy.version : a->name,
                                      b->copy.version[0] ? b->copy.version : b->name);
            st_evidence(x, "%s (%s) and %s (%s)", a->path, a->how, b->path, b->how);
            st_fix(x, "build or install both halves for one version; memory and handles of the one are "
                      "unknown to the other");
            return;
        }
}

static void stubs_and_replaced(st_for *f, const st_loader *l)
{
    for (int i = 0; i < l->count; i++) {
        const st_object *o = &l->o[i];
        if (!o->missing && strstr(o->path, "/stubs/") && o->copy.stem[0]) {
            st_finding *x = st_report(f->d, ST_RUNTIME, ST_FINDING_FAULT, "stub_on_path",
                                      "the program takes the stub %s, which is for linking only "
                                      "(error 34)",
                                      o->name);
            st_evidence(x, "%s, found by %s", o->path, o->how);
            st_fix(x, "take the stubs directory out of %s; it belongs to -L when linking",
                   strncmp(o->how, "DT_R", 4) ? "LD_LIBRARY_PATH" : "the program's RPATH");
        }
        if (o->deleted && o->copy.stem[0]) {
            st_finding *x = st_report(f->d, ST_LIBRARIES, ST_FINDING_WARNING, "for_replaced",
                                      "%s was replaced on disk since the process mapped it", o->name);
            st_evidence(x, "%s (deleted) in /proc/%s/maps", o->path, f->subject);
            st_fix(x, "restart the process: what it opens now comes from the new release and may not fit");
        }
    }
}

void st_for_check(st_for *f, const st_group *g)
{
    missing(f, &g->l);
    stubs_and_replaced(f, &g->l);
    mixed_cudnn(f, &g->l);
    mixed_cublas(f, &g->l);
    hidden(f, &g->l);
    against_driver(f, &g->l);
    two_at_once(f, &g->l);
}
