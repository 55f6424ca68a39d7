/* SPDX-License-Identifier: Apache-2.0 */
/* generic_spec.c - the rows of the generic CUDA kernels, their ids, and the -D options that a configuration is compiled with. Equal configurations give equal options, so
 * that compiled images are shared by problems of all sizes. */
#include "tile/cuda/generic.h"
#include <strata/blas.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ST_SM90(...)
#define ST_GENERIC(name, kind, ta, tb, tacc, bm, bn, bk, stages, wm, wn, lm, per_sm, cc, math, ...) \
    {name, kind, ta, tb, tacc, {__VA_ARGS__}, bm, bn, bk, stages, wm, wn, lm, per_sm, cc, math, 0},
static const st_grow rows[] = {
#include "tile/cuda/kernels.inc"
};
#undef ST_GENERIC
#undef ST_SM90

const char *st_cuda_type(int type)
{
    switch (type) {
    case STRATA_F8E4M3: return "e4m3";
    case STRATA_F8E5M2: return "e5m2";
    case STRATA_BOOL: return "b8";
    default: return strata_type_name((strata_type)type);
    }
}

const st_grow *st_generic_rows(int *count)
{
    *count = ST_COUNT(rows);
    return rows;
}

void st_generic_id(const st_grow *row, int tc, bool split, char *id, size_t n)
{
    snprintf(id, n, "gemm_%s%s%s_%s%s_sm%d", strata_type_name((strata_type)row->ta),
             strata_type_name((strata_type)row->tb), strata_type_name((strata_type)tc), row->name,
             split ? "_sk" : "", row->cc);
}

static const char *const source[ST_G_KINDS] = {"gemm_simt.cu", "gemm_lds.cu", "gemm_zmma.cu", "gemm_mma.cu",
                                               "skinny_k.cu",  "skinny_n.cu", "gemm_batch.cu"},
                         *const entry[ST_G_KINDS] = {"gemm_simt", "gemm_lds", "gemm_zmma", "gemm_mma",
                                                     "skinny_k",  "skinny_n", "gemm_batch"};

void st_generic_option(st_gspec *s, const char *fmt, ...)
{
    int i = 0;
    while (s->spec.option[i]) i++;
    if (i == ST_COUNT(s->text)) return; /* a test compiles every kind: it would lack a definition */
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s->text[i], sizeof s->text[i], fmt, ap);
    va_end(ap);
    s->spec.option[i] = s->text[i];
}

/* How A and B lie. */
static void side_options(const st_gproblem *g, const st_gconfig *f, st_gspec *s)
{
    if (f->conj[0] || f->conj[1]) {
        st_generic_option(s, "-DCA=%d", f->conj[0]);
        st_generic_option(s, "-DCB=%d", f->conj[1]);
    }
    if (g->c.pointers) st_generic_option(s, "-DPTRS=%d", (int)g->c.pointers);
    st_generic_option(s, "-DLA=%s", f->layout[0] ? "LR" : "LK");
    st_generic_option(s, "-DVA=%d", f->vec[0]);
    st_generic_option(s, "-DLB=%s", f->layout[1] ? "LR" : "LK");
    st_generic_option(s, "-DVB=%d", f->vec[1]);
}

static void tile_options(const st_grow *row, const st_gproblem *g, const st_gconfig *f, bool split,
                         st_gspec *s)
{
    st_generic_option(s, "-DBM=%d", row->bm);
    st_generic_option(s, "-DBN=%d", row->bn);
    st_generic_option(s, "-DBK=%d", row->bk);
    st_generic_option(s, "-DSTAGES=%d", row->stages);
    st_generic_option(s, "-DWARPS_M=%d", row->warps_m);
    st_generic_option(s, "-DWARPS_N=%d", row->warps_n);
    st_generic_option(s, "-DMINB=%d", row->blocks_sm);
    if (row->kind == ST_G_SIMT) {
        st_generic_option(s, "-DLM=%d", row->lanes_m);
        st_generic_option(s, "-DLN=%d", 32 / row->lanes_m);
        st_generic_option(s, "-DKU=%d", row->bn == 256 ? 4 : 2);
    }
    if (row->kind == ST_G_LDS) st_generic_option(s, "-DDEEP=%d", row->lanes_m);
    if (row->kind == ST_G_ZMMA) st_generic_option(s, "-DHALVES=%d", f->halves);
    for (int i = 0; i < 3; i++)
        if (f->rule[i]) st_generic_option(s, "-DRULE_%c=%d", "ABC"[i], f -> rule[i]);
    side_options(g, f, s);
    for (int i = 0; i < 2; i++)
        st_generic_option(s, "-DU%c=%d", "AB"[i],
                          !f->layout[i] && g->c.k.count == 1 && st_axis_stride(&g->c.k.ax[0], "ab"[i]) == 1);
    st_generic_option(s, "-DWIN=%d", g->window);
    st_generic_option(s, "-DKAX=%d", f->kax);
    st_generic_option(s, "-DNAX=%d", g->c.n.count <= 1 ? 1 : 4);
    st_generic_option(s, "-DCV=%d", split ? 1 : f->cv);
}

static void skinny_options(const st_grow *row, const st_gconfig *f, st_gspec *s)
{
    const int x = f->x_is_a ? 0 : 1;
    st_generic_option(s, "-DROWS_X=%d", f->rows_x);
    st_generic_option(s, "-DXA=%d", f->x_is_a);
    st_generic_option(s, "-DVW=%d", f->vec[!x] > 1);
    st_generic_option(s, "-DVX=%d", f->vec[x] > 1);
    if (row->ta == STRATA_F32) st_generic_option(s, "-DSKINNY_F32");
    if (row->kind == ST_G_SKINNY_K) {
        st_generic_option(s, "-DFW=%d", f->width);
        st_generic_option(s, "-DAHEAD=%d", f->unroll);
        st_generic_option(s, "-DWK=%d", f->warps_k);
    } else {
        st_generic_option(s, "-DWARPS=%d", f->warps);
        st_generic_option(s, "-DVN=%d", f->width);
    }
}

static void batch_options(const st_grow *row, const st_gproblem *g, const st_gconfig *f, st_gspec *s)
{
    st_generic_option(s, "-DTS=%s", st_cuda_type(row->tacc));
    st_generic_option(s, "-DBM=%d", row->bm);
    st_generic_option(s, "-DBN=%d", row->bn);
    st_generic_option(s, "-DKC=%d", row->bk);
    st_generic_option(s, "-DTM_THREADS=%d", row->warps_m);
    st_generic_option(s, "-DTN_THREADS=%d", row->warps_n);
    st_generic_option(s, "-DTEAMS=%d", row->lanes_m);
    side_options(g, f, s);
    st_generic_option(s, "-DWIN=0");
    st_generic_option(s, "-DKAX=1");
    st_generic_option(s, "-DCV=%d", f->cv);
}

/* What the epilogue computes in: f64 where C or the sums need it. */
static const char *accumulator(const st_grow *row, int tc)
{
    return tc == STRATA_F64 || tc == STRATA_C128 || tc == STRATA_I32 || row->tacc == STRATA_F64 ? "double"
                                                                                                : "float";
}

void st_generic_spec(const st_grow *row, const st_gproblem *g, const st_gconfig *f, int tc,
                     const char *generated, st_gspec *s)
{
    memset(s, 0, sizeof *s);
    const bool split = f->splits > 1;
    st_generic_id(row, tc, split, s->id, sizeof s->id);
    s->spec.id = s->id;
    s->spec.source = source[row->kind];
    s->spec.entry = entry[row->kind];
    s->spec.generated = split ? NULL : generated;
    st_generic_option(s, "-DTA=%s", st_cuda_type((int)g->c.ta));
    st_generic_option(s, "-DTB=%s", st_cuda_type((int)g->c.tb));
    st_generic_option(s, "-DTC=%s", st_cuda_type(split ? row->tacc : tc));
    st_generic_option(s, "-DST_ACC=%s",
                      split && !st_type_is_complex(row->tacc) ? "float" : accumulator(row, tc));
    st_generic_option(s, "-DSPLIT=%d", split);
    st_generic_option(s, "-DEPI=%d", s->spec.generated != NULL);
    if (row->kind == ST_G_BATCH)
        batch_options(row, g, f, s);
    else if (row->kind >= ST_G_SKINNY_K)
        skinny_options(row, f, s);
    else
        tile_options(row, g, f, split, s);
}

void st_generic_sum_spec(const st_grow *row, const st_gproblem *g, const st_gconfig *f, int tc,
                         const char *generated, st_gspec *s)
{
    memset(s, 0, sizeof *s);
    snprintf(s->id, sizeof s->id, "contract_sum_%s%s_sm80", strata_type_name((strata_type)row->tacc),
             strata_type_name((strata_type)tc));
    s->spec.id = s->id;
    s->spec.source = "contract_sum.cu";
    s->spec.entry = "contract_sum";
    s->spec.generated = generated;
    st_generic_option(s, "-DTA=%s", st_cuda_type(row->tacc));
    st_generic_option(s, "-DTB=%s", st_cuda_type(row->tacc));
    st_generic_option(s, "-DTC=%s", st_cuda_type(tc));
    st_generic_option(s, "-DSUM=%s", st_cuda_type(row->tacc));
    st_generic_option(s, "-DST_ACC=%s", accumulator(row, tc));
    st_generic_option(s, "-DKAX=1");
    st_generic_option(s, "-DNAX=%d", g->c.n.count <= 1 ? 1 : 4);
    st_generic_option(s, "-DCV=%d", f->cv);
    if (f->rule[2]) st_generic_option(s, "-DRULE_C=%d", f->rule[2]);
    if (g->c.pointers & 4) st_generic_option(s, "-DPTRS=4");
    st_generic_option(s, "-DEPI=%d", generated != NULL);
}
