/* SPDX-License-Identifier: Apache-2.0 */
/* grouped.h - products of a group that do not depend on each other, run together: on a CPU small ones are shared among the threads in one dispatch, on a GPU families
 * of kernels take those of one kind in one launch. */
#ifndef ST_TILE_GROUPED_H
#define ST_TILE_GROUPED_H
#include "tile/tile.h"

typedef struct st_member {
    const st_contract *c; /* as described by the caller: not simplified, no epilogue */
    double alpha[2], beta[2];
    void *data[3]; /* A, B, C */
} st_member;

/* The members' C overlap neither each other nor any A and B. An error leaves some undone. *at: the member that failed, -1: none in particular. */
strata_status st_tile_grouped(strata_handle *h, const char *who, const st_member *m, int64_t count,
                              int64_t *at);

/* A family of kernels on a GPU: launches those members that it takes, in as few launches as it can, and sets done[i] for them; the others are left to the next family,
 * and at last to calls of their own. Members have the same types and math mode, something to compute, and addresses that the device reaches. */
typedef strata_status (*st_group_runner)(strata_handle *h, const char *who, const st_member *const m[],
                                         int64_t count, bool done[]);
#endif
