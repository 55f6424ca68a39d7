/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c - expands cpu/kernels.inc: prototypes first, then the rows. */
#include "tile/kernels.h"
#include "tile/cpu/gemm_kernel.h"
#include "tile/cpu/small_kernel.h"
#include "tile/cpu/skinny_kernel.h"
#include "tile/cpu/conv_kernel.h"
#include "tile/cpu/tri_kernel.h"
#include "tile/cpu/three_kernel.h"
#include <stdio.h>
#include <string.h>

#define ST_KERNEL(id, provider, family, types, isa, type, needs, order, impl) \
    extern const impl st_kernel_##id;
#include "tile/cpu/kernels.inc"
#undef ST_KERNEL

/* Kernels without fused multiply-add round every product, which gives other bits: it is part of the order's words. Products of whole numbers, and
 * of 8-bit and 16-bit floats with at most 12 significant bits in f32, are exact either way. */
#define ROUNDS(type) ((type) != STRATA_I8 && (type) != STRATA_F16 && (type) != STRATA_F8E4M3)
static const st_kernel_row rows[] = {
#define ST_KERNEL(id, provider, family, types, isa, type, needs, order, impl) \
    {#id,                                                                     \
     provider,                                                                \
     family,                                                                  \
     types,                                                                   \
     isa,                                                                     \
     type,                                                                    \
     needs,                                                                   \
     (needs) || !ROUNDS(type) ? order : order "; products rounded",           \
     &st_kernel_##id},
#include "tile/cpu/kernels.inc"
#undef ST_KERNEL
};

const st_kernel_row *st_kernel_rows(int *count)
{
    *count = ST_COUNT(rows);
    return rows;
}

const st_kernel_row *st_kernel_find(const char *id)
{
    for (int i = 0; i < ST_COUNT(rows); i++)
        if (strcmp(rows[i].id, id) == 0) return &rows[i];
    return NULL;
}

const st_kernel_row *st_kernel_best(const char *provider, int type, const st_cpu *cpu)
{
    for (int i = 0; i < ST_COUNT(rows); i++)
        if (rows[i].type == type && (rows[i].needs & ~cpu->isa) == 0 &&
            strcmp(rows[i].provider, provider) == 0)
            return &rows[i];
    return NULL;
}

const char *st_kernel_why_not(const st_kernel_row *row, const st_cpu *cpu, char *buf, size_t n)
{
    if ((row->needs & ~cpu->isa) == 0) return NULL;
    snprintf(buf, n, "needs %s, which this machine (or STRATA_ISA) does not offer", row->isa);
    return buf;
}

int st_kernel_list(int i, strata_kernel_info *info)
{
    if (i < 0 || i >= ST_COUNT(rows)) return 0;
    const st_kernel_row *r = &rows[i];
    const st_cpu *cpu = st_cpu_get();
    info->id = r->id;
    info->family = r->family;
    info->types = r->types;
    info->isa = r->isa;
    info->order = r->order;
    info->usable = (r->needs & ~cpu->isa) == 0;
    info->why_not = info->usable ? NULL
                    : r->needs & ~cpu->isa & ST_ISA_AVX512
                        ? "needs AVX-512 (F, BW, DQ, VL), which this machine or STRATA_ISA does not offer"
                        : "needs AVX2 and FMA, which this machine or STRATA_ISA does not offer";
    return 1;
}
