/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.h - what the files of this layer share among themselves. */
#ifndef ST_RUNTIME_RUNTIME_H
#define ST_RUNTIME_RUNTIME_H
#include "runtime/handle.h"

/* pool.c: blocks have a header of this size before them */
enum { ST_BLOCK_HEADER = 64 };
void *st_cpu_alloc(size_t bytes, size_t align); /* from the cache or the system; NULL when there is none */
/* Enters a block that a caller's allocator gave, with room for the header before it, among the live ones. */
void st_cpu_adopt(void *user, size_t bytes, const strata_handle *owner);
typedef enum st_taken {
    ST_TAKEN_NOTHING, /* no live block begins there */
    ST_TAKEN_POOL,    /* it was the pool's and has been freed */
    ST_TAKEN_CALLERS, /* it is h's caller's, no longer live, and must go back to that allocator */
    ST_TAKEN_OTHERS   /* it is another handle's caller's and stays live */
} st_taken;
st_taken st_cpu_take(void *user, const strata_handle *h, size_t *bytes);
void st_cpu_forget(const strata_handle *owner); /* a handle's caller's blocks are live no longer */
void st_cpu_trim(void);
void st_cpu_stats(strata_memory_stats *s);
size_t st_cpu_memory_limit(void); /* physical memory or the cgroup's limit */

/* memory.c */
void st_workspace_drop(strata_handle *h); /* gives the handle's own workspace back */

/* stable.c: small objects whose memory stays theirs after destruction, so that using a destroyed one is seen and not undefined. */
typedef struct st_stable {
    const size_t size;
    struct st_spare *first, *last; /* the longest unused is reused first */
    int spare;
} st_stable;
void *st_stable_new(st_stable *kind); /* zeroed; NULL when there is no memory */
void st_stable_put(st_stable *kind, void *object);

/* cpu/team.c */
int st_team_size(void); /* affinity mask and cgroup quota */
void st_team_count_calls(int *fork_joins);

/* handle.c */
bool st_device_parse(st_err *e, const char *who, const char *device, char *out, size_t n);

/* stream.c: nothing beyond the public face; on the CPU a stream is a name */
#endif
