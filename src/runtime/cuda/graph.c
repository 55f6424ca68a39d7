/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - strata_graph_begin to strata_graph_destroy: calls on a handle recorded into a CUDA graph.
 *
 * The capture is relaxed: what other streams and threads do does not disturb it. A graph has a workspace of its own: while it is captured
 * the handle's is set aside, and what the recorded calls were given belongs to the graph, so that replays meet no other use of the handle. */
#include "runtime/cuda/graph.h"
#include "runtime/cuda/cuda.h"
#include <stdlib.h>

#define GRAPH_MAGIC 0x67726170u

struct strata_graph {
    uint32_t magic;
    bool launched;
    st_cuda *g;
    st_cu_graphexec exec;
    st_cu_event done; /* the last launch */
    void **block;     /* workspaces that its nodes use */
    int blocks;
    strata_stream own;  /* captured when the handle is on the default stream, which cannot be */
    strata_stream *was; /* the handle's, to be restored */
    char *workspace;    /* the same */
    size_t workspace_size;
};
static st_stable graphs = {.size = sizeof(struct strata_graph)};

static strata_status no_gpu(strata_handle *h, const char *who)
{
    st_fail(&h->err, STRATA_ERROR_UNSUPPORTED,
            "%s: the handle is on %s; graphs of calls are recorded on GPUs", who, h->device);
    st_err_remedy(
        &h->err,
        "make the handle with \"cuda:0\", or make the calls directly: on the CPU a graph would save nothing");
    return STRATA_ERROR_UNSUPPORTED;
}

void st_cuda_graph_keep(strata_handle *h, void *workspace)
{
    strata_graph *q = h->cuda.graph;
    void **more = realloc(q->block, sizeof *more * (size_t)(q->blocks + 1));
    if (!more) return;
    q->block = more;
    q->block[q->blocks++] = workspace;
}

static void drop(strata_graph *q)
{
    size_t bytes;
    const int mode = st_cuda_relax(q->g);
    if (q->exec) q->g->cu->graph_exec_destroy(q->exec);
    if (q->launched) q->g->cu->event_synchronize(q->done); /* the workspace is in use until then */
    if (q->done) q->g->cu->event_destroy(q->done);
    st_cuda_restore(q->g, mode);
    for (int i = 0; i < q->blocks; i++) st_cuda_pool_take(q->g, NULL, q->block[i], NULL, &bytes);
    free(q->block);
    q->magic = 0;
    st_stable_put(&graphs, q);
}

strata_status strata_graph_begin(strata_handle *h)
{
    static const char who[] = "strata_graph_begin";
    strata_status s = st_handle_check(h, who);
    if (s) return s;
    if (!h->gpu) return no_gpu(h, who);
    st_cuda *g = st_cuda_of(h);
    if (h->cuda.graph || st_gpu_capturing(h))
        return st_fail(&h->err, STRATA_ERROR_STATE, "%s: %s", who,
                       h->cuda.graph
                           ? "a graph is being recorded on this handle already; strata_graph_end ends it"
                           : "the handle's stream is being captured already by its owner");
    strata_graph *q = st_stable_new(&graphs);
    if (!q) return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no host memory", who);
    const st_libcuda *cu = st_cuda_enter(h);
    if (!cu) {
        st_stable_put(&graphs, q);
        return h->err.status;
    }
    const char *function = "cuEventCreate";
    st_cu_result r = cu->event_create(&q->done, ST_CU_EVENT_NO_TIMING);
    q->g = g;
    q->was = h->stream;
    if (!r && !st_cuda_stream(h)->native) {
        function = "cuStreamCreate";
        q->own = (strata_stream){.magic = ST_STREAM_MAGIC, .device = g, .serial = st_stream_serial()};
        r = cu->stream_create(&q->own.native, ST_CU_STREAM_NON_BLOCKING);
        if (!r) h->stream = &q->own;
    }
    if (!r) {
        function = "cuStreamBeginCapture";
        r = cu->stream_begin_capture(st_cuda_stream(h)->native, ST_CU_CAPTURE_RELAXED);
    }
    if (r) {
        s = st_cuda_fail(&h->err, g, st_cuda_stream(h), function, r, "%s: the capture could not begin", who);
        h->stream = q->was;
        if (q->own.native) cu->stream_destroy(q->own.native);
        drop(q);
    } else {
        q->magic = GRAPH_MAGIC;
        if (!h->workspace_is_callers) {
            q->workspace = h->workspace;
            q->workspace_size = h->workspace_size;
            h->workspace = NULL;
            h->workspace_size = 0;
        }
        h->cuda.graph = q;
    }
    st_cuda_leave(h);
    return s;
}

/* The capture is over; the handle is as it was before it. */
static st_cu_result finish(strata_handle *h, st_cu_graph *graph)
{
    strata_graph *q = h->cuda.graph;
    const st_libcuda *cu = q->g->cu;
    st_gpu_run_end(h);
    st_cu_result r = cu->stream_end_capture(st_cuda_stream(h)->native, graph);
    if (!h->workspace_is_callers) {
        st_cuda_workspace_drop(h); /* to the graph */
        h->workspace = q->workspace;
        h->workspace_size = q->workspace_size;
    }
    h->cuda.graph = NULL;
    h->stream = q->was;
    if (q->own.native) cu->stream_destroy(q->own.native);
    q->own.native = NULL;
    return r;
}

strata_status strata_graph_end(strata_handle *h, strata_graph **out)
{
    static const char who[] = "strata_graph_end";
    strata_status s = st_handle_check(h, who);
    if (s) return s;
    if (!out) return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "%s: the address for the graph is NULL", who);
    *out = NULL;
    if (!h->gpu) return no_gpu(h, who);
    strata_graph *q = h->cuda.graph;
    if (!q)
        return st_fail(&h->err, STRATA_ERROR_STATE,
                       "%s: no graph is being recorded; strata_graph_begin begins one", who);
    const st_libcuda *cu = st_cuda_enter(h);
    if (!cu) return h->err.status;
    st_cu_graph graph = NULL;
    const char *function = "cuStreamEndCapture";
    st_cu_result r = finish(h, &graph);
    if (!r) {
        function = "cuGraphInstantiate";
        r = cu->graph_instantiate(&q->exec, graph, 0);
    }
    if (graph) cu->graph_destroy(graph);
    if (r) {
        s = st_cuda_fail(&h->err, q->g, st_cuda_stream(h), function, r,
                         r == ST_CU_CAPTURE_INVALIDATED
                             ? "%s: a call made since strata_graph_begin cannot be recorded"
                             : "%s: the graph could not be made",
                         who);
        drop(q);
    } else {
        *out = q;
    }
    st_cuda_leave(h);
    return s;
}

void st_cuda_graph_abandon(strata_handle *h)
{
    strata_graph *q = h->cuda.graph;
    st_cu_graph graph = NULL;
    if (!q) return;
    if (!st_cuda_enter(h)) { /* lost or forked: only our own memory can be given back */
        h->stream = q->was;
        h->cuda.graph = NULL;
        free(q->block);
        st_stable_put(&graphs, q);
        return;
    }
    finish(h, &graph);
    if (graph) q->g->cu->graph_destroy(graph);
    drop(q);
    st_cuda_leave(h);
}

strata_status strata_graph_launch(strata_handle *h, strata_graph *q)
{
    static const char who[] = "strata_graph_launch";
    strata_status s = st_handle_check(h, who);
    if (s) return s;
    if (!h->gpu) return no_gpu(h, who);
    if (!q || q->magic != GRAPH_MAGIC || q->g != st_cuda_of(h) || !q->exec)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "%s: the graph is %s", who,
                       !q                        ? "NULL"
                       : q->magic != GRAPH_MAGIC ? "destroyed, or not a strata_graph"
                       : q->g != st_cuda_of(h)   ? "of another device than the handle"
                                                 : "still being recorded");
    const st_libcuda *cu = st_cuda_enter(h);
    if (!cu) return h->err.status;
    const uint64_t t0 = st_trace_begin();
    strata_stream *stream = st_cuda_stream(h);
    st_cu_result r = cu->graph_launch(q->exec, stream->native);
    if (!r && !st_cuda_stream_captures(q->g, stream)) {
        r = cu->event_record(q->done, stream->native);
        q->launched = true;
    }
    if (r)
        s = st_cuda_fail(&h->err, q->g, stream, "cuGraphLaunch", r, "%s: the graph could not be launched",
                         who);
    if (ST_UNLIKELY(t0)) st_trace_end(t0, "runtime", "graph", "launched on %s", h->device);
    st_cuda_leave(h);
    return s;
}

strata_status strata_graph_destroy(strata_graph *q)
{
    st_err *e = st_err_thread();
    st_cuda_scope scope;
    if (!q) return STRATA_OK;
    if (q->magic != GRAPH_MAGIC)
        return st_fail(e, STRATA_ERROR_ARGUMENT, "strata_graph_destroy: not a live strata_graph");
    if (!q->exec)
        return st_fail(e, STRATA_ERROR_STATE,
                       "strata_graph_destroy: the graph is still being recorded; strata_graph_end it first");
    if (atomic_load(&q->g->lost) ||
        !st_cuda_enter_device(e, q->g, &scope)) { /* nothing is left to give back to */
        free(q->block);
        q->magic = 0;
        st_stable_put(&graphs, q);
        return STRATA_OK;
    }
    drop(q);
    st_cuda_leave_device(&scope);
    return STRATA_OK;
}
