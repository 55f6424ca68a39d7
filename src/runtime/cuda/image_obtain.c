/* SPDX-License-Identifier: Apache-2.0 */
/* image_obtain.c - where a kernel's code comes from: the kernel pack, else a file of the cache folder, else NVRTC.
 *
 * Each place is asked for code of the device's own architecture, then (the pack) of a lower one that it can run. Code that the driver
 * refuses to load, because it is of a newer toolkit say, counts as not found. When all three fail the error says why each did. */
#include "driver/driver.h"
#include "runtime/cuda/image.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct search {
    st_err *e;
    st_image_request *q;
    int nvrtc; /* only code of this compiler, 0: any */
    char pack_why[320], cache_why[320];
} search;

static void drop(st_gpu_image *im)
{
    free(im->bytes);
    free(im->log);
    *im = (st_gpu_image){0};
}

/* 1: loaded; 0: look further, with why; -1: an error is set */
static int try_load(search *s, const char *from, char *why, size_t n)
{
    st_image_request *q = s->q;
    bool other = false;
    q->from = from;
    if (!q->load || q->load(q->user, s->e, &q->image, &other)) return 1;
    drop(&q->image);
    if (!other) return -1;
    snprintf(why, n, "the driver refuses its code (%.120s)", s->e->text);
    return 0;
}

/* Architectures whose machine code a device of `cc` runs, its own first: those of the same major number that are not above it. */
static const char *runnable(int cc, int i)
{
    static const int bases[] = {80, 86, 100, 120};
    const char *own = st_gpu_arch(cc);
    if (own && i-- == 0) return own;
    for (int b = ST_COUNT(bases) - 1; b >= 0; b--)
        if (bases[b] / 10 == cc / 10 && bases[b] < cc && i-- == 0) return st_gpu_arch(bases[b]);
    return NULL;
}

static int from_pack(search *s)
{
    st_image_request *q = s->q;
    st_image_wish w = {.nvrtc = s->nvrtc, .driver = q->driver};
    for (int i = 0; (w.arch = runnable(q->cc, i)) != NULL; i++) {
        if (!st_image_key_of(s->e, q->spec, w.arch, &w.key)) return -1;
        if (st_pack_read_from(st_pack_get(), &w, &q->record, &q->image, s->pack_why, sizeof s->pack_why)) {
            int r = try_load(s, "pack", s->pack_why, sizeof s->pack_why);
            if (r) return r;
        }
    }
    return 0;
}

static int from_cache(search *s, const char *arch)
{
    st_image_request *q = s->q;
    st_image_wish w = {.arch = arch, .nvrtc = s->nvrtc, .driver = q->driver};
    if (!arch) return 0;
    if (!st_image_key_of(s->e, q->spec, arch, &w.key)) return -1;
    if (!st_cache_read(&w, &q->record, &q->image, s->cache_why, sizeof s->cache_why)) return 0;
    return try_load(s, "cache", s->cache_why, sizeof s->cache_why);
}

/* An architecture that this NVRTC can compile for and the device can run: its own, machine code of a lower one of its major number, or
 * PTX of the highest below, which the driver compiles. */
static bool compilable(const st_libnvrtc *nv, int cc, char *arch, size_t n)
{
    int best = 0;
    for (int i = 0; i < ST_COUNT(nv->archs) && nv->archs[i]; i++) {
        if (nv->archs[i] == cc && st_gpu_arch(cc)) return snprintf(arch, n, "%s", st_gpu_arch(cc)), true;
        if (nv->archs[i] <= cc && nv->archs[i] > best) best = nv->archs[i];
    }
    if (!best) return false;
    snprintf(arch, n, best / 10 == cc / 10 && best != 90 ? "sm_%d" : "compute_%d", best);
    return true;
}

static void frames(search *s)
{
    st_err_frame(s->e, "pack", "%.170s", s->pack_why[0] ? s->pack_why : "not asked");
    st_err_frame(s->e, "cache", "%.170s", s->cache_why[0] ? s->cache_why : "not asked");
}

static strata_status no_compiler(search *s)
{
    const st_image_request *q = s->q;
    st_err why = *s->e;
    st_fail(s->e, STRATA_ERROR_DEVICE,
            "%s: no code of this kernel for compute capability %d.%d: it is neither in the kernel pack nor "
            "in the "
            "cache folder, and NVRTC could not be opened to compile it",
            q->spec->id, q->cc / 10, q->cc % 10);
    frames(s);
    st_err_frame(s->e, "nvrtc", "%.170s", why.text);
    for (int i = 0; i < why.frames; i++) st_err_frame(s->e, why.frame[i].layer, "%s", why.frame[i].text);
    st_err_remedy(s->e, "%s",
                  why.remedy[0] ? why.remedy
                                : "installing NVRTC (pip install nvidia-cuda-nvrtc, or the toolkit's "
                                  "cuda-nvrtc package), or STRATA_NVRTC_LIB=/path/to/libnvrtc.so");
    return s->e->status;
}

static strata_status from_nvrtc(search *s)
{
    st_image_request *q = s->q;
    char arch[16], why[320];
    const st_libnvrtc *nv = st_libnvrtc_open(s->e, q->cc);
    if (!nv) nv = st_libnvrtc_open(s->e, 0);
    if (!nv) return no_compiler(s);
    if (!compilable(nv, q->cc, arch, sizeof arch))
        return st_fail(s->e, STRATA_ERROR_DEVICE,
                       "%s: NVRTC %d.%d (%s) knows no architecture that compute capability %d.%d runs",
                       q->spec->id, nv->version / 1000, nv->version % 1000 / 10, nv->path, q->cc / 10,
                       q->cc % 10);
    /* code for another architecture than the device's own was not looked for yet */
    if (!st_gpu_arch(q->cc) || strcmp(arch, st_gpu_arch(q->cc)) != 0) {
        int r = from_cache(s, arch);
        if (r) return r < 0 ? s->e->status : STRATA_OK;
    }
    strata_status status = st_image_compile(s->e, nv, q->spec, arch, &q->image);
    if (status) return status;
    st_image_key key;
    if (!st_image_key_of(s->e, q->spec, arch, &key)) return s->e->status;
    q->record = st_image_record_of(&key, arch, nv->version, q->spec, &q->image);
    int r = try_load(s, "nvrtc", why, sizeof why);
    if (r < 0) return s->e->status;
    if (r == 0) {
        st_err_frame(s->e, "runtime", "code by NVRTC %d.%d (%.80s) for %s; the driver is of CUDA %d.%d",
                     nv->version / 1000, nv->version % 1000 / 10, nv->path, arch, q->driver / 1000,
                     q->driver % 1000 / 10);
        st_err_remedy(s->e,
                      "a newer driver, or an NVRTC that is not newer than the driver (STRATA_NVRTC_LIB)");
        return s->e->status;
    }
    if (!st_cache_write(&q->record, q->image.bytes, why, sizeof why)) {
        uint64_t t0 = st_trace_begin();
        if (ST_UNLIKELY(t0)) st_trace_end(t0, "runtime", "cache", "not written: %s", why);
    }
    return STRATA_OK;
}

strata_status st_image_obtain(st_err *e, st_image_request *q)
{
    search s = {.e = e, .q = q};
    q->image = (st_gpu_image){0};
    q->from = NULL;
    if (st_env("STRATA_NVRTC_LIB")) {
        const st_libnvrtc *nv = st_libnvrtc_open(e, q->cc);
        if (nv) s.nvrtc = nv->version;
    }
    int r = from_pack(&s);
    if (r == 0) r = from_cache(&s, st_gpu_arch(q->cc));
    if (r) return r < 0 ? e->status : STRATA_OK;
    return from_nvrtc(&s);
}
