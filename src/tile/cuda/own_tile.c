/* SPDX-License-Identifier: Apache-2.0 */
/* own_tile.c - what the providers' own tiles have in common: a rule that is broken, and the registers, which only the compiler knows. */
#include "tile/cuda/own_tile.h"
#include <stdio.h>

bool st_tile_breaks(char *why, size_t n, const char *field, int64_t has, const char *rule)
{
    snprintf(why, n, "%s is %lld: %s", field, (long long)has, rule);
    return false;
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
