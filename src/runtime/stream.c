/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - streams and events. On the CPU every call is finished when it returns, so a stream is an identity and an event a time; on a GPU
 * cuda/stream.c does the work. */
#include "runtime/gpu.h"
#include "runtime/runtime.h"

static st_stable streams = {.size = sizeof(struct strata_stream)},
                 events = {.size = sizeof(struct strata_event)};

uint64_t st_stream_serial(void)
{
    static atomic_ullong last;
    return atomic_fetch_add(&last, 1) + 1;
}

static strata_status make(strata_handle *h, const char *who, bool wrap, void *native, strata_stream **s)
{
    strata_status r = STRATA_OK;
    if (!s) return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "%s: the address for the stream is NULL", who);
    *s = NULL;
    strata_stream *q = st_stable_new(&streams);
    if (!q) return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory", who);
    q->serial = st_stream_serial();
    if (h->gpu) r = st_cuda_stream_create(h, q, wrap, native);
    if (r) {
        st_stable_put(&streams, q);
        return r;
    }
    q->magic = ST_STREAM_MAGIC;
    *s = q;
    return STRATA_OK;
}

strata_status strata_stream_create(strata_handle *h, strata_stream **s)
{
    strata_status r = st_handle_check(h, "strata_stream_create");
    return r ? r : make(h, "strata_stream_create", false, NULL, s);
}

strata_status strata_stream_wrap(strata_handle *h, void *cu_stream, strata_stream **s)
{
    static const char who[] = "strata_stream_wrap";
    strata_status r = st_handle_check(h, who);
    if (r) return r;
    if (!h->gpu) {
        st_fail(&h->err, STRATA_ERROR_UNSUPPORTED, "%s: the handle is on %s, which has no CUstream", who,
                h->device);
        st_err_remedy(&h->err, "make the handle with \"cuda:0\", or use strata_stream_create");
        return STRATA_ERROR_UNSUPPORTED;
    }
    return make(h, who, true, cu_stream, s);
}

void *strata_native_stream(strata_handle *h)
{
    return st_handle_check(h, "strata_native_stream") ? NULL : st_gpu_stream(h);
}

strata_status strata_stream_destroy(strata_stream *s)
{
    if (!s) return STRATA_OK;
    if (s->magic != ST_STREAM_MAGIC)
        return st_fail(st_err_thread(), STRATA_ERROR_ARGUMENT,
                       "strata_stream_destroy: not a live strata_stream");
    strata_status r = s->device ? st_cuda_stream_destroy(st_err_thread(), s) : STRATA_OK;
    s->magic = 0;
    st_stable_put(&streams, s);
    return r;
}

strata_status strata_set_stream(strata_handle *h, strata_stream *s)
{
    strata_status r = st_handle_check(h, "strata_set_stream");
    if (r) return r;
    if (s && s->magic != ST_STREAM_MAGIC)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "strata_set_stream: not a live strata_stream; NULL is the default stream");
    if (h->gpu) return st_cuda_stream_set(h, s);
    if (s && s->device)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "strata_set_stream: the stream is a GPU's and the handle is on %s", h->device);
    h->stream = s;
    return STRATA_OK;
}

strata_status strata_synchronize(strata_handle *h)
{
    strata_status r = st_handle_check(h, "strata_synchronize");
    return r || !h->gpu ? r : st_cuda_synchronize(h);
}

strata_status strata_event_create(strata_handle *h, strata_event **e)
{
    strata_status r = st_handle_check(h, "strata_event_create");
    if (r) return r;
    if (!e)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "strata_event_create: the address for the event is NULL");
    *e = NULL;
    strata_event *q = st_stable_new(&events);
    if (!q) return st_fail(&h->err, STRATA_ERROR_MEMORY, "strata_event_create: no memory");
    if (h->gpu && (r = st_cuda_event_create(h, q)) != STRATA_OK) {
        st_stable_put(&events, q);
        return r;
    }
    q->magic = ST_EVENT_MAGIC;
    *e = q;
    return STRATA_OK;
}

static strata_status check_event(st_err *err, const char *who, const strata_event *e)
{
    if (e && e->magic == ST_EVENT_MAGIC) return STRATA_OK;
    return st_fail(err, STRATA_ERROR_ARGUMENT, "%s: the event is %s; make one with strata_event_create", who,
                   e ? "destroyed, or not a strata_event" : "NULL");
}

strata_status strata_event_destroy(strata_event *e)
{
    if (!e) return STRATA_OK;
    strata_status r = check_event(st_err_thread(), "strata_event_destroy", e);
    if (r) return r;
    if (e->device) st_cuda_event_destroy(e);
    e->magic = 0;
    st_stable_put(&events, e);
    return STRATA_OK;
}

strata_status strata_event_record(strata_handle *h, strata_event *e)
{
    strata_status r = st_handle_check(h, "strata_event_record");
    if (r || (r = check_event(&h->err, "strata_event_record", e))) return r;
    if (h->gpu) return st_cuda_event_record(h, e);
    if (e->device)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "strata_event_record: the event is a GPU's and the handle is on %s", h->device);
    e->ns = st_now_ns();
    e->recorded = true;
    return STRATA_OK;
}

strata_status strata_event_wait(strata_event *e)
{
    st_err *err = st_err_thread();
    strata_status r = check_event(err, "strata_event_wait", e);
    return r || !e->device ? r : st_cuda_event_wait(err, e);
}

strata_status strata_wait_event(strata_handle *h, strata_event *e)
{
    strata_status r = st_handle_check(h, "strata_wait_event");
    if (r || (r = check_event(&h->err, "strata_wait_event", e))) return r;
    if (h->gpu && e->device) return st_cuda_event_order(h, e);
    return e->device ? st_cuda_event_wait(&h->err, e) : STRATA_OK;
}

strata_status strata_event_elapsed(strata_event *begin, strata_event *end, double *ms)
{
    st_err *err = st_err_thread();
    strata_status r = check_event(err, "strata_event_elapsed", begin);
    if (r || (r = check_event(err, "strata_event_elapsed", end))) return r;
    if (!ms) return st_fail(err, STRATA_ERROR_ARGUMENT, "strata_event_elapsed: ms is NULL");
    if (!begin->recorded || !end->recorded)
        return st_fail(err, STRATA_ERROR_STATE, "strata_event_elapsed: the %s event was never recorded",
                       begin->recorded ? "end" : "begin");
    if (begin->device || end->device) return st_cuda_event_elapsed(err, begin, end, ms);
    *ms = ((double)end->ns - (double)begin->ns) * 1e-6;
    return STRATA_OK;
}
