/* SPDX-License-Identifier: Apache-2.0 */
/* own_tile.c - what the providers' own tiles have in common: numbers left open, numbers that follow from others, and the registers, which only the compiler knows. */
#include "tile/cuda/own_tile.h"
#include <stdio.h>
#include <string.h>

#define FIELD(f)                     \
    {                                \
        offsetof(strata_tile, f), #f \
    }
static const struct {
    size_t at;
    const char *name;
} fields[] = {FIELD(block_m),       FIELD(block_n), FIELD(block_k),       FIELD(warp_m),
              FIELD(warp_n),        FIELD(warp_k),  FIELD(instruction_m), FIELD(instruction_n),
              FIELD(instruction_k), FIELD(stages),  FIELD(cluster_m),     FIELD(cluster_n),
              FIELD(split_k),       FIELD(raster)};
#undef FIELD

static int32_t get(const strata_tile *t, int i)
{
    int32_t v;
    memcpy(&v, (const char *)t + fields[i].at, sizeof v);
    return v;
}

strata_tile st_tile_filled(const strata_tile *asked, const strata_tile *row)
{
    strata_tile t = *asked;
    for (int i = 0; i < ST_COUNT(fields); i++)
        if (!get(asked, i))
            memcpy((char *)&t + fields[i].at, (const char *)row + fields[i].at, sizeof(int32_t));
    return t;
}

bool st_tile_same(const strata_tile *a, const strata_tile *b)
{
    for (int i = 0; i < ST_COUNT(fields); i++)
        if (get(a, i) != get(b, i)) return false;
    return true;
}

bool st_tile_follows(const strata_tile *asked, const strata_tile *made, const char *rule, char *why, size_t n)
{
    for (int i = 0; i < ST_COUNT(fields); i++) {
        const int32_t want = get(asked, i), has = get(made, i);
        if (!want || want == has) continue;
        if (has)
            snprintf(why, n, "%s is %d: with the rest of the tile it is %d (%s)", fields[i].name, want, has,
                     rule);
        else
            snprintf(why, n, "its tile has no %s, and %d was asked for", fields[i].name, want);
        return false;
    }
    return true;
}

strata_status st_tile_registers(strata_handle *h, const char *who, const st_candidate *c,
                                const st_gpu_kernel *k)
{
    if (!c->listed[0] || !k->local_bytes) return STRATA_OK;
    st_fail(&h->err, STRATA_ERROR_UNSUPPORTED,
            "%s: kernel %s does not fit the registers: a thread would keep %d bytes of its sums in memory",
            who, c->kernel, k->local_bytes);
    st_err_remedy(&h->err, "a smaller block, or more warps for it");
    return STRATA_ERROR_UNSUPPORTED;
}
