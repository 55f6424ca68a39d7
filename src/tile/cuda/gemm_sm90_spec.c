/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_sm90_spec.c - ids of the Hopper kernels, the -D options that a configuration is compiled with, the list of all of them and of those built ahead of time. */
#include "tile/cuda/gemm_sm90.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* in PTX: what the matrix instruction calls the operand */
static const char *operand_name(int type, bool tf32)
{
    return tf32 ? "tf32" : type == STRATA_I8 ? "s8" : st_cuda_type(type);
}
static int size_of(int type) { return (int)strata_type_bits((strata_type)type) / 8; }

void st_sm90_id(const st_sm90_row *row, int ta, int tb, int tc, bool amn, bool bmn, char *id, size_t n)
{
    const bool x6 = row->kind == ST_SM90_X6, tf32 = ta == STRATA_F32 && !x6;
    snprintf(id, n, "gemm_%s%s%s_%c%c_%dx%dx%d_s%d%s%s%s%s_sm90a",
             tf32 ? "tf32" : strata_type_name((strata_type)ta),
             tf32 ? "tf32" : strata_type_name((strata_type)tb), strata_type_name((strata_type)tc),
             amn ? 'n' : 't', bmn ? 't' : 'n', row->bm, row->bn, x6 ? 64 : 128 / size_of(ta), row->stages,
             row->pp ? "_pp" : "",
             row->cm > 1   ? "_c2"
             : row->cn > 1 ? "_d2"
                           : "",
             row->tma_store ? "_ts" : "",
             row->kind == ST_SM90_SPLIT     ? "_sk"
             : row->kind == ST_SM90_PROMOTE ? "_exact"
             : x6                           ? "_x6"
             : row->kind == ST_SM90_TURN    ? "_turn"
                                            : "");
}

const char *st_sm90_order(const st_sm90_row *row, int ta)
{
    if (row->kind == ST_SM90_SPLIT)
        return "k in even parts that the shape and the number of multiprocessors fix, each ascending in one "
               "accumulator; "
               "parts added in order";
    if (row->kind == ST_SM90_PROMOTE)
        return "k ascending in groups of 128 that the tensor cores sum, groups added in f32 in order";
    if (row->kind == ST_SM90_X6)
        return "k ascending in groups of 128 (of each 64 the six products of parts, small ones first), "
               "groups added in f32 in order";
    return ta == STRATA_I8 ? "integers modulo 2^32: any order"
                           : "k ascending in the instruction's groups (32 bytes), one accumulator";
}

void st_sm90_spec(const st_sm90_row *row, int ta, int tb, int tc, bool tf32, bool amn, bool bmn, bool batch,
                  const char *generated, st_gspec *s)
{
    const bool integer = ta == STRATA_I8, split = row->kind == ST_SM90_SPLIT, x6 = row->kind == ST_SM90_X6;
    memset(s, 0, sizeof *s);
    st_sm90_id(row, ta, tb, tc, amn, bmn, s->id, sizeof s->id);
    if (x6) ta = tb = STRATA_BF16;
    s->spec.id = s->id;
    s->spec.source = "gemm_sm90.cu";
    s->spec.entry = "gemm_sm90";
    s->spec.generated = split ? NULL : generated;
    st_generic_option(s, "-DTA=%s", operand_name(ta, tf32));
    st_generic_option(s, "-DTB=%s", operand_name(tb, tf32));
    st_generic_option(s, "-DABYTES=%d", size_of(ta));
    st_generic_option(s, "-DTC=%s", split ? (integer ? "i32" : "f32") : st_cuda_type(tc));
    if (integer) st_generic_option(s, "-DINTEGER=1");
    const bool turn = row->kind == ST_SM90_TURN; /* of B: of A in the transposed product */
    st_generic_option(s, "-DAMN=%d", amn || turn);
    st_generic_option(s, "-DBMN=%d", bmn && !turn);
    if (turn) st_generic_option(s, "-DRA=1");
    if (turn && !amn) st_generic_option(s, "-DCT=1");
    st_generic_option(s, "-DBM=%d", row->bm);
    st_generic_option(s, "-DBN=%d", row->bn);
    st_generic_option(s, "-DSTAGES=%d", row->stages);
    st_generic_option(s, "-DNCONS=%d", row->consumers);
    st_generic_option(s, "-DPP=%d", row->pp);
    st_generic_option(s, "-DWAIT=%d", row->wait);
    st_generic_option(s, "-DCM=%d", row->cm);
    st_generic_option(s, "-DCN=%d", row->cn);
    st_generic_option(s, "-DEST=%d", !row->tma_store);
    if (row->tma_store) st_generic_option(s, "-DCB=%d", 512 / row->bm);
    st_generic_option(s, "-DPREG=%d", row->preg);
    st_generic_option(s, "-DCREG=%d", row->creg);
    st_generic_option(s, "-DBATCH=%d", batch);
    st_generic_option(s, "-DSPLIT=%d", split);
    st_generic_option(s, "-DPROM=%d",
                      row->kind == ST_SM90_PROMOTE ? 1
                      : st_sm90_holds_parts(row)   ? 2
                      : x6                         ? 12
                                                   : 0);
    if (x6) st_generic_option(s, "-DX6=%d", 1 + st_sm90_holds_parts(row));
    st_generic_option(s, "-DEPI=%d", s->spec.generated != NULL);
}

void st_sm90_pack_spec(int es, bool along_rows, st_gspec *s)
{
    memset(s, 0, sizeof *s);
    snprintf(s->id, sizeof s->id, "gemm_pack_%dbyte_%s_sm90a", es, along_rows ? "rows" : "k");
    s->spec.id = s->id;
    s->spec.source = "gemm_sm90_pack.cu";
    s->spec.entry = "gemm_pack";
    st_generic_option(s, "-DES=%d", es);
    st_generic_option(s, "-DROWS=%d", along_rows);
}

void st_sm90_parts_spec(bool along_rows, st_gspec *s)
{
    memset(s, 0, sizeof *s);
    snprintf(s->id, sizeof s->id, "gemm_split_bf16x3_%s_sm90a", along_rows ? "rows" : "k");
    s->spec.id = s->id;
    s->spec.source = "gemm_sm90_split.cu";
    s->spec.entry = "gemm_split";
    st_generic_option(s, "-DROWS=%d", along_rows);
}

void st_sm90_exact_spec(const char *generated, st_gspec *s)
{
    memset(s, 0, sizeof *s);
    snprintf(s->id, sizeof s->id, "gemm_f32f32f32_exact_sm90a");
    s->spec.id = s->id;
    s->spec.source = "gemm_sm90_exact.cu";
    s->spec.entry = "gemm_exact";
    s->spec.generated = generated;
    st_generic_option(s, "-DEPI=%d", generated != NULL);
}

/* The generic kernels' sum of parts; with no parts at all it is C := epilogue(beta * C). */
void st_sm90_sum_spec(const st_sm90 *q, const char *generated, st_gspec *s)
{
    const st_grow row = {.tacc = q->integer ? STRATA_I32 : STRATA_F32};
    const st_gconfig f = {.cv = 1};
    st_generic_sum_spec(&row, &q->g, &f, (int)q->g.c.tc, generated, s);
}

/* ---- lists ----------------------------------------------------------------------------------------------------------------- */

typedef struct combination {
    int ta, tb, tc;
} combination;
static const combination combinations[] = {
    {STRATA_BF16, STRATA_BF16, STRATA_BF16},
    {STRATA_F16, STRATA_F16, STRATA_F16},
    {STRATA_BF16, STRATA_BF16, STRATA_F32},
    {STRATA_F16, STRATA_F16, STRATA_F32},
    {STRATA_BF16, STRATA_BF16, STRATA_F16},
    {STRATA_F16, STRATA_F16, STRATA_BF16},
    {STRATA_F32, STRATA_F32, STRATA_F32},
    {STRATA_F8E4M3, STRATA_F8E4M3, STRATA_BF16},
    {STRATA_F8E4M3, STRATA_F8E4M3, STRATA_F16},
    {STRATA_F8E4M3, STRATA_F8E4M3, STRATA_F32},
    {STRATA_F8E4M3, STRATA_F8E4M3, STRATA_F8E4M3},
    {STRATA_F8E5M2, STRATA_F8E4M3, STRATA_BF16},
    {STRATA_F8E5M2, STRATA_F8E4M3, STRATA_F16},
    {STRATA_F8E5M2, STRATA_F8E4M3, STRATA_F32},
    {STRATA_F8E4M3, STRATA_F8E5M2, STRATA_BF16},
    {STRATA_F8E4M3, STRATA_F8E5M2, STRATA_F16},
    {STRATA_F8E4M3, STRATA_F8E5M2, STRATA_F32},
    {STRATA_F8E5M2, STRATA_F8E5M2, STRATA_BF16},
    {STRATA_F8E5M2, STRATA_F8E5M2, STRATA_F16},
    {STRATA_F8E5M2, STRATA_F8E5M2, STRATA_F32},
    {STRATA_F8E5M2, STRATA_F8E5M2, STRATA_F8E5M2},
    {STRATA_F8E4M3, STRATA_F8E4M3, STRATA_F8E5M2},
    {STRATA_F8E5M2, STRATA_F8E4M3, STRATA_F8E5M2},
    {STRATA_F8E4M3, STRATA_F8E5M2, STRATA_F8E5M2},
    {STRATA_F8E5M2, STRATA_F8E4M3, STRATA_F8E4M3},
    {STRATA_F8E4M3, STRATA_F8E5M2, STRATA_F8E4M3},
    {STRATA_F8E5M2, STRATA_F8E5M2, STRATA_F8E4M3},
    {STRATA_I8, STRATA_I8, STRATA_I32},
    {STRATA_I8, STRATA_I8, STRATA_F32},
    {STRATA_I8, STRATA_I8, STRATA_I8},
    {STRATA_BF16, STRATA_BF16, STRATA_I8},
    {STRATA_F16, STRATA_F16, STRATA_I8},
};
static const bool layouts[4][2] = {
    {false, false}, {false, true}, {true, true}, {true, false}}; /* tn tt nt nn */

/* Is there such a kernel: boxes of contiguous rows are for 16-bit types, and 64 wide. */
static bool exists(const st_sm90_row *r, const combination *t, bool amn, bool bmn)
{
    const bool f8 = t->ta == STRATA_F8E4M3 || t->ta == STRATA_F8E5M2;
    if (r->kind == ST_SM90_PROMOTE && !f8) return false;
    if (t->ta == STRATA_I8 && r->pp && r->bn > 160) return false;
    if (r->kind == ST_SM90_X6) return t->ta == STRATA_F32 && !amn && !bmn;
    if (r->kind == ST_SM90_TURN) return t->ta == STRATA_F32 && amn != bmn;
    if (!amn && !bmn) return true;
    return size_of(t->ta) == 2 && (!amn || r->bm / r->cn % 64 == 0) && (!bmn || r->bn / r->cm % 64 == 0);
}

typedef struct listed {
    char id[96], types[32];
    const char *order;
} listed;
static listed list_rows[2048];
static int list_count;

static void fill_list(void)
{
    int count;
    const st_sm90_row *r = st_sm90_rows(&count);
    for (int t = 0; t < ST_COUNT(combinations); t++)
        for (int l = 0; l < 4; l++)
            for (int i = 0; i < count && list_count < ST_COUNT(list_rows); i++) {
                const combination *c = &combinations[t];
                if (!exists(&r[i], c, layouts[l][0], layouts[l][1])) continue;
                listed *x = &list_rows[list_count++];
                st_sm90_id(&r[i], c->ta, c->tb, c->tc, layouts[l][0], layouts[l][1], x->id, sizeof x->id);
                snprintf(x->types, sizeof x->types, "%s%s%s", strata_type_name((strata_type)c->ta),
                         strata_type_name((strata_type)c->tb), strata_type_name((strata_type)c->tc));
                x->order = st_sm90_order(&r[i], c->ta);
            }
}
static pthread_once_t list_once = PTHREAD_ONCE_INIT;

int st_sm90_list(int i, strata_kernel_info *info)
{
    pthread_once(&list_once, fill_list);
    if (i < 0 || i >= list_count) return 0;
    const listed *x = &list_rows[i];
    *info = (strata_kernel_info){.id = x->id,
                                 .family = "gemm",
                                 .types = x->types,
                                 .isa = "sm90a",
                                 .order = x->order,
                                 .usable = false,
                                 .why_not = "runs on a handle of a CUDA device of compute capability 9.0"};
    return 1;
}

/* What is worth building ahead of time, most common first: without batches and epilogues, the types and layouts of networks. */
static bool pack(int cc, int i, st_gpu_spec *out)
{
    static _Thread_local st_gspec s;
    static const struct {
        int t, layouts;
    } want[] = {{0, 4}, {1, 2}, {2, 1}, {6, 1}, {7, 1}, {27, 1}};
    int count;
    const st_sm90_row *r = st_sm90_rows(&count);
    if (cc != 90) return false;
    for (int k = 0; k < 6; k++)
        if (i-- == 0) {
            st_sm90_pack_spec(1 << k / 2, k % 2, &s);
            *out = s.spec;
            return true;
        }
    for (int w = 0; w < ST_COUNT(want); w++)
        for (int l = 0; l < want[w].layouts; l++)
            for (int k = 0; k < count; k++) {
                const combination *c = &combinations[want[w].t];
                const bool f8 = c->ta == STRATA_F8E4M3, amn = layouts[l][0], bmn = layouts[l][1];
                if (!exists(&r[k], c, amn, bmn) || (f8 && r[k].kind == ST_SM90_SPLIT)) continue;
                if (i-- > 0) continue;
                st_sm90_spec(&r[k], c->ta, c->tb, c->tc, c->ta == STRATA_F32 && r[k].kind != ST_SM90_X6, amn,
                             bmn, r[k].kind == ST_SM90_X6, NULL, &s);
                *out = s.spec;
                return true;
            }
    return false;
}

__attribute__((constructor)) static void list_kernels(void)
{
    st_plan_register_kernels(st_sm90_list);
    st_gpu_register_pack(pack);
}
