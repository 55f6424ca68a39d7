/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - see steps.h. */
#include "doctor/steps.h"
#include "doctor/child.h"
#include "doctor/json.h"
#include "doctor/machine.h"
#include "facts/cause.h"
#include <stdlib.h>
#include <string.h>

const char *const st_steps_what[] = {"nvml", "driver", "deep", "compile", NULL};

static void flush(st_steps *s)
{
    if (!s->pending) return;
    const st_finding *f = &s->f;
    st_json j = {.f = s->out, .line = true};
    st_json_open(&j, NULL, '{');
    st_json_string(&j, "step", s->step);
    st_json_string(&j, "layer", st_layer_names[f->layer]);
    st_json_string(&j, "state", st_state_names[f->state]);
    st_json_string(&j, "id", f->id);
    st_json_string(&j, "text", f->text);
    if (f->evidence[0]) st_json_string(&j, "evidence", f->evidence);
    if (f->fix[0]) st_json_string(&j, "fix", f->fix);
    if (f->avoid[0]) st_json_string(&j, "avoid", f->avoid);
    st_json_number(&j, "ms", (st_seconds() - s->began) * 1000);
    st_json_close(&j, '}');
    fflush(s->out);
    s->faults += f->state == ST_FINDING_FAULT;
    s->pending = false;
}

void st_step(st_steps *s, enum st_layer layer, const char *name)
{
    flush(s);
    st_put(s->step, sizeof s->step, "%s", name);
    s->layer = layer;
    s->began = st_seconds();
    st_json j = {.f = s->out, .line = true};
    st_json_open(&j, NULL, '{');
    st_json_string(&j, "step", name);
    st_json_string(&j, "layer", st_layer_names[layer]);
    st_json_string(&j, "state", "begin");
    st_json_close(&j, '}');
    fflush(s->out);
}

st_finding *st_step_result(st_steps *s, enum st_state state, const char *id, const char *fmt, ...)
{
    flush(s);
    memset(&s->f, 0, sizeof s->f);
    s->pending = true;
    s->f.layer = s->layer;
    s->f.state = state;
    st_put(s->f.id, sizeof s->f.id, "%s", id);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s->f.text, sizeof s->f.text, fmt, ap);
    va_end(ap);
    return &s->f;
}

st_finding *st_step_failed(st_steps *s, const char *call, int code, const char *name)
{
    st_cause c;
    bool known = st_facts_cause(name, &c);
    st_finding *f = st_step_result(s, ST_FINDING_FAULT, "call_failed", "%s failed%s%s", call,
                                   known ? ": " : "", known ? c.cause : "");
    st_evidence(f, "%s returned %d (%s)", call, code, name);
    st_fix(f, "%s", known ? c.fix : "dmesg | strata explain, then strata explain with that name");
    return f;
}

void st_steps_end(st_steps *s) { flush(s); }

int st_steps_run(const char *what, FILE *out)
{
    st_steps s = {.out = out};
    if (strncmp(what, "watch ", 6) == 0) return st_watch_child(what, out);
    if (!strcmp(what, "nvml"))
        st_steps_nvml(&s);
    else if (!strcmp(what, "driver") || !strcmp(what, "deep"))
        st_steps_driver(&s, what[1] == 'e');
    else if (!strcmp(what, "compile"))
        st_steps_compile(&s);
    else
        return 2;
    st_steps_end(&s);
    return s.faults != 0;
}

int st_steps_body(const char *what, int fd)
{
    FILE *out = fdopen(fd, "w");
    return out ? st_steps_run(what, out) : 2;
}
