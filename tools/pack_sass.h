/* SPDX-License-Identifier: Apache-2.0 */
/* pack_sass.h - what can be seen in machine code without a disassembler. */
#ifndef PACK_SASS_H
#define PACK_SASS_H
#include <stdbool.h>
#include <stddef.h>

typedef struct sass_counts {
    int instructions, wgmma, mma, membar; /* HGMMA and QGMMA and IGMMA; HMMA; MEMBAR */
    bool slow_arrive;                     /* a MEMBAR between a wgmma and the next arrival on an mbarrier */
} sass_counts;
/* false: not a 64-bit little-endian ELF file with sections inside it */
bool sass_count(const void *cubin, size_t n, sass_counts *c);
#endif
