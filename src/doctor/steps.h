/* SPDX-License-Identifier: Apache-2.0 */
/* steps.h - calls of the driver and its libraries, one by one, for a process that may hang or crash in them.
 *
 * Each step writes a line when it begins and one for each result, so that whoever reads knows where it stopped:
 *     {"step": "cuInit", "layer": "driver", "state": "begin"}
 *     {"step": "cuInit", "layer": "driver", "state": "ok", "id": "cuda_call", "text": "...", "ms": 95.1}
 * A result is a finding of the doctor: state ok, note, warning, fault or absent; id, text, and where there are any evidence, fix, avoid. */
#ifndef ST_DOCTOR_STEPS_H
#define ST_DOCTOR_STEPS_H
#include "doctor/doctor.h"

typedef struct st_steps {
    FILE *out;
    char step[64];
    enum st_layer layer;
    double began;
    bool pending; /* f is not written yet */
    int faults;
    st_finding f;
} st_steps;
void st_step(st_steps *s, enum st_layer layer, const char *name);
/* The finding may be completed with st_evidence and so on until the next st_step or st_steps_end. */
st_finding *st_step_result(st_steps *s, enum st_state state, const char *id, const char *fmt, ...)
    ST_PRINTF(4, 5);
/* A call that failed, with what the tables say of the error's name. */
st_finding *st_step_failed(st_steps *s, const char *call, int code, const char *name);
void st_steps_end(st_steps *s);

/* what: "nvml" (state and health through NVML), "driver" (libcuda: open, cuInit, devices), "deep" (context, memory, a kernel, rates), "compile"
 * (a kernel through NVRTC). The exit status: 0, 1 a fault, 2 not one of these. */
int st_steps_run(const char *what, FILE *out);
void st_steps_nvml(st_steps *s);
void st_steps_driver(st_steps *s, bool deep);
void st_steps_compile(st_steps *s);
int st_watch_child(const char *what, FILE *out); /* watch.c: "watch COUNT SECONDS" */
extern const char *const st_steps_what[];        /* the names, NULL-ended */

int st_steps_body(const char *what, int fd); /* st_steps_run in a child of the same program */
/* libcuda step by step, for the steps that need a device (steps_driver.c) */
struct st_cuda_calls;
const struct st_cuda_calls *st_steps_context(st_steps *s, bool quiet, int *cc);
bool st_steps_run_fill(st_steps *s, const struct st_cuda_calls *cu, const void *image, const char *made_by);
/* dense f16 product rate that the maker states for a part of that name, TFLOP/s; 0: not in the table */
double st_steps_f16_figure(const char *name);
#endif
