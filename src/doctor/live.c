/* SPDX-License-Identifier: Apache-2.0 */
/* live.c - what NVML and the driver answer, asked in children: their lines become findings, and so does a child that hangs or crashes. */
#include "doctor/child.h"
#include "doctor/json.h"
#include "doctor/machine.h"
#include <stdlib.h>
#include <string.h>

static const double quick_seconds = 0.7; /* the whole look stays below a second */

struct st_asked {
    double began;
    st_child nvml, driver;
};

static int index_of(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}

/* One line of a child. A step that begins is kept in `step` and `layer`; *told: it said that something is at fault. */
static void take_line(st_doctor *d, const st_live *live, const char *line, char step[64],
                      enum st_layer *layer, bool *told)
{
    char value[440], state[16];
    if (!st_json_get(line, "state", state, sizeof state)) return;
    st_json_get(line, "layer", value, sizeof value);
    int at = index_of(st_layer_names, ST_LAYER_COUNT, value), s = index_of(st_state_names, 5, state);
    if (at < 0) at = ST_DRIVER;
    if (strcmp(state, "begin") == 0) {
        *layer = (enum st_layer)at;
        st_json_get(line, "step", step, 64);
        return;
    }
    if (s < 0 || (s == ST_FINDING_ABSENT && !live->deep)) return;
    *told |= s == ST_FINDING_FAULT;
    char id[32], text[360];
    st_json_get(line, "id", id, sizeof id);
    st_json_get(line, "text", text, sizeof text);
    st_json_get(line, "evidence", value, sizeof value);
    bool no_gpu = !d->m.gpu_count && !d->m.module_loaded && !d->m.wsl && strstr(value, "NO_DEVICE");
    if (s == ST_FINDING_FAULT && no_gpu) s = ST_FINDING_NOTE;
    st_finding *f = st_report(d, (enum st_layer)at, (enum st_state)s, id, "%s", text);
    st_evidence(f, "%s", value);
    if (st_json_get(line, "fix", value, sizeof value)) st_fix(f, "%s", value);
    if (st_json_get(line, "avoid", value, sizeof value)) st_avoid(f, "%s", value);
}

/* what a person types to see the child's lines */
static const char *command(const char *what)
{
    return strchr(what, ' ') ? "" : "strata selftest --json --only ";
}

/* Reads a child to its end. With `until` 0 each step may take `patience` seconds. False when it hung, crashed or reported a fault. */
static bool collect(st_doctor *d, const st_live *live, st_child *c, const char *what, double until,
                    double patience)
{
    char line[2048], step[64] = "the start", how[120];
    enum st_layer layer = ST_DRIVER;
    int before = d->count, r;
    bool told = false;
    double began = st_seconds();
    while ((r = st_child_line(c, until > 0 ? until : st_seconds() + patience, line, sizeof line)) > 0)
        take_line(d, live, line, step, &layer, &told);
    bool ended = st_child_stop(c, how, sizeof how), silent = r < 0, faults = false;
    /* status 1: it reported a fault itself; 2: there is nothing to try (no Python, an unknown word) */
    bool own = (told && strcmp(how, "ended with status 1") == 0) || strcmp(how, "ended with status 2") == 0;
    st_finding *f;
    if (silent && until > 0) {
        f = st_report(d, layer, ST_FINDING_NOTE, "call_slow",
                      "%s has not answered within %.1f s; strata doctor --deep waits longer", step,
                      quick_seconds);
        st_evidence(f, "asked in a process of its own: %s%s", command(what), what);
    } else if (silent) {
        f = st_report(d, layer, ST_FINDING_FAULT, "call_hangs", "%s does not return", step);
        st_evidence(f, "no answer within %.0f s, in a process of its own (%s%s)%s%s", patience, command(what),
                    what, how[0] ? "; it " : "", how);
        st_fix(f, "dmesg | strata explain (look for Xid 119, 120, 79 and hung tasks); end programs that use "
                  "the GPU; reboot, and power off when that does not help");
        st_avoid(f, "reinstalling CUDA or a framework: the driver itself does not answer");
    } else if (!ended && !own) {
        f = st_report(d, layer, ST_FINDING_FAULT, "call_crashes", "the process that tried %s %s", step, how);
        st_evidence(f, "%s%s, after %.1f s", command(what), what, st_seconds() - began);
        st_fix(f, "strata doctor --for $(command -v strata) shows which libraries it took; reinstall the "
                  "driver's user-space libraries of the module's version");
    }
    for (int i = before; i < d->count; i++) faults |= d->findings[i].state == ST_FINDING_FAULT;
    return !faults;
}

bool st_live_collect(st_doctor *d, const st_live *live, struct st_child *c, const char *what, double patience)
{
    return collect(d, live, c, what, 0, patience);
}

/* Is there anything to ask? A machine without a GPU has no driver to open, unless one is named. */
static bool wanted(const st_machine *m)
{
    if (!st_root_is_host(m->root)) return false;
    return m->gpu_count > 0 || st_root_exists(m->root, "/dev/nvidiactl") ||
           (m->wsl && st_root_exists(m->root, "/dev/dxg")) ||
           st_root_exists(m->root, "/etc/nv_tegra_release") || st_env("STRATA_CUDA_LIB") ||
           st_env("STRATA_NVML_LIB");
}

st_asked *st_live_begin(st_doctor *d, const st_live *live)
{
    st_asked *a = wanted(&d->m) ? calloc(1, sizeof *a) : NULL;
    if (!a) return NULL;
    a->began = st_seconds();
    st_child_start(&a->nvml, live->body, "nvml");
    if (!live->deep) st_child_start(&a->driver, live->body, "driver");
    return a;
}

void st_live_end(st_doctor *d, const st_live *live, st_asked *a)
{
    static const char *const deep[] = {"deep", "compile", "gpu"};
    double patience = live->patience > 0 ? live->patience : 30;
    if (!a) {
        if (live->deep)
            st_report(d, ST_HARDWARE, ST_FINDING_ABSENT, "deep_nothing",
                      "there is no GPU here on which --deep could run anything");
        return;
    }
    double until = live->deep ? 0 : a->began + quick_seconds;
    collect(d, live, &a->nvml, "nvml", until, patience);
    if (!live->deep) collect(d, live, &a->driver, "driver", until, patience);
    bool good = true;
    for (int i = 0; i < ST_COUNT(deep) && live->deep; i++) {
        st_child c;
        if (!good) {
            st_report(d, i == 1 ? ST_RUNTIME : ST_LIBRARIES, ST_FINDING_ABSENT, "deep_not_tried",
                      "'%s' was not tried: what it stands on fails", deep[i]);
            continue;
        }
        if (st_child_start(&c, live->body, deep[i])) good = collect(d, live, &c, deep[i], 0, patience);
    }
    free(a);
}
