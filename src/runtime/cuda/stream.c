/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - streams and events of a GPU, ours and callers'; what a handle does when its stream changes: the new stream waits for the workspace's
 * last use in the old one. */
#include "runtime/cuda/cuda.h"
#include <string.h>

/* A thread may allocate, wait, and ask events while another stream is being captured in the global mode only if it is itself relaxed; -1: it
 * could not be made so. */
int st_cuda_relax(st_cuda *g)
{
    int mode = ST_CU_CAPTURE_RELAXED;
    return g->cu->thread_exchange_capture_mode(&mode) ? -1 : mode;
}

void st_cuda_restore(st_cuda *g, int mode)
{
    if (mode >= 0) g->cu->thread_exchange_capture_mode(&mode);
}

bool st_cuda_stream_captures(st_cuda *g, const strata_stream *s)
{
    int status = 0;
    /* asked of the legacy stream while another one is captured, the driver answers with an error: not captured */
    return s->native && g->cu->stream_is_capturing(s->native, &status) == 0 && status != 0;
}

bool st_gpu_capturing(strata_handle *h)
{
    return h->gpu && st_cuda_stream_captures(st_cuda_of(h), st_cuda_stream(h));
}

void *st_gpu_stream(strata_handle *h) { return h->gpu ? st_cuda_stream(h)->native : NULL; }

strata_status st_cuda_stream_create(strata_handle *h, strata_stream *s, bool wrap, void *native)
{
    st_cuda *g = st_cuda_of(h);
    const st_libcuda *cu = st_cuda_enter(h);
    st_cu_result r = 0;
    if (!cu) return h->err.status;
    s->device = g;
    if (wrap) {
        st_cu_context c = NULL;
        s->native = native;
        s->wrapped = true;
        r = cu->stream_get_ctx(native, &c);
        if (r)
            st_cuda_fail(&h->err, g, s, "cuStreamGetCtx", r, "strata_stream_wrap: %p is not a CUstream",
                         native);
        else if (c != g->context) {
            st_fail(
                &h->err, STRATA_ERROR_ARGUMENT,
                "strata_stream_wrap: the stream %p belongs to another device or context than the handle's %s",
                native, h->device);
            st_err_remedy(&h->err,
                          "streams must be of the device's primary context, which the CUDA runtime uses");
            r = 1;
        }
    } else if ((r = cu->stream_create(&s->native, ST_CU_STREAM_NON_BLOCKING)) != 0) {
        st_cuda_fail(&h->err, g, NULL, "cuStreamCreate", r, "strata_stream_create: %s gave no stream",
                     h->device);
    }
    st_cuda_leave(h);
    return r ? h->err.status : STRATA_OK;
}

strata_status st_cuda_stream_destroy(st_err *e, strata_stream *s)
{
    st_cuda_scope scope;
    st_cu_result r;
    if (s->wrapped || st_libcuda_forked() || atomic_load(&s->device->lost)) return STRATA_OK;
    if (!st_cuda_enter_device(e, s->device, &scope)) return e->status;
    r = s->device->cu->stream_destroy(s->native); /* work in it goes on */
    st_cuda_leave_device(&scope);
    return r && r != ST_CU_DEINITIALIZED
               ? st_cuda_fail(e, s->device, s, "cuStreamDestroy", r, "strata_stream_destroy failed")
               : STRATA_OK;
}

/* Notes where the workspace was used last, before the stream is left. */
static bool leave_stream(strata_handle *h, const st_libcuda *cu, strata_stream *from)
{
    st_cu_result r = 0;
    if (from->magic != ST_STREAM_MAGIC || !h->workspace || st_cuda_stream_captures(st_cuda_of(h), from))
        return true;
    if (!h->cuda.last) r = cu->event_create(&h->cuda.last, ST_CU_EVENT_NO_TIMING);
    if (!r) r = cu->event_record(h->cuda.last, from->native);
    if (r) {
        st_cuda_fail(&h->err, st_cuda_of(h), from, "cuEventRecord", r,
                     "strata_set_stream: the old stream cannot be ordered");
        return false;
    }
    h->cuda.last_serial = from->serial;
    h->cuda.ordered = true;
    return true;
}

strata_status st_cuda_stream_set(strata_handle *h, strata_stream *s)
{
    st_cuda *g = st_cuda_of(h);
    strata_stream *from = st_cuda_stream(h), *to = s ? s : &g->default_stream;
    if (from == to) return STRATA_OK;
    if (s && s->device != g)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "strata_set_stream: the stream is of another device than the handle's %s", h->device);
    if (h->cuda.graph)
        return st_fail(&h->err, STRATA_ERROR_STATE,
                       "strata_set_stream: between strata_graph_begin and strata_graph_end the "
                       "handle's stream cannot change");
    if (from->magic != ST_STREAM_MAGIC)
        h->stream = NULL; /* destroyed already: its work was ordered by nothing but time */
    const st_libcuda *cu = st_cuda_enter(h);
    if (!cu) return h->err.status;
    strata_status status = STRATA_OK;
    if (!leave_stream(h, cu, from))
        status = h->err.status;
    else if (h->cuda.ordered && h->cuda.last_serial != to->serial && !st_cuda_stream_captures(g, to)) {
        st_cu_result r = cu->stream_wait_event(to->native, h->cuda.last, 0);
        if (r)
            status = st_cuda_fail(&h->err, g, to, "cuStreamWaitEvent", r,
                                  "strata_set_stream: the new stream cannot be ordered");
        else
            h->cuda.ordered = false;
    }
    st_cuda_leave(h);
    if (!status) h->stream = s;
    return status;
}

strata_status st_cuda_synchronize(strata_handle *h)
{
    st_cuda *g = st_cuda_of(h);
    const st_libcuda *cu = st_cuda_enter(h);
    strata_status s = STRATA_OK;
    if (!cu) return h->err.status;
    if (st_gpu_capturing(h)) {
        s = st_fail(&h->err, STRATA_ERROR_STATE,
                    "strata_synchronize: the stream is being captured into a graph; it runs nothing now");
    } else {
        const int mode = st_cuda_relax(g);
        st_cu_result r = cu->stream_synchronize(st_cuda_stream(h)->native);
        st_cuda_restore(g, mode);
        if (r)
            s = st_cuda_fail(&h->err, g, st_cuda_stream(h), "cuStreamSynchronize", r,
                             "strata_synchronize: work on %s failed", h->device);
    }
    st_cuda_leave(h);
    return s;
}

/* ---- events --------------------------------------------------------------------------------------------------------------------- */
strata_status st_cuda_event_create(strata_handle *h, strata_event *ev)
{
    const st_libcuda *cu = st_cuda_enter(h);
    if (!cu) return h->err.status;
    ev->device = st_cuda_of(h);
    st_cu_result r = cu->event_create(&ev->native, 0);
    st_cuda_leave(h);
    return r ? st_cuda_fail(&h->err, ev->device, NULL, "cuEventCreate", r,
                            "strata_event_create: %s gave no event", h->device)
             : STRATA_OK;
}

void st_cuda_event_destroy(strata_event *ev)
{
    st_err spare = {0};
    st_cuda_scope scope;
    if (!st_cuda_enter_device(&spare, ev->device, &scope)) return;
    ev->device->cu->event_destroy(ev->native);
    st_cuda_leave_device(&scope);
}

strata_status st_cuda_event_record(strata_handle *h, strata_event *ev)
{
    if (ev->device != st_cuda_of(h))
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "strata_event_record: the event is of another device than the handle's %s", h->device);
    const st_libcuda *cu = st_cuda_enter(h);
    if (!cu) return h->err.status;
    st_cu_result r = cu->event_record(ev->native, st_cuda_stream(h)->native);
    st_cuda_leave(h);
    if (r)
        return st_cuda_fail(&h->err, ev->device, st_cuda_stream(h), "cuEventRecord", r,
                            "strata_event_record failed");
    ev->recorded = true;
    return STRATA_OK;
}

strata_status st_cuda_event_order(strata_handle *h, strata_event *ev)
{
    if (!ev->recorded) return STRATA_OK; /* as the driver has it: nothing to wait for */
    const st_libcuda *cu = st_cuda_enter(h);
    if (!cu) return h->err.status;
    st_cu_result r = cu->stream_wait_event(st_cuda_stream(h)->native, ev->native, 0);
    st_cuda_leave(h);
    return r ? st_cuda_fail(&h->err, st_cuda_of(h), st_cuda_stream(h), "cuStreamWaitEvent", r,
                            "strata_wait_event failed")
             : STRATA_OK;
}

strata_status st_cuda_event_wait(st_err *e, strata_event *ev)
{
    st_cuda_scope scope;
    if (!ev->recorded) return STRATA_OK;
    if (!st_cuda_enter_device(e, ev->device, &scope)) return e->status;
    const int mode = st_cuda_relax(ev->device);
    st_cu_result r = ev->device->cu->event_synchronize(ev->native);
    st_cuda_restore(ev->device, mode);
    st_cuda_leave_device(&scope);
    return r ? st_cuda_fail(e, ev->device, NULL, "cuEventSynchronize", r,
                            "strata_event_wait: work before the event failed")
             : STRATA_OK;
}

strata_status st_cuda_event_elapsed(st_err *e, strata_event *begin, strata_event *end, double *ms)
{
    st_cuda_scope scope;
    float t = 0;
    if (begin->device != end->device)
        return st_fail(e, STRATA_ERROR_ARGUMENT, "strata_event_elapsed: the events are of two devices");
    if (!st_cuda_enter_device(e, end->device, &scope)) return e->status;
    const st_libcuda *cu = end->device->cu;
    const char *function = "cuEventSynchronize";
    const int mode = st_cuda_relax(end->device);
    st_cu_result r = cu->event_synchronize(begin->native);
    if (!r) r = cu->event_synchronize(end->native);
    st_cuda_restore(end->device, mode);
    if (!r) {
        function = "cuEventElapsedTime";
        r = cu->event_elapsed_time(&t, begin->native, end->native);
    }
    st_cuda_leave_device(&scope);
    if (r)
        return st_cuda_fail(e, end->device, NULL, function, r,
                            "strata_event_elapsed: the events could not be read");
    *ms = t;
    return STRATA_OK;
}
