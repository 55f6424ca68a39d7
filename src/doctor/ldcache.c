/* SPDX-License-Identifier: Apache-2.0 */
/* ldcache.c - /etc/ld.so.cache, glibc's format 1.1, alone or behind the old format (glibc sysdeps/generic/dl-cache.h). */
#include "doctor/machine.h"
#include <string.h>

enum { HEADER = 48, ENTRY = 24, OLD_HEADER = 16, OLD_ENTRY = 12, MAX_ENTRIES = 200000 };

static uint32_t word(const char *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

static const char *text(const char *bytes, size_t n, uint32_t offset)
{
    if (offset >= n) return NULL;
    return memchr(bytes + offset, 0, n - offset) ? bytes + offset : NULL;
}

bool st_ldcache_each(const char *bytes, size_t n, void (*see)(const char *name, const char *path, void *arg),
                     void *arg)
{
    static const char magic[] = "glibc-ld.so.cache1.1";
    if (n >= OLD_HEADER && memcmp(bytes, "ld.so-1.7.0", 11) == 0) {
        uint64_t skip = OLD_HEADER + (uint64_t)word(bytes + 12) * OLD_ENTRY;
        skip = (skip + 7) & ~7ull;
        if (skip >= n) return false;
        bytes += skip;
        n -= skip;
    }
    if (n < HEADER || memcmp(bytes, magic, 20)) return false;
    uint32_t count = word(bytes + 20);
    if (count > MAX_ENTRIES || (uint64_t)count * ENTRY > n - HEADER) return false;
    for (uint32_t i = 0; i < count; i++) {
        const char *e = bytes + HEADER + (size_t)i * ENTRY;
        uint32_t flags = word(e);
        const char *name = text(bytes, n, word(e + 4)), *path = text(bytes, n, word(e + 8));
        /* x86-64 (0x03) and AArch64 (0x0a) libraries for glibc (3) */
        if ((flags & 0xff) != 3 || ((flags >> 8) != 0x03 && (flags >> 8) != 0x0a)) continue;
        if (name && path && path[0] == '/') see(name, path, arg);
    }
    return true;
}
