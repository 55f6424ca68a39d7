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
/* The same, and what the driver and NVML answer, asked in children of this process that are given up on when they hang. Files alone are read
 * when root is not "/". */
typedef struct st_live {
    /* Runs in the child and writes the lines of steps.h to fd for `what` ("nvml", "driver", "deep", "compile", "gpu"); its exit status. */
    int (*body)(const char *what, int fd);
    bool deep;       /* a kernel through every layer, and rates; else only what takes no time */
    double patience; /* seconds that a step of deep may take; 0: 30 */
} st_live;
st_doctor *st_doctor_look(const char *root, const st_live *live, int *error);
/* A child's body for those: the steps in this program, without starting another (all but "gpu"). */
int st_steps_body(const char *what, int fd);
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

/* `--verify`: what an installation needs, step by step, each tried. live.deep is taken as set. */
int st_doctor_verify(const st_live *live, FILE *out, bool json);
/* `--watch`: a table of the GPUs every `interval` seconds, `count` times (0: until it is interrupted); JSON: one line a GPU and time. ST_CANNOT_LOOK with the reason in why without NVML, ST_FAULT when it stops answering. */
int st_doctor_watch(const st_live *live, int count, double interval, FILE *out, bool json, char *why,
                    size_t n);

extern const char *const st_layer_names[ST_LAYER_COUNT];
extern const char *const st_state_names[];

#endif
