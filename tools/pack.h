/* SPDX-License-Identifier: Apache-2.0 */
/* pack.h - what the parts of strata-pack share: jobs, what workers found, and options. */
#ifndef PACK_H
#define PACK_H
#include "runtime/cuda/image.h"

enum { PACK_ARCHS = 6, PACK_PER_ARCH = 300, PACK_MEGABYTES = 25 };
extern const int pack_cc[PACK_ARCHS];

typedef struct pack_options {
    const char *out, *from, *only; /* the pack to write; an older one to take code from; a part of an id */
    int arch;                      /* only this capability, 0: all */
    int jobs, sample,
        limit; /* processes; this many configurations spread over all, 0: all; most of one list and architecture, 0: all */
    double seconds; /* take no new kernel after this long, 0: no bound */
    bool verbose, check;
} pack_options;

/* One kernel for one architecture, in the order in which it is wanted. */
typedef struct pack_job {
    int list, index, arch;
    st_image_key key;
    char id[96];
} pack_job;

/* What became of a job. Workers write it to a file, followed by the code (compressed) and the complaint. */
typedef struct pack_result {
    int job;
    st_image_record record;
    double ms;
    bool compiled; /* else complaint says why not */
    bool reused;
    uint32_t complaint; /* bytes, without an end */
} pack_result;

pack_job *pack_list(const pack_options *o, int *count);
bool pack_spec(const pack_job *j, st_gpu_spec *s);
/* Compiles all jobs in o->jobs processes; results are given to `each` in the order of jobs. False when a process failed. */
typedef void (*pack_each)(void *user, const pack_job *j, const pack_result *r, const void *code,
                          const char *complaint);
bool pack_run(const pack_options *o, const pack_job *jobs, int count, const st_pack *old, pack_each each,
              void *user, int *done);
#endif
