/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_packed_run.c - the loops around the packed microkernel (after K. Goto and R. van de Geijn, "Anatomy of high-performance matrix
 * multiplication", TOMS 34, 2008): columns in parts of nc, k in parts of kc, rows in parts of mc.
 *
 * B panels are packed when they are first needed, by the thread that owns them; each thread begins with its own panels, so that
 * the others' are ready when it comes to them, and nobody waits for packing as a phase of its own. A panel is ready when its flag holds
 * the number of the block; a buffer is taken again when all threads of the group are done with its last block. */
#include "tile/gemm_packed.h"
#include <sched.h>
#include <string.h>

typedef struct st_part {
    int64_t first, count;
} st_part;

/* part i of `parts` of `total`, in units of `unit` */
static st_part share(int64_t total, int64_t unit, int i, int parts)
{
    int64_t units = st_ceil_div(total, unit), a = units * i / parts * unit,
            b = units * (i + 1) / parts * unit;
    if (b > total) b = total;
    return (st_part){a, b > a ? b - a : 0};
}

static int64_t even(int64_t total, int64_t most, int64_t unit)
{
    int64_t parts = st_ceil_div(total, most);
    return parts > 1 ? st_round_up(st_ceil_div(total, parts), unit) : total;
}

void st_packed_layout_for(const st_packed_plan *p, int n, bool apart, st_packed_layout *l)
{
    const st_gemm *g = &p->g;
    int64_t mr = p->kernel->mr, nr = (int64_t)p->kernel->nv * p->kernel->vl;
    int64_t mt = st_max64(1, st_ceil_div(g->M, mr)), nt = st_max64(1, st_ceil_div(g->N, nr));
    memset(l, 0, sizeof *l);
    l->by_item = n > 1 && g->G >= 4 * n;
    l->tm = l->tn = 1;
    int64_t best = INT64_MAX;
    for (int tn = 1; tn <= n && !l->by_item; tn++) {
        int tm = apart ? 1 : n / tn;
        if (tn > nt) break;
        if (tm > mt) tm = (int)mt;
        int64_t load = st_ceil_div(mt, tm) * st_ceil_div(nt, tn);
        if (load < best) {
            best = load;
            l->tm = tm;
            l->tn = tn;
        }
    }
    int64_t cols = st_min64(st_ceil_div(nt, l->tn) * nr, st_round_up(p->nc, nr));
    int64_t rows = st_min64(st_ceil_div(mt, l->tm) * mr, st_round_up(p->mc, mr)), kc = st_min64(g->K, p->kc);
    l->panels = cols / nr;
    l->b = (size_t)st_round_up(cols * kc * g->es + ST_PACK_SLACK, 4096);
    l->a = p->in_place ? 0 : (size_t)st_round_up(rows * kc * g->es + ST_PACK_SLACK, 4096);
    bool many = g->K > p->kc || g->N > p->nc * l->tn || g->G > 1;
    l->slots = l->tm > 1 && many && l->b <= 2u << 20 ? 2 : 1;
    l->sync =
        l->tm > 1
            ? (size_t)st_round_up(
                  l->tn * (l->slots * l->panels * (int64_t)sizeof(atomic_int) + 64) + 64 * (int64_t)n, 4096)
            : 0;
    l->scratch = (size_t)st_round_up(mr * nr * g->es, 64) + (size_t)st_round_up((int64_t)p->scratch, 64);
    int groups = l->by_item ? n : l->tn;
    l->total = l->sync + (size_t)groups * (size_t)l->slots * l->b + (size_t)n * (l->a + l->scratch);
}

size_t st_packed_sync_bytes(const st_packed_plan *p)
{
    size_t most = 0;
    st_packed_layout l;
    for (int n = 2; n <= p->threads; n++) {
        st_packed_layout_for(p, n, false, &l);
        if (l.sync > most) most = l.sync;
    }
    return most;
}

typedef struct st_worker_view {
    const st_packed_job *job;
    st_packed_layout l;
    int tid, tm; /* within the group */
    char *abuf, *bbuf, *scratch;
    void *tile;
    atomic_int *ready;    /* [slot][panel] */
    atomic_int *progress; /* the group's threads, 16 ints apart */
    int block;            /* B blocks begun */
} st_worker_view;

static void wait_for(atomic_int *a, int value)
{
    for (unsigned spins = 1; atomic_load_explicit(a, memory_order_acquire) < value; spins++) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
        if (spins > 4000) sched_yield();
    }
}

/* Lines of one panel whose offsets or steps do not run evenly: one by one. */
static void pack_scattered(int64_t es, int64_t width, char *dst, int64_t w, const char *src,
                           const st_axes *lines, int which, int64_t i0, const st_axes *k, int64_t k0,
                           int64_t kc)
{
    int64_t off[ST_UKR_MAX_NV * 16];
    for (int64_t i = 0; i < w; i++) off[i] = st_axes_offset(lines, which, i0 + i);
    for (int64_t p = 0; p < kc; p++) {
        int64_t at = st_axes_offset(k, which, k0 + p);
        if (es == 4)
            for (int64_t i = 0; i < width; i++)
                ((float *)dst)[p * width + i] = i < w ? ((const float *)src)[off[i] + at] : 0;
        else
            for (int64_t i = 0; i < width; i++)
                ((double *)dst)[p * width + i] = i < w ? ((const double *)src)[off[i] + at] : 0;
    }
}

/* Lines i0.. (w of them) x steps k0.. of A ('a': rows) or B ('b': columns) into panels of `width`. */
static void pack(const st_gemm *g, st_pack_fn fn, int64_t width, char *dst, const char *src, int which,
                 int64_t i0, int64_t w, int64_t k0, int64_t kc)
{
    const st_axes *lines = which == 'a' ? &g->m : &g->n, *k = &g->k;
    int64_t ls = st_axes_inner(lines, which), ks = st_axes_inner(k, which);
    if (lines->count <= 1 && k->count <= 1) {
        fn(dst, w, kc, src + (i0 * ls + k0 * ks) * g->es, ls, ks);
        return;
    }
    for (int64_t i = 0; i < w; i += width, dst += width * kc * g->es) {
        int64_t n = st_min64(width, w - i);
        if (st_axes_run(lines, i0 + i) < n) {
            pack_scattered(g->es, width, dst, n, src, lines, which, i0 + i, k, k0, kc);
            continue;
        }
        int64_t off = st_axes_offset(lines, which, i0 + i);
        for (int64_t p = 0; p < kc;) {
            int64_t run = st_min64(st_axes_run(k, k0 + p), kc - p);
            fn(dst + p * width * g->es, n, run, src + (off + st_axes_offset(k, which, k0 + p)) * g->es, ls,
               ks);
            p += run;
        }
    }
}

/* A tile of C whose elements do not lie as the kernel stores them. */
static void scatter(const st_gemm *g, const void *tile, int64_t ld, char *c, int64_t i0, int64_t rows,
                    int64_t j0, int64_t cols, double beta)
{
    int64_t co[ST_UKR_MAX_NV * 16];
    for (int64_t j = 0; j < cols; j++) co[j] = st_axes_offset(&g->n, 'c', j0 + j);
    for (int64_t i = 0; i < rows; i++) {
        int64_t ro = st_axes_offset(&g->m, 'c', i0 + i);
        if (g->es == 4) {
            const float *t = (const float *)tile + i * ld;
            float *r = (float *)c + ro, fb = (float)beta;
            for (int64_t j = 0; j < cols; j++) r[co[j]] = beta == 0 ? t[j] : t[j] + fb * r[co[j]];
        } else {
            const double *t = (const double *)tile + i * ld;
            double *r = (double *)c + ro;
            for (int64_t j = 0; j < cols; j++) r[co[j]] = beta == 0 ? t[j] : t[j] + beta * r[co[j]];
        }
    }
}

typedef struct st_block {
    int64_t i0, rows, j0, cols, kc; /* of C: this block's rows and one panel's columns */
    const char *a, *b, *next;
    const char
        *unpacked; /* NULL, or where B of this panel is: its first tile packs it, and tells the others */
    atomic_int *flag;
    int stamp;
    double alpha, beta;
} st_block;

/* One panel of B against one block of A. */
static void multiply(st_worker_view *v, const st_block *t, char *c)
{
    const st_packed_plan *p = v->job->p;
    const st_gemm *g = &p->g;
    const st_packed_kernel *kr = p->kernel;
    const int64_t mr = kr->mr, nr = (int64_t)kr->nv * kr->vl, es = g->es;
    const int nv = (int)st_ceil_div(t->cols, kr->vl);
    const int64_t ldc = st_axes_inner(&g->m, 'c'), ars = st_axes_inner(&g->m, 'a'),
                  tiles = st_ceil_div(t->rows, mr);
    bool direct = (g->n.count <= 1 || st_axes_run(&g->n, t->j0) >= t->cols) &&
                  (st_axes_inner(&g->n, 'c') == 1 || g->N == 1);
    char *cp = c + (st_axes_offset(&g->n, 'c', t->j0)) * es;
    st_ukr_args x = {.k = t->kc,
                     .ldc = ldc,
                     .ars = ars,
                     .alpha = t->alpha,
                     .beta = t->beta,
                     .last = (int)(t->cols - (nv - 1) * kr->vl)};
    const int64_t row = (p->in_place ? ars : t->kc) * es; /* bytes of A from one row to the next */
    int64_t share_of_next = t->next ? st_ceil_div(t->kc * nr * es / 256, tiles) : 0;
    for (int64_t i = 0; i < t->rows; i += mr) {
        int64_t h = st_min64(mr, t->rows - i);
        const bool whole = h == mr && t->cols == nr;
        st_ukr_fn fn = p->in_place
                           ? (whole ? kr->in_place_full : kr->in_place_edge[(h - 1) * kr->nv + nv - 1])
                           : (whole ? kr->full : kr->edge[(h - 1) * kr->nv + nv - 1]);
        x.next = t->next ? t->next + i / mr * share_of_next * 256 : NULL;
        x.next_count = share_of_next;
        if (t->unpacked && i == 0) {
            x.ldb = st_axes_inner(&g->k, 'b');
            x.panel = (char *)t->b;
            (p->in_place ? kr->first_in_place : kr->first)(&x, t->a, t->unpacked,
                                                           cp + st_axes_offset(&g->m, 'c', t->i0) * es);
            if (t->flag) atomic_store_explicit(t->flag, t->stamp, memory_order_release);
            continue;
        }
        if (direct && (g->m.count <= 1 || st_axes_run(&g->m, t->i0 + i) >= h)) {
            fn(&x, t->a + i * row, t->b, cp + st_axes_offset(&g->m, 'c', t->i0 + i) * es);
        } else {
            st_ukr_args y = x;
            y.ldc = nr;
            y.beta = 0;
            fn(&y, t->a + i * row, t->b, v->tile);
            scatter(g, v->tile, nr, c, t->i0 + i, h, t->j0, t->cols, t->beta);
        }
    }
}

/* All of this thread's rows against one block of B (columns j0.., steps k0..). */
static void block_of_b(st_worker_view *v, int64_t item, const char *a, const char *b, char *c, st_part rows,
                       st_part cols, int64_t k0, int64_t kc)
{
    const st_packed_plan *p = v->job->p;
    const st_gemm *g = &p->g;
    const int64_t mr = p->kernel->mr, nr = (int64_t)p->kernel->nv * p->kernel->vl, es = g->es;
    const int64_t panels = st_ceil_div(cols.count, nr), mc = even(rows.count, p->mc, mr);
    const int slot = v->block % v->l.slots, stamp = v->block + 1;
    char *bbuf = v->bbuf + (size_t)slot * v->l.b;
    atomic_int *ready = v->ready + slot * v->l.panels;
    const bool last = k0 + kc == g->K, shared = v->tm > 1;
    if (shared && v->block >= v->l.slots)
        for (int t = 0; t < v->tm; t++) wait_for(v->progress + 16 * t, v->block - v->l.slots + 1);
    /* B packed by the first tile of every panel: columns contiguous, that tile whole, C where the kernel stores */
    const bool fused = p->fused && rows.count >= mr;
    const int64_t mine = panels * v->tid / v->tm, mine_end = panels * (v->tid + 1) / v->tm;
    for (int64_t i = 0; i < rows.count; i += mc) {
        int64_t h = st_min64(mc, rows.count - i);
        const char *ablock = v->abuf;
        if (p->in_place)
            ablock = a + ((rows.first + i) * st_axes_inner(&g->m, 'a') + k0) * es;
        else
            pack(g, p->kernel->pack_a, mr, v->abuf, a, 'a', rows.first + i, h, k0, kc);
        for (int64_t q = 0; q < panels; q++) {
            int64_t j = q + mine < panels ? q + mine : q + mine - panels, j0 = cols.first + j * nr;
            int64_t w = st_min64(nr, cols.first + cols.count - j0);
            const char *unpacked = NULL;
            atomic_int *flag = NULL;
            if (i == 0) {
                const bool owner = j >= mine && j < mine_end;
                if (!owner)
                    wait_for(ready + j, stamp);
                else if (fused && w == nr)
                    unpacked = b + (k0 * st_axes_inner(&g->k, 'b') + j0) * es;
                else
                    pack(g, p->kernel->pack_b, nr, bbuf + j * nr * kc * es, b, 'b', j0, w, k0, kc);
                if (owner && shared) {
                    if (unpacked)
                        flag = ready + j;
                    else
                        atomic_store_explicit(ready + j, stamp, memory_order_release);
                }
            }
            st_block t = {rows.first + i,
                          h,
                          j0,
                          w,
                          kc,
                          ablock,
                          bbuf + j * nr * kc * es,
                          NULL,
                          unpacked,
                          flag,
                          stamp,
                          v->job->alpha,
                          k0 == 0 ? v->job->beta : 1.0};
            if (i > 0 && q + 1 < panels) t.next = bbuf + (j + 1 < panels ? j + 1 : 0) * nr * kc * es;
            multiply(v, &t, c);
            if (last && p->head.expr)
                st_gemm_epilogue(g, p->head.expr, v->job->data, item, t.i0, h, j0, w, v->scratch);
        }
    }
    v->block++;
    if (shared) atomic_store_explicit(v->progress + 16 * v->tid, v->block, memory_order_release);
}

static void run_item(st_worker_view *v, int64_t item, st_part rows, st_part cols)
{
    const st_packed_plan *p = v->job->p;
    const st_gemm *g = &p->g;
    const int64_t nr = (int64_t)p->kernel->nv * p->kernel->vl, es = g->es;
    const char *a = v->job->a + st_axes_offset(&g->batch, 'a', item) * es,
               *b = v->job->b + st_axes_offset(&g->batch, 'b', item) * es;
    char *c = v->job->c + st_axes_offset(&g->batch, 'c', item) * es;
    const int64_t nc = even(cols.count, p->nc, nr), kc = even(g->K, p->kc, 4);
    for (int64_t j = 0; j < cols.count; j += nc)
        for (int64_t k0 = 0; k0 < g->K; k0 += kc)
            block_of_b(v, item, a, b, c, rows, (st_part){cols.first + j, st_min64(nc, cols.count - j)}, k0,
                       st_min64(kc, g->K - k0));
}

void st_packed_run_thread(void *job, int id, int n)
{
    st_worker_view v = {.job = job};
    const st_packed_plan *p = v.job->p;
    const st_gemm *g = &p->g;
    const int64_t nr = (int64_t)p->kernel->nv * p->kernel->vl;
    st_packed_layout_for(p, n, v.job->apart, &v.l);
    if (!v.l.by_item && id >= v.l.tm * v.l.tn) return;
    int group = v.l.by_item ? id : id / v.l.tm, groups = v.l.by_item ? n : v.l.tn;
    v.tid = v.l.by_item ? 0 : id % v.l.tm;
    v.tm = v.l.tm;
    char *ws = v.job->workspace;
    if (v.l.sync) {
        v.progress = (atomic_int *)ws + 16 * (int64_t)(group * v.l.tm);
        v.ready = (atomic_int *)(ws + 64 * (int64_t)n) + group * (v.l.slots * v.l.panels + 16);
    }
    ws += v.l.sync;
    v.bbuf = ws + (size_t)group * (size_t)v.l.slots * v.l.b;
    ws += (size_t)groups * (size_t)v.l.slots * v.l.b + (size_t)id * (v.l.a + v.l.scratch);
    v.abuf = ws;
    v.tile = ws + v.l.a;
    v.scratch = (char *)v.tile + st_round_up(p->kernel->mr * nr * g->es, 64);
    if (v.l.by_item) {
        for (int64_t i = g->G * id / n; i < g->G * (id + 1) / n; i++)
            run_item(&v, i, (st_part){0, g->M}, (st_part){0, g->N});
        return;
    }
    st_part rows = share(g->M, p->kernel->mr, v.tid, v.tm), cols = share(g->N, nr, group, v.l.tn);
    for (int64_t i = 0; i < g->G; i++) run_item(&v, i, rows, cols);
}
