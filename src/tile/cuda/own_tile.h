/* SPDX-License-Identifier: Apache-2.0 */
/* own_tile.h - tiles that a caller asks for and no row of kernels.inc has. A provider makes a row of them from one of its own: what is asked for replaces the row's
 * numbers, what is left open stays. Rows that are made live as long as the process, since plans and candidates point to them.
 *
 * A candidate's arg[] holds the tile where it is not its row's, so that a plan's code rebuilds it; its `listed` is the id of the row in kernels.inc. */
#ifndef ST_TILE_CUDA_OWN_TILE_H
#define ST_TILE_CUDA_OWN_TILE_H
#include "plan/plan.h"
#include "runtime/gpu.h"

/* "field is has: rule" into why; false */
bool st_tile_breaks(char *why, size_t n, const char *field, int64_t has, const char *rule);
/* After the compiler: a row that was made may hold more sums than there are registers. */
strata_status st_tile_registers(strata_handle *h, const char *who, const st_candidate *c,
                                const st_gpu_kernel *k);
#endif
