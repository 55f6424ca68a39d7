/* SPDX-License-Identifier: Apache-2.0 */
/* system.c - hash, clock, environment. */
#include "base/base.h"
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

/* Multiply-and-fold over 8-byte words (the idea of wyhash and rapidhash: a 64x64 to 128 bit product mixes both halves). */
ST_INLINE uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 p = (unsigned __int128)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

uint64_t st_hash(const void *p, size_t n, uint64_t seed)
{
    const unsigned char *s = p;
    uint64_t h =
        seed ^ 0x9e3779b97f4a7c15u ^ n * 0x9fb21c651e98df25u; /* spread, or a length cancels a byte */
    for (; n >= 16; n -= 16, s += 16) {
        uint64_t a, b;
        memcpy(&a, s, 8);
        memcpy(&b, s + 8, 8);
        h = fold(a ^ h ^ 0xa0761d6478bd642fu, b ^ 0xe7037ed1a0b428dbu);
    }
    uint64_t a = 0, b = 0;
    if (n) memcpy(&a, s, n < 8 ? n : 8);
    if (n > 8) memcpy(&b, s + 8, n - 8);
    return fold(a ^ h ^ 0x8ebc6af09c88c6e3u, b ^ 0x589965cc75374cc3u);
}

uint64_t st_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool st_env_allowed(void) { return getauxval(AT_SECURE) == 0; }

const char *st_env(const char *name)
{
    if (!st_env_allowed()) return NULL;
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}
