/* SPDX-License-Identifier: Apache-2.0 */
/* embedded.h - the tables of data/doctor as the build put them into the library (tools/embed.c). */
#ifndef ST_FACTS_EMBEDDED_H
#define ST_FACTS_EMBEDDED_H
#include <stddef.h>

typedef struct st_embedded {
    const char *name; /* "errors" */
    const char *text;
    size_t size;
} st_embedded;
extern const st_embedded st_facts_embedded[]; /* ends with a zero row */

#endif
