/* SPDX-License-Identifier: Apache-2.0 */
/* stage.c - running a plan where it may not belong: plans of another device, host operands on a GPU.
 *
 * A handle made with "auto" stages: an operand that the GPU does not reach is copied to device memory before the run, in the whole extent that
 * the plan names, and copied back after it when the plan writes it. A handle made with "cuda:N" refuses it with a remedy. Operands of one
 * number (by_value) may stay on the host: the plan's run reads them. */
#include "plan/plan.h"
#include "runtime/gpu.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_OPERANDS = 64 };

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

/* A staged run: what of data[] was copied, and where to. */
typedef struct stage {
    void *dev[MAX_OPERANDS];
    char *copy[MAX_OPERANDS]; /* allocated for this operand; NULL: none, or another's copy serves */
    size_t bytes;
} stage;

/* Two operands over the same bytes are one copy, so that in-place calls stay in place. */
static bool shares(const strata_plan *p, void *const data[], const stage *t, int i, int j)
{
    const st_extent *a = &p->extent[j], *b = &p->extent[i];
    return t->copy[j] && data[j] == data[i] && a->lo <= b->lo && a->hi >= b->hi;
}

static strata_status copy_in(strata_handle *h, const strata_plan *p, void *const data[], const bool *host,
                             stage *t)
{
    for (int i = 0; i < p->operands; i++) t->dev[i] = data[i];
    for (int i = 0; i < p->operands; i++) {
        const st_extent *e = &p->extent[i];
        if (!host[i]) continue;
        for (int j = 0; j < i && t->dev[i] == data[i]; j++)
            if (shares(p, data, t, i, j)) t->dev[i] = t->dev[j];
        if (t->dev[i] != data[i]) continue;
        /* a later operand at the same address may reach further: one copy of all */
        int64_t lo = e->lo, hi = e->hi;
        for (int j = i + 1; j < p->operands; j++)
            if (host[j] && data[j] == data[i]) {
                lo = st_min64(lo, p->extent[j].lo);
                hi = st_max64(hi, p->extent[j].hi);
            }
        /* the copy keeps the address's place within 256 bytes, so that alignment is what the caller's is */
        const size_t n = (size_t)(hi - lo), skew = (uintptr_t)((char *)data[i] + lo) & 255;
        t->copy[i] = st_gpu_alloc(h, n + 256);
        if (!t->copy[i]) return h->err.status;
        t->dev[i] = t->copy[i] + skew - lo;
        for (int j = i + 1; j < p->operands; j++)
            if (host[j] && data[j] == data[i]) t->dev[j] = t->dev[i];
        /* bytes between an output's elements come back as they were, so even what is only written is brought in */
        strata_status s = st_gpu_upload(h, t->copy[i] + skew, (char *)data[i] + lo, n);
        if (s) return s;
        t->bytes += n;
    }
    return STRATA_OK;
}

static strata_status copy_out(strata_handle *h, const strata_plan *p, void *const data[], const bool *host,
                              stage *t)
{
    for (int i = 0; i < p->operands; i++) {
        const st_extent *e = &p->extent[i];
        if (!host[i] || !e->written) continue;
        strata_status s =
            st_gpu_download(h, (char *)data[i] + e->lo, (char *)t->dev[i] + e->lo, (size_t)(e->hi - e->lo));
        if (s) return s;
        t->bytes += (size_t)(e->hi - e->lo);
    }
    return STRATA_OK;
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
    if (!s) s = copy_out(h, p, data, host, &t);
    for (int i = 0; i < p->operands; i++) st_gpu_free(h, t.copy[i]);
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
        host[i] = data[i] && !(e && (e->by_value || e->hi <= e->lo)) &&
                  !st_gpu_reaches(h, (char *)data[i] + (e ? e->lo : 0));
        if (host[i] && !h->staging) return refuse(h, p, i, data[i]);
        any |= host[i];
    }
    strata_status s = ST_LIKELY(!any) ? p->run(h, p, data, r) : staged(h, p, data, r, host);
    st_gpu_run_end(h);
    return s;
}
