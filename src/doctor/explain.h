/* SPDX-License-Identifier: Apache-2.0 */
/* explain.h - what known error messages mean. */
#ifndef ST_DOCTOR_EXPLAIN_H
#define ST_DOCTOR_EXPLAIN_H
#include "base/base.h"
#include <stdio.h>

/* Exit codes of the doctor's verbs. */
enum { ST_HEALTHY = 0, ST_FAULT = 1, ST_BAD_USAGE = 2, ST_CANNOT_LOOK = 3 };

typedef struct st_explain st_explain;
st_explain *st_explain_open(void); /* NULL: out of memory */
void st_explain_close(st_explain *e);
/* A message that a person typed: besides the patterns, "error 35" and "Xid 79" are understood. */
void st_explain_text(st_explain *e, const char *text);
int st_explain_fd(st_explain *e, int fd); /* a log; 0 or errno */
/* What `strata doctor` finds at fault or warns of on this machine: its words are printed beside the messages that it explains. Once a finding, the
 * weightiest first. */
void st_explain_machine(st_explain *e, const char *finding, const char *text);
/* Writes the report once, after all text. ST_FAULT: a known error was found; ST_HEALTHY: none, or harmless ones only;
 * ST_CANNOT_LOOK: a typed message that is not known. */
int st_explain_report(st_explain *e, FILE *out, bool json);

#endif
