/* SPDX-License-Identifier: Apache-2.0 */
/* pack_sass.c - opcodes of a cubin. Instructions are 16 bytes since sm_70; the low 12 bits of the first 8 name the operation (found by
 * counting instructions whose number in the PTX is known).
 *
 * The one pattern refused: mbarrier.arrive.release.cluster in a matrix product's loop makes ptxas put MEMBAR and ERRBAR between the wgmma and
 * the arrival that frees its stage, which costs a third of the speed (measured on an H200: 454 instead of 688 TFLOP/s at 4096, bf16).
 * In the order of the code, from a wgmma to the first arrival behind it, there must be no MEMBAR. */
#include "pack_sass.h"
#include <stdint.h>
#include <string.h>

enum {
    HGMMA = 0x9f0,
    IGMMA = 0x9f1,
    QGMMA = 0x9f3,
    HMMA = 0x23c,
    MEMBAR = 0x992,
    ARRIVE = 0x9a7,
    SETMAXREG = 0x9c8
};

static void section(const unsigned char *p, size_t n, sass_counts *c)
{
    bool behind_wgmma = false, fenced = false;
    for (size_t k = 0; k + 16 <= n; k += 16) {
        uint64_t w;
        memcpy(&w, p + k, 8);
        int op = (int)(w & 0xfff);
        c->instructions++;
        c->mma += op == HMMA;
        c->membar += op == MEMBAR;
        if (op == HGMMA || op == IGMMA || op == QGMMA) {
            c->wgmma++;
            behind_wgmma = true;
            fenced = false;
        } else if (op == MEMBAR)
            fenced = true;
        else if (op == ARRIVE || op == SETMAXREG) {
            c->slow_arrive = c->slow_arrive || (op == ARRIVE && behind_wgmma && fenced);
            behind_wgmma = false;
        }
    }
}

bool sass_count(const void *cubin, size_t n, sass_counts *c)
{
    const unsigned char *b = cubin;
    *c = (sass_counts){0};
    if (n < 64 || memcmp(b,
                         "\x7f"
                         "ELF\2\1",
                         6) != 0)
        return false;
    uint64_t at;
    uint16_t each, count;
    memcpy(&at, b + 0x28, 8);
    memcpy(&each, b + 0x3a, 2);
    memcpy(&count, b + 0x3c, 2);
    if (each < 64 || at > n || (uint64_t)each * count > n - at) return false;
    for (int i = 0; i < count; i++) {
        const unsigned char *h = b + at + (size_t)i * each;
        uint32_t type;
        uint64_t flags, offset, size;
        memcpy(&type, h + 4, 4);
        memcpy(&flags, h + 8, 8);
        memcpy(&offset, h + 24, 8);
        memcpy(&size, h + 32, 8);
        if (type != 1 || !(flags & 4)) continue; /* SHT_PROGBITS, SHF_EXECINSTR */
        if (offset > n || size > n - offset) return false;
        section(b + offset, size, c);
    }
    return true;
}
