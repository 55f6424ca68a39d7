/* SPDX-License-Identifier: Apache-2.0 */
/* for.h - which copies of the GPU libraries one program, process or Python takes (`strata doctor --for`). */
#ifndef ST_DOCTOR_FOR_H
#define ST_DOCTOR_FOR_H
#include "doctor/resolve.h"

enum { ST_FOR_GROUPS = 8 };
typedef struct st_group { /* what is loaded together: a program, or a Python with one package imported */
    char title[160];
    st_loader l;
    bool own_root; /* the process lives in another mount namespace: m below is its view */
} st_group;
typedef struct st_for {
    st_doctor *d;     /* the machine; its findings are replaced by those on the subject */
    const char *kind; /* "program", "process", "python" */
    char subject[256], program[256], note[400];
    char *library_path; /* LD_LIBRARY_PATH that counts, or NULL */
    char *environ_text; /* of the process */
    int count;
    st_group group[ST_FOR_GROUPS];
    st_machine *other; /* another root, see own_root */
} st_for;

/* Each fills the groups; false with the reason in why. */
bool st_for_program(st_for *f, const char *path, char *why, size_t n);
bool st_for_process(st_for *f, long pid, char *why, size_t n);
bool st_for_python(st_for *f, const char *path, char *why, size_t n);
/* Names that the code of the loaded objects holds and opens later (dlopen). */
void st_for_later(st_loader *l);
st_group *st_for_group(st_for *f, const char *title); /* NULL: no room */
/* What is wrong with a group, as findings. */
void st_for_check(st_for *f, const st_group *g);

#endif
