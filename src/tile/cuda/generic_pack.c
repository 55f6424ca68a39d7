/* SPDX-License-Identifier: Apache-2.0 */
/* generic_pack.c - the configurations of the generic CUDA kernels that are worth compiling when the library is built: products of the usual types in every layout, aligned and
 * not, whole and split; convolutions; few rows. Each comes from a small problem that leads to it, through the functions that plans use, so that plans find it. */
#include "tile/cuda/generic.h"
#include <string.h>

typedef struct wish {
    const char *row; /* its name */
    int ta, tc;
    unsigned layouts; /* bit 0: A and B row-major; 1: A turned (column-major); 2: B turned; 3: both */
    bool plain, odd, split, conv;
    int few; /* M where it is small */
} wish;

#define F32 STRATA_F32
#define F64 STRATA_F64
#define BF16 STRATA_BF16
#define F16 STRATA_F16
static const wish wishes[] = {
    {"128x128x16_s3_simt", F32, F32, 15, true, true, false, false, 0},
    {"64x64x16_s3_simt", F32, F32, 15, true, true, true, true, 0},
    {"64x32x16_s3_simt", F32, F32, 15, true, false, true, true, 0},
    {"64x64x16_w2_simt", F32, F32, 15, true, false, false, false, 0},
    {"64x64x8_w2_simt", STRATA_C64, STRATA_C64, 1, true, false, false, false, 0},
    {"128x64x16_s3_simt", F32, F32, 15, true, false, false, true, 0},
    {"128x128x16_s3_simt", F32, F32, 5, false, false, true, true, 0},
    {"128x256x16_s3_simt", F32, F32, 15, true, false, false, false, 0},
    {"64x128x8_s3_simt", STRATA_C64, STRATA_C64, 15, true, false, false, false, 0},
    {"64x64x8_s4_zmma", STRATA_C128, STRATA_C128, 15, true, false, false, false, 0},
    {"128x128x16_s4_dmma", F64, F64, 15, true, false, false, false, 0},
    {"64x64x16_s4_dmma", F64, F64, 15, true, true, true, false, 0},
    {"128x64x16_s3_dmma", F64, F64, 15, true, false, false, false, 0},
    {"64x64x64_s3_mma", BF16, BF16, 15, true, true, true, true, 0},
    {"64x64x64_s3_mma", F16, F16, 15, true, true, true, true, 0},
    {"skinny_k", F32, F32, 4, true, false, true, false, 1},
    {"skinny_n", F32, F32, 1, true, false, true, false, 1},
    {"skinny_k", BF16, BF16, 4, true, false, true, false, 1},
    {"skinny_n", BF16, BF16, 1, true, false, true, false, 1},
    {"skinny_k", F16, F16, 4, true, false, true, false, 1},
    {"skinny_n", F16, F16, 1, true, false, true, false, 1},
    {"skinny_k", BF16, BF16, 4, true, false, false, false, 16},
    {"skinny_n", BF16, BF16, 1, true, false, false, false, 16},
    {"128x128x64_s4_mma", STRATA_I8, STRATA_I32, 13, true, false, false, false, 0},
    {"64x64x64_s4_mma", STRATA_I8, STRATA_I32, 13, true, true, true, false, 0},
    {"skinny_k", STRATA_I8, STRATA_I32, 4, true, false, true, false, 1},
    {"64x64x64_s4_mma", STRATA_F8E4M3, BF16, 13, true, true, true, false, 0},
    {"skinny_k", STRATA_F8E4M3, BF16, 4, true, false, true, false, 1},
    {"128x128x64_s3_mma", BF16, BF16, 15, true, false, false, false, 0},
    {"128x128x64_s3_mma", F16, F16, 15, true, false, false, false, 0},
    {"8x8x8_batch", F32, F32, 5, true, false, false, false, 0},
    {"16x16x16_batch", F32, F32, 5, true, false, false, false, 0},
    {"32x32x32_batch", F32, F32, 5, true, false, false, false, 0},
    {"64x64x32_batch", F32, F32, 5, true, false, false, false, 0},
    {"8x8x8_batch", F64, F64, 5, true, false, false, false, 0},
    {"16x16x16_batch", F64, F64, 5, true, false, false, false, 0},
    {"32x32x32_batch", F64, F64, 5, true, false, false, false, 0},
    {"64x64x32_batch", F64, F64, 5, true, false, false, false, 0},
    {"8x8x8_batch", F16, F16, 1, true, false, false, false, 0},
    {"16x16x16_batch", F16, F16, 1, true, false, false, false, 0},
    {"32x32x32_batch", F16, F16, 1, true, false, false, false, 0},
    {"64x64x32_batch", F16, F16, 1, true, false, false, false, 0},
    {"8x8x8_batch", BF16, BF16, 1, true, false, false, false, 0},
    {"16x16x16_batch", BF16, BF16, 1, true, false, false, false, 0},
    {"32x32x32_batch", BF16, BF16, 1, true, false, false, false, 0},
    {"64x64x32_batch", BF16, BF16, 1, true, false, false, false, 0},
    {"8x8x8_batch", STRATA_C64, STRATA_C64, 1, true, false, false, false, 0},
    {"16x16x16_batch", STRATA_C64, STRATA_C64, 1, true, false, false, false, 0},
    {"32x32x16_batch", STRATA_C64, STRATA_C64, 1, true, false, false, false, 0},
    {"64x64x16_batch", STRATA_C64, STRATA_C64, 1, true, false, false, false, 0},
    {"8x8x8_batch", STRATA_C128, STRATA_C128, 1, true, false, false, false, 0},
    {"16x16x16_batch", STRATA_C128, STRATA_C128, 1, true, false, false, false, 0},
    {"32x32x16_batch", STRATA_C128, STRATA_C128, 1, true, false, false, false, 0},
};

static const st_grow *find(const wish *w, int cc)
{
    int count;
    const st_grow *rows = st_generic_rows(&count);
    for (int i = 0; i < count; i++)
        if (!strcmp(rows[i].name, w->row) && rows[i].ta == w->ta && rows[i].tb == w->ta && rows[i].cc <= cc)
            return &rows[i];
    return NULL;
}

/* C (m x n, row-major) = A B, sizes that are multiples of 16, or odd pitches */
static void gemm_problem(const wish *w, const st_grow *row, bool a_turned, bool b_turned, bool odd,
                         st_contract *c)
{
    const bool item = row->kind == ST_G_BATCH;
    const int64_t m = item     ? row->bm
                      : w->few ? w->few
                               : 512,
                  n = item ? row->bn : 512, k = item ? row->bm : 512, pad = odd ? 1 : 0;
    memset(c, 0, sizeof *c);
    c->ta = c->tb = w->ta;
    c->tc = w->tc;
    c->m = (st_axes){1, {{m, a_turned ? 1 : k + pad, 0, n + pad}}};
    c->n = (st_axes){1, {{n, 0, b_turned ? k + pad : 1, 1}}};
    c->k = (st_axes){1, {{k, a_turned ? m + pad : 1, b_turned ? 1 : n + pad, 0}}};
}

/* A 3x3 convolution with padding of images with 32 channels innermost: kind 0 forward, 1 weight gradient. */
static void conv_problem(const wish *w, int kind, st_contract *c)
{
    const int64_t ch = 32, wd = 30, h = 30, out = 64;
    memset(c, 0, sizeof *c);
    c->ta = c->tb = w->ta;
    c->tc = w->tc;
    const st_axes pixels = {
        3,
        {{4, h * wd * ch, h * wd * out, h * wd * out}, {h, wd * ch, wd * out, wd * out}, {wd, ch, out, out}}};
    const st_axes taps = {3, {{3, wd * ch, 3 * ch, 3 * ch}, {3, ch, ch, ch}, {ch, 1, 1, 1}}};
    c->m = kind ? taps : pixels;
    c->k = kind ? pixels : taps;
    for (int d = 0; d < 3; d++) {
        c->m.ax[d].b = 0;
        c->k.ax[d].c = 0;
    }
    c->n = (st_axes){1, {{out, 0, kind ? 1 : 9 * ch, kind ? 9 * ch : 1}}};
    c->bounds = 2;
    c->bound[0] = kind ? (st_bound){h, -1, 0, 1, 1, 1} : (st_bound){h, -1, 1, 1, 0, 1};
    c->bound[1] = kind ? (st_bound){wd, -1, 1, 1, 2, 1} : (st_bound){wd, -1, 2, 1, 1, 1};
}

static bool configure(const st_grow *row, const st_contract *c, int cc, bool split, st_gproblem *g,
                      st_gconfig *f)
{
    const st_gpu gpu = {.cc = cc, .device = "pack", .sms = 1, .smem_block = 227 << 10};
    char why[160];
    st_generic_problem(c, NULL, g);
    if (!st_generic_configure(row, g, &gpu, false, false, f, why, sizeof why)) return false;
    if (split) f->splits = 2; /* which is all that the options say of it */
    return true;
}

/* The i-th configuration of one wish; false past its last. sum: the kernel that adds the parts. */
static bool at(const wish *w, const st_grow *row, int cc, int i, st_gproblem *g, st_gconfig *f, bool *sum)
{
    st_contract c;
    *sum = false;
    for (int split = w->plain ? 0 : 1; split <= (w->split ? 1 : 0); split++) {
        for (int l = 0; l < 4; l++) {
            const unsigned bit = 1u << l;
            if (!(w->layouts & bit)) continue;
            for (int odd = 0; odd <= (w->odd && !split ? 1 : 0); odd++) {
                gemm_problem(w, row, l & 1, l >> 1, odd, &c);
                if (i-- == 0) return configure(row, &c, cc, split, g, f);
            }
        }
        for (int kind = 0; w->conv && kind < 2; kind++) {
            if (kind != split) continue; /* weight gradients are split */
            conv_problem(w, kind, &c);
            if (i-- == 0) return configure(row, &c, cc, split, g, f);
        }
        if (split && i-- == 0) {
            gemm_problem(w, row, false, false, false, &c);
            *sum = true;
            if (!strncmp(row->name, "skinny", 6))
                gemm_problem(w, row, false, row->kind == ST_G_SKINNY_K, false, &c);
            return configure(row, &c, cc, true, g, f);
        }
    }
    return false;
}

static bool next(int cc, int i, st_gpu_spec *out)
{
    static _Thread_local st_gspec spec;
    for (int w = 0; w < ST_COUNT(wishes); w++) {
        const st_grow *row = find(&wishes[w], cc);
        st_gproblem g;
        st_gconfig f;
        bool sum;
        for (int k = 0; row && at(&wishes[w], row, cc, k, &g, &f, &sum); k++) {
            if (i-- > 0) continue;
            if (sum)
                st_generic_sum_spec(row, &g, &f, wishes[w].tc, NULL, &spec);
            else
                st_generic_spec(row, &g, &f, wishes[w].tc, NULL, &spec);
            *out = spec.spec;
            return true;
        }
    }
    return false;
}

__attribute__((constructor)) static void enter(void) { st_gpu_register_pack(next); }
