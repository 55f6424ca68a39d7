/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - the fake driver's memory: blocks of host memory in a table, which says what an address is; copies check both ends. */
#include "fake_state.h"
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static fake_block *block_at(uintptr_t p)
{
    for (int i = 0; i < FAKE_BLOCKS; i++)
        if (fake.block[i].bytes && p >= fake.block[i].p && p < fake.block[i].p + fake.block[i].bytes)
            return &fake.block[i];
    return NULL;
}
static int take(uintptr_t *p, size_t bytes, int kind)
{
    int r = 2;
    pthread_mutex_lock(&fake.lock);
    if (bytes && (kind == 1 || fake.count.bytes + bytes <= fake.total))
        for (int i = 0; i < FAKE_BLOCKS; i++) {
            if (fake.block[i].bytes) continue;
            void *m = mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (m == MAP_FAILED) break;
            fake.block[i] =
                (fake_block){.p = (uintptr_t)m,
                             .bytes = bytes,
                             .kind = kind,
                             .device = fake_current() ? ((fake_context *)fake_current())->device : 0};
            *p = (uintptr_t)m;
            if (kind == 2) {
                fake.count.bytes += bytes;
                fake.count.blocks++;
            } else {
                fake.count.host_blocks++;
            }
            r = 0;
            break;
        }
    pthread_mutex_unlock(&fake.lock);
    return r;
}
static int give(uintptr_t p, int kind)
{
    int r = 1;
    pthread_mutex_lock(&fake.lock);
    fake_block *b = block_at(p);
    if (b && b->p == p && b->kind == kind) {
        munmap((void *)p, b->bytes + 4096);
        if (kind == 2) {
            fake.count.bytes -= b->bytes;
            fake.count.blocks--;
        } else {
            fake.count.host_blocks--;
        }
        b->bytes = 0;
        r = 0;
    }
    pthread_mutex_unlock(&fake.lock);
    return r;
}
FAKE int cuMemAlloc_v2(uintptr_t *p, size_t bytes)
{
    ENTER(cuMemAlloc_v2);
    CURRENT;
    if (fake_forbidden()) return 900;
    fake.count.allocations++;
    return take(p, bytes, 2);
}
FAKE int cuMemFree_v2(uintptr_t p)
{
    ENTER(cuMemFree_v2);
    CURRENT;
    if (fake_forbidden()) return 900;
    fake_finish(NULL, true);
    return give(p, 2);
}
FAKE int cuMemAllocAsync(uintptr_t *p, size_t bytes, fake_stream *s)
{
    ENTER(cuMemAllocAsync);
    CURRENT;
    if (s && s->capturing) {
        s->nodes++;
        s->node_memory++;
        fake.count.mallocs_in_capture++;
    }
    int r = take(p, bytes, 2);
    if (!r && s && s->capturing) block_at(*p)->node = true;
    return r;
}
FAKE int cuMemFreeAsync(uintptr_t p, fake_stream *s)
{
    ENTER(cuMemFreeAsync);
    CURRENT;
    if (s && s->capturing) {
        s->nodes++;
        s->node_memory--;
    }
    return give(p, 2);
}
FAKE int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    *total = fake.total;
    *free_bytes = fake.total - (fake.count.bytes < fake.total ? fake.count.bytes : fake.total);
    return 0;
}
FAKE int cuMemHostAlloc(void **p, size_t bytes, unsigned flags)
{
    (void)flags;
    ENTER(cuMemHostAlloc);
    CURRENT;
    if (fake_forbidden()) return 900;
    return take((uintptr_t *)p, bytes, 1);
}
FAKE int cuMemFreeHost(void *p)
{
    ENTER(cuMemFreeHost);
    return give((uintptr_t)p, 1);
}
/* Both ends must be what the call says, and inside one block. */
static int copy(uintptr_t d, int d_device, uintptr_t s, int s_device, size_t n, fake_stream *stream)
{
    CURRENT;
    if (fake_stream_check(stream)) return 400;
    fake_block *bd = block_at(d), *bs = block_at(s);
    if (d_device != (bd && bd->kind == 2) || s_device != (bs && bs->kind == 2)) return 1;
    if ((bd && d + n > bd->p + bd->bytes) || (bs && s + n > bs->p + bs->bytes)) return 1;
    fake.count.copies++;
    if (stream && stream->capturing)
        stream->nodes++;
    else
        memmove((void *)d, (void *)s, n);
    return 0;
}
FAKE int cuMemcpyHtoDAsync_v2(uintptr_t d, const void *s, size_t n, fake_stream *stream)
{
    ENTER(cuMemcpyHtoDAsync_v2);
    return copy(d, 1, (uintptr_t)s, 0, n, stream);
}
FAKE int cuMemcpyDtoHAsync_v2(void *d, uintptr_t s, size_t n, fake_stream *stream)
{
    ENTER(cuMemcpyDtoHAsync_v2);
    return copy((uintptr_t)d, 0, s, 1, n, stream);
}
FAKE int cuMemcpyDtoDAsync_v2(uintptr_t d, uintptr_t s, size_t n, fake_stream *stream)
{
    ENTER(cuMemcpyDtoDAsync_v2);
    return copy(d, 1, s, 1, n, stream);
}
static int set(uintptr_t d, const void *v, size_t size, size_t n, fake_stream *stream)
{
    CURRENT;
    fake_block *b = block_at(d);
    if (!b || d + n * size > b->p + b->bytes || d % size) return 1;
    if (stream && stream->capturing) return stream->nodes++, 0;
    for (size_t i = 0; i < n; i++) memcpy((char *)d + i * size, v, size);
    return 0;
}
FAKE int cuMemsetD8Async(uintptr_t d, unsigned char v, size_t n, fake_stream *s)
{
    ENTER(cuMemsetD8Async);
    return set(d, &v, 1, n, s);
}
FAKE int cuMemsetD16Async(uintptr_t d, unsigned short v, size_t n, fake_stream *s)
{
    ENTER(cuMemsetD16Async);
    return set(d, &v, 2, n, s);
}
FAKE int cuMemsetD32Async(uintptr_t d, unsigned v, size_t n, fake_stream *s)
{
    ENTER(cuMemsetD32Async);
    return set(d, &v, 4, n, s);
}
FAKE int cuPointerGetAttributes(unsigned n, const int *what, void **to, uintptr_t p)
{
    ENTER(cuPointerGetAttributes);
    CURRENT;
    pthread_mutex_lock(&fake.lock);
    const fake_block *b = block_at(p);
    if (b && b->node) b = NULL;
    for (unsigned i = 0; i < n; i++) {
        if (what[i] == 2) *(int *)to[i] = b ? b->kind : 0;
        if (what[i] == 8) *(int *)to[i] = 0;
        if (what[i] == 9) *(int *)to[i] = b ? b->device : -2;
        if (what[i] == 11) *(uintptr_t *)to[i] = b ? b->p : 0;
        if (what[i] == 12) *(size_t *)to[i] = b ? b->bytes : 0;
    }
    pthread_mutex_unlock(&fake.lock);
    return 0;
}
