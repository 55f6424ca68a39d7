/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c - strata_copy and strata_fill where the device takes part. What is contiguous on both sides is one transfer. Else, within the device
 * copy.cu follows the strides; between host and device the host's side is packed or unpacked by the processor, the device's side by
 * copy.cu, and between them goes one contiguous transfer. */
#include "runtime/cuda/cuda.h"
#include <stdlib.h>
#include <string.h>

enum { THREADS = 256, MAX_OTHERS = 65535 };

typedef struct kernel_walk { /* struct walk of copy.cu */
    int n, fill;
    long long len[8], d[8], s[8];
    _Alignas(16) unsigned value[4];
} kernel_walk;

static bool contiguous(const st_walk *w, int64_t size)
{
    return w->n == 0 || (w->n == 1 && w->d[0] == size && w->s[0] == size);
}

static int64_t elements(const st_walk *w)
{
    int64_t n = 1;
    for (int i = 0; i < w->n; i++) n *= w->len[i];
    return n;
}

/* Entry 0 copies and fills, entry 1 transposes; size e has 2^e bytes an element. */
static st_gpu_spec spec_of(int transposing, int e)
{
    static const char *const option[5] = {"-DESIZE=1", "-DESIZE=2", "-DESIZE=4", "-DESIZE=8", "-DESIZE=16"};
    static const char *const id[2][5] = {
        {"copy_b1", "copy_b2", "copy_b4", "copy_b8", "copy_b16"},
        {"transpose_b1", "transpose_b2", "transpose_b4", "transpose_b8", "transpose_b16"}};
    return (st_gpu_spec){.id = id[transposing][e],
                         .source = "copy.cu",
                         .entry = transposing ? "st_transpose" : "st_copy",
                         .option = {option[e], transposing ? "-DTRANSPOSE" : NULL}};
}

static bool pack_list(int cc, int i, st_gpu_spec *s)
{
    (void)cc;
    if (i >= 10) return false;
    *s = spec_of(i / 5, i % 5);
    return true;
}
__attribute__((constructor)) static void enter_pack(void) { st_gpu_register_pack(pack_list); }

static const st_gpu_kernel *kernel(strata_handle *h, int transposing, int64_t size)
{
    int e = 0;
    while (e < 4 && (int64_t)1 << e < size) e++;
    st_cuda *g = st_cuda_of(h);
    const st_gpu_kernel *k = atomic_load(&g->copy_kernel[transposing][e]);
    if (k) return k;
    const st_gpu_spec spec = spec_of(transposing, e);
    if (st_gpu_kernel_get(h, &spec, &k)) return NULL;
    atomic_store(&g->copy_kernel[transposing][e], k);
    return k;
}

/* Runs of whole 16, 8, 4 or 2 byte words are moved as such. */
static int64_t widen(st_walk *w, const char *d, const char *s, int64_t size)
{
    if (!w->n || w->d[w->n - 1] != size || (s && w->s[w->n - 1] != size)) return size;
    for (int64_t big = 16; big > size; big /= 2) {
        uint64_t bits = (uintptr_t)d | (uintptr_t)s | (uint64_t)(w->len[w->n - 1] * size);
        for (int i = 0; i < w->n - 1; i++) bits |= (uint64_t)w->d[i] | (uint64_t)w->s[i];
        if (bits & (uint64_t)(big - 1)) continue;
        w->len[w->n - 1] = w->len[w->n - 1] * size / big;
        w->d[w->n - 1] = big;
        w->s[w->n - 1] = s ? big : 0;
        return big;
    }
    return size;
}

/* A dim in which the input is dense, when the output's dense dim is another and both are long enough for tiles; moved to place n-2. */
static bool transposes(st_walk *w, int64_t size)
{
    const int a = w->n - 1;
    if (w->n < 2 || w->d[a] != size || w->s[a] == size || w->len[a] < 16) return false;
    for (int b = 0; b < a; b++) {
        if (w->s[b] != size || w->len[b] < 16) continue;
        const int64_t len = w->len[b], d = w->d[b], s = w->s[b];
        for (int i = b; i < a - 1; i++) {
            w->len[i] = w->len[i + 1];
            w->d[i] = w->d[i + 1];
            w->s[i] = w->s[i + 1];
        }
        w->len[a - 1] = len;
        w->d[a - 1] = d;
        w->s[a - 1] = s;
        return true;
    }
    return false;
}

/* Within what the device reaches; s NULL: a fill with value. */
static strata_status on_device(strata_handle *h, st_walk w, char *d, const char *s, int64_t size,
                               const void *value)
{
    const bool tiles = s && transposes(&w, size);
    const int64_t whole = size;
    if (!tiles) size = widen(&w, d, s, size);
    const st_gpu_kernel *k = kernel(h, tiles, size);
    if (!k) return h->err.status;
    kernel_walk q = {.n = w.n, .fill = !s};
    for (int i = 0; i < w.n; i++) {
        q.len[i] = w.len[i];
        q.d[i] = w.d[i];
        q.s[i] = w.s[i];
    }
    for (int64_t i = 0; value && i < 16; i++) ((char *)q.value)[i] = ((const char *)value)[i % whole];
    int64_t count = elements(&w), blocks;
    if (tiles) {
        const int64_t tile = size <= 4 ? 64 : 32;
        blocks = st_ceil_div(w.len[w.n - 1], tile) * st_ceil_div(w.len[w.n - 2], tile);
        count /= w.len[w.n - 1] * w.len[w.n - 2]; /* the other dims */
        if (blocks > INT32_MAX)
            return st_fail(&h->err, STRATA_ERROR_OVERFLOW, "a copy has more than 2^31 tiles");
    } else {
        blocks = st_min64(st_ceil_div(count, 4 * THREADS), (int64_t)h->gpu->sms * 16);
    }
    void *args[] = {&d, &s, &q, &count};
    st_gpu_launch l = {.kernel = k,
                       .grid = {(unsigned)blocks, tiles ? (unsigned)st_min64(count, MAX_OTHERS) : 1, 1},
                       .block = {THREADS, 1, 1},
                       .args = args};
    return st_gpu_run(h, &l);
}

static strata_status plain(strata_handle *h, void *d, const void *s, int64_t bytes)
{
    const st_libcuda *cu = st_cuda_enter(h);
    if (!cu) return h->err.status;
    st_cu_result r = cu->memcpy_dtod_async((st_cu_ptr)(uintptr_t)d, (st_cu_ptr)(uintptr_t)s, (size_t)bytes,
                                           st_cuda_stream(h)->native);
    strata_status status =
        r ? st_cuda_fail(&h->err, st_cuda_of(h), st_cuda_stream(h), "cuMemcpyDtoDAsync", r,
                         "%lld bytes on %s could not be copied", (long long)bytes, h->device)
          : STRATA_OK;
    st_cuda_leave(h);
    return status;
}

/* One side of the walk packed: the elements in its order. */
static st_walk packed(const st_walk *w, int64_t size, bool pack_d)
{
    st_walk p = *w;
    for (int i = w->n - 1; i >= 0; i--) {
        int64_t *stride = pack_d ? &p.d[i] : &p.s[i];
        *stride = i == w->n - 1 ? size : (pack_d ? p.d[i + 1] : p.s[i + 1]) * p.len[i + 1];
    }
    return p;
}

static bool dense(const st_walk *w, const int64_t *stride, int64_t size)
{
    int64_t want = size;
    for (int i = w->n - 1; i >= 0; i--) {
        if (stride[i] != want) return false;
        want *= w->len[i];
    }
    return true;
}

/* Host and device with strides: through a packed host copy, a packed device copy, or both. */
static strata_status staged(strata_handle *h, const st_walk *w, char *d, char *s, bool up, int64_t size)
{
    const size_t bytes = (size_t)(elements(w) * size);
    const bool host_dense = dense(w, up ? w->s : w->d, size), device_dense = dense(w, up ? w->d : w->s, size);
    char *host = up ? s : d, *device = up ? d : s;
    strata_status r = STRATA_OK;
    if (!host_dense && !(host = malloc(bytes)))
        return st_fail(&h->err, STRATA_ERROR_MEMORY,
                       "no host memory for %zu bytes that a copy with strides needs", bytes);
    if (!device_dense && !(device = st_gpu_alloc(h, bytes))) r = h->err.status;
    const st_walk to_packed = packed(w, size, true), from_packed = packed(w, size, false);
    if (!r && up) {
        if (!host_dense) st_walk_copy(&to_packed, host, s, size);
        r = st_gpu_upload(h, device, host, bytes);
        if (!r && !device_dense) r = on_device(h, from_packed, d, device, size, NULL);
    } else if (!r) {
        if (!device_dense) r = on_device(h, to_packed, device, s, size, NULL);
        if (!r) r = st_gpu_download(h, host, device, bytes);
        if (!r && !host_dense) st_walk_copy(&from_packed, d, host, size);
    }
    if (!device_dense) st_gpu_free(h, device);
    if (!host_dense) free(host);
    return r;
}

strata_status st_cuda_copy(strata_handle *h, const strata_tensor *src, const strata_tensor *dst,
                           const st_walk *w, int64_t size)
{
    bool src_reached, dst_reached;
    const bool src_host = st_cuda_host_readable(h, src->data, &src_reached);
    const bool dst_host = st_cuda_host_readable(h, dst->data, &dst_reached);
    strata_status r = STRATA_OK;
    if ((!src_host && !src_reached) || (!dst_host && !dst_reached)) {
        const bool s = !src_host && !src_reached;
        st_fail(&h->err, STRATA_ERROR_DEVICE, "%s at %p is memory of another device than %s",
                s ? "src" : "dst", s ? src->data : dst->data, h->device);
        r = h->err.status;
    } else if (st_gpu_capturing(h) && (src_host || dst_host)) {
        st_fail(&h->err, STRATA_ERROR_STATE,
                "host memory cannot be copied while the stream is being captured into a graph");
        r = h->err.status;
    } else if (src_host && dst_host) { /* page-locked memory may still be in use by the device */
        if (src_reached || dst_reached) r = st_cuda_synchronize(h);
        if (!r) st_walk_copy(w, dst->data, src->data, size);
    } else if (src_host || dst_host) {
        const size_t bytes = (size_t)(elements(w) * size);
        if (!contiguous(w, size))
            r = staged(h, w, dst->data, src->data, src_host, size);
        else
            r = src_host ? st_gpu_upload(h, dst->data, src->data, bytes)
                         : st_gpu_download(h, dst->data, src->data, bytes);
    } else if (contiguous(w, size)) {
        r = plain(h, dst->data, src->data, elements(w) * size);
    } else {
        r = on_device(h, *w, dst->data, src->data, size, NULL);
    }
    if (r) st_cuda_prefix(&h->err, "strata_copy");
    return r;
}

static strata_status plain_fill(strata_handle *h, void *d, int64_t n, const void *value, int64_t size)
{
    const st_libcuda *cu = st_cuda_enter(h);
    const st_cu_ptr p = (st_cu_ptr)(uintptr_t)d;
    const st_cu_stream stream = st_cuda_stream(h)->native;
    uint8_t b;
    uint16_t s;
    uint32_t w;
    if (!cu) return h->err.status;
    memcpy(&b, value, 1);
    memcpy(&s, value, 2);
    memcpy(&w, value, 4);
    st_cu_result r = size == 1   ? cu->memset_d8_async(p, b, (size_t)n, stream)
                     : size == 2 ? cu->memset_d16_async(p, s, (size_t)n, stream)
                                 : cu->memset_d32_async(p, w, (size_t)(n * (size / 4)), stream);
    strata_status status = r ? st_cuda_fail(&h->err, st_cuda_of(h), st_cuda_stream(h), "cuMemsetAsync", r,
                                            "memory on %s could not be filled", h->device)
                             : STRATA_OK;
    st_cuda_leave(h);
    return status;
}

strata_status st_cuda_fill(strata_handle *h, const strata_tensor *dst, const st_walk *w, const void *value,
                           int64_t size)
{
    bool reached, same = true;
    const bool host = st_cuda_host_readable(h, dst->data, &reached);
    strata_status r = STRATA_OK;
    for (int64_t i = 4; i < size; i += 4) same &= memcmp((const char *)value + i, value, 4) == 0;
    if (!host && !reached) {
        r = st_fail(&h->err, STRATA_ERROR_DEVICE, "dst at %p is memory of another device than %s", dst->data,
                    h->device);
    } else if (host) {
        if (reached) r = st_cuda_synchronize(h);
        if (!r) st_walk_fill(w, dst->data, value, size);
    } else if (same && (w->n == 0 || (w->n == 1 && w->d[0] == size))) {
        r = plain_fill(h, dst->data, elements(w), value, size);
    } else {
        r = on_device(h, *w, dst->data, NULL, size, value);
    }
    if (r) st_cuda_prefix(&h->err, "strata_fill");
    return r;
}
