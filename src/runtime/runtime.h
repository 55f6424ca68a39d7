/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.h - what the files of this layer share among themselves. */
#ifndef ST_RUNTIME_RUNTIME_H
#define ST_RUNTIME_RUNTIME_H
#include "runtime/handle.h"

/* memory.c */
void *st_cpu_alloc(size_t bytes, size_t align); /* from the cache or the system; NULL when there is none */
void st_cpu_free(void *p);                      /* blocks of st_cpu_alloc only */
bool st_cpu_owns(const void *p);
void st_cpu_trim(void);
void st_cpu_stats(strata_memory_stats *s);
size_t st_cpu_memory_limit(void); /* physical memory or the cgroup's limit */

/* cpu/team.c */
int st_team_size(void); /* affinity mask and cgroup quota */
void st_team_count_calls(int *fork_joins);

/* devices.c */
bool st_device_parse(st_err *e, const char *who, const char *device, char *out, size_t n);

/* stream.c: nothing beyond the public face; on the CPU a stream is a name */
#endif
