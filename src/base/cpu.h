/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.h - which instruction sets and caches this processor has. Read once; STRATA_ISA=portable|avx2|avx512 lowers what may
 * be used (for tests and comparisons), never raises it. */
#ifndef ST_BASE_CPU_H
#define ST_BASE_CPU_H
#include "base/base.h"

/* Instruction sets as bits; a kernel row names the bits it needs. */
enum {
    ST_ISA_PORTABLE = 0,
    ST_ISA_AVX2 = 1 << 0,   /* AVX2 + FMA + F16C */
    ST_ISA_AVX512 = 1 << 1, /* F + BW + DQ + VL (implies AVX2) */
    ST_ISA_AVX512_VNNI = 1 << 2,
    ST_ISA_AVX512_BF16 = 1 << 3,
    ST_ISA_NEON = 1 << 4
};
/* levels for tables indexed by instruction set */
enum { ST_LEVEL_PORTABLE = 0, ST_LEVEL_AVX2 = 1, ST_LEVEL_AVX512 = 2, ST_LEVELS = 3 };

typedef struct st_cpu {
    unsigned isa; /* ST_ISA_ bits that kernels may use */
    int level;    /* ST_LEVEL_ */
    int64_t l1d, l2,
        l3; /* bytes, never 0: safe defaults where nothing is reported; l3 is one core's reasonable share */
    char name[64];
    char cache_source[48];
} st_cpu;
const st_cpu *st_cpu_get(void);
const char *st_isa_name(unsigned isa, char *buf, size_t n); /* "avx512 avx2" */
#endif
