/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.c - instruction sets (cpuid and xgetbv) and caches. Virtual machines often hide the caches from one source and not from another
 * (CPUID leaf 4 empty, 0x80000005/6 filled, /sys empty), so all are read in turn and the source is remembered. */
#include "base/cpu.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static st_cpu cpu;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#if defined(__x86_64__) || defined(__i386__)
#    include <cpuid.h>

static unsigned x86_isa(void)
{
    unsigned a, b, c, d, isa = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
    bool fma = c >> 12 & 1, osxsave = c >> 27 & 1, avx = c >> 28 & 1, f16c = c >> 29 & 1;
    if (!osxsave || !avx) return 0;
    unsigned lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    if ((lo & 6) != 6) return 0; /* the operating system saves ymm */
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    if (!(b >> 5 & 1) || !fma || !f16c) return 0;
    isa |= ST_ISA_AVX2;
    bool f = b >> 16 & 1, dq = b >> 17 & 1, bw = b >> 30 & 1, vl = b >> 31 & 1, vnni = c >> 11 & 1;
    if (!f || !dq || !bw || !vl || (lo & 0xe6) != 0xe6) return isa; /* and zmm and masks */
    isa |= ST_ISA_AVX512;
    if (vnni) isa |= ST_ISA_AVX512_VNNI;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && a >> 5 & 1) isa |= ST_ISA_AVX512_BF16;
    return isa;
}

static void x86_name(char *out, size_t n)
{
    unsigned r[12], a, b, c, d;
    char text[49] = "";
    if (__get_cpuid(0x80000000u, &a, &b, &c, &d) && a >= 0x80000004u) {
        for (unsigned i = 0; i < 3; i++)
            __get_cpuid(0x80000002u + i, &r[4 * i], &r[4 * i + 1], &r[4 * i + 2], &r[4 * i + 3]);
        memcpy(text, r, 48);
    }
    const char *s = text;
    while (*s == ' ') s++;
    snprintf(out, n, "%s", *s ? s : "x86-64 processor");
}

static bool x86_leaf4(unsigned leaf, st_cpu *k)
{
    bool any = false;
    for (unsigned i = 0; i < 16; i++) {
        unsigned a, b, c, d;
        if (!__get_cpuid_count(leaf, i, &a, &b, &c, &d) || !(a & 31)) break;
        int64_t size =
            (int64_t)((b >> 22) + 1) * ((b >> 12 & 0x3ff) + 1) * ((b & 0xfff) + 1) * ((int64_t)c + 1);
        unsigned type = a & 31, level = a >> 5 & 7;
        if (level == 1 && type == 1) k->l1d = size;
        if (level == 2 && type != 2) k->l2 = size;
        if (level == 3) k->l3 = size;
        any |= level == 1 && type == 1;
    }
    return any;
}

static bool x86_amd(st_cpu *k)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(0x80000006u, &a, &b, &c, &d)) return false;
    unsigned l2 = c >> 16, l1;
    if (!__get_cpuid(0x80000005u, &a, &b, &c, &d)) return false;
    l1 = c >> 24;
    if (!l1 || !l2) return false;
    k->l1d = (int64_t)l1 << 10;
    k->l2 = (int64_t)l2 << 10;
    return true;
}
#endif

static bool sysfs(st_cpu *k)
{
    bool any = false;
    for (int i = 0; i < 8; i++) {
        char path[96], text[32] = "", type[32] = "";
        int level = 0;
        long size = 0;
        FILE *f;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", i);
        if (!(f = fopen(path, "r"))) break;
        if (fscanf(f, "%d", &level) != 1) level = 0;
        fclose(f);
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        if ((f = fopen(path, "r"))) {
            if (fscanf(f, "%31s", text) == 1) size = strtol(text, NULL, 10) * (strchr(text, 'M') ? 1024 : 1);
            fclose(f);
        }
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/type", i);
        if ((f = fopen(path, "r"))) {
            if (fscanf(f, "%31s", type) != 1) type[0] = 0;
            fclose(f);
        }
        if (size <= 0 || !strcmp(type, "Instruction")) continue;
        if (level == 1) k->l1d = (int64_t)size << 10;
        if (level == 2) k->l2 = (int64_t)size << 10;
        if (level == 3) k->l3 = (int64_t)size << 10;
        any = true;
    }
    return any && k->l1d && k->l2;
}

static void caches(void)
{
    const char *source = NULL;
#if defined(__x86_64__) || defined(__i386__)
    if (x86_leaf4(4, &cpu) && cpu.l1d && cpu.l2)
        source = "cpuid leaf 4";
    else if (x86_leaf4(0x8000001du, &cpu) && cpu.l1d && cpu.l2)
        source = "cpuid leaf 8000001d";
    else if (x86_amd(&cpu))
        source = "cpuid leaf 80000006";
#endif
    if (!source && sysfs(&cpu)) source = "sysfs";
    /* believe nothing absurd */
    if (cpu.l1d < 4096 || cpu.l1d > (1 << 20) || cpu.l2 < 65536 || cpu.l2 > (256 << 20)) {
        cpu.l1d = 32 << 10;
        cpu.l2 = 512 << 10;
        source = "default";
    }
    /* a last-level cache is shared by unseen neighbours: count on 16 MiB at most, and on something at least */
    if (cpu.l3 > 16 << 20) cpu.l3 = 16 << 20;
    if (cpu.l3 < cpu.l2) cpu.l3 = cpu.l2 > 4 << 20 ? cpu.l2 : 4 << 20;
    snprintf(cpu.cache_source, sizeof cpu.cache_source, "%s", source);
}

static void probe(void)
{
    snprintf(cpu.name, sizeof cpu.name, "processor");
#if defined(__x86_64__) || defined(__i386__)
    cpu.isa = x86_isa();
    x86_name(cpu.name, sizeof cpu.name);
#elif defined(__aarch64__)
    cpu.isa = ST_ISA_NEON;
    snprintf(cpu.name, sizeof cpu.name, "Arm64 processor");
#endif
    const char *want = st_env("STRATA_ISA");
    if (want && !strcmp(want, "portable")) cpu.isa = 0;
    if (want && !strcmp(want, "avx2")) cpu.isa &= ST_ISA_AVX2;
    if (want && !strcmp(want, "avx512")) cpu.isa &= ST_ISA_AVX2 | ST_ISA_AVX512;
    cpu.level = cpu.isa & ST_ISA_AVX512 ? ST_LEVEL_AVX512
                : cpu.isa & ST_ISA_AVX2 ? ST_LEVEL_AVX2
                                        : ST_LEVEL_PORTABLE;
    caches();
}

const st_cpu *st_cpu_get(void)
{
    pthread_once(&once, probe);
    return &cpu;
}

const char *st_isa_name(unsigned isa, char *buf, size_t n)
{
    snprintf(buf, n, "%s%s%s%s%s%s", isa & ST_ISA_AVX512 ? "avx512 " : "",
             isa & ST_ISA_AVX512_VNNI ? "avx512-vnni " : "", isa & ST_ISA_AVX512_BF16 ? "avx512-bf16 " : "",
             isa & ST_ISA_AVX2 ? "avx2 " : "", isa & ST_ISA_NEON ? "neon " : "", "portable");
    return buf;
}
