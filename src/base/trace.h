/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h - one event per call per layer, to stderr or as Chrome trace JSON.
 *
 *     uint64_t t0 = st_trace_begin();
 *     ... work ...
 *     if (ST_UNLIKELY(t0)) st_trace_end(t0, "tile", kernel_id, "%lldx%lldx%lld workspace %zu", m, n, k, ws);
 *
 * st_trace_begin is a load and a branch when tracing is off. Nesting shows through the times. */
#ifndef ST_BASE_TRACE_H
#define ST_BASE_TRACE_H
#include "base/base.h"
extern atomic_int st_trace_on;
void st_trace_init(void); /* reads STRATA_TRACE once; called by strata_create */
bool st_trace_set(const char *where, char *why, size_t n); /* strata_set_trace: false with a reason */
uint64_t st_trace_start_slow(void);
ST_INLINE uint64_t st_trace_begin(void)
{
    return ST_UNLIKELY(atomic_load_explicit(&st_trace_on, memory_order_relaxed)) ? st_trace_start_slow() : 0;
}
void st_trace_end(uint64_t t0, const char *layer, const char *name, const char *fmt, ...) ST_PRINTF(4, 5);
#endif
