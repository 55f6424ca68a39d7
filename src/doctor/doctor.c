/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c - runs the probes bottom-up, keeps their findings, names the verdict. */
#include "doctor/doctor.h"
#include "doctor/machine.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *const st_layer_names[] = {"hardware",  "driver",     "runtime",
                                      "libraries", "frameworks", "application"};
const char *const st_state_names[] = {"ok", "note", "warning", "fault", "absent"};

st_finding *st_report(st_doctor *d, enum st_layer layer, enum st_state state, const char *id, const char *fmt,
                      ...)
{
    st_finding *f = d->count < MAX_FINDINGS ? &d->findings[d->count] : &d->spare;
    if (f != &d->spare) d->order[d->count] = d->count, d->count++;
    memset(f, 0, sizeof *f);
    f->layer = layer;
    f->state = state;
    st_put(f->id, sizeof f->id, "%s", id);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->text, sizeof f->text, fmt, ap);
    va_end(ap);
    return f;
}

void st_evidence(st_finding *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->evidence, sizeof f->evidence, fmt, ap);
    va_end(ap);
}

void st_fix(st_finding *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->fix, sizeof f->fix, fmt, ap);
    va_end(ap);
}

void st_avoid(st_finding *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->avoid, sizeof f->avoid, fmt, ap);
    va_end(ap);
}

void st_doctor_forget(st_doctor *d) { d->count = 0; }

void st_doctor_sort(st_doctor *d)
{
    int n = 0;
    for (int layer = 0; layer < ST_LAYER_COUNT; layer++)
        for (int i = 0; i < d->count; i++)
            if ((int)d->findings[i].layer == layer) d->order[n++] = i;
}

/* Too few descriptors hide files: what was taken for missing may be there, so nothing that was seen here is called a fault. */
static void starved(st_doctor *d)
{
    const int error = st_root_starved(d->m.root);
    if (!error) return;
    for (int i = 0; i < d->count; i++)
        if (d->findings[i].state == ST_FINDING_FAULT) d->findings[i].state = ST_FINDING_WARNING;
    st_fix(st_report(d, ST_APPLICATION, ST_FINDING_WARNING, "few_descriptors",
                     "not all could be looked at: %s; what is said to be missing may be there",
                     strerror(error)),
           "raise the limit of open files (ulimit -n 1024) and look again");
}

st_doctor *st_doctor_run(const char *path, int *error) { return st_doctor_look(path, NULL, error); }

st_doctor *st_doctor_look(const char *path, const st_live *live, int *error)
{
    int ignored;
    if (!error) error = &ignored;
    st_doctor *d = calloc(1, sizeof *d);
    *error = ENOMEM;
    if (!d) return NULL;
    st_machine *m = &d->m;
    m->root = st_root_open(path, error);
    m->facts = m->root ? st_facts_open() : NULL;
    m->copies = calloc(MAX_COPIES, sizeof *m->copies);
    m->sites = calloc(MAX_SITES, sizeof *m->sites);
    if (!m->facts || !m->copies || !m->sites) {
        if (m->root) *error = ENOMEM;
        st_doctor_free(d);
        return NULL;
    }
    st_probe_context(d);
    st_probe_hardware(d);
    st_asked *asked = live ? st_live_begin(d, live) : NULL;
    st_find_sites(m);
    st_find_toolkits(m);
    st_find_copies(m);
    st_probe_driver(d);
    st_probe_libcuda(d);
    st_probe_wsl(d);
    st_probe_sharing(d);
    st_probe_log(d);
    st_probe_runtime(d);
    st_probe_libraries(d);
    st_probe_blas(d);
    st_probe_frameworks(d);
    st_probe_application(d);
    if (live) st_live_end(d, live, asked);
    starved(d);
    st_doctor_sort(d);
    *error = 0;
    return d;
}

void st_doctor_free(st_doctor *d)
{
    if (!d) return;
    st_machine *m = &d->m;
    for (int i = 0; m->sites && i < m->site_count; i++) free(m->sites[i].dists);
    free(m->sites);
    free(m->copies);
    free(m->environ_text);
    st_facts_close(m->facts);
    st_root_close(m->root);
    free(d);
}

int st_doctor_count(const st_doctor *d) { return d->count; }
const st_finding *st_doctor_finding(const st_doctor *d, int i)
{
    return i < 0 || i >= d->count ? NULL : &d->findings[d->order[i]];
}
const char *st_doctor_summary(const st_doctor *d) { return d->summary; }
bool st_doctor_has_gpu(const st_doctor *d) { return d->m.gpu_count > 0 || (d->m.wsl && d->m.libcuda); }

const st_finding *st_doctor_verdict(const st_doctor *d)
{
    for (int i = 0; i < d->count; i++)
        if (st_doctor_finding(d, i)->state == ST_FINDING_FAULT) return st_doctor_finding(d, i);
    return NULL;
}
