/* SPDX-License-Identifier: Apache-2.0 */
/* stage.c - running a plan where it may not belong: plans of another device, host operands on a GPU.
 *
 * A handle made with "auto" stages: an operand that the GPU does not reach is copied to device memory before the run, in the whole extent
 * that the plan names; of what the plan writes, the bytes that the run changed are stored after it. A handle made with "cuda:N" refuses
 * such an operand with a remedy. Operands of one number (by_value) may stay on the host: the plan's run reads them. */
#include "plan/plan.h"
#include "runtime/gpu.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_OPERANDS = 64, PIECE = 4 << 20 };

static strata_status refuse(strata_handle *h, const strata_plan *p, int i, const void *at)
{
    st_fail(&h->err, STRATA_ERROR_DEVICE, "%s: operand %d at %p is host memory, which %s does not reach",
            p->title, i, at, h->device);
    st_err_remedy(
        &h->err,
        "allocate it with strata_alloc on this handle, or make the handle with \"auto\", which copies "
        "operands to the device and back");
    return STRATA_ERROR_DEVICE;
}

/* A staged run. The first operand at an address owns the copy of what all operands at this address touch, so that in-place calls stay in
 * place. Of what the plan writes the host's bytes are kept: only what the run changes may be stored, since another thread may own the
 * bytes between the elements. */
typedef struct stage {
    void *dev[MAX_OPERANDS];
    int owner[MAX_OPERANDS];    /* -1: not copied */
    int64_t lo[MAX_OPERANDS];   /* owners: where the copied bytes begin, relative to data[] */
    char *copy[MAX_OPERANDS];   /* owners: on the device */
    char *before[MAX_OPERANDS]; /* owners: on the host, where something is written */
    size_t bytes;
} stage;

static strata_status copy_in(strata_handle *h, const strata_plan *p, void *const data[], const bool *host,
                             stage *t)
{
    for (int i = 0; i < p->operands; i++) {
        t->dev[i] = data[i];
        t->owner[i] = -1;
    }
    for (int i = 0; i < p->operands; i++) {
        if (!host[i] || t->owner[i] >= 0) continue;
        int64_t lo = p->extent[i].lo, hi = p->extent[i].hi;
        bool written = false;
        for (int j = i; j < p->operands; j++) {
            if (!host[j] || data[j] != data[i]) continue;
            lo = st_min64(lo, p->extent[j].lo);
            hi = st_max64(hi, p->extent[j].hi);
            written |= p->extent[j].written;
            t->owner[j] = i;
        }
        /* the copy keeps the address's place within 256 bytes, so that alignment is what the caller's is */
        const size_t n = (size_t)(hi - lo), skew = (uintptr_t)((char *)data[i] + lo) & 255;
        const char *from = (char *)data[i] + lo;
        if (written) {
            if (!(t->before[i] = malloc(n)))
                return st_fail(&h->err, STRATA_ERROR_MEMORY,
                               "%s: no host memory to copy operand %d (%zu bytes)", p->title, i, n);
            from = memcpy(t->before[i], from, n);
        }
        t->copy[i] = st_gpu_alloc(h, n + 256);
        if (!t->copy[i]) return h->err.status;
        t->lo[i] = lo;
        for (int j = i; j < p->operands; j++)
            if (t->owner[j] == i) t->dev[j] = t->copy[i] + skew - lo;
        /* even what is only written is brought in, so that the bytes between its elements are seen to be unchanged */
        strata_status s = st_gpu_upload(h, t->copy[i] + skew, from, n);
        if (s) return s;
        t->bytes += n;
    }
    return STRATA_OK;
}

static void store_changed(char *to, const char *was, const char *is, size_t n)
{
    size_t k = 0;
    for (; k + 8 <= n; k += 8) {
        uint64_t a, b;
        memcpy(&a, was + k, 8);
        memcpy(&b, is + k, 8);
        for (int i = 0; a != b && i < 8; i++)
            if (was[k + (size_t)i] != is[k + (size_t)i]) to[k + (size_t)i] = is[k + (size_t)i];
    }
    for (; k < n; k++)
        if (was[k] != is[k]) to[k] = is[k];
}

static strata_status copy_out(strata_handle *h, const strata_plan *p, void *const data[], stage *t)
{
    strata_status s = STRATA_OK;
    char *piece = malloc(PIECE);
    if (!piece) return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no host memory to copy results", p->title);
    for (int i = 0; i < p->operands && !s; i++) {
        const st_extent *e = &p->extent[i];
        const int o = t->owner[i];
        if (o < 0 || !e->written) continue;
        for (int64_t at = e->lo; at < e->hi && !s; at += PIECE) {
            const size_t n = (size_t)st_min64(PIECE, e->hi - at);
            s = st_gpu_download(h, piece, (char *)t->dev[i] + at, n);
            if (!s) store_changed((char *)data[i] + at, t->before[o] + (at - t->lo[o]), piece, n);
            t->bytes += n;
        }
    }
    free(piece);
    return s;
}

static strata_status staged(strata_handle *h, const strata_plan *p, void *const data[], const strata_run *r,
                            const bool *host)
{
    stage t = {.bytes = 0};
    if (!p->extent)
        return st_fail(&h->err, STRATA_ERROR_UNSUPPORTED, "%s: this plan does not take host memory on %s",
                       p->title, h->device);
    if (st_gpu_capturing(h)) {
        st_fail(&h->err, STRATA_ERROR_STATE,
                "%s: host operands cannot be copied while the stream is being captured", p->title);
        st_err_remedy(&h->err, "allocate the operands with strata_alloc on this handle");
        return STRATA_ERROR_STATE;
    }
    const uint64_t t0 = st_trace_begin();
    strata_status s = copy_in(h, p, data, host, &t);
    if (!s) s = p->run(h, p, t.dev, r);
    if (!s) s = copy_out(h, p, data, &t);
    for (int i = 0; i < p->operands; i++) {
        st_gpu_free(h, t.copy[i]);
        free(t.before[i]);
    }
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "plan", "stage", "%s: %zu bytes copied to and from %s", p->title, t.bytes,
                     h->device);
    return s;
}

strata_status st_plan_execute_gpu(strata_handle *h, const strata_plan *p, void *const data[],
                                  const strata_run *r)
{
    bool host[MAX_OPERANDS], any = false;
    if ((p->where == ST_ON_CUDA) != (h->gpu != NULL) || (h->gpu && strcmp(p->device, h->device))) {
        st_fail(&h->err, STRATA_ERROR_STATE,
                "strata_plan_run: the plan (%s) was made for %s and the handle is on %s", p->title, p->device,
                h->device);
        st_err_remedy(&h->err, "make the plan with a handle on the device that runs it");
        return STRATA_ERROR_STATE;
    }
    if (p->operands > MAX_OPERANDS)
        return st_fail(&h->err, STRATA_ERROR_UNSUPPORTED, "%s: more than %d operands", p->title,
                       MAX_OPERANDS);
    for (int i = 0; i < p->operands; i++) {
        const st_extent *e = p->extent ? &p->extent[i] : NULL;
        /* what this run does not read or write (A and B for alpha = 0) may be anything */
        const bool touched =
            data[i] && !(e && (e->by_value || e->hi <= e->lo)) && !(p->may_miss && p->may_miss(p, r, i));
        const bool prepared = r && (r->prepared >> i & 1); /* not of the operand's extent */
        host[i] = touched && !st_gpu_reaches(h, (char *)data[i] + (e && !prepared ? e->lo : 0));
        if (host[i] && (!h->staging || prepared)) return refuse(h, p, i, data[i]);
        any |= host[i];
    }
    strata_status s = ST_LIKELY(!any) ? p->run(h, p, data, r) : staged(h, p, data, r, host);
    st_gpu_run_end(h);
    return s;
}
