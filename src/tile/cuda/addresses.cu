/* SPDX-License-Identifier: Apache-2.0 */
/* addresses.cu - up to three arrays of addresses, each moved by a number of bytes: blocks of the matrices that they name. */
#include "types.cuh"

struct st_moves {
    const char *const *from[3];
    char **to; /* one array behind the other */
    i64 bytes[3], items, count;
};

extern "C" __global__ void __launch_bounds__(256) move_addresses(const __grid_constant__ st_moves p)
{
    const i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= p.items) return;
    for (int k = 0; k < p.count; k++) p.to[k * p.items + i] = (char *)p.from[k][i] + p.bytes[k];
}
