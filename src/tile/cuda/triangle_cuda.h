/* SPDX-License-Identifier: Apache-2.0 */
/* triangle_cuda.h - triangular products and solutions on a GPU's handle: what triangular.c asks of it. */
#ifndef ST_TILE_CUDA_TRIANGLE_CUDA_H
#define ST_TILE_CUDA_TRIANGLE_CUDA_H
#include "runtime/gpu.h"
#include "tile/triangular.h"

typedef strata_status (*st_triangle_fn)(strata_handle *h, const char *who, const st_triangle *t,
                                        const double alpha[2]);
/* fn with t's operands where the device reaches them, as one call. */
strata_status st_cuda_triangle_call(strata_handle *h, const char *who, const st_triangle *t,
                                    const double alpha[2], st_triangle_fn fn);
/* The largest order of a block, and a block. */
int64_t st_cuda_triangle_order(const st_gpu *gpu, int64_t type);
strata_status st_cuda_triangle_block(strata_handle *h, const char *who, const st_triangle *t,
                                     const double alpha[2]);
/* data[i] moved by bytes[i]: itself, or, where bit i of `which` says that it is an array of `items` addresses, another array of moved ones. *room: to be given to st_gpu_free
 * after their use (or NULL). */
strata_status st_cuda_move_addresses(strata_handle *h, int count, void *data[], const int64_t *bytes,
                                     unsigned which, int64_t items, void **room);
#endif
