/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_sm90_group.c - many products in one launch: persistent blocks take the tiles of one member after another.
 *
 * The members' tensor maps and sizes are the kernel's parameters (up to 32764 bytes since CUDA 12.1, here those of 80 members), so that nothing is copied to the device and a
 * captured graph has them. Members that TMA reads as they lie, without batches, are taken; those with one pair of types and layouts share a launch. The tile is the one
 * of least predicted time for all of them together. The order of sums is that of the kernels that do not split k. */
#include "tile/cuda/gemm_sm90.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMBERS = 80, TILES = 1 << 30 };

/* mirrored in gemm_sm90.cu */
typedef struct st_sm90_member {
    st_gpu_map ma, mb;
    _Alignas(128) st_sm90_args args;
} st_sm90_member;
typedef struct st_sm90_members {
    int32_t tiles, end[MEMBERS];
    _Alignas(128) st_sm90_member m[MEMBERS];
} st_sm90_members;
_Static_assert(sizeof(st_sm90_members) <= 32764, "a kernel's parameters");

static const st_sm90_row tiles[] = {
    {128, 256, 4, 2, 0, 0, 1, 1, 0, 40, 232, 16, ST_SM90_ANY, 96, 0},
    {128, 128, 6, 2, 0, 1, 1, 1, 0, 40, 232, 16, ST_SM90_ANY, 92, 0},
    {64, 128, 8, 1, 0, 1, 1, 1, 0, 56, 248, 16, ST_SM90_ANY, 80, 0},
    {64, 64, 12, 1, 0, 1, 1, 1, 0, 56, 248, 16, ST_SM90_ANY, 70, 0},
    {128, 192, 5, 2, 0, 0, 1, 1, 0, 24, 240, 16, ST_SM90_PROMOTE, 88, 0},
    {128, 128, 6, 2, 0, 0, 1, 1, 0, 40, 232, 16, ST_SM90_PROMOTE, 85, 0},
    {64, 64, 12, 1, 0, 0, 1, 1, 0, 56, 248, 16, ST_SM90_PROMOTE, 60, 0},
};

typedef struct st_taken {
    const st_member *m;
    st_sm90 q;
    int64_t at; /* its number in the caller's list */
    bool launched;
} st_taken;

/* Does TMA read it as it lies, and is there one product to compute? */
static bool take(strata_handle *h, const st_member *m, st_sm90 *q)
{
    char why[160];
    if (m->alpha[0] == 0 || st_contract_rules(m->c, why, sizeof why)) return false;
    const bool ok = st_sm90_configure(&tiles[3], m->c, NULL, h->gpu, q, why, sizeof why) ||
                    st_sm90_configure(&tiles[6], m->c, NULL, h->gpu, q, why, sizeof why);
    if (!ok || q->a.pack || q->b.pack || q->batch || q->outer != 1) return false;
    const char *a = m->data[q->g.swapped], *b = m->data[!q->g.swapped];
    return (uintptr_t)a % 16 == 0 && (uintptr_t)b % 16 == 0;
}

static bool same_kernel(const st_sm90 *x, const st_sm90 *y)
{
    return x->row == y->row && x->g.c.ta == y->g.c.ta && x->g.c.tb == y->g.c.tb && x->a.mn == y->a.mn &&
           x->b.mn == y->b.mn;
}

static int64_t tiles_of(const st_sm90 *q, const st_sm90_row *row)
{
    return st_ceil_div(q->M, row->bm) * st_ceil_div(q->N, row->bn);
}

/* Clocks that the members take with these tiles: their work spread evenly, and the longest tile at the end. */
static double clocks(const st_sm90_row *row, st_taken *const list[], int n, int sms)
{
    double all = 0, longest = 0;
    for (int i = 0; i < n; i++) {
        const st_sm90 *q = &list[i]->q;
        const double issue = row->bm * row->bn / 32.0 * 100 / row->percent,
                     feed = 128.0 * (row->bm + row->bn) / 64,
                     one = (double)st_ceil_div(q->K, 128 / q->es) * (issue > feed ? issue : feed) +
                           row->bm * row->bn * 0.09 + 300;
        all += one * (double)tiles_of(q, row);
        if (one > longest) longest = one;
    }
    return all / sms + longest * 0.5;
}

static const st_sm90_row *choose(const st_sm90 *first, st_taken *const list[], int n, int sms)
{
    const st_sm90_row *best = NULL;
    double least = 0;
    for (int i = 0; i < ST_COUNT(tiles); i++) {
        const st_sm90_row *row = &tiles[i];
        if (row->kind != first->row->kind) continue;
        const double c = clocks(row, list, n, sms);
        if (best && c >= least) continue;
        best = row;
        least = c;
    }
    return best;
}

/* Longest sums first: what ends last is short. */
static int deepest_first(const void *a, const void *b)
{
    const st_taken *x = *(st_taken *const *)a, *y = *(st_taken *const *)b;
    if (x->q.K != y->q.K) return x->q.K > y->q.K ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static void fill_args(const st_member *m, const st_sm90 *q, const st_sm90_row *row, st_sm90_args *a)
{
    *a = (st_sm90_args){.m = (int32_t)q->M,
                        .n = (int32_t)q->N,
                        .k = (int32_t)q->K,
                        .g = 1,
                        .raster = row->raster,
                        .splits = 1,
                        .vec = (uintptr_t)m->data[2] % 16 == 0 && q->ldc * q->cs % 16 == 0,
                        .bytes = st_sm90_stage_bytes(q),
                        .scaled =
                            m->alpha[0] != 1 || m->beta[0] != 0 || (q->integer && q->g.c.tc != STRATA_I32),
                        .alpha = m->alpha[0],
                        .beta = m->beta[0],
                        .c = m->data[2],
                        .ldc = q->ldc};
}

/* The kernels that this thread used last: to look for one costs printing and hashing all its options. */
typedef struct st_known {
    const st_gpu *gpu;
    const st_sm90_row *row;
    int64_t ta, tb, tc;
    bool tf32, amn, bmn;
    const st_gpu_kernel *kernel;
} st_known;
enum { KNOWN = 16 };

static strata_status get_kernel(strata_handle *h, const st_sm90 *q, const st_sm90_row *row,
                                const st_gpu_kernel **kernel)
{
    static _Thread_local st_known known[KNOWN];
    static _Thread_local unsigned next;
    const st_contract *c = &q->g.c;
    for (int i = 0; i < KNOWN; i++) {
        const st_known *x = &known[i];
        if (x->gpu == h->gpu && x->row == row && x->ta == c->ta && x->tb == c->tb && x->tc == c->tc &&
            x->tf32 == q->tf32 && x->amn == q->a.mn && x->bmn == q->b.mn) {
            *kernel = x->kernel;
            return STRATA_OK;
        }
    }
    st_gspec spec;
    st_sm90_spec(row, (int)c->ta, (int)c->tb, (int)c->tc, q->tf32, q->a.mn, q->b.mn, false, NULL, &spec);
    st_generic_option(&spec, "-DGROUP=%d", MEMBERS);
    snprintf(spec.id + strlen(spec.id) - 6, 12, "_grp_sm90a");
    const strata_status s = st_gpu_kernel_get(h, &spec.spec, kernel);
    if (!s)
        known[next++ % KNOWN] =
            (st_known){h->gpu, row, c->ta, c->tb, c->tc, q->tf32, q->a.mn, q->b.mn, *kernel};
    return s;
}

static strata_status launch(strata_handle *h, st_taken *const list[], int n, st_sm90_members *all)
{
    const st_sm90 *first = &list[0]->q;
    const st_sm90_row *row = choose(first, list, n, h->gpu->sms);
    const st_gpu_kernel *kernel;
    int64_t end = 0;
    memset(all, 0, sizeof *all);
    for (int i = 0; i < n; i++) {
        st_sm90 q = list[i]->q;
        const st_member *m = list[i]->m;
        st_sm90_member *to = &all->m[i];
        q.row = row;
        fill_args(m, &q, row, &to->args);
        strata_status s = st_sm90_map(h, &q, &q.a, (int)q.g.c.ta, row->bm, m->data[q.g.swapped], &to->ma);
        if (!s) s = st_sm90_map(h, &q, &q.b, (int)q.g.c.tb, row->bn, m->data[!q.g.swapped], &to->mb);
        if (s) return s;
        all->end[i] = (int32_t)(end += tiles_of(&q, row));
    }
    all->tiles = (int32_t)end;
    strata_status s = get_kernel(h, first, row, &kernel);
    if (s) return s;
    const uint64_t t0 = st_trace_begin();
    st_sm90 shape = *first;
    shape.row = row;
    void *args[] = {all};
    const st_gpu_launch l = {.kernel = kernel,
                             .grid = {(unsigned)st_min64(end, h->gpu->sms), 1, 1},
                             .block = {(unsigned)row->consumers * 128 + 128, 1, 1},
                             .smem = st_sm90_smem(&shape),
                             .overlap = true,
                             .args = args};
    s = st_gpu_run(h, &l);
    if (ST_UNLIKELY(t0)) st_trace_end(t0, "tile", kernel->id, "%d products, %lld tiles", n, (long long)end);
    return s;
}

strata_status st_sm90_group(strata_handle *h, const char *who, const st_member *const m[], int64_t count,
                            bool done[])
{
    if (h->gpu->cc != 90) return STRATA_OK;
    st_taken *taken = malloc(sizeof *taken * (size_t)count), **list = malloc(sizeof *list * (size_t)count);
    st_sm90_members *all = aligned_alloc(128, sizeof *all);
    int64_t n = 0;
    strata_status s = STRATA_OK;
    if (!taken || !list || !all)
        s = st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory for a list of products", who);
    for (int64_t i = 0; i < count && !s; i++) {
        if (!take(h, m[i], &taken[n].q)) continue;
        taken[n].m = m[i];
        taken[n].at = i;
        taken[n++].launched = false;
    }
    for (int64_t i = 0; i < n && !s; i++) {
        if (taken[i].launched) continue;
        int64_t part = 0, sum = 0;
        for (int64_t k = i; k < n; k++) {
            sum += tiles_of(&taken[k].q, &tiles[3]);
            if (taken[k].launched || !same_kernel(&taken[i].q, &taken[k].q)) continue;
            taken[k].launched = true;
            list[part++] = &taken[k];
        }
        if (part < 2 || sum >= TILES) continue;
        qsort(list, (size_t)part, sizeof(st_taken *), deepest_first);
        for (int64_t k = 0; k < part && !s; k += MEMBERS) {
            const int some = (int)st_min64(part - k, MEMBERS);
            if (some < 2) break;
            s = launch(h, list + k, some, all);
            for (int x = 0; x < some && !s; x++) done[list[k + x]->at] = true;
        }
    }
    free(taken);
    free(list);
    free(all);
    return s;
}
