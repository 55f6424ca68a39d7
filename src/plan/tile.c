/* SPDX-License-Identifier: Apache-2.0 */
/* tile.c - strata_tile as a list of numbers, of which 0 is open. */
#include "plan/plan.h"
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

const char *st_tile_negative(const strata_tile *t, int32_t *value)
{
    for (int i = 0; i < ST_COUNT(fields); i++)
        if ((*value = get(t, i)) < 0) return fields[i].name;
    return NULL;
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

bool st_tile_meets(const strata_tile *asked, const strata_tile *has, const char *rule, char *why, size_t n)
{
    for (int i = 0; i < ST_COUNT(fields); i++) {
        const int32_t want = get(asked, i), is = get(has, i);
        if (!want || want == is) continue;
        if (!is)
            snprintf(why, n, "its tile has no %s, and %d was asked for", fields[i].name, want);
        else if (rule)
            snprintf(why, n, "%s is %d: with the rest of the tile it is %d (%s)", fields[i].name, want, is,
                     rule);
        else
            snprintf(why, n, "its tile has %s = %d, and %d was asked for", fields[i].name, is, want);
        return false;
    }
    return true;
}
