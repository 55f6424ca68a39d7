/* SPDX-License-Identifier: Apache-2.0 */
/* norm.c - batch normalisation per channel: statistics, application, gradients.
 *
 * The problem's dims are ordered and joined into rows. A plan cuts the work into pieces of about PIECE elements, by shape alone: row
 * ranges over all channels where channels are contiguous, ranges of runs of one channel otherwise. A pass over the pieces leaves
 * sums per piece and channel in workspace; they are joined in double precision in the order of the pieces; a second pass writes.
 * A channel that fits the second-level cache does all of this in one task. Strides that neither way knows go through a buffer. */
#include "pointwise/norm.h"
#include "pointwise/engine.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PIECE = 32768, BUFFER = 512, FOLD_BELOW = 128, WIDE = 2048, CHANNEL_BYTES = 512 * 1024 };

static const st_norm_kernel norm_kernels[] = {
#include "pointwise/cpu/kernels.inc"
};

typedef st_norm_key norm_key;

typedef struct norm_plan {
    strata_plan base;
    norm_key key;
    const st_norm_kernel *kernel;
    int64_t size;        /* bytes of an element */
    int64_t c, elements; /* channels, elements of one channel */
    int64_t len[4], stride[4][4],
        chan[4];  /* the dims that are not the channel, outermost first; [operand][dim]; channel strides */
    int64_t rows; /* channels way: product of len; runs way: product of all but the last */
    int64_t fold, width; /* channels way: rows side by side in one wide row of c * fold columns */
    int64_t step, parts,
        cut;            /* rows (runs) of a piece, pieces (of a channel); runs way: pieces of one long run */
    bool stream;        /* y is written past the caches: it is larger than they are */
    bool gather, whole; /* runs way: through buffers; a channel is one task */
} norm_plan;

static const char *const norm_order =
    "in lanes within pieces of about 32768 elements, pieces joined in order in double precision";

#define HAS(p, o) ((p)->present >> (o)&1)

static bool channels_fit(const st_norm_problem *p)
{
    for (int o = 0; o < ST_NORM_SCALE; o++)
        if (HAS(p, o) && p->stride[o][1] != 1) return false;
    return p->dim[1] > 1;
}

static int norm_enumerate(strata_handle *h, const st_problem *pr, st_candidate *out, int max)
{
    const norm_key *k = pr->data;
    if (k->family != ST_PW_NORM) return 0;
    int n = 0;
    double elements = 1;
    for (int d = 0; d < ST_NORM_DIMS; d++) elements *= (double)k->p.dim[d];
    for (int i = 0; i < ST_COUNT(norm_kernels) && n < max; i++) {
        const st_norm_kernel *row = &norm_kernels[i];
        if (row->type != k->p.type) continue;
        st_candidate *c = &out[n++];
        memset(c, 0, sizeof *c);
        snprintf(c->kernel, sizeof c->kernel, "%s", row->id);
        c->row = row;
        c->order = norm_order;
        if ((row->isa & h->cpu->isa) != row->isa) {
            c->us = -1;
            snprintf(c->why, sizeof c->why, "this processor (or STRATA_ISA) has no %s", row->isa_name);
        } else if (row->channels && !channels_fit(&k->p)) {
            c->us = -1;
            snprintf(c->why, sizeof c->why, "channels are not contiguous in every operand");
        } else {
            const double lanes = row->isa == ST_ISA_AVX512 ? 4 : row->isa == ST_ISA_AVX2 ? 3 : 1;
            c->us = 0.5 + elements * (row->channels ? 0.001 : 0.0011) / lanes;
        }
    }
    return n;
}

/* ---- the plan's geometry ---- */
static void order_dims(norm_plan *pl)
{
    const st_norm_problem *p = &pl->key.p;
    static const int from[4] = {0, 2, 3, 4};
    int n = 0;
    for (int i = 0; i < 4; i++) {
        if (p->dim[from[i]] == 1) continue;
        pl->len[n] = p->dim[from[i]];
        for (int o = 0; o < 4; o++) pl->stride[o][n] = p->stride[o][from[i]];
        n++;
    }
    /* innermost last, as x has it */
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0; j--) {
            int64_t a = pl->stride[0][j - 1], b = pl->stride[0][j], t;
            if ((a < 0 ? -a : a) >= (b < 0 ? -b : b)) break;
            t = pl->len[j], pl->len[j] = pl->len[j - 1], pl->len[j - 1] = t;
            for (int o = 0; o < 4; o++)
                t = pl->stride[o][j], pl->stride[o][j] = pl->stride[o][j - 1], pl->stride[o][j - 1] = t;
        }
    for (int i = 0; i + 1 < n;) {
        bool join = true;
        for (int o = 0; o < 4; o++)
            if (HAS(p, o) && pl->stride[o][i] != pl->stride[o][i + 1] * pl->len[i + 1]) join = false;
        if (!join) {
            i++;
            continue;
        }
        pl->len[i] *= pl->len[i + 1];
        for (int o = 0; o < 4; o++) pl->stride[o][i] = pl->stride[o][i + 1];
        for (int j = i + 1; j + 1 < n; j++) {
            pl->len[j] = pl->len[j + 1];
            for (int o = 0; o < 4; o++) pl->stride[o][j] = pl->stride[o][j + 1];
        }
        n--;
    }
    /* to the right, so that the innermost is dim 3 */
    for (int i = 3; i >= 0; i--) {
        const int s = i - (4 - n);
        pl->len[i] = s >= 0 ? pl->len[s] : 1;
        for (int o = 0; o < 4; o++) pl->stride[o][i] = s >= 0 ? pl->stride[o][s] : 0;
    }
}

static void cut_channels(norm_plan *pl)
{
    const int64_t lanes = 64 / pl->size;
    bool dense = true;
    pl->rows = pl->len[0] * pl->len[1] * pl->len[2] * pl->len[3];
    for (int o = 0; o < 4; o++)
        if (HAS(&pl->key.p, o) && (pl->stride[o][3] != pl->c || pl->len[3] != pl->rows)) dense = false;
    pl->fold = 1;
    if (dense && pl->c < FOLD_BELOW) {
        /* the fewest rows that fill whole vectors, then enough for four of them */
        while (pl->fold * pl->c % lanes) pl->fold++;
        pl->fold *= st_ceil_div(4 * lanes, pl->fold * pl->c);
        if (pl->fold > pl->rows) pl->fold = 1;
    }
    pl->width = pl->fold * pl->c;
    pl->step = st_max64(pl->fold, PIECE / pl->c / pl->fold * pl->fold);
    pl->parts = st_ceil_div(pl->rows, pl->step);
}

static void cut_runs(norm_plan *pl)
{
    const int64_t run = pl->len[3];
    pl->rows = pl->len[0] * pl->len[1] * pl->len[2];
    for (int o = 0; o < 4; o++)
        if (HAS(&pl->key.p, o) && pl->stride[o][3] != 1 && run > 1) pl->gather = true;
    pl->fold = 1;
    pl->width = pl->c;
    pl->cut = st_ceil_div(run, PIECE);
    pl->step = pl->cut > 1 ? 1 : st_max64(1, PIECE / run);
    pl->parts = pl->cut > 1 ? pl->rows * pl->cut : st_ceil_div(pl->rows, pl->step);
    pl->whole = pl->c >= 8 && pl->elements * pl->size <= CHANNEL_BYTES;
}

/* Workspace: two sums per piece and channel, then the vectors mean, a, b and k of norm.h in `width` columns. */
enum { MEAN, A, B, K, VECTORS };
static size_t vector_bytes(const norm_plan *pl) { return (size_t)st_round_up(pl->width * pl->size + 64, 64); }
static size_t sums_bytes(const norm_plan *pl) { return (size_t)st_round_up(pl->parts * pl->c * 8, 64); }

static strata_status norm_run(strata_handle *h, const strata_plan *base, void *const data[],
                              const strata_run *r);

static strata_status norm_build(strata_handle *h, const st_problem *pr, const st_candidate *c,
                                strata_plan **plan)
{
    norm_plan *pl = st_plan_new(sizeof *pl);
    if (!pl) return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: out of memory for a plan", pr->who);
    memcpy(&pl->key, pr->data, sizeof pl->key);
    const st_norm_problem *p = &pl->key.p;
    pl->kernel = c->row;
    pl->size = p->type == STRATA_F64 ? 8 : 4;
    pl->c = p->dim[1];
    pl->elements = p->dim[0] * p->dim[2] * p->dim[3] * p->dim[4];
    for (int o = 0; o < 4; o++) pl->chan[o] = p->stride[o][1];
    order_dims(pl);
    pl->stream = pl->elements * pl->c * pl->size > h->cpu->l3;
    if (pl->kernel->channels)
        cut_channels(pl);
    else
        cut_runs(pl);
    pl->base.workspace = 2 * sums_bytes(pl) + VECTORS * vector_bytes(pl);
    pl->base.run = norm_run;
    st_pw_norm_describe(&pl->base, p, pl->gather ? ", through buffers" : "");
    if (st_pw_norm_extents(&pl->base, p)) {
        strata_plan_destroy(&pl->base);
        return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: out of memory for a plan", pr->who);
    }
    *plan = &pl->base;
    return STRATA_OK;
}

/* ---- running ---- */
typedef struct norm_work {
    const norm_plan *pl;
    void *const *data;
    double *first, *second; /* of piece g and channel c at g * piece_stride + c * channel_stride */
    int64_t piece_stride, channel_stride;
    char *vector[VECTORS];
    bool stats;
} norm_work;

static double get(const norm_plan *pl, const void *v, int64_t i)
{
    return pl->size == 8 ? ((const double *)v)[i] : (double)((const float *)v)[i];
}
static void put(const norm_plan *pl, void *v, int64_t i, double x)
{
    if (pl->size == 8)
        ((double *)v)[i] = x;
    else
        ((float *)v)[i] = (float)x;
}
static bool has(const norm_work *w, int o) { return HAS(&w->pl->key.p, o); }
/* element c of an optional vector operand */
static double vector_get(const norm_work *w, int o, int64_t c, double absent)
{
    return has(w, o) ? get(w->pl, w->data[o], c * w->pl->key.p.vector[o]) : absent;
}
static void vector_put(const norm_work *w, int o, int64_t c, double x)
{
    if (has(w, o)) put(w->pl, w->data[o], c * w->pl->key.p.vector[o], x);
}
/* a value of channel c, in every copy that folded rows need */
static void spread(const norm_work *w, int which, int64_t c, double x)
{
    for (int64_t i = c; i < w->pl->width; i += w->pl->c) put(w->pl, w->vector[which], i, x);
}

/* Joins the sums of channel c, writes the vector outputs that depend on them and prepares the second pass. */
static void join(const norm_work *w, int64_t c)
{
    const norm_plan *pl = w->pl;
    const st_norm_problem *p = &pl->key.p;
    const double n = (double)pl->elements;
    double s = 0, q = 0;
    const double *first = w->first + c * w->channel_stride, *second = w->second + c * w->channel_stride;
    if (p->op == ST_NORM_BACKWARD) {
        for (int64_t g = 0; g < pl->parts; g++)
            s += first[g * w->piece_stride], q += second[g * w->piece_stride];
        const double inv = vector_get(w, ST_NORM_SAVE_INV_STD, c, 1),
                     scale = vector_get(w, ST_NORM_SCALE, c, 1);
        vector_put(w, ST_NORM_DSCALE, c, q * inv + (p->accumulate ? vector_get(w, ST_NORM_DSCALE, c, 0) : 0));
        vector_put(w, ST_NORM_DSHIFT, c, s + (p->accumulate ? vector_get(w, ST_NORM_DSHIFT, c, 0) : 0));
        spread(w, A, c, scale * inv);
        spread(w, B, c, s / n);
        spread(w, K, c, inv * inv * q / n);
        return;
    }
    double mean, inv;
    if (p->op == ST_NORM_INFERENCE) {
        mean = vector_get(w, ST_NORM_RUNNING_MEAN, c, 0);
        inv = 1 / sqrt(vector_get(w, ST_NORM_RUNNING_VAR, c, 1) + p->epsilon);
    } else {
        const int64_t per_part =
            pl->kernel->channels || pl->cut == 1 ? pl->step * (pl->kernel->channels ? 1 : pl->len[3]) : PIECE;
        for (int64_t g = 0; g < pl->parts; g++) {
            int64_t count = st_min64(per_part, pl->elements - g * per_part);
            if (!pl->kernel->channels && pl->cut > 1)
                count = st_min64(PIECE, pl->len[3] - g % pl->cut * PIECE);
            s += first[g * w->piece_stride] * (double)count;
        }
        mean = s / n;
        for (int64_t g = 0; g < pl->parts; g++) {
            int64_t count = st_min64(per_part, pl->elements - g * per_part);
            if (!pl->kernel->channels && pl->cut > 1)
                count = st_min64(PIECE, pl->len[3] - g % pl->cut * PIECE);
            const double d = first[g * w->piece_stride] - mean;
            q += second[g * w->piece_stride] + (double)count * d * d;
        }
        const double var = q / n, keep = 1 - p->momentum;
        inv = 1 / sqrt(var + p->epsilon);
        vector_put(w, ST_NORM_SAVE_MEAN, c, mean);
        vector_put(w, ST_NORM_SAVE_INV_STD, c, inv);
        vector_put(w, ST_NORM_RUNNING_MEAN, c,
                   keep * vector_get(w, ST_NORM_RUNNING_MEAN, c, 0) + p->momentum * mean);
        vector_put(w, ST_NORM_RUNNING_VAR, c,
                   keep * vector_get(w, ST_NORM_RUNNING_VAR, c, 0) +
                       p->momentum * (p->running_biased ? var : q / (n - 1)));
    }
    const double a = inv * vector_get(w, ST_NORM_SCALE, c, 1);
    spread(w, MEAN, c, mean);
    /* what rounding the mean takes away goes into the shift */
    const double lost = isfinite(mean) ? mean - get(pl, w->vector[MEAN], c) : 0;
    spread(w, A, c, a);
    spread(w, B, c, vector_get(w, ST_NORM_SHIFT, c, 0) - (isfinite(lost) ? lost * a : 0));
}

static int64_t offset_of(const norm_plan *pl, int o, int64_t row, int last)
{
    int64_t at = 0;
    for (int d = last; d >= 0; d--) {
        if (pl->len[d] == 1) continue;
        at += row % pl->len[d] * pl->stride[o][d];
        row /= pl->len[d];
    }
    return at;
}

/* One rectangle (channels) or run (runs): the operands' addresses and distances between rows. */
typedef struct rect {
    char *at[4];
    int64_t ld[4], rows, n;
} rect;

/* The next rectangle of rows [*row, end) in the channels way: wide rows while they last, then single ones. */
static rect next_rect(const norm_work *w, int64_t *row, int64_t end)
{
    const norm_plan *pl = w->pl;
    const int64_t n = st_min64(pl->len[3] - *row % pl->len[3], end - *row),
                  fold = n >= pl->fold ? pl->fold : 1;
    rect r = {.rows = n / fold, .n = pl->c * fold};
    for (int o = 0; o < 4; o++) {
        if (!has(w, o)) continue;
        r.at[o] = (char *)w->data[o] + offset_of(pl, o, *row, 3) * pl->size;
        r.ld[o] = pl->stride[o][3] * fold;
    }
    *row += r.rows * fold;
    return r;
}

/* Adds the columns of one rectangle's sums to those of the channels: folded rows have several columns a channel. */
static void add_columns(const norm_plan *pl, const void *from, int64_t n, int64_t nc, double *to)
{
    for (int64_t j = 0; j < n; j += nc)
        for (int64_t c = 0; c < nc; c++) to[c] += get(pl, from, j + c);
}

/* The mean and squares of n elements about `mean`, a rounded one, whose differences sum to s and their squares to *q. */
static double correct(double mean, double s, double *q, int64_t n)
{
    const double d = s / (double)n;
    *q -= d * s;
    return mean + d;
}

static void channels_stats(const norm_work *w, int64_t piece)
{
    const norm_plan *pl = w->pl;
    const st_norm_kernel *k = pl->kernel;
    const int64_t begin = piece * pl->step, end = st_min64(pl->rows, begin + pl->step);
    double one[WIDE], two[WIDE], mean[WIDE]; /* of the problem's type; double for room and alignment */
    for (int64_t c0 = 0; c0 < pl->c; c0 += WIDE) {
        const int64_t nc = st_min64(WIDE, pl->c - c0), at = c0 * pl->size;
        double *s = w->first + piece * w->piece_stride + c0, *q = w->second + piece * w->piece_stride + c0;
        memset(s, 0, (size_t)nc * sizeof *s);
        memset(q, 0, (size_t)nc * sizeof *q);
        for (int64_t row = begin; row < end;) {
            const rect r = next_rect(w, &row, end);
            const int64_t n = pl->fold > 1 ? r.n : nc;
            if (pl->key.p.op == ST_NORM_BACKWARD) {
                k->products(r.at[ST_NORM_X] + at, r.ld[ST_NORM_X], r.at[ST_NORM_DY] + at, r.ld[ST_NORM_DY],
                            r.rows, n, w->vector[MEAN] + at, one, two);
                add_columns(pl, two, n, nc, q);
            } else {
                k->sum(r.at[ST_NORM_X] + at, r.ld[ST_NORM_X], r.rows, n, one);
            }
            add_columns(pl, one, n, nc, s);
        }
        if (pl->key.p.op == ST_NORM_BACKWARD) continue;
        for (int64_t c = 0; c < nc; c++) put(pl, mean, c, s[c] / (double)(end - begin)), s[c] = 0;
        for (int64_t j = nc; j < pl->width && pl->fold > 1; j++) put(pl, mean, j, get(pl, mean, j % nc));
        for (int64_t row = begin; row < end;) {
            const rect r = next_rect(w, &row, end);
            const int64_t n = pl->fold > 1 ? r.n : nc;
            k->square(r.at[ST_NORM_X] + at, r.ld[ST_NORM_X], r.rows, n, mean, one, two);
            add_columns(pl, one, n, nc, s);
            add_columns(pl, two, n, nc, q);
        }
        for (int64_t c = 0; c < nc; c++) s[c] = correct(get(pl, mean, c), s[c], &q[c], end - begin);
    }
}

static void channels_apply(const norm_work *w, int64_t piece)
{
    const norm_plan *pl = w->pl;
    char *const *v = w->vector;
    const int64_t begin = piece * pl->step, end = st_min64(pl->rows, begin + pl->step);
    for (int64_t row = begin; row < end;) {
        const rect r = next_rect(w, &row, end);
        if (pl->key.p.op == ST_NORM_BACKWARD)
            pl->kernel->gradient(r.at[ST_NORM_X], r.ld[ST_NORM_X], r.at[ST_NORM_DY], r.ld[ST_NORM_DY],
                                 r.at[ST_NORM_DX], r.ld[ST_NORM_DX], r.rows, r.n, v[MEAN], v[A], v[B], v[K],
                                 pl->key.p.accumulate, pl->stream);
        else
            pl->kernel->apply(r.at[ST_NORM_X], r.ld[ST_NORM_X], r.at[ST_NORM_Y], r.ld[ST_NORM_Y], r.rows, r.n,
                              v[MEAN], v[A], v[B], pl->stream);
    }
}

/* Run `run` of channel c, elements [begin, begin + n): addresses in memory. */
static rect run_at(const norm_work *w, int64_t c, int64_t run, int64_t begin, int64_t n)
{
    const norm_plan *pl = w->pl;
    rect r = {.n = n};
    for (int o = 0; o < 4; o++)
        if (has(w, o))
            r.at[o] = (char *)w->data[o] +
                      (c * pl->chan[o] + offset_of(pl, o, run, 2) + begin * pl->stride[o][3]) * pl->size;
    return r;
}

static void copy_strided(const norm_plan *pl, const char *from, int64_t sf, char *to, int64_t st, int64_t n)
{
    if (pl->size == 8)
        for (int64_t i = 0; i < n; i++) ((double *)to)[i * st] = ((const double *)from)[i * sf];
    else
        for (int64_t i = 0; i < n; i++) ((float *)to)[i * st] = ((const float *)from)[i * sf];
}

/* What is done with one run (or the buffered part of one). */
typedef enum run_step { RUN_SUM, RUN_SQUARE, RUN_PRODUCTS, RUN_WRITE } run_step;
static void run_do(const norm_work *w, run_step step, const rect *r, int64_t c, const void *mean, void *s,
                   void *q)
{
    const norm_plan *pl = w->pl;
    const st_norm_kernel *k = pl->kernel;
    const int64_t at = c * pl->size;
    char *const *v = w->vector;
    switch (step) {
    case RUN_SUM: k->sum(r->at[ST_NORM_X], 0, 1, r->n, s); break;
    case RUN_SQUARE: k->square(r->at[ST_NORM_X], 0, 1, r->n, mean, s, q); break;
    case RUN_PRODUCTS: k->products(r->at[ST_NORM_X], 0, r->at[ST_NORM_DY], 0, 1, r->n, mean, s, q); break;
    case RUN_WRITE:
        if (pl->key.p.op == ST_NORM_BACKWARD)
            k->gradient(r->at[ST_NORM_X], 0, r->at[ST_NORM_DY], 0, r->at[ST_NORM_DX], 0, 1, r->n,
                        v[MEAN] + at, v[A] + at, v[B] + at, v[K] + at, pl->key.p.accumulate, pl->stream);
        else
            k->apply(r->at[ST_NORM_X], 0, r->at[ST_NORM_Y], 0, 1, r->n, v[MEAN] + at, v[A] + at, v[B] + at,
                     pl->stream);
    }
}

static void run_each(const norm_work *w, run_step step, int64_t c, int64_t part, const void *mean, void *s,
                     void *q)
{
    const norm_plan *pl = w->pl;
    const int64_t run0 = pl->cut > 1 ? part / pl->cut : part * pl->step,
                  run1 = st_min64(pl->rows, run0 + pl->step);
    const int64_t begin = pl->cut > 1 ? part % pl->cut * PIECE : 0, n = st_min64(PIECE, pl->len[3] - begin);
    double buffer[4][BUFFER];
    for (int64_t run = run0; run < run1; run++) {
        if (!pl->gather) {
            const rect r = run_at(w, c, run, begin, n);
            run_do(w, step, &r, c, mean, s, q);
            continue;
        }
        const int out = pl->key.p.op == ST_NORM_BACKWARD ? ST_NORM_DX : ST_NORM_Y;
        for (int64_t i = 0; i < n; i += BUFFER) {
            const rect r = run_at(w, c, run, begin + i, st_min64(BUFFER, n - i));
            rect b = {.n = r.n};
            for (int o = 0; o < 4; o++) {
                if (!has(w, o)) continue;
                b.at[o] = (char *)buffer[o];
                if (o != out || pl->key.p.accumulate)
                    copy_strided(pl, r.at[o], pl->stride[o][3], b.at[o], 1, r.n);
            }
            run_do(w, step, &b, c, mean, s, q);
            if (step == RUN_WRITE) copy_strided(pl, b.at[out], 1, r.at[out], pl->stride[out][3], r.n);
        }
    }
}

static double acc_total(const norm_plan *pl, const void *acc)
{
    double s = 0;
    for (int i = 0; i < ST_NORM_ACC; i++) s += get(pl, acc, i);
    return s;
}

static void runs_stats(const norm_work *w, int64_t c, int64_t part)
{
    const norm_plan *pl = w->pl;
    double s[ST_NORM_ACC] = {0}, q[ST_NORM_ACC] = {0}, mean[1];
    const int64_t at = part * w->piece_stride + c * w->channel_stride;
    if (pl->key.p.op == ST_NORM_BACKWARD) {
        run_each(w, RUN_PRODUCTS, c, part, w->vector[MEAN] + c * pl->size, s, q);
        w->first[at] = acc_total(pl, s);
        w->second[at] = acc_total(pl, q);
    } else {
        run_each(w, RUN_SUM, c, part, NULL, s, q);
        int64_t count = (st_min64(pl->rows, (part + 1) * pl->step) - part * pl->step) * pl->len[3];
        if (pl->cut > 1) count = st_min64(PIECE, pl->len[3] - part % pl->cut * PIECE);
        put(pl, mean, 0, acc_total(pl, s) / (double)count);
        memset(s, 0, sizeof s);
        run_each(w, RUN_SQUARE, c, part, mean, s, q);
        double squares = acc_total(pl, q);
        w->first[at] = correct(get(pl, mean, 0), acc_total(pl, s), &squares, count);
        w->second[at] = squares;
    }
}

static bool writes_all(const norm_work *w) { return has(w, ST_NORM_Y) || has(w, ST_NORM_DX); }

static void stats_task(void *arg, int64_t i, int worker)
{
    const norm_work *w = arg;
    (void)worker;
    if (w->pl->kernel->channels)
        channels_stats(w, i);
    else
        runs_stats(w, i / w->pl->parts, i % w->pl->parts);
}
static void join_task(void *arg, int64_t i, int worker)
{
    const norm_work *w = arg;
    (void)worker;
    for (int64_t c = i * 64; c < st_min64(w->pl->c, i * 64 + 64); c++) join(w, c);
}
static void apply_task(void *arg, int64_t i, int worker)
{
    const norm_work *w = arg;
    (void)worker;
    if (w->pl->kernel->channels)
        channels_apply(w, i);
    else
        run_each(w, RUN_WRITE, i / w->pl->parts, i % w->pl->parts, NULL, NULL, NULL);
}
static void whole_task(void *arg, int64_t c, int worker)
{
    const norm_work *w = arg;
    (void)worker;
    for (int64_t g = 0; w->stats && g < w->pl->parts; g++) runs_stats(w, c, g);
    join(w, c);
    for (int64_t g = 0; writes_all(w) && g < w->pl->parts; g++)
        run_each(w, RUN_WRITE, c, g, NULL, NULL, NULL);
}

static strata_status norm_run(strata_handle *h, const strata_plan *base, void *const data[],
                              const strata_run *r)
{
    const norm_plan *pl = (const norm_plan *)base;
    char *ws = st_plan_workspace(h, base, r);
    if (!ws) return h->err.status;
    norm_work w = {.pl = pl, .data = data, .stats = pl->key.p.op != ST_NORM_INFERENCE};
    w.first = (double *)ws, ws += sums_bytes(pl);
    w.second = (double *)ws, ws += sums_bytes(pl);
    for (int i = 0; i < VECTORS; i++) w.vector[i] = ws, ws += vector_bytes(pl);
    w.piece_stride = pl->kernel->channels ? pl->c : 1;
    w.channel_stride = pl->kernel->channels ? 1 : pl->parts;
    if (pl->key.p.op == ST_NORM_BACKWARD)
        for (int64_t c = 0; c < pl->c; c++) spread(&w, MEAN, c, vector_get(&w, ST_NORM_SAVE_MEAN, c, 0));
    const double us = base->chosen.us / 2;
    if (!pl->kernel->channels && pl->whole) {
        st_team_for(h, pl->c, 2 * us, whole_task, &w);
        return STRATA_OK;
    }
    const int64_t tasks = pl->parts * (pl->kernel->channels ? 1 : pl->c);
    if (w.stats) st_team_for(h, tasks, us, stats_task, &w);
    st_team_for(h, st_ceil_div(pl->c, 64), 0.01 * (double)pl->c, join_task, &w);
    if (writes_all(&w)) st_team_for(h, tasks, us, apply_task, &w);
    return STRATA_OK;
}

static const st_provider norm_provider = {"norm", ST_OP_POINTWISE, norm_enumerate, norm_build, ST_ON_CPU};

int st_pw_norm_kernels(int i, strata_kernel_info *info)
{
    if (i >= ST_COUNT(norm_kernels)) return st_pw_norm_cuda_kernels(i - ST_COUNT(norm_kernels), info);
    if (i < 0) return 0;
    const st_norm_kernel *k = &norm_kernels[i];
    const bool usable = (k->isa & st_cpu_get()->isa) == k->isa;
    *info = (strata_kernel_info){k->id,
                                 "norm",
                                 k->types,
                                 k->isa_name,
                                 norm_order,
                                 usable,
                                 usable ? NULL : "the processor (or STRATA_ISA) lacks the instruction set"};
    return 1;
}

void st_pw_norm_init(void)
{
    st_plan_register(&norm_provider);
    st_pw_norm_cuda_init();
}

strata_status st_pw_norm(strata_handle *h, const char *who, const st_norm_problem *p, void *const data[])
{
    st_pw_init();
    norm_key key;
    memset(&key, 0, sizeof key);
    key.family = ST_PW_NORM;
    key.p = *p;
    if (h->gpu) key.alignment = st_pw_norm_alignment(p, data);
    st_problem pr = {ST_OP_POINTWISE, who, &key, sizeof key, NULL};
    const strata_plan *plan;
    strata_status s = st_plan_get(h, &pr, &plan);
    if (s) return s;
    const uint64_t t0 = st_trace_begin();
    s = st_plan_execute(h, plan, data, NULL);
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "pointwise", plan->chosen.kernel, "%s, workspace %zu", plan->title, plan->workspace);
    return s;
}
