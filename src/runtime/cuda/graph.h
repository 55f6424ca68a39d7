/* SPDX-License-Identifier: Apache-2.0 */
/* graph.h - what other files ask about a graph that strata_graph_begin captures. */
#ifndef ST_RUNTIME_CUDA_GRAPH_H
#define ST_RUNTIME_CUDA_GRAPH_H
#include "runtime/handle.h"
/* The graph takes over a workspace that its nodes use (without host memory to note it, it is never freed). */
void st_cuda_graph_keep(strata_handle *h, void *workspace);
#endif
