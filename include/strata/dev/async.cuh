/* SPDX-License-Identifier: Apache-2.0 */
/* async.cuh - Hopper's asynchronous machinery in device code: mbarriers, TMA loads and stores, clusters, named barriers, dependent launches.
 *
 * Shared memory is named by 32-bit addresses (saddr), tensor maps by the address of the kernel's __grid_constant__ parameter. Everything that touches
 * memory is volatile with a memory clobber. Needs sm_90.
 *
 * One rule costs half the speed where it is broken: a consumer frees a stage with arrive_at (default semantics). The form .release.cluster makes ptxas put
 * MEMBAR.GPU and ERRBAR before it, about 1000 clocks in every k-block; what it would order are wgmma's own reads, complete since wgmma_wait. */
#ifndef STRATA_DEV_ASYNC_CUH
#define STRATA_DEV_ASYNC_CUH
#include "types.cuh"

struct __align__(128) tensor_map { u64 q[16]; };

INL u32 saddr(const void *p) { return (u32)__cvta_generic_to_shared(p); }

/* ---- mbarriers: one counter of tiles drives stage and parity; a waiter for parity 1 passes on a fresh barrier -------- */
INL void mbar_init(u32 bar, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
INL void mbar_init_fence(void) { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
INL void mbar_expect(u32 bar, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
INL void mbar_wait(u32 bar, u32 parity)
{
#ifdef STRATA_TRAP /* a lost arrival ends the kernel instead of hanging the device */
    u32 done = 0;
    for (i64 start = clock64(); !done;) {
        asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n selp.u32 "
                     "%0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(bar), "r"(parity)
                     : "memory");
        if (!done && clock64() - start > 1000000000ll) asm volatile("trap;");
    }
#else
    asm volatile("{\n .reg .pred p;\n W%=:\n mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n @p bra "
                 "D%=;\n bra W%=;\n D%=:\n}" ::"r"(bar),
                 "r"(parity)
                 : "memory");
#endif
}
/* at the barrier that stands at this address in block `cta` of the cluster */
INL void arrive_at(u32 bar, u32 cta)
{
    asm volatile("{\n .reg .b32 r;\n mapa.shared::cluster.u32 r, %0, %1;\n "
                 "mbarrier.arrive.shared::cluster.b64 _, [r];\n}" ::"r"(bar),
                 "r"(cta)
                 : "memory");
}
INL void arrive(u32 bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory"); }

/* ---- TMA: a box of a tiled tensor map ------------------------------------------------------------------------------------ */
INL void tma_prefetch(const tensor_map *t) { asm volatile("prefetch.tensormap [%0];" ::"l"(t) : "memory"); }
INL void tma_load2(u32 dst, const tensor_map *t, u32 bar, int x, int y)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
                 "[%1, {%3, %4}], [%2];" ::"r"(dst),
                 "l"(t), "r"(bar), "r"(x), "r"(y)
                 : "memory");
}
INL void tma_load3(u32 dst, const tensor_map *t, u32 bar, int x, int y, int z)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
                 "[%1, {%3, %4, %5}], [%2];" ::"r"(dst),
                 "l"(t), "r"(bar), "r"(x), "r"(y), "r"(z)
                 : "memory");
}
/* the same into the blocks of `mask`, each completing on its own barrier */
INL void tma_share2(u32 dst, const tensor_map *t, u32 bar, int x, int y, u16 mask)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast:"
                 ":cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(dst),
                 "l"(t), "r"(bar), "r"(x), "r"(y), "h"(mask)
                 : "memory");
}
INL void tma_share3(u32 dst, const tensor_map *t, u32 bar, int x, int y, int z, u16 mask)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast:"
                 ":cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(dst),
                 "l"(t), "r"(bar), "r"(x), "r"(y), "r"(z), "h"(mask)
                 : "memory");
}
/* bytes that lie side by side, a multiple of 16 and aligned to 16 on both sides */
INL void bulk_load(u32 dst, const void *src, u32 bytes, u32 bar)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst),
                 "l"(src), "r"(bytes), "r"(bar)
                 : "memory");
}
INL void tma_store2(const tensor_map *t, u32 src, int x, int y)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(t),
                 "r"(src), "r"(x), "r"(y)
                 : "memory");
}
INL void tma_store3(const tensor_map *t, u32 src, int x, int y, int z)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(t),
        "r"(src), "r"(x), "r"(y), "r"(z)
        : "memory");
}
INL void tma_commit(void) { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/* by the thread that committed: its stores have read their shared memory */
INL void tma_wait_read(void) { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
/* by every thread that wrote shared memory which TMA or wgmma reads next, before the barrier */
INL void proxy_fence(void) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/* ---- clusters, named barriers, dependent launches, registers -------------------------------------------------------------- */
INL u32 cluster_rank(void)
{
    u32 r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}
INL void cluster_sync(void)
{
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
#define BAR_SYNC(id, threads) asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(threads) : "memory")
#define BAR_ARRIVE(id, threads) asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(threads) : "memory")
/* Programmatic dependent launch: nothing that the previous grid may still read or write is touched before launch_wait. */
INL void launch_next(void) { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
INL void launch_wait(void) { asm volatile("griddepcontrol.wait;" ::: "memory"); }
#define REGS_DEC(n) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(n))
#define REGS_INC(n) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(n))

/* ---- shared memory by address ------------------------------------------------------------------------------------------- */
INL void sts_matrix(u32 a, u32 r0, u32 r1, u32 r2, u32 r3)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(a), "r"(r0),
                 "r"(r1), "r"(r2), "r"(r3)
                 : "memory");
}
INL void sts8(u32 a, u32 x, u32 y)
{
    asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(a), "r"(x), "r"(y) : "memory");
}
INL void sts2(u32 a, u16 x) { asm volatile("st.shared.b16 [%0], %1;" ::"r"(a), "h"(x) : "memory"); }
INL void sts4(u32 a, u32 x) { asm volatile("st.shared.b32 [%0], %1;" ::"r"(a), "r"(x) : "memory"); }
INL uint2 lds8(u32 a)
{
    uint2 v;
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(a) : "memory");
    return v;
}
INL uint4 lds16(u32 a)
{
    uint4 v;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(a)
                 : "memory");
    return v;
}
INL u32 lds_bytes(u32 a, int bytes) /* 1, 2 or 4 */
{
    u32 v;
    u16 h;
    if (bytes == 4) {
        asm volatile("ld.shared.b32 %0, [%1];" : "=r"(v) : "r"(a) : "memory");
    } else if (bytes == 2) {
        asm volatile("ld.shared.b16 %0, [%1];" : "=h"(h) : "r"(a) : "memory");
        v = h;
    } else {
        asm volatile("ld.shared.u8 %0, [%1];" : "=r"(v) : "r"(a) : "memory");
    }
    return v;
}
#endif
