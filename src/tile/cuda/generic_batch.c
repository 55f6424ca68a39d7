/* SPDX-License-Identifier: Apache-2.0 */
/* generic_batch.c - which products gemm_batch.cu takes (an item no larger than one tile), and what they are expected to take. A row's fields: bm x bn the tile, bk the part of k
 * that lies in shared memory, warps_m x warps_n the threads of a team, lanes_m the teams of a block. */
#include "tile/cuda/generic.h"
#include <stdio.h>

static int size_of(int type) { return (int)strata_type_bits((strata_type)type) / 8; }

/* The widest copy not above f->vec that divides the side's run: no part of one is left at its end. */
static int divides(const st_axes *l, int vec)
{
    const int64_t len = l->count ? l->ax[0].len : 1;
    while (vec > 1 && len % vec) vec /= 2;
    return vec;
}

bool st_batch_configure(const st_grow *row, const st_gproblem *g, bool split, st_gconfig *f, char *why,
                        size_t n)
{
    if (split) {
        snprintf(why, n, "does not cut k");
        return false;
    }
    if (g->window || g->c.m.count > 1 || g->c.n.count > 1 || g->c.k.count > 1) {
        snprintf(why, n, "takes one axis each for m, n and k, without bounds");
        return false;
    }
    if (f->rule[0] | f->rule[1] | f->rule[2]) {
        snprintf(why, n, "takes whole matrices, not halves");
        return false;
    }
    if (g->M > row->bm || g->N > row->bn) {
        snprintf(why, n, "takes items of at most %dx%d, not %lldx%lld", row->bm, row->bn, (long long)g->M,
                 (long long)g->N);
        return false;
    }
    const st_axes *run[2] = {f->layout[0] ? &g->c.m : &g->c.k, f->layout[1] ? &g->c.n : &g->c.k};
    for (int s = 0; s < 2; s++) f->vec[s] = divides(run[s], f->vec[s]);
    f->k_split = st_ceil_div(st_max64(g->K, 1), row->bk) * row->bk;
    return true;
}

double st_batch_us(const st_grow *row, const st_gproblem *g, const st_gconfig *f, const st_gpu *gpu)
{
    const double clock = gpu->clock_mhz > 0 ? gpu->clock_mhz : 1500,
                 copy = gpu->copy_bytes_per_us > 0 ? gpu->copy_bytes_per_us : 1e6;
    const int tm = row->bm / row->warps_m, tn = row->bn / row->warps_n;
    const bool complex = st_type_is_complex(row->ta),
               wide = row->tacc == STRATA_F64 || row->tacc == STRATA_C128;
    const int64_t chunks = st_ceil_div(st_max64(g->K, 1), row->bk);
    /* a thread's instructions: products, loads of shared memory, and what moves both sides there */
    const double each = tm * tn * (complex ? 4 : 1) * (wide ? (gpu->cc % 10 == 0 ? 2 : 32) : 1) +
                        (tm + tn) * size_of(row->tacc) / 16.0;
    const double threads = row->warps_m * row->warps_n,
                 copies = ((double)row->bm / f->vec[0] + (double)row->bn / f->vec[1]) * row->bk / threads;
    const double thread = each * (double)g->K + (double)chunks * (copies * (10 + f->vec[0]) + 40) + 120;
    const double busy = thread * threads / 32 * (double)st_ceil_div(g->G, row->lanes_m) * row->lanes_m /
                        (4.0 * gpu->sms * 0.6) / clock;
    const double bytes = ((double)(g->M + g->N) * (double)g->K * size_of(row->ta) +
                          (double)g->M * (double)g->N * size_of((int)g->c.tc)) *
                         (double)g->G;
    const double us = busy > bytes / copy * 1.1 ? busy : bytes / copy * 1.1;
    return 3.5 + (double)chunks * 1.0 + us;
}
