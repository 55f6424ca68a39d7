/* SPDX-License-Identifier: Apache-2.0 */
/* generic_skinny.c - which products the bandwidth kernels take (skinny_k.cu, skinny_n.cu), and how: at most 16 rows on one side (X), the other (W) along k or along its
 * rows. There are enough blocks to keep memory busy: where rows of W give fewer than two a multiprocessor, k is split. */
#include "tile/cuda/generic.h"
#include <stdio.h>

static bool refuse(char *why, size_t n, const char *rule)
{
    snprintf(why, n, "%s", rule);
    return false;
}

/* Bytes that all warps have in flight (4 KiB each, 2 with 8-byte loads), of the 3.5 MB that memory wants (rate times latency, H200). */
static double share(const st_grow *row, const st_gconfig *f, int64_t blocks)
{
    const double warp = row->kind == ST_G_SKINNY_N && f->width == 2 ? 1024 : 4096;
    return (double)blocks * f->warps * warp / 3.5e6;
}

bool st_skinny_configure(const st_grow *row, const st_gproblem *g, const st_gpu *gpu, bool split,
                         st_gconfig *f, char *why, size_t n)
{
    const bool f32 = row->ta == STRATA_F32, along_k = row->kind == ST_G_SKINNY_K;
    const int es = (int)strata_type_bits((strata_type)row->ta) / 8;
    if (g->window || g->c.m.count > 1 || g->c.n.count > 1 || g->c.k.count != 1)
        return refuse(why, n, "takes one axis each for m, n and k, without bounds");
    f->x_is_a = g->M <= g->N;
    const int64_t few = f->x_is_a ? g->M : g->N, many = f->x_is_a ? g->N : g->M;
    if (few > 16 || many < 64)
        return refuse(why, n, "takes at most 16 rows on one side and 64 or more on the other");
    const int w = f->x_is_a ? 1 : 0; /* W is B or A */
    const char name = w ? 'b' : 'a', xname = w ? 'a' : 'b';
    const st_axes *rows_w = w ? &g->c.n : &g->c.m, *rows_x = w ? &g->c.m : &g->c.n;
    const int64_t sk = st_axis_stride(&g->c.k.ax[0], name), sr = st_axis_stride(&rows_w->ax[0], name);
    if (along_k ? sk != 1 : sr != 1 || sk == 1)
        return refuse(why, n,
                      along_k ? "takes a large side whose k stands together"
                              : "takes a large side whose rows stand together");
    const int wide = 16 / es, pair = f32 ? 4 : 2;
    f->layout[0] = f->layout[1] = 0;
    f->layout[w] = !along_k;
    f->vec[w] = along_k ? wide : f32 ? (row->bm ? row->bm : few > 8 ? 2 : 4) : 8;
    f->vec[!w] = along_k ? wide : pair;
    if (!st_generic_together(along_k ? &g->c.k : rows_w, along_k ? rows_w : &g->c.k, &g->c.batch, name,
                             f->vec[w]))
        f->vec[w] = 1;
    if (!st_generic_together(&g->c.k, rows_x, &g->c.batch, xname, f->vec[!w])) f->vec[!w] = 1;
    f->cv = 1;
    f->rows_x = f32 ? 1 : 8;
    while (f->rows_x < few) f->rows_x *= 2;
    f->warps = along_k || !f32 || few > 8 ? 8 : 16;
    if (along_k) {
        /* much of X does not stay in L1: then more rows of W share what is read of it, while there are blocks enough; else longer runs of each row */
        f->width = f32 ? 4 : few > 8 && st_ceil_div(many, 64) * g->G >= gpu->sms ? 2 : 1;
        f->unroll = f32 ? (few > 4 ? 1 : 2) : f->width > 1 ? 2 : few > 8 || es == 1 ? 4 : 8;
        if (row->bm) f->width = row->bm, f->unroll = row->bn;
        const int rows = f32 ? f->width : 16 * f->width;
        f->warps_k = 8;
        while (few > (f32 ? 4 : 8) && f->warps_k > (f32 ? 1 : 4) &&
               st_ceil_div(many, rows * 16 / f->warps_k) * g->G >= gpu->sms)
            f->warps_k /= 2;
        f->block = rows * 8 / f->warps_k;
    } else {
        f->width = f32 ? (few > 8 ? 2 : 4) : 8;
        if (row->bm) f->width = row->bm, f->warps = row->bn;
        f->warps_k = f->warps;
        f->block = f32 ? 32 * f->width : 8 * f->width;
    }
    const int64_t blocks = st_ceil_div(many, f->block) * g->G,
                  unit = (int64_t)f->warps_k * (along_k ? f32 ? 128 : 64 / es * f->unroll
                                                : f32   ? 8
                                                        : 32);
    f->splits = 1;
    f->k_split = st_max64(g->K, 1);
    if (blocks >= (int64_t)1 << 31) return refuse(why, n, "has more than 2^31 tiles");
    if (!split) return true;
    int64_t s = st_min64((int64_t)(1 / share(row, f, blocks) + 0.9), g->K / (unit * 4));
    if (share(row, f, blocks) > 0.8 || s < 2)
        return refuse(why, n, "has blocks enough, or k is short: a split would not pay");
    f->k_split = st_ceil_div(st_ceil_div(g->K, s), unit) * unit;
    f->splits = (int)st_ceil_div(g->K, f->k_split);
    return f->splits > 1 || refuse(why, n, "k is short: a split would not pay");
}

double st_skinny_us(const st_grow *row, const st_gproblem *g, const st_gconfig *f, const st_gpu *gpu)
{
    const double es = (double)strata_type_bits((strata_type)row->ta) / 8,
                 copy = gpu->copy_bytes_per_us > 0 ? gpu->copy_bytes_per_us : 1e6;
    const double many = (double)(f->x_is_a ? g->N : g->M) * (double)g->G, bytes = many * (double)g->K * es;
    const double flight = share(row, f, (int64_t)(many / f->block + 1) * f->splits);
    /* fewer bytes in flight draw less than memory gives; single elements cost eight times as many instructions */
    double us = bytes / (copy * 0.87) / (flight < 1 ? flight : 1);
    if (f->vec[0] == 1 || f->vec[1] == 1) us *= 4;
    /* two fragments of X: measured 36 us for 16 x 14336 x 4096 of bf16, 31 for 8 rows */
    if (row->kind == ST_G_SKINNY_N && row->ta != STRATA_F32 && f->rows_x > 8) us *= 1.1;
    return us + 3 + (f->splits > 1 ? 2.5 : 0);
}
