/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - streams and events of the CPU device: every call is finished when it returns, so a stream is an identity and an event a time. */
#include "runtime/runtime.h"

#define STREAM_MAGIC 0x73747265u
#define EVENT_MAGIC 0x6576656eu

struct strata_stream {
    uint32_t magic;
};
struct strata_event {
    uint32_t magic;
    uint64_t ns; /* 0: never recorded */
};

static st_stable streams = {.size = sizeof(struct strata_stream)},
                 events = {.size = sizeof(struct strata_event)};

strata_status strata_stream_create(strata_handle *h, strata_stream **s)
{
    strata_status r = st_handle_check(h, "strata_stream_create");
    if (r) return r;
    if (!s)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "strata_stream_create: the address for the stream is NULL");
    *s = st_stable_new(&streams);
    if (!*s) return st_fail(&h->err, STRATA_ERROR_MEMORY, "strata_stream_create: no memory");
    (*s)->magic = STREAM_MAGIC;
    return STRATA_OK;
}

strata_status strata_stream_destroy(strata_stream *s)
{
    if (!s) return STRATA_OK;
    if (s->magic != STREAM_MAGIC)
        return st_fail(st_err_thread(), STRATA_ERROR_ARGUMENT,
                       "strata_stream_destroy: not a live strata_stream");
    s->magic = 0;
    st_stable_put(&streams, s);
    return STRATA_OK;
}

strata_status strata_set_stream(strata_handle *h, strata_stream *s)
{
    strata_status r = st_handle_check(h, "strata_set_stream");
    if (r) return r;
    if (s && s->magic != STREAM_MAGIC)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "strata_set_stream: not a live strata_stream; NULL is the default stream");
    h->stream = s;
    return STRATA_OK;
}

strata_status strata_synchronize(strata_handle *h) { return st_handle_check(h, "strata_synchronize"); }

strata_status strata_event_create(strata_handle *h, strata_event **e)
{
    strata_status r = st_handle_check(h, "strata_event_create");
    if (r) return r;
    if (!e)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "strata_event_create: the address for the event is NULL");
    *e = st_stable_new(&events);
    if (!*e) return st_fail(&h->err, STRATA_ERROR_MEMORY, "strata_event_create: no memory");
    (*e)->magic = EVENT_MAGIC;
    return STRATA_OK;
}

static strata_status check_event(st_err *err, const char *who, const strata_event *e)
{
    if (e && e->magic == EVENT_MAGIC) return STRATA_OK;
    return st_fail(err, STRATA_ERROR_ARGUMENT, "%s: the event is %s; make one with strata_event_create", who,
                   e ? "destroyed, or not a strata_event" : "NULL");
}

strata_status strata_event_destroy(strata_event *e)
{
    if (!e) return STRATA_OK;
    strata_status r = check_event(st_err_thread(), "strata_event_destroy", e);
    if (r) return r;
    e->magic = 0;
    st_stable_put(&events, e);
    return STRATA_OK;
}

strata_status strata_event_record(strata_handle *h, strata_event *e)
{
    strata_status r = st_handle_check(h, "strata_event_record");
    if (r || (r = check_event(&h->err, "strata_event_record", e))) return r;
    e->ns = st_now_ns();
    return STRATA_OK;
}

strata_status strata_event_wait(strata_event *e)
{
    return check_event(st_err_thread(), "strata_event_wait", e);
}

strata_status strata_event_elapsed(strata_event *begin, strata_event *end, double *ms)
{
    st_err *err = st_err_thread();
    strata_status r = check_event(err, "strata_event_elapsed", begin);
    if (r || (r = check_event(err, "strata_event_elapsed", end))) return r;
    if (!ms) return st_fail(err, STRATA_ERROR_ARGUMENT, "strata_event_elapsed: ms is NULL");
    if (!begin->ns || !end->ns)
        return st_fail(err, STRATA_ERROR_STATE, "strata_event_elapsed: the %s event was never recorded",
                       begin->ns ? "end" : "begin");
    *ms = ((double)end->ns - (double)begin->ns) * 1e-6;
    return STRATA_OK;
}
