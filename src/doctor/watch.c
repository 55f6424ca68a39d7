/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - a live view of the GPUs. The child asks NVML and writes one line a GPU and time; the parent draws them, and notices when the driver
 * stops answering. Xid events come through NVML's event set; where a GPU offers none that column stays empty. */
#include "doctor/child.h"
#include "doctor/json.h"
#include "doctor/machine.h"
#include "doctor/steps_nvml.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- the child ----------------------------------------------------------------------------------------------------------- */
typedef struct xids {
    void *set;
    int n;
    unsigned number[16];
    st_nvml_device device[16];
} xids;

static void drain_events(const st_nvml_calls *t, xids *x)
{
    st_nvml_event e;
    x->n = 0;
    for (int i = 0; i < 64 && x->set && t->event_wait(x->set, &e, 0) == 0; i++)
        if (e.type == ST_NVML_EVENT_XID && x->n < ST_COUNT(x->number)) {
            x->number[x->n] = (unsigned)e.data;
            x->device[x->n++] = e.device;
        }
}

static void number(st_json *j, const char *key, int r, double value)
{
    st_json_number(j, key, r == 0 ? value : NAN);
}

typedef int (*get_plain)(st_nvml_device, unsigned *);
typedef int (*get_of)(st_nvml_device, int, unsigned *);
static void plain(st_json *j, const char *key, get_plain f, st_nvml_device d, double scale)
{
    unsigned v = 0;
    int r = f ? f(d, &v) : 13;
    number(j, key, r, v * scale);
}
static void of(st_json *j, const char *key, get_of f, st_nvml_device d, int which)
{
    unsigned v = 0;
    int r = f ? f(d, which, &v) : 13;
    number(j, key, r, v);
}

static void sample(const st_nvml_calls *t, unsigned i, st_nvml_device d, const xids *x, FILE *out)
{
    char name[96] = "", reasons[160] = "", xid[80] = "";
    st_nvml_memory m = {0, 0, 0};
    st_nvml_utilization u = {0, 0};
    unsigned long long bits = 0, errors = 0;
    bool hard;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    st_json j = {.f = out, .line = true};
    st_json_open(&j, NULL, '{');
    st_json_integer(&j, "unix_ms", (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    st_json_integer(&j, "gpu", i);
    int r = t->name ? t->name(d, name, sizeof name) : 13;
    st_json_string(&j, "name", r ? NULL : name);
    r = t->memory ? t->memory(d, &m) : 13;
    st_json_string(&j, "error", r == 0 || r == ST_NVML_NOT_SUPPORTED ? NULL : st_nvml_result_name(r));
    number(&j, "memory_used_mib", r, (double)(m.used >> 20));
    number(&j, "memory_total_mib", r, (double)(m.total >> 20));
    r = t->utilization ? t->utilization(d, &u) : 13;
    number(&j, "busy_percent", r, u.gpu);
    number(&j, "memory_busy_percent", r, u.memory);
    of(&j, "celsius", t->temperature, d, 0);
    plain(&j, "watts", t->power, d, 1e-3);
    plain(&j, "watts_limit", t->power_limit, d, 1e-3);
    of(&j, "sm_mhz", t->clock, d, ST_NVML_CLOCK_SM);
    of(&j, "sm_max_mhz", t->max_clock, d, ST_NVML_CLOCK_SM);
    of(&j, "memory_mhz", t->clock, d, ST_NVML_CLOCK_MEMORY);
    r = t->throttle ? t->throttle(d, &bits) : 13;
    st_nvml_throttle_words(bits, reasons, sizeof reasons, &hard);
    st_json_string(&j, "slowed_by", r ? NULL : reasons);
    r = t->ecc_errors ? t->ecc_errors(d, ST_NVML_ECC_CORRECTED, ST_NVML_ECC_SINCE_BOOT, &errors) : 13;
    number(&j, "ecc_corrected", r, (double)errors);
    r = t->ecc_errors ? t->ecc_errors(d, ST_NVML_ECC_UNCORRECTED, ST_NVML_ECC_SINCE_BOOT, &errors) : 13;
    number(&j, "ecc_uncorrected", r, (double)errors);
    for (int k = 0; k < x->n; k++)
        if (x->device[k] == d)
            st_put(xid + strlen(xid), sizeof xid - strlen(xid), "%s%u", *xid ? " " : "", x->number[k]);
    st_json_string(&j, "xid", x->set ? xid : NULL);
    st_json_close(&j, '}');
    fflush(out);
}

/* what: "watch COUNT INTERVAL" */
int st_watch_child(const char *what, FILE *out)
{
    int count = 0;
    double interval = 1;
    unsigned n;
    st_nvml_device d[ST_NVML_MAX_DEVICES];
    if (sscanf(what, "watch %d %lf", &count, &interval) != 2 || !(interval >= 0.05 && interval <= 3600))
        return 2;
    st_steps s = {.out = out};
    const st_nvml_calls *t = st_steps_nvml_open(&s, &n);
    st_steps_end(&s);
    if (!t || s.faults) return 1;
    xids x = {NULL, 0, {0}, {0}};
    if (t->event_set && t->event_register && t->event_wait && t->event_set(&x.set)) x.set = NULL;
    bool events = false;
    for (unsigned i = 0; i < n; i++) {
        if (t->by_index(i, &d[i])) d[i] = NULL;
        events |= x.set && d[i] && t->event_register(d[i], ST_NVML_EVENT_XID, x.set) == 0;
    }
    if (!events) x.set = NULL;
    for (int k = 0; count == 0 || k < count; k++) {
        if (k)
            nanosleep(
                &(struct timespec){(time_t)interval, (long)((interval - (double)(time_t)interval) * 1e9)},
                NULL);
        drain_events(t, &x);
        for (unsigned i = 0; i < n; i++)
            if (d[i]) sample(t, i, d[i], &x, out);
    }
    return 0;
}

/* ---- the parent ---------------------------------------------------------------------------------------------------------- */
static const char *field(const char *line, const char *key, char *buf, size_t n)
{
    if (!st_json_get(line, key, buf, n) || strcmp(buf, "null") == 0) st_put(buf, n, "-");
    if (strncmp(key, "watts", 5) == 0) buf[strcspn(buf, ".")] = 0; /* whole watts do */
    return buf;
}

static void draw(const char *line, FILE *out)
{
    char b[12][96], reasons[200], xid[80], error[64];
    field(line, "slowed_by", reasons, sizeof reasons);
    field(line, "xid", xid, sizeof xid);
    field(line, "error", error, sizeof error);
    fprintf(out, "%3s  %-22.22s %8s %8s %4s%% %4s C %5s/%-5s %5s/%-5s %6s %5s %5s  %s%s%s%s%s\n",
            field(line, "gpu", b[0], 96), field(line, "name", b[1], 96),
            field(line, "memory_used_mib", b[2], 96), field(line, "memory_total_mib", b[3], 96),
            field(line, "busy_percent", b[4], 96), field(line, "celsius", b[5], 96),
            field(line, "watts", b[6], 96), field(line, "watts_limit", b[7], 96),
            field(line, "sm_mhz", b[8], 96), field(line, "sm_max_mhz", b[9], 96),
            field(line, "memory_mhz", b[10], 96), field(line, "ecc_corrected", b[11], 96),
            field(line, "ecc_uncorrected", b[0], 96), reasons, xid[0] && strcmp(xid, "-") ? "  Xid " : "",
            xid[0] && strcmp(xid, "-") ? xid : "", strcmp(error, "-") ? "  " : "",
            strcmp(error, "-") ? error : "");
}

int st_doctor_watch(const st_live *live, int count, double interval, FILE *out, bool json, char *why,
                    size_t n)
{
    char what[64], line[2048], how[120], text[400], step[64] = "NVML", state[16];
    st_child c;
    bool tty = !json && isatty(fileno(out)), any = false, told = false;
    int rows = 0, r;
    double patience = interval + (live->patience > 0 ? live->patience : 10);
    st_put(what, sizeof what, "watch %d %g", count, interval);
    if (!st_child_start(&c, live->body, what)) {
        st_put(why, n, "no process can be started");
        return ST_CANNOT_LOOK;
    }
    while ((r = st_child_line(&c, st_seconds() + patience, line, sizeof line)) > 0) {
        if (st_json_get(line, "state", state, sizeof state)) { /* a step */
            if (strcmp(state, "begin") == 0)
                st_json_get(line, "step", step, sizeof step);
            else if (st_json_get(line, "text", text, sizeof text)) {
                char seen[300];
                st_json_get(line, "evidence", seen, sizeof seen);
                st_put(why, n, "%.300s%s%.250s%s", text, seen[0] ? " (" : "", seen, seen[0] ? ")" : "");
                told = true;
            }
            continue;
        }
        if (!st_json_get(line, "gpu", text, sizeof text)) continue;
        any = true;
        if (json) {
            fprintf(out, "%s\n", line);
            fflush(out);
            continue;
        }
        bool first = strcmp(text, "0") == 0;
        if (first && tty && rows) fprintf(out, "\033[%dA\033[J", rows);
        if (first && (tty || !rows)) {
            fprintf(out, "GPU  name                       used    total  busy   temp  watts/limit  SM "
                         "MHz/max    memory  ECC mended/bad, slowed by, events\n");
            rows = 1;
        }
        draw(line, out);
        fflush(out);
        rows++;
    }
    bool well = st_child_stop(&c, how, sizeof how);
    if (r < 0) {
        st_put(why, n, "%s stopped answering: the driver hangs%s%s (dmesg | strata explain)",
               any ? "NVML" : step, how[0] ? "; the process " : "", how);
        return ST_FAULT;
    }
    if (told && !any) return ST_CANNOT_LOOK;
    if (!well && strcmp(how, "ended with status 1") != 0) {
        st_put(why, n, "the process that asks NVML %s", how);
        return ST_FAULT;
    }
    if (!any) st_put(why, n, "NVML lists no GPU");
    return any ? ST_HEALTHY : ST_CANNOT_LOOK;
}
