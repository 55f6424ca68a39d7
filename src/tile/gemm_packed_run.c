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
    l->b = (size_t)st_round_up(st_packed_bytes(p->kernel, cols, kc) + ST_PACK_SLACK, 4096);
    l->a = p->in_place ? 0 : (size_t)st_round_up(st_packed_bytes(p->kernel, rows, kc) + ST_PACK_SLACK, 4096);
    if (p->aside || g->type == STRATA_I32) {
        const int64_t most = st_min64(st_ceil_div(mt, l->tm) * mr, st_round_up(p->aside_rows, mr));
        l->aside = (size_t)st_round_up((g->K > p->kc ? most * cols : rows * nr) * g->es, 4096);
    }
    bool many = g->K > p->kc || g->N > p->nc * l->tn || g->G > 1 || l->aside;
    l->slots = l->tm > 1 && many && l->b <= 2u << 20 ? 2 : 1;
    l->sync =
        l->tm > 1
            ? (size_t)st_round_up(
                  l->tn * (l->slots * l->panels * (int64_t)sizeof(atomic_int) + 64) + 64 * (int64_t)n, 4096)
            : 0;
    l->scratch = (size_t)st_round_up(mr * nr * g->es, 64) + (size_t)st_round_up((int64_t)p->scratch, 64);
    int groups = l->by_item ? n : l->tn;
    l->total =
        l->sync + (size_t)groups * (size_t)l->slots * l->b + (size_t)n * (l->a + l->aside + l->scratch);
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
    char *abuf, *bbuf, *aside, *scratch;
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

/* A tile of C whose elements do not lie as the kernel stores them. */
#define SCATTER(T)                                                                               \
    do {                                                                                         \
        const T *t = (const T *)tile + i * ld;                                                   \
        T *r = (T *)c + ro, b = (T)f->beta;                                                      \
        for (int64_t j = 0; j < cols; j++) r[co[j]] = f->beta == 0 ? t[j] : t[j] + b * r[co[j]]; \
    } while (0)
#define SCATTER_PAIRS(T)                                             \
    do {                                                             \
        const T *t = (const T *)tile + 2 * i * ld;                   \
        const T b = (T)f->beta, b_im = (T)f->beta_im;                \
        for (int64_t j = 0; j < cols; j++, t += 2) {                 \
            T *r = (T *)c + 2 * (ro + co[j]), re = t[0], im = t[1];  \
            if (b != 0 || b_im != 0) {                               \
                re += b_im == 0 ? b * r[0] : b * r[0] - b_im * r[1]; \
                im += b_im == 0 ? b * r[1] : b * r[1] + b_im * r[0]; \
            }                                                        \
            r[0] = re;                                               \
            r[1] = im;                                               \
        }                                                            \
    } while (0)
static void scatter(const st_gemm *g, const void *tile, int64_t ld, char *c, int64_t i0, int64_t rows,
                    int64_t j0, int64_t cols, const st_factors *f)
{
    int64_t co[ST_UKR_MAX_NV * 16];
    for (int64_t j = 0; j < cols; j++) co[j] = st_axes_offset(&g->n, 'c', j0 + j);
    for (int64_t i = 0; i < rows; i++) {
        int64_t ro = st_axes_offset(&g->m, 'c', i0 + i);
        switch (g->type) {
        case STRATA_F32: SCATTER(float); break;
        case STRATA_F64: SCATTER(double); break;
        case STRATA_I32: SCATTER(int32_t); break;
        case STRATA_C64: SCATTER_PAIRS(float); break;
        default: SCATTER_PAIRS(double); break;
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
    st_factors f;
    char *aside; /* NULL, or where this rectangle's sums are kept, ld apart */
    int64_t ld, item;
    bool finish; /* the sums are complete: they go to C, or through the epilogue, some rows at a time */
} st_block;

/* Rows whose sums leave at a time: while they are in the first-level cache. (Rows of C that lie a power of two apart share its sets: after all rows of a
 * block an epilogue found them in L3, 3 ns an element at 2048 cubed.) */
enum { FINISH_TILES = 2 };

static void finish_rows(st_worker_view *v, const st_block *t, char *c, int64_t i, int64_t rows)
{
    const st_packed_plan *p = v->job->p;
    const st_gemm *g = &p->g;
    if (t->aside)
        st_packed_finish(v->job, t->aside + i * t->ld * g->es, t->ld, c, t->item, t->i0 + i, rows, t->j0,
                         t->cols, v->scratch);
    else
        st_gemm_epilogue(g, p->head.expr, v->job->data, t->item, t->i0 + i, rows, t->j0, t->cols, v->scratch);
}

/* One panel of B against one block of A. */
static void multiply(st_worker_view *v, const st_block *t, char *c)
{
    const st_packed_plan *p = v->job->p;
    const st_gemm *g = &p->g;
    const st_packed_kernel *kr = p->kernel;
    const int64_t mr = kr->mr, nr = (int64_t)kr->nv * kr->vl, es = g->es;
    const int nv = (int)st_ceil_div(t->cols, kr->vl);
    const int64_t ldc = t->aside ? t->ld : st_axes_inner(&g->m, 'c'), ars = st_axes_inner(&g->m, 'a'),
                  tiles = st_ceil_div(t->rows, mr), units = st_ceil_div(t->kc, kr->unit);
    const bool direct = t->aside || ((g->n.count <= 1 || st_axes_run(&g->n, t->j0) >= t->cols) &&
                                     (st_axes_inner(&g->n, 'c') == 1 || g->N == 1));
    char *cp = c + (st_axes_offset(&g->n, 'c', t->j0)) * es;
    st_ukr_args x = {.k = units,
                     .ldc = ldc,
                     .ars = ars,
                     .alpha = t->f.alpha,
                     .beta = t->f.beta,
                     .alpha_im = t->f.alpha_im,
                     .beta_im = t->f.beta_im,
                     .conj = g->conj,
                     .last = (int)(t->cols - (nv - 1) * kr->vl)};
    const int64_t row =
        p->in_place ? ars * g->ea : st_packed_bytes(kr, 1, t->kc); /* bytes of A from one row to the next */
    int64_t share_of_next = t->next ? st_ceil_div(units * nr * kr->size / 256, tiles) : 0, done = 0;
    for (int64_t i = 0; i < t->rows; i += mr) {
        int64_t h = st_min64(mr, t->rows - i);
        const bool whole = h == mr && t->cols == nr;
        st_ukr_fn fn = p->in_place
                           ? (whole ? kr->in_place_full : kr->in_place_edge[(h - 1) * kr->nv + nv - 1])
                           : (whole ? kr->full : kr->edge[(h - 1) * kr->nv + nv - 1]);
        x.next = t->next ? t->next + i / mr * share_of_next * 256 : NULL;
        x.next_count = share_of_next;
        char *at = t->aside ? t->aside + i * t->ld * es : cp + st_axes_offset(&g->m, 'c', t->i0 + i) * es;
        if (t->unpacked && i == 0) {
            x.ldb = st_axes_inner(&g->k, 'b');
            x.panel = (char *)t->b;
            (p->in_place ? p->first_in_place : p->first)(&x, t->a, t->unpacked, at);
            if (t->flag) atomic_store_explicit(t->flag, t->stamp, memory_order_release);
        } else if (direct && (t->aside || g->m.count <= 1 || st_axes_run(&g->m, t->i0 + i) >= h)) {
            fn(&x, t->a + i * row, t->b, at);
        } else {
            st_ukr_args y = x;
            y.ldc = nr;
            y.beta = y.beta_im = 0;
            fn(&y, t->a + i * row, t->b, v->tile);
            scatter(g, v->tile, nr, c, t->i0 + i, h, t->j0, t->cols, &t->f);
        }
        if (t->finish && (i + h - done >= FINISH_TILES * mr || i + h == t->rows)) {
            finish_rows(v, t, c, done, i + h - done);
            done = i + h;
        }
    }
}

/* All of this thread's rows against one block of B (columns j0.., steps k0..). */
static void block_of_b(st_worker_view *v, int64_t item, const char *a, const char *b, char *c, st_part rows,
                       st_part cols, int64_t k0, int64_t kc)
{
    const st_packed_plan *p = v->job->p;
    const st_gemm *g = &p->g;
    const int64_t mr = p->kernel->mr, nr = (int64_t)p->kernel->nv * p->kernel->vl;
    const int64_t panels = st_ceil_div(cols.count, nr), mc = even(rows.count, p->mc, mr),
                  panel = st_packed_bytes(p->kernel, nr, kc);
    /* of several blocks of k all sums are kept, else those of a panel */
    const int64_t ld = g->K > p->kc ? st_round_up(cols.count, nr) : nr;
    const int slot = v->block % v->l.slots, stamp = v->block + 1;
    const char *bpanels = v->job->ready_b
                              ? st_packed_ready_at(p, 'b', v->job->ready_b, item, cols.first, k0, kc)
                              : v->bbuf + (size_t)slot * v->l.b;
    char *bbuf = v->bbuf + (size_t)slot * v->l.b;
    atomic_int *ready = v->ready + slot * v->l.panels;
    const bool last = k0 + kc == g->K, shared = v->tm > 1;
    const char *const ready_a = v->job->ready_a, *const ready_b = v->job->ready_b;
    if (shared && v->block >= v->l.slots && !ready_b)
        for (int t = 0; t < v->tm; t++) wait_for(v->progress + 16 * t, v->block - v->l.slots + 1);
    /* B packed by the first tile of every panel: columns contiguous, that tile whole, C where the kernel stores */
    const bool fused = p->fused && rows.count >= mr;
    const int64_t mine = panels * v->tid / v->tm, mine_end = panels * (v->tid + 1) / v->tm;
    for (int64_t i = 0; i < rows.count; i += mc) {
        int64_t h = st_min64(mc, rows.count - i);
        const char *ablock = v->abuf;
        if (p->in_place)
            ablock = a + ((rows.first + i) * st_axes_inner(&g->m, 'a') + k0) * g->ea;
        else if (ready_a)
            ablock = st_packed_ready_at(p, 'a', ready_a, item, rows.first + i, k0, kc);
        else
            st_packed_pack(p, 'a', v->abuf, a, rows.first + i, h, k0, kc);
        for (int64_t q = 0; q < panels; q++) {
            int64_t j = q + mine < panels ? q + mine : q + mine - panels, j0 = cols.first + j * nr;
            int64_t w = st_min64(nr, cols.first + cols.count - j0);
            const char *unpacked = NULL;
            atomic_int *flag = NULL;
            if (i == 0 && !ready_b) {
                const bool owner = j >= mine && j < mine_end;
                if (!owner)
                    wait_for(ready + j, stamp);
                else if (fused && w == nr)
                    unpacked = b + (k0 * st_axes_inner(&g->k, 'b') + j0) * g->eb;
                else
                    st_packed_pack(p, 'b', bbuf + j * panel, b, j0, w, k0, kc);
                if (owner && shared) {
                    if (unpacked)
                        flag = ready + j;
                    else
                        atomic_store_explicit(ready + j, stamp, memory_order_release);
                }
            }
            st_block t = {.i0 = rows.first + i,
                          .rows = h,
                          .j0 = j0,
                          .cols = w,
                          .kc = kc,
                          .a = ablock,
                          .b = bpanels + j * panel,
                          .unpacked = unpacked,
                          .flag = flag,
                          .stamp = stamp,
                          .f = v->job->f,
                          .ld = ld,
                          .item = item,
                          .finish = last && (v->job->aside || p->head.expr)};
            if (k0 > 0) t.f.beta = 1, t.f.beta_im = 0;
            if (v->job->aside) {
                t.aside = v->aside + (g->K > p->kc ? i * ld + j * nr : 0) * g->es;
                if (k0 == 0) t.f.beta = 0;
                if (g->type == STRATA_I32) t.f.alpha = 1;
            }
            if (i > 0 && q + 1 < panels) t.next = bpanels + (j + 1 < panels ? j + 1 : 0) * panel;
            multiply(v, &t, c);
        }
    }
    v->block++;
    if (shared) atomic_store_explicit(v->progress + 16 * v->tid, v->block, memory_order_release);
}

/* `most`: the rows of the group's busiest thread, so that all of a group take the same steps. */
static void run_item(st_worker_view *v, int64_t item, st_part rows, st_part cols, int64_t most)
{
    const st_packed_plan *p = v->job->p;
    const st_gemm *g = &p->g;
    const int64_t mr = p->kernel->mr, nr = (int64_t)p->kernel->nv * p->kernel->vl;
    const char *a = v->job->a + st_axes_offset(&g->batch, 'a', item) * g->ea,
               *b = v->job->b + st_axes_offset(&g->batch, 'b', item) * g->eb;
    char *c = v->job->c + st_axes_offset(&g->batch, 'c', item) * g->ec;
    const int64_t nc = even(cols.count, p->nc, nr), kc = st_packed_k_block(p);
    const bool kept = v->job->aside && g->K > p->kc;
    /* fewer parts than panels of rows, so that each thread has rows in every part */
    const int parts = kept ? (int)st_ceil_div(most, p->aside_rows) : 1;
    for (int64_t j = 0; j < cols.count; j += nc)
        for (int i = 0; i < parts; i++) {
            st_part r = share(rows.count, mr, i, parts);
            r.first += rows.first;
            for (int64_t k0 = 0; k0 < g->K; k0 += kc)
                block_of_b(v, item, a, b, c, r, (st_part){cols.first + j, st_min64(nc, cols.count - j)}, k0,
                           st_min64(kc, g->K - k0));
        }
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
    ws += (size_t)groups * (size_t)v.l.slots * v.l.b + (size_t)id * (v.l.a + v.l.aside + v.l.scratch);
    v.abuf = ws;
    v.aside = ws + v.l.a;
    v.tile = v.aside + v.l.aside;
    v.scratch = (char *)v.tile + st_round_up(p->kernel->mr * nr * g->es, 64);
    if (v.l.by_item) {
        for (int64_t i = g->G * id / n; i < g->G * (id + 1) / n; i++)
            run_item(&v, i, (st_part){0, g->M}, (st_part){0, g->N}, g->M);
        return;
    }
    st_part rows = share(g->M, p->kernel->mr, v.tid, v.tm), cols = share(g->N, nr, group, v.l.tn);
    const int64_t mr = p->kernel->mr, most = st_ceil_div(st_ceil_div(g->M, mr), v.tm) * mr;
    for (int64_t i = 0; i < g->G; i++) run_item(&v, i, rows, cols, most);
}
