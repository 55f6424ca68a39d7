/* SPDX-License-Identifier: Apache-2.0 */
/* cause.h - what an error name means, for error chains: "CUDA_ERROR_NO_DEVICE" -> the layer at fault, the likely causes, the fix.
 *
 * Read from the same table as `strata explain` (data/doctor/errors.tsv), straight from the embedded text: no state, no memory that
 * stays, no locks, so it may be called wherever an error is made. */
#ifndef ST_FACTS_CAUSE_H
#define ST_FACTS_CAUSE_H
#include "base/base.h"

typedef struct st_cause {
    char id[48];      /* the row: "cuda_100" */
    char layer[16];   /* hardware driver container wsl cuda libs framework application */
    char cause[256];  /* the most likely one */
    char causes[640]; /* all, " | " between, most likely first */
    char confirm[256];
    char fix[320];
} st_cause;
/* A name of the driver, NVRTC, NVML or a base library, or a whole message. False (and *c zeroed) when no row knows it. */
bool st_facts_cause(const char *name, st_cause *c);
/* Adds the frame "driver: likely: ..." to e and, where e has no remedy yet, the fix. Nothing for names without a row. */
void st_facts_explain(st_err *e, const char *name);

#endif
