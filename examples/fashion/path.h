/* SPDX-License-Identifier: Apache-2.0 */
/* path.h - shows the path of a call through Strata's layers, from a trace that Strata wrote. */
#ifndef FASHION_PATH_H
#define FASHION_PATH_H
#include <stdio.h>

/* Prints the events of a Chrome trace file (STRATA_TRACE=file.json), each indented under the event that contains it, with its
 * microseconds. The number of events, or -1 when the file cannot be read. */
int path_show(FILE *out, const char *trace_file);
#endif
