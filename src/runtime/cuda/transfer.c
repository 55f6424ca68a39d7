/* SPDX-License-Identifier: Apache-2.0 */
/* transfer.c - bytes between host and device, and which addresses the device reaches.
 *
 * Pageable host memory goes through a ring of page-locked pieces, one copying while the next is filled (the driver's own way through pageable
 * memory reaches about half the bus). One ring a device, for one copy at a time. */
#include "runtime/cuda/cuda.h"
#include <stdlib.h>
#include <string.h>

enum { PIECE = 4 << 20, PIECES = 4, SMALL_COPY = 64 << 10, PART = 256 << 10 };

struct st_cuda_ring {
    char *mem;
    st_cu_event done[PIECES];
    bool busy[PIECES];
    int next;
};
static pthread_mutex_t ring_lock = PTHREAD_MUTEX_INITIALIZER; /* of all devices' rings */

static st_cu_ptr address(const void *p) { return (st_cu_ptr)(uintptr_t)p; }

/* NULL: there is no page-locked memory; the driver's way is taken. */
static struct st_cuda_ring *ring_of(st_cuda *g)
{
    struct st_cuda_ring *q = g->ring;
    void *mem;
    if (q) return q;
    if (!(q = calloc(1, sizeof *q))) return NULL;
    if (g->cu->mem_host_alloc(&mem, (size_t)PIECE * PIECES, ST_CU_HOST_PORTABLE)) {
        free(q);
        return NULL;
    }
    q->mem = mem;
    for (int i = 0; i < PIECES; i++)
        if (g->cu->event_create(&q->done[i],
                                ST_CU_EVENT_NO_TIMING)) { /* the device is failing: copies will say so */
            while (i-- > 0) g->cu->event_destroy(q->done[i]);
            g->cu->mem_free_host(mem);
            free(q);
            return NULL;
        }
    return g->ring = q;
}

/* ---- which addresses -------------------------------------------------------------------------------------------------------------- */
typedef struct place {
    int kind; /* ST_CU_MEMORY_...; 0: plain host memory */
    int managed, ordinal;
    st_cu_ptr lo;
    size_t bytes;
} place;

static bool ask(st_cuda *g, const void *p, place *w)
{
    int what[] = {ST_CU_POINTER_MEMORY_TYPE, ST_CU_POINTER_IS_MANAGED, ST_CU_POINTER_DEVICE_ORDINAL,
                  ST_CU_POINTER_RANGE_START, ST_CU_POINTER_RANGE_SIZE};
    void *to[] = {&w->kind, &w->managed, &w->ordinal, &w->lo, &w->bytes};
    *w = (place){.ordinal = -1};
    return g->cu->pointer_get_attributes(ST_COUNT(what), what, to, address(p)) == 0;
}

static bool remembered(const strata_handle *h, const char *p)
{
    /* the driver does not know the address of a graph's memory node */
    const char *node = h->cuda.node_workspace;
    if (ST_UNLIKELY(node != NULL) && p >= node && p < node + h->cuda.node_bytes) return true;
    for (int i = 0; i < ST_COUNT(h->cuda.reach); i++)
        if (p >= h->cuda.reach[i].lo && p < h->cuda.reach[i].hi) return true;
    return false;
}

static void remember(strata_handle *h, char *lo, char *hi)
{
    unsigned i = h->cuda.reach_next++ % ST_COUNT(h->cuda.reach);
    h->cuda.reach[i].lo = lo;
    h->cuda.reach[i].hi = hi;
}

/* Ranges of device memory are remembered even when they are freed later: such addresses never become host memory. Host memory that is
 * registered now may be plain tomorrow, so it is asked for each time. */
static bool reaches(strata_handle *h, const void *p, place *w)
{
    st_cuda *g = st_cuda_of(h);
    char *lo, *hi;
    *w = (place){.kind = ST_CU_MEMORY_DEVICE, .ordinal = g->gpu.ordinal};
    if (ST_LIKELY(remembered(h, p))) return true;
    if (st_cuda_pool_range(g, p, &lo, &hi)) {
        remember(h, lo, hi);
        return true;
    }
    if (!st_cuda_enter(h)) return false;
    bool known = ask(g, p, w);
    st_cuda_leave(h);
    if (!known || !w->kind) return false;
    if (w->kind != ST_CU_MEMORY_DEVICE || w->managed) return true; /* page-locked or managed */
    if (w->ordinal != g->gpu.ordinal) return false;                /* another device's */
    if (w->bytes) remember(h, (char *)(uintptr_t)w->lo, (char *)(uintptr_t)w->lo + w->bytes);
    return true;
}

bool st_gpu_reaches(strata_handle *h, const void *p)
{
    place w;
    return reaches(h, p, &w);
}

bool st_cuda_host_readable(strata_handle *h, const void *p, bool *reached)
{
    place w;
    *reached = reaches(h, p, &w);
    return w.kind != ST_CU_MEMORY_DEVICE;
}

/* ---- copies ---------------------------------------------------------------------------------------------------------------------------- */
static strata_status captured(strata_handle *h, const char *what)
{
    st_fail(&h->err, STRATA_ERROR_STATE, "%s while the stream is being captured into a graph", what);
    st_err_remedy(&h->err, "copy before the capture begins or after it has ended");
    return STRATA_ERROR_STATE;
}

/* One core copies 7 to 10 GB/s, the bus takes 50: pieces are copied by the team. */
typedef struct part_copy {
    char *dst;
    const char *src;
    size_t bytes;
} part_copy;

static void copy_part(void *arg, int64_t i, int worker)
{
    const part_copy *c = arg;
    const size_t lo = (size_t)i * PART;
    (void)worker;
    memcpy(c->dst + lo, c->src + lo, c->bytes - lo < PART ? c->bytes - lo : PART);
}

static void copy_piece(strata_handle *h, char *dst, const char *src, size_t bytes)
{
    part_copy c = {dst, src, bytes};
    if (bytes < PIECE / 2 || st_threads(h) < 8) /* few cores are easily busy with something else */
        memcpy(dst, src, bytes);
    else
        st_team_for(h, st_ceil_div((int64_t)bytes, PART), (double)bytes / 8e3, copy_part, &c);
}

static st_cu_result ring_upload(strata_handle *h, st_cu_stream stream, char *dst, const char *src,
                                size_t bytes)
{
    st_cuda *g = st_cuda_of(h);
    struct st_cuda_ring *q = ring_of(g);
    st_cu_result r = 0;
    if (!q) {
        r = g->cu->memcpy_htod_async(address(dst), src, bytes, stream);
        return r ? r : g->cu->stream_synchronize(stream);
    }
    for (size_t at = 0; at < bytes && !r; at += PIECE) {
        size_t n = bytes - at < PIECE ? bytes - at : PIECE;
        int i = q->next++ % PIECES;
        if (q->busy[i]) r = g->cu->event_synchronize(q->done[i]);
        q->busy[i] = false;
        if (r) break;
        copy_piece(h, q->mem + (size_t)i * PIECE, src + at, n);
        r = g->cu->memcpy_htod_async(address(dst + at), q->mem + (size_t)i * PIECE, n, stream);
        if (!r) r = g->cu->event_record(q->done[i], stream);
        q->busy[i] = !r;
    }
    return r;
}

static st_cu_result ring_download(strata_handle *h, st_cu_stream stream, char *dst, const char *src,
                                  size_t bytes)
{
    st_cuda *g = st_cuda_of(h);
    struct st_cuda_ring *q = ring_of(g);
    st_cu_result r = 0;
    if (!q) {
        r = g->cu->memcpy_dtoh_async(dst, address(src), bytes, stream);
        return r ? r : g->cu->stream_synchronize(stream);
    }
    for (int i = 0; i < PIECES && !r; i++) { /* an upload may still read the pieces, in another stream too */
        if (q->busy[i]) r = g->cu->event_synchronize(q->done[i]);
        q->busy[i] = false;
    }
    const size_t pieces = (bytes + PIECE - 1) / PIECE;
    for (size_t k = 0; k < pieces + PIECES - 1 && !r;
         k++) { /* piece k starts, piece k - PIECES + 1 is taken out */
        if (k < pieces) {
            size_t n = bytes - k * PIECE < PIECE ? bytes - k * PIECE : PIECE;
            char *piece = q->mem + k % PIECES * PIECE;
            r = g->cu->memcpy_dtoh_async(piece, address(src + k * PIECE), n, stream);
            if (!r) r = g->cu->event_record(q->done[k % PIECES], stream);
            if (r) break;
        }
        if (k + 1 >= PIECES && k - (PIECES - 1) < pieces) {
            const size_t o = k - (PIECES - 1), n = bytes - o * PIECE < PIECE ? bytes - o * PIECE : PIECE;
            r = g->cu->event_synchronize(q->done[o % PIECES]);
            if (!r) copy_piece(h, dst + o * PIECE, q->mem + o % PIECES * PIECE, n);
        }
    }
    return r;
}

strata_status st_gpu_upload(strata_handle *h, void *dst, const void *src, size_t bytes)
{
    st_cuda *g = st_cuda_of(h);
    if (!bytes) return STRATA_OK;
    const st_libcuda *cu = st_cuda_enter(h);
    strata_status s = STRATA_OK;
    st_cu_result r;
    if (!cu) return h->err.status;
    if (st_gpu_capturing(h)) {
        s = captured(h, "host memory cannot be copied to the device");
    } else {
        st_cu_stream stream = st_cuda_stream(h)->native;
        bool reached, host = st_cuda_host_readable(h, src, &reached);
        const int mode = st_cuda_relax(g);
        if (host && reached) { /* page-locked: the copy reads it later, so wait */
            r = cu->memcpy_htod_async(address(dst), src, bytes, stream);
            if (!r) r = cu->stream_synchronize(stream);
        } else if (bytes <=
                   SMALL_COPY) { /* the driver takes small pageable copies into its own buffer at once */
            r = cu->memcpy_htod_async(address(dst), src, bytes, stream);
        } else {
            pthread_mutex_lock(&ring_lock);
            r = ring_upload(h, stream, dst, src, bytes);
            pthread_mutex_unlock(&ring_lock);
        }
        st_cuda_restore(g, mode);
        if (r)
            s = st_cuda_fail(&h->err, g, st_cuda_stream(h), "cuMemcpyHtoDAsync", r,
                             "%zu bytes could not be copied to %s", bytes, h->device);
    }
    st_cuda_leave(h);
    return s;
}

strata_status st_gpu_download(strata_handle *h, void *dst, const void *src, size_t bytes)
{
    st_cuda *g = st_cuda_of(h);
    if (!bytes) return STRATA_OK;
    const st_libcuda *cu = st_cuda_enter(h);
    strata_status s = STRATA_OK;
    st_cu_result r;
    if (!cu) return h->err.status;
    if (st_gpu_capturing(h)) {
        s = captured(h, "device memory cannot be copied to the host");
    } else {
        st_cu_stream stream = st_cuda_stream(h)->native;
        bool reached, host = st_cuda_host_readable(h, dst, &reached);
        const int mode = st_cuda_relax(g);
        if ((host && reached) || bytes <= SMALL_COPY) {
            r = cu->memcpy_dtoh_async(dst, address(src), bytes, stream);
            if (!r) r = cu->stream_synchronize(stream);
        } else {
            pthread_mutex_lock(&ring_lock);
            r = ring_download(h, stream, dst, src, bytes);
            pthread_mutex_unlock(&ring_lock);
        }
        st_cuda_restore(g, mode);
        if (r)
            s = st_cuda_fail(&h->err, g, st_cuda_stream(h), "cuMemcpyDtoHAsync", r,
                             "%zu bytes could not be copied from %s", bytes, h->device);
    }
    st_cuda_leave(h);
    return s;
}

strata_status st_gpu_set(strata_handle *h, void *dst, int byte, size_t bytes)
{
    if (!bytes) return STRATA_OK;
    const st_libcuda *cu = st_cuda_enter(h);
    if (!cu) return h->err.status;
    st_cu_result r = cu->memset_d8_async(address(dst), (unsigned char)byte, bytes, st_cuda_stream(h)->native);
    strata_status s = r ? st_cuda_fail(&h->err, st_cuda_of(h), st_cuda_stream(h), "cuMemsetD8Async", r,
                                       "%zu bytes on %s could not be set", bytes, h->device)
                        : STRATA_OK;
    st_cuda_leave(h);
    return s;
}

/* A number in device memory is brought to `value`. */
bool st_cuda_scalar_here(strata_handle *h, const char *who, const char *name, strata_scalar *s, void *value)
{
    const size_t bits =
        s->ptr && s->type > 0 && s->type < STRATA_TYPE_COUNT ? strata_type_bits((strata_type)s->type) : 0;
    bool reached;
    if (ST_LIKELY(!s->ptr) || bits < 8 || st_cuda_host_readable(h, s->ptr, &reached)) return true;
    if (!reached) {
        st_fail(&h->err, STRATA_ERROR_DEVICE, "%s: %s lies at %p in the memory of another device than %s",
                who, name, s->ptr, h->device);
        return false;
    }
    if (st_gpu_capturing(h)) {
        st_fail(&h->err, STRATA_ERROR_STATE,
                "%s: %s lies in device memory, whose value cannot be read while the stream is captured", who,
                name);
        st_err_remedy(&h->err, "give the number by value (strata_real)");
        return false;
    }
    if (st_gpu_download(h, value, s->ptr, bits / 8)) {
        st_cuda_prefix(&h->err, who);
        return false;
    }
    s->ptr = value;
    return true;
}

bool st_gpu_scalar_value(strata_handle *h, const char *who, const char *name, strata_scalar s, double *re,
                         double *im)
{
    char value[16] = {0};
    if (s.ptr && h->gpu && !st_cuda_scalar_here(h, who, name, &s, value)) return false;
    return st_scalar_value(&h->err, who, name, s, re, im);
}
