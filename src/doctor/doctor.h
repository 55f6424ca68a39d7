/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.h - what is wrong with a machine's GPU stack, layer by layer.
 *
 * Everything is read through a root directory: files only, nothing is loaded, started or changed. A finding belongs to one of six
 * layers; the verdict is the first fault of the lowest faulty layer, since what lies above it fails because of it. */
#ifndef ST_DOCTOR_DOCTOR_H
#define ST_DOCTOR_DOCTOR_H
#include "doctor/explain.h"

enum st_layer {
    ST_HARDWARE,
    ST_DRIVER,
    ST_RUNTIME,
    ST_LIBRARIES,
    ST_FRAMEWORKS,
    ST_APPLICATION,
    ST_LAYER_COUNT
};
enum st_state { ST_FINDING_OK, ST_FINDING_NOTE, ST_FINDING_WARNING, ST_FINDING_FAULT, ST_FINDING_ABSENT };

typedef struct st_finding {
    enum st_layer layer;
    enum st_state state;
    char id[32];        /* stable, for programs */
    char text[360];     /* one sentence */
    char evidence[400]; /* where it was seen: file, value */
    char fix[440];      /* a command, or what to do */
    char avoid[280];    /* what people try and what does not help */
} st_finding;

typedef struct st_doctor st_doctor;
/* NULL with an errno when the root cannot be read (or memory is short). */
st_doctor *st_doctor_run(const char *root, int *error);
void st_doctor_free(st_doctor *d);
int st_doctor_count(const st_doctor *d);
const st_finding *st_doctor_finding(const st_doctor *d, int i); /* by layer, lowest first */
const st_finding *st_doctor_verdict(const st_doctor *d);        /* NULL: no fault */
bool st_doctor_has_gpu(const st_doctor *d);
const char *st_doctor_summary(
    const st_doctor *d); /* "Ubuntu 24.04.3 LTS, kernel 6.8.0, container (docker)" */

/* Each returns the exit code (ST_HEALTHY or ST_FAULT). */
int st_doctor_text(const st_doctor *d, FILE *out);
int st_doctor_json(const st_doctor *d, FILE *out);
int st_doctor_html(const st_doctor *d, FILE *out);

/* `--plan "rtx 2080 ti, pytorch 2.8"`: which versions fit, from the tables alone. ST_HEALTHY: something fits; ST_FAULT: nothing
 * does; ST_BAD_USAGE: a part of the request is not understood (it is named). */
int st_doctor_plan(const char *request, FILE *out, bool json);

/* `--for SUBJECT`: the copies of the GPU libraries that a program, a process (a number) or a Python takes, found by parsing; nothing is
 * started. ST_CANNOT_LOOK with the reason in why when there is no such subject. */
int st_doctor_for(const char *root, const char *subject, FILE *out, bool json, char *why, size_t n);

extern const char *const st_layer_names[ST_LAYER_COUNT];
extern const char *const st_state_names[];

#endif
