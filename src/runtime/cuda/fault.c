/* SPDX-License-Identifier: Apache-2.0 */
/* fault.c - what a failed call of the driver means, in words: this call's own fault, or one of work launched earlier that was only found here;
 * who holds the memory when there is none; the causes and the fix from the knowledge base. */
#include "runtime/cuda/cuda.h"
#include "facts/cause.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Errors after which the context gives nothing but errors (CUDA driver interface, the notes at each code). */
bool st_cuda_sticky(st_cu_result r)
{
    static const int codes[] = {214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721};
    for (int i = 0; i < ST_COUNT(codes); i++)
        if (codes[i] == r) return true;
    return false;
}

void st_cuda_prefix(st_err *e, const char *who)
{
    char text[sizeof e->text];
    memcpy(text, e->text, sizeof text);
    snprintf(e->text, sizeof e->text, "%s: %.700s", who, text);
}

strata_status st_cuda_fail(st_err *e, st_cuda *g, const strata_stream *stream, const char *function,
                           st_cu_result r, const char *what, ...)
{
    const bool sticky = st_cuda_sticky(r);
    int none = 0;
    va_list ap;
    va_start(ap, what);
    st_vfail(e, r == ST_CU_OUT_OF_MEMORY ? STRATA_ERROR_MEMORY : STRATA_ERROR_DEVICE, what, ap);
    va_end(ap);
    if (sticky) {
        char launches[180];
        size_t n = strlen(e->text);
        snprintf(e->text + n, sizeof e->text - n,
                 ": %s, found here, caused earlier by work that was already launched", st_cu_result_name(r));
        atomic_compare_exchange_strong(&g->lost, &none, r);
        st_cuda_launches(stream ? stream : &g->default_stream, launches, sizeof launches);
        if (launches[0]) st_err_frame(e, "launched", "%s", launches);
    }
    if (r == ST_CU_DEINITIALIZED)
        st_err_frame(e, "driver", "%s: CUDA_ERROR_DEINITIALIZED (the process is ending)", function);
    else
        st_cu_frame(e, function, r);
    if (sticky)
        st_err_remedy(e,
                      "run once more with STRATA_SYNC=1, which names the launch at fault; this process must "
                      "be restarted "
                      "to use %s again",
                      g->gpu.device);
    else if (r == ST_CU_CAPTURE_UNSUPPORTED || r == ST_CU_CAPTURE_IMPLICIT)
        st_err_remedy(e, "do this before the capture of the stream begins");
    st_facts_explain(e, st_cu_result_name(r));
    return e->status;
}

/* "pid 4121 python3 138.2 GB, pid 977 (another container) 2.1 GB" */
static void others(const st_cuda *g, char *text, size_t n)
{
    st_err spare = {0};
    st_nvml_device d;
    st_nvml_process list[32];
    unsigned count = ST_COUNT(list);
    const st_libnvml *m = st_libnvml_open(&spare);
    size_t at = 0;
    text[0] = 0;
    if (!m || !m->device_by_pci || !m->compute_processes || m->device_by_pci(g->pci, &d)) return;
    if (m->compute_processes(d, &count, list)) return;
    for (unsigned i = 0; i < count && at + 40 < n; i++) {
        char path[64], name[64] = "(another container)";
        if (list[i].pid == (unsigned)getpid()) continue;
        snprintf(path, sizeof path, "/proc/%u/comm", list[i].pid);
        FILE *f = fopen(path, "r");
        if (f) {
            if (fscanf(f, "%63s", name) != 1) snprintf(name, sizeof name, "?");
            fclose(f);
        }
        at += (size_t)snprintf(text + at, n - at, "%spid %u %s", at ? ", " : "", list[i].pid, name);
        if (at < n && list[i].used_bytes != ~0ull)
            at += (size_t)snprintf(text + at, n - at, " %.1f GB", (double)list[i].used_bytes * 1e-9);
    }
}

strata_status st_cuda_no_memory(st_err *e, st_cuda *g, st_cu_result r, size_t bytes, size_t released)
{
    strata_memory_stats s;
    size_t free_bytes = 0, total = (size_t)g->gpu.memory;
    char who[170];
    g->cu->mem_get_info(&free_bytes, &total);
    st_cuda_pool_stats(g, &s);
    st_fail(e, STRATA_ERROR_MEMORY, "%s has no memory for %zu bytes", g->gpu.device, bytes);
    others(g, who, sizeof who);
    if (who[0]) st_err_frame(e, "others", "%s", who);
    if (r) st_cu_frame(e, "cuMemAlloc", r);
    st_err_frame(e, "runtime",
                 "pool: %.1f MB asked, %.1f MB free of %.1f GB; this process holds %.1f MB through Strata "
                 "(%.1f MB more were "
                 "cached, released and retried)",
                 (double)bytes * 1e-6, (double)free_bytes * 1e-6, (double)total * 1e-9,
                 (double)(s.bytes_in_use + s.bytes_cached) * 1e-6, (double)released * 1e-6);
    st_err_remedy(e, "free memory or ask for less; plans take less with a smaller workspace limit "
                     "(strata_set_workspace_limit(h, 0) always works)");
    return e->status;
}
