/* SPDX-License-Identifier: Apache-2.0 */
/* peer_dnnl.c - oneDNN through dlsym, interfaces 2.x and 3.x.
 *
 * Both speak of memory descriptors by address: in 3.x they are objects of the library's own, in 2.x structures of the caller's
 * (696 bytes in 2.6), for which a block of 4 KiB is kept; and both make a primitive in two steps (2.x has a third structure, the
 * operation, of at most 5976 bytes in 2.6, for which 16 KiB are kept). So one set of code serves them with a few switches. The
 * numbers that differ between them stand in the two tables `numbers_2` and `numbers_3`, read in their headers. */
#include "bench.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t dims12[12];
typedef struct exec_arg {
    int arg;
    void *memory;
} exec_arg;

typedef struct numbers {
    int ba, acdb, abcde; /* format tags that moved; any 1, a 2, ab 3, abcd 5 did not */
    int relu, exp, tanh, logistic, gelu_erf;
    unsigned scale, shift;
} numbers;
static const numbers numbers_2 = {22, 20, 7, 0x1f, 0xbf, 0x2f, 0xaf, 0x30, 8, 16};
static const numbers numbers_3 = {14, 22, 6, 0x20, 42, 33, 41, 49, 2, 4};

enum {
    TAG_ANY = 1,
    TAG_A = 2,
    TAG_AB = 3,
    TAG_ABCD = 5,
    TYPE_F32 = 3,
    INFERENCE = 96,
    TRAINING = 64,
    DIRECT = 1,
    GLOBAL_STATS = 1
};
enum {
    Q_IMPL = 8,
    Q_SRC = 129,
    Q_DIFF_SRC = 130,
    Q_WEIGHTS = 131,
    Q_DIFF_WEIGHTS = 132,
    Q_DST = 133,
    Q_DIFF_DST = 134
};
enum {
    ARG_SRC = 1,
    ARG_DST = 17,
    ARG_WEIGHTS = 33,
    ARG_BIAS = 41,
    ARG_MEAN = 49,
    ARG_VARIANCE = 50,
    ARG_SCALE = 51,
    ARG_SHIFT = 52,
    ARG_DIFF_SRC = 129,
    ARG_DIFF_DST = 145,
    ARG_DIFF_WEIGHTS = 161
};

struct dnnl {
    int major;
    const numbers *num;
    void *engine, *stream, *lib;
    int (*engine_create)(void **, int, size_t);
    int (*stream_create)(void **, void *, unsigned);
    int (*stream_wait)(void *);
    int (*memory_create)(void **, const void *, void *, void *);
    int (*memory_destroy)(void *);
    int (*memory_get_data_handle)(const void *, void **);
    int (*reorder_create)(void **, const void *, void *, const void *, void *, const void *);
    int (*primitive_create)(void **, const void *);
    int (*primitive_destroy)(void *);
    int (*primitive_execute)(const void *, void *, int, const exec_arg *);
    int (*pd_query)(const void *, int, int, void *);
    const void *(*pd_query_md)(const void *, int, int);
    int (*pd_destroy)(void *);
    int (*md_with_tag)(void *, int, const dims12, int, int); /* 3.x: void **; 2.x: the structure */
    int (*md_destroy)(void *);                               /* 3.x */
    int (*pd_create)(void **, const void *, const void *, void *, const void *); /* 2.x */
};

enum { MAX_MEMORY = 24 };
struct dnnl_op {
    struct dnnl *d;
    void *pd, *forward_pd, *primitive;
    exec_arg arg[12];
    int n;
    void *memory[MAX_MEMORY];
    int memories;
    void *md[MAX_MEMORY];
    int mds;
    void *result;             /* memory that the primitive writes */
    const void *result_plain; /* descriptor to fetch it in */
    size_t result_count;
    char impl[64];
};

static bool look(struct dnnl *d, void *field, const char *name)
{
    void *s = dlsym(d->lib, name);
    memcpy(field, &s, sizeof s);
    return s != NULL;
}

struct dnnl *dnnl_open(void *lib, char *version, size_t n)
{
    struct version {
        int major, minor, patch;
        const char *hash;
    };
    const struct version *(*get)(void);
    struct dnnl *d = calloc(1, sizeof *d);
    if (!d) return NULL;
    d->lib = lib;
    bool ok = look(d, &get, "dnnl_version");
    if (ok) {
        const struct version *v = get();
        d->major = v->major;
        snprintf(version, n, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
        ok = v->major == 2 || v->major == 3;
    }
    d->num = d->major == 2 ? &numbers_2 : &numbers_3;
    ok = ok && look(d, &d->engine_create, "dnnl_engine_create") &&
         look(d, &d->stream_create, "dnnl_stream_create") && look(d, &d->stream_wait, "dnnl_stream_wait") &&
         look(d, &d->memory_create, "dnnl_memory_create") &&
         look(d, &d->memory_destroy, "dnnl_memory_destroy") &&
         look(d, &d->memory_get_data_handle, "dnnl_memory_get_data_handle") &&
         look(d, &d->reorder_create, "dnnl_reorder_primitive_desc_create") &&
         look(d, &d->primitive_create, "dnnl_primitive_create") &&
         look(d, &d->primitive_destroy, "dnnl_primitive_destroy") &&
         look(d, &d->primitive_execute, "dnnl_primitive_execute") &&
         look(d, &d->pd_query, "dnnl_primitive_desc_query") &&
         look(d, &d->pd_query_md, "dnnl_primitive_desc_query_md") &&
         look(d, &d->pd_destroy, "dnnl_primitive_desc_destroy");
    if (ok && d->major == 2)
        ok = look(d, &d->md_with_tag, "dnnl_memory_desc_init_by_tag") &&
             look(d, &d->pd_create, "dnnl_primitive_desc_create");
    else if (ok)
        ok = look(d, &d->md_with_tag, "dnnl_memory_desc_create_with_tag") &&
             look(d, &d->md_destroy, "dnnl_memory_desc_destroy");
    ok = ok && d->engine_create(&d->engine, 1, 0) == 0 && d->stream_create(&d->stream, d->engine, 1) == 0;
    if (!ok) {
        free(d);
        return NULL;
    }
    int (*isa)(void);
    if (look(d, &isa, "dnnl_get_effective_cpu_isa"))
        snprintf(version + strlen(version), n - strlen(version), "; instruction set code %#x",
                 (unsigned)isa());
    return d;
}

/* ---- pieces of an operation ------------------------------------------------------------------------------------------- */
static dnnl_op *op_new(struct dnnl *d)
{
    dnnl_op *o = calloc(1, sizeof *o);
    if (o) o->d = d;
    return o;
}

void dnnl_drop(void *op)
{
    dnnl_op *o = op;
    if (!o) return;
    struct dnnl *d = o->d;
    if (o->primitive) d->primitive_destroy(o->primitive);
    if (o->pd) d->pd_destroy(o->pd);
    if (o->forward_pd) d->pd_destroy(o->forward_pd);
    for (int i = 0; i < o->memories; i++) d->memory_destroy(o->memory[i]);
    for (int i = 0; i < o->mds; i++) {
        if (d->major == 3)
            d->md_destroy(o->md[i]);
        else
            free(o->md[i]);
    }
    free(o);
}

static const void *md(dnnl_op *o, int rank, const int64_t *dim, int tag)
{
    if (o->mds == MAX_MEMORY) return NULL;
    dims12 v = {0};
    memcpy(v, dim, sizeof *dim * (size_t)rank);
    void *m = NULL;
    if (o->d->major == 3) {
        if (o->d->md_with_tag(&m, rank, v, TYPE_F32, tag)) return NULL;
    } else {
        m = calloc(1, 4096);
        if (m && o->d->md_with_tag(m, rank, v, TYPE_F32, tag)) {
            free(m);
            m = NULL;
        }
        if (!m) return NULL;
    }
    o->md[o->mds++] = m;
    return m;
}

/* memory with this descriptor; data NULL: the library allocates */
static void *memory(dnnl_op *o, const void *desc, const void *data)
{
    void *m = NULL;
    if (!desc || o->memories == MAX_MEMORY) return NULL;
    if (o->d->memory_create(&m, desc, o->d->engine, data ? (void *)(uintptr_t)data : (void *)~(uintptr_t)0))
        return NULL;
    return o->memory[o->memories++] = m;
}

static bool reorder(struct dnnl *d, const void *from_md, void *from, const void *to_md, void *to)
{
    void *pd = NULL, *p = NULL;
    bool ok = d->reorder_create(&pd, from_md, d->engine, to_md, d->engine, NULL) == 0 &&
              d->primitive_create(&p, pd) == 0;
    exec_arg a[2] = {{ARG_SRC, from}, {ARG_DST, to}};
    ok = ok && d->primitive_execute(p, d->stream, 2, a) == 0 && d->stream_wait(d->stream) == 0;
    if (p) d->primitive_destroy(p);
    if (pd) d->pd_destroy(pd);
    return ok;
}

/* plain data brought into the layout `want` */
static void *converted(dnnl_op *o, const void *plain_md, const float *data, const void *want)
{
    void *from = memory(o, plain_md, data), *to = memory(o, want, NULL);
    return from && to && reorder(o->d, plain_md, from, want, to) ? to : NULL;
}

static bool add_arg(dnnl_op *o, int id, void *m)
{
    if (!m || o->n == 12) return false;
    o->arg[o->n].arg = id;
    o->arg[o->n++].memory = m;
    return true;
}

static bool finish(dnnl_op *o)
{
    const char *s = NULL;
    if (o->d->pd_query(o->pd, Q_IMPL, 0, &s) == 0 && s) snprintf(o->impl, sizeof o->impl, "%s", s);
    return o->d->primitive_create(&o->primitive, o->pd) == 0;
}

static dnnl_op *or_drop(dnnl_op *o, bool ok)
{
    if (ok) return o;
    dnnl_drop(o);
    return NULL;
}

void dnnl_run(void *op)
{
    dnnl_op *o = op;
    o->d->primitive_execute(o->primitive, o->d->stream, o->n, o->arg);
    o->d->stream_wait(o->d->stream);
}

const char *dnnl_impl(const dnnl_op *op) { return op->impl; }

bool dnnl_fetch(dnnl_op *o, float *out)
{
    const void *have = NULL;
    int (*get)(const void *, const void **);
    if (!look(o->d, &get, "dnnl_memory_get_memory_desc") || get(o->result, &have)) return false;
    void *to = NULL;
    if (o->d->memory_create(&to, o->result_plain, o->d->engine, out)) return false;
    bool ok = reorder(o->d, have, o->result, o->result_plain, to);
    o->d->memory_destroy(to);
    return ok;
}

/* ---- matrix product ---------------------------------------------------------------------------------------------------- */
static int eltwise_of(const struct dnnl *d, int row)
{
    const numbers *q = d->num;
    return row == DNNL_RELU      ? q->relu
           : row == DNNL_EXP     ? q->exp
           : row == DNNL_TANH    ? q->tanh
           : row == DNNL_SIGMOID ? q->logistic
                                 : q->gelu_erf;
}

/* Attributes with one post-operation; NULL: there is none, or it cannot be made (*ok). */
static void *post_attr(struct dnnl *d, int post, bool *ok)
{
    int (*make)(void **), (*ops)(void **), (*ops_destroy)(void *) = NULL, (*set)(void *, const void *);
    int (*append3)(void *, int, float, float) = NULL, (*append2)(void *, float, int, float, float) = NULL;
    void *attr = NULL, *list = NULL;
    if (post < 0) return NULL;
    *ok = *ok && look(d, &make, "dnnl_primitive_attr_create") && look(d, &ops, "dnnl_post_ops_create") &&
          look(d, &ops_destroy, "dnnl_post_ops_destroy") &&
          look(d, &set, "dnnl_primitive_attr_set_post_ops") &&
          look(d, d->major == 2 ? (void *)&append2 : (void *)&append3, "dnnl_post_ops_append_eltwise") &&
          make(&attr) == 0 && ops(&list) == 0;
    if (*ok)
        *ok = (d->major == 2 ? append2(list, 1, eltwise_of(d, post), 0, 0)
                             : append3(list, eltwise_of(d, post), 0, 0)) == 0 &&
              set(attr, list) == 0;
    if (list && ops_destroy) ops_destroy(list);
    return attr;
}

static dnnl_op *matmul(struct dnnl *d, const int64_t dim[3], bool ta, bool tb, bool packed, const float *a,
                       const float *b, const float *bias, float *c, int post)
{
    int64_t ad[2] = {dim[0], dim[2]}, bd[2] = {dim[2], dim[1]}, cd[2] = {dim[0], dim[1]}, vd[2] = {1, dim[1]};
    dnnl_op *o = op_new(d);
    if (!o) return NULL;
    const void *am = md(o, 2, ad, ta ? d->num->ba : TAG_AB), *bm = md(o, 2, bd, tb ? d->num->ba : TAG_AB),
               *cm = md(o, 2, cd, TAG_AB), *vm = bias ? md(o, 2, vd, TAG_AB) : NULL;
    const void *want = packed ? md(o, 2, bd, TAG_ANY) : bm;
    bool ok = am && bm && cm && want && (vm || !bias);
    void *attr = post_attr(d, post, &ok);
    if (ok && d->major == 2) {
        int (*init)(void *, const void *, const void *, const void *, const void *);
        void *desc = calloc(1, 16384);
        ok = desc && look(d, &init, "dnnl_matmul_desc_init") && init(desc, am, want, vm, cm) == 0 &&
             d->pd_create(&o->pd, desc, attr, d->engine, NULL) == 0;
        free(desc);
    } else if (ok) {
        int (*make)(void **, void *, const void *, const void *, const void *, const void *, const void *);
        ok = look(d, &make, "dnnl_matmul_primitive_desc_create") &&
             make(&o->pd, d->engine, am, want, vm, cm, attr) == 0;
    }
    int (*attr_destroy)(void *);
    if (attr && look(d, &attr_destroy, "dnnl_primitive_attr_destroy")) attr_destroy(attr);
    ok = ok && finish(o) && add_arg(o, ARG_SRC, memory(o, am, a)) &&
         add_arg(o, ARG_WEIGHTS,
                 packed ? converted(o, bm, b, d->pd_query_md(o->pd, Q_WEIGHTS, 0)) : memory(o, bm, b)) &&
         (!bias || add_arg(o, ARG_BIAS, memory(o, vm, bias))) && add_arg(o, ARG_DST, memory(o, cm, c));
    return or_drop(o, ok);
}

dnnl_op *dnnl_matmul(struct dnnl *d, int64_t m, int64_t n, int64_t k, bool ta, bool tb, bool packed,
                     const float *a, const float *b, float *c)
{
    return matmul(d, (const int64_t[]){m, n, k}, ta, tb, packed, a, b, NULL, c, -1);
}

dnnl_op *dnnl_matmul_fused(struct dnnl *d, int64_t m, int64_t n, int64_t k, bool packed, const float *a,
                           const float *b, const float *bias, float *c, int post)
{
    return matmul(d, (const int64_t[]){m, n, k}, false, false, packed, a, b, bias, c, post);
}

/* ---- convolution --------------------------------------------------------------------------------------------------------- */
typedef struct conv_args {
    const void *x, *w, *y;
    dims12 stride, dilation, pad;
} conv_args;

static bool conv_pd_2(dnnl_op *o, conv_pass pass, const conv_args *c)
{
    struct dnnl *d = o->d;
    int (*fwd)(void *, int, int, const void *, const void *, const void *, const void *, const dims12,
               const dims12, const dims12, const dims12);
    int (*bwd_d)(void *, int, const void *, const void *, const void *, const dims12, const dims12,
                 const dims12, const dims12);
    int (*bwd_w)(void *, int, const void *, const void *, const void *, const void *, const dims12,
                 const dims12, const dims12, const dims12);
    void *desc = calloc(1, 16384);
    bool ok = desc && look(d, &fwd, "dnnl_dilated_convolution_forward_desc_init") &&
              look(d, &bwd_d, "dnnl_dilated_convolution_backward_data_desc_init") &&
              look(d, &bwd_w, "dnnl_dilated_convolution_backward_weights_desc_init");
    void **first = pass == PASS_FORWARD ? &o->pd : &o->forward_pd;
    ok = ok &&
         fwd(desc, pass == PASS_FORWARD ? INFERENCE : TRAINING, DIRECT, c->x, c->w, NULL, c->y, c->stride,
             c->dilation, c->pad, c->pad) == 0 &&
         d->pd_create(first, desc, NULL, d->engine, NULL) == 0;
    if (ok && pass != PASS_FORWARD) {
        memset(desc, 0, 16384);
        int s = pass == PASS_DATA
                    ? bwd_d(desc, DIRECT, c->x, c->w, c->y, c->stride, c->dilation, c->pad, c->pad)
                    : bwd_w(desc, DIRECT, c->x, c->w, NULL, c->y, c->stride, c->dilation, c->pad, c->pad);
        ok = s == 0 && d->pd_create(&o->pd, desc, NULL, d->engine, o->forward_pd) == 0;
    }
    free(desc);
    return ok;
}

static bool conv_pd_3(dnnl_op *o, conv_pass pass, const conv_args *c)
{
    struct dnnl *d = o->d;
    int (*fwd)(void **, void *, int, int, const void *, const void *, const void *, const void *,
               const dims12, const dims12, const dims12, const dims12, const void *);
    int (*bwd_d)(void **, void *, int, const void *, const void *, const void *, const dims12, const dims12,
                 const dims12, const dims12, const void *, const void *);
    int (*bwd_w)(void **, void *, int, const void *, const void *, const void *, const void *, const dims12,
                 const dims12, const dims12, const dims12, const void *, const void *);
    void **first = pass == PASS_FORWARD ? &o->pd : &o->forward_pd;
    bool ok = look(d, &fwd, "dnnl_convolution_forward_primitive_desc_create") &&
              look(d, &bwd_d, "dnnl_convolution_backward_data_primitive_desc_create") &&
              look(d, &bwd_w, "dnnl_convolution_backward_weights_primitive_desc_create") &&
              fwd(first, d->engine, pass == PASS_FORWARD ? INFERENCE : TRAINING, DIRECT, c->x, c->w, NULL,
                  c->y, c->stride, c->dilation, c->pad, c->pad, NULL) == 0;
    if (ok && pass == PASS_DATA)
        ok = bwd_d(&o->pd, d->engine, DIRECT, c->x, c->w, c->y, c->stride, c->dilation, c->pad, c->pad,
                   o->forward_pd, NULL) == 0;
    if (ok && pass == PASS_WEIGHTS)
        ok = bwd_w(&o->pd, d->engine, DIRECT, c->x, c->w, NULL, c->y, c->stride, c->dilation, c->pad, c->pad,
                   o->forward_pd, NULL) == 0;
    return ok;
}

dnnl_op *dnnl_conv(struct dnnl *d, const conv_shape *s, conv_pass pass, dnnl_layout layout,
                   const float *x_nchw, const float *w_oihw, const float *y_nchw)
{
    int64_t xd[4] = {s->n, s->c, s->h, s->w}, yd[4] = {s->n, s->o, s->p, s->q};
    int64_t wd[5] = {s->groups, s->o / s->groups, s->c / s->groups, s->r, s->s};
    int rank = s->groups > 1 ? 5 : 4, wtag = s->groups > 1 ? d->num->abcde : TAG_ABCD;
    const int64_t *wdim = s->groups > 1 ? wd : wd + 1;
    int tag = layout == DNNL_NCHW ? TAG_ABCD : layout == DNNL_NHWC ? d->num->acdb : TAG_ANY;
    dnnl_op *o = op_new(d);
    if (!o) return NULL;
    conv_args c = {
        md(o, 4, xd, tag), md(o, rank, wdim, TAG_ANY), md(o, 4, yd, tag), {s->stride, s->stride}, {0, 0},
        {s->pad, s->pad}};
    const void *xp = md(o, 4, xd, TAG_ABCD), *wp = md(o, rank, wdim, wtag), *yp = md(o, 4, yd, TAG_ABCD);
    bool ok = c.x && c.w && c.y && xp && wp && yp &&
              (d->major == 2 ? conv_pd_2(o, pass, &c) : conv_pd_3(o, pass, &c)) && finish(o);
    if (!ok) return or_drop(o, false);
    /* inputs in the layout that the primitive asked for, the result's memory, and the plain descriptor to fetch it in */
    static const struct {
        int arg, query;
    } role[3][3] = {{{ARG_SRC, Q_SRC}, {ARG_WEIGHTS, Q_WEIGHTS}, {ARG_DST, Q_DST}},
                    {{ARG_DIFF_SRC, Q_DIFF_SRC}, {ARG_WEIGHTS, Q_WEIGHTS}, {ARG_DIFF_DST, Q_DIFF_DST}},
                    {{ARG_SRC, Q_SRC}, {ARG_DIFF_WEIGHTS, Q_DIFF_WEIGHTS}, {ARG_DIFF_DST, Q_DIFF_DST}}};
    static const int output[3] = {2, 0, 1};
    const void *plain[3] = {xp, wp, yp};
    const float *data[3] = {x_nchw, w_oihw, y_nchw};
    for (int i = 0; ok && i < 3; i++) {
        const void *want = d->pd_query_md(o->pd, role[pass][i].query, 0);
        void *m = i == output[pass] ? memory(o, want, NULL) : converted(o, plain[i], data[i], want);
        ok = add_arg(o, role[pass][i].arg, m);
        if (i == output[pass]) o->result = m, o->result_plain = plain[i];
    }
    return or_drop(o, ok);
}

/* ---- memory-bound primitives ------------------------------------------------------------------------------------------- */
static bool rowwise_pd(dnnl_op *o, dnnl_row kind, const void *m)
{
    struct dnnl *d = o->d;
    const numbers *q = d->num;
    const int alg = eltwise_of(d, (int)kind);
    unsigned flags = q->scale | q->shift;
    if (d->major == 2) {
        int (*elt)(void *, int, int, const void *, float, float),
            (*soft)(void *, int, int, const void *, const void *, int);
        int (*norm)(void *, int, const void *, const void *, float, unsigned);
        void *desc = calloc(1, 16384);
        bool ok = desc != NULL;
        if (ok && kind == DNNL_SOFTMAX)
            ok = look(d, &soft, "dnnl_softmax_v2_forward_desc_init") &&
                 soft(desc, INFERENCE, 0x30000, m, m, 1) == 0;
        else if (ok && kind == DNNL_LAYER_NORM)
            ok = look(d, &norm, "dnnl_layer_normalization_forward_desc_init") &&
                 norm(desc, INFERENCE, m, NULL, 1e-5f, flags) == 0;
        else if (ok)
            ok = look(d, &elt, "dnnl_eltwise_forward_desc_init") && elt(desc, INFERENCE, alg, m, 0, 0) == 0;
        ok = ok && d->pd_create(&o->pd, desc, NULL, d->engine, NULL) == 0;
        free(desc);
        return ok;
    }
    int (*elt)(void **, void *, int, int, const void *, const void *, float, float, const void *);
    int (*soft)(void **, void *, int, int, const void *, const void *, int, const void *);
    int (*norm)(void **, void *, int, const void *, const void *, const void *, float, unsigned,
                const void *);
    if (kind == DNNL_SOFTMAX)
        return look(d, &soft, "dnnl_softmax_forward_primitive_desc_create") &&
               soft(&o->pd, d->engine, INFERENCE, 0x30000, m, m, 1, NULL) == 0;
    if (kind == DNNL_LAYER_NORM)
        return look(d, &norm, "dnnl_layer_normalization_forward_primitive_desc_create") &&
               norm(&o->pd, d->engine, INFERENCE, m, m, NULL, 1e-5f, flags, NULL) == 0;
    return look(d, &elt, "dnnl_eltwise_forward_primitive_desc_create") &&
           elt(&o->pd, d->engine, INFERENCE, alg, m, m, 0, 0, NULL) == 0;
}

dnnl_op *dnnl_rowwise(struct dnnl *d, dnnl_row kind, int64_t rows, int64_t cols, const float *x, float *y,
                      const float *scale, const float *shift)
{
    int64_t dim[2] = {rows, cols};
    dnnl_op *o = op_new(d);
    if (!o) return NULL;
    const void *m = md(o, 2, dim, TAG_AB);
    bool ok = m && rowwise_pd(o, kind, m) && finish(o) && add_arg(o, ARG_SRC, memory(o, m, x)) &&
              add_arg(o, ARG_DST, memory(o, m, y));
    if (ok && kind == DNNL_LAYER_NORM) {
        const void *v = md(o, 1, &cols, TAG_A);
        ok = v && add_arg(o, ARG_SCALE, memory(o, v, scale)) && add_arg(o, ARG_SHIFT, memory(o, v, shift));
    }
    return or_drop(o, ok);
}

dnnl_op *dnnl_batch_norm(struct dnnl *d, const int64_t dim[4], bool nhwc, const float *x, float *y,
                         const float *scale, const float *shift, const float *mean, const float *var)
{
    dnnl_op *o = op_new(d);
    if (!o) return NULL;
    const void *m = md(o, 4, dim, nhwc ? d->num->acdb : TAG_ABCD), *v = md(o, 1, &dim[1], TAG_A);
    unsigned flags = GLOBAL_STATS | d->num->scale | d->num->shift;
    bool ok = m && v;
    if (ok && d->major == 2) {
        int (*init)(void *, int, const void *, float, unsigned);
        void *desc = calloc(1, 16384);
        ok = desc && look(d, &init, "dnnl_batch_normalization_forward_desc_init") &&
             init(desc, INFERENCE, m, 1e-5f, flags) == 0 &&
             d->pd_create(&o->pd, desc, NULL, d->engine, NULL) == 0;
        free(desc);
    } else if (ok) {
        int (*make)(void **, void *, int, const void *, const void *, float, unsigned, const void *);
        ok = look(d, &make, "dnnl_batch_normalization_forward_primitive_desc_create") &&
             make(&o->pd, d->engine, INFERENCE, m, m, 1e-5f, flags, NULL) == 0;
    }
    ok = ok && finish(o) && add_arg(o, ARG_SRC, memory(o, m, x)) && add_arg(o, ARG_DST, memory(o, m, y)) &&
         add_arg(o, ARG_SCALE, memory(o, v, scale)) && add_arg(o, ARG_SHIFT, memory(o, v, shift)) &&
         add_arg(o, ARG_MEAN, memory(o, v, mean)) && add_arg(o, ARG_VARIANCE, memory(o, v, var));
    return or_drop(o, ok);
}
