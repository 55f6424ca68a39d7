/* SPDX-License-Identifier: Apache-2.0 */
/* triangle_cuda.c - triangles on a GPU: the launch of a diagonal block (triangle.cu; triangle_small.cu up to an order of 32), blocks of matrices that arrays of addresses name,
 * and the whole call as one plan that lives on the stack, so that operands are checked, and staged on "auto" handles, once and not block by block. */
#include "tile/cuda/triangle_cuda.h"
#include "tile/contract.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TILE = 32, STAGES = 4, SMALL_THREADS = 128 };
static const int types[] = {STRATA_F32, STRATA_F64, STRATA_C64, STRATA_C128};

/* mirrored in triangle.cuh */
typedef struct triangle_params {
    const void *a;
    void *b;
    int64_t n, cols, ars, acs, brs, bcs, from_a, from_b;
    int64_t batch, len[4], sa[4], sb[4];
    double alpha, alpha_im;
    uint32_t panels, pointers;
    int32_t unit, conj;
    int64_t items;
} triangle_params;
_Static_assert(ST_AXES == 4, "axes of a batch");

static int64_t bytes_of(int64_t type) { return (int64_t)strata_type_bits((strata_type)type) / 8; }

/* Shared memory of a block for order n and 32 or 64 columns */
static int64_t smem_of(int64_t type, int64_t n, int wide)
{
    const int64_t es = bytes_of(type), tiles = st_ceil_div(n, TILE), tile = TILE * (TILE + 16 / es);
    return ((tiles > 1 ? STAGES * tile : 0) + tiles * tile + tiles * TILE * (TILE * wide + 1)) * es;
}

int64_t st_cuda_triangle_order(const st_gpu *gpu, int64_t type)
{
    int64_t n = 256;
    while (n > TILE && gpu->smem_block && smem_of(type, n, 1) > gpu->smem_block) n /= 2;
    return n;
}

typedef struct spec_text {
    char id[64], text[4][32];
} spec_text;

/* Kernels: triangle.cu with 32 or 64 columns, triangle_small.cu with a bound of the order and columns of a unit */
enum { NARROW_PANEL, WIDE_PANEL, SMALL, VARIANTS = 7 };
static const struct {
    int order, cols;
} small_of[VARIANTS] = {[SMALL] = {8, 8}, {8, 32}, {16, 8}, {16, 32}, {32, 32}};

static st_gpu_spec spec_of(int64_t type, bool solve, int variant, spec_text *t)
{
    const char *name = solve ? "trsm" : "trmm", *number = strata_type_name((strata_type)type);
    st_gpu_spec s = {.id = t->id, .source = "triangle.cu", .entry = "triangle"};
    snprintf(t->text[0], sizeof t->text[0], "-DT=%s", number);
    snprintf(t->text[1], sizeof t->text[1], "-DSOLVE=%d", solve);
    t->text[3][0] = 0;
    if (variant < SMALL) {
        snprintf(t->id, sizeof t->id, "%s_%s_32x%d_sm80", name, number, TILE * (variant + 1));
        snprintf(t->text[2], sizeof t->text[2], "-DCPL=%d", variant + 1);
    } else {
        s.source = "triangle_small.cu";
        s.entry = "triangle_small";
        snprintf(t->id, sizeof t->id, "%s_%s_%dx%d_small_sm80", name, number, small_of[variant].order,
                 small_of[variant].cols);
        snprintf(t->text[2], sizeof t->text[2], "-DNB=%d", small_of[variant].order);
        snprintf(t->text[3], sizeof t->text[3], "-DCOLS=%d", small_of[variant].cols);
    }
    for (int i = 0; i < 4 && t->text[i][0]; i++) s.option[i] = t->text[i];
    return s;
}

/* The key of a kernel hashes its sources, which takes longer than a small solution: those of each device are kept here. */
enum { DEVICES = 16 };
static _Atomic(const st_gpu_kernel *) known[DEVICES][ST_COUNT(types)][2][VARIANTS];

static strata_status kernel_of(strata_handle *h, int64_t type, bool solve, int variant,
                               const st_gpu_kernel **k)
{
    spec_text text;
    int at = 0;
    while (types[at] != type) at++;
    _Atomic(const st_gpu_kernel *) *slot =
        h->gpu->ordinal < DEVICES ? &known[h->gpu->ordinal][at][solve][variant] : NULL;
    if (slot && (*k = atomic_load_explicit(slot, memory_order_acquire))) return STRATA_OK;
    const st_gpu_spec spec = spec_of(type, solve, variant, &text);
    const strata_status s = st_gpu_kernel_get(h, &spec, k);
    if (!s && slot) atomic_store_explicit(slot, *k, memory_order_release);
    return s;
}

static void fill(const st_triangle *t, const double alpha[2], triangle_params *p)
{
    *p = (triangle_params){.a = t->a,
                           .b = t->b,
                           .n = t->n,
                           .cols = t->cols,
                           .ars = t->ars,
                           .acs = t->acs,
                           .brs = t->brs,
                           .bcs = t->bcs,
                           .from_a = t->from_a,
                           .from_b = t->from_b,
                           .batch = t->batch.count,
                           .alpha = alpha[0],
                           .alpha_im = alpha[1],
                           .pointers = (uint32_t)t->pointers,
                           .unit = t->rule.unit,
                           .conj = t->rule.conj && st_type_is_complex((int)t->type),
                           .items = st_axes_len(&t->batch)};
    for (int d = 0; d < (int)t->batch.count; d++) {
        p->len[d] = t->batch.ax[d].len;
        p->sa[d] = t->batch.ax[d].a;
        p->sb[d] = t->batch.ax[d].b;
    }
    if (t->rule.half == ST_HALF_UPPER) { /* read from the end it is a lower one */
        p->from_a += (t->n - 1) * (t->ars + t->acs);
        p->from_b += (t->n - 1) * t->brs;
        p->ars = -p->ars;
        p->acs = -p->acs;
        p->brs = -p->brs;
    }
}

strata_status st_cuda_triangle_block(strata_handle *h, const char *who, const st_triangle *t,
                                     const double alpha[2])
{
    const int64_t items = st_axes_len(&t->batch), narrow = st_ceil_div(t->cols, TILE), es = bytes_of(t->type);
    const int64_t limit = h->gpu->smem_block ? h->gpu->smem_block : 48 << 10;
    const bool small = t->n <= TILE;
    int variant =
        narrow * items >= 2 * h->gpu->sms && smem_of(t->type, t->n, 2) <= limit ? WIDE_PANEL : NARROW_PANEL;
    if (small) variant = SMALL + (t->n > 16 ? 4 : (t->n > 8 ? 2 : 0) + (t->cols > 16));
    const int width = small ? small_of[variant].cols : TILE * (variant + 1);
    const int64_t panels = st_ceil_div(t->cols, width);
    if (panels * items >= (int64_t)1 << 31)
        return st_fail(&h->err, STRATA_ERROR_UNSUPPORTED,
                       "%s: %lld items of %lld columns; on %s a call has at most 2^31 panels of %d columns",
                       who, (long long)items, (long long)t->cols, h->device, width);
    triangle_params p;
    fill(t, alpha, &p);
    p.panels = (uint32_t)panels;
    const st_gpu_kernel *k;
    const strata_status s = kernel_of(h, t->type, t->solve, variant, &k);
    if (s) return s;
    void *args[] = {&p};
    st_gpu_launch l = {.kernel = k,
                       .grid = {(unsigned)(panels * items), 1, 1},
                       .block = {256, 1, 1},
                       .smem = (unsigned)smem_of(t->type, t->n, variant + 1),
                       .args = args};
    if (small) {
        const int64_t units = SMALL_THREADS / width, order = small_of[variant].order;
        l.grid[0] = (unsigned)st_ceil_div(panels * items, units);
        l.block[0] = SMALL_THREADS;
        l.smem = (unsigned)(units * (order * order + 16 / es) * es);
    }
    return st_gpu_run(h, &l);
}

/* ---- addresses ---------------------------------------------------------------------------------------------------------------- */

typedef struct moves {
    void *from[3], *to;
    int64_t bytes[3], items, count;
} moves;

static const st_gpu_spec move_spec = {
    .id = "move_addresses_sm80", .source = "addresses.cu", .entry = "move_addresses"};

strata_status st_cuda_move_addresses(strata_handle *h, int count, void *data[], const int64_t *bytes,
                                     unsigned which, int64_t items, void **room)
{
    moves m = {.items = items};
    const st_gpu_kernel *k;
    int at[3];
    for (int i = 0; i < count; i++)
        if (which >> i & 1) {
            at[m.count] = i;
            m.from[m.count] = data[i];
            m.bytes[m.count++] = bytes[i];
        } else
            data[i] = (char *)data[i] + bytes[i];
    *room = NULL;
    if (!m.count) return STRATA_OK;
    strata_status s = st_gpu_kernel_get(h, &move_spec, &k);
    if (s) return s;
    if (!(m.to = *room = st_gpu_alloc(h, (size_t)(m.count * items) * sizeof(void *)))) return h->err.status;
    for (int i = 0; i < (int)m.count; i++) data[at[i]] = (void **)m.to + i * items;
    void *args[] = {&m};
    return st_gpu_run(h, &(st_gpu_launch){.kernel = k,
                                          .grid = {(unsigned)st_ceil_div(items, 256), 1, 1},
                                          .block = {256, 1, 1},
                                          .args = args});
}

/* ---- a call -------------------------------------------------------------------------------------------------------------------- */

typedef struct call {
    strata_plan plan;
    const char *who;
    const st_triangle *t;
    double alpha[2];
    st_triangle_fn run;
} call;

static strata_status run(strata_handle *h, const strata_plan *p, void *const data[], const strata_run *r)
{
    const call *c = (const call *)p;
    st_triangle t = *c->t;
    (void)r;
    t.a = data[0];
    t.b = data[1];
    return c->run(h, c->who, &t, c->alpha);
}

static void widen(int64_t stride, int64_t len, st_extent *e)
{
    *(stride < 0 ? &e->lo : &e->hi) += stride * (len - 1);
}

strata_status st_cuda_triangle_call(strata_handle *h, const char *who, const st_triangle *t,
                                    const double alpha[2], st_triangle_fn fn)
{
    const int64_t es = bytes_of(t->type), items = st_axes_len(&t->batch);
    st_extent e[2] = {{.read = true}, {.read = true, .written = true}};
    call c = {.who = who, .t = t, .alpha = {alpha[0], alpha[1]}, .run = fn};
    widen(t->ars, t->n, &e[0]);
    widen(t->acs, t->n, &e[0]);
    widen(t->brs, t->n, &e[1]);
    widen(t->bcs, t->cols, &e[1]);
    for (int d = 0; d < (int)t->batch.count; d++) {
        widen(t->batch.ax[d].a, t->batch.ax[d].len, &e[0]);
        widen(t->batch.ax[d].b, t->batch.ax[d].len, &e[1]);
    }
    for (int i = 0; i < 2; i++) {
        e[i].lo *= es;
        e[i].hi = (e[i].hi + 1) * es;
        if (t->pointers >> i & 1) {
            e[i].lo = 0;
            e[i].hi = items * (int64_t)sizeof(void *);
        }
    }
    c.plan.run = run;
    c.plan.operands = 2;
    c.plan.extent = e;
    c.plan.where = ST_ON_CUDA;
    snprintf(c.plan.device, sizeof c.plan.device, "%s", h->device);
    snprintf(c.plan.title, sizeof c.plan.title, "%s", who);
    void *const data[] = {(void *)(uintptr_t)t->a, t->b};
    for (int i = 0; i < 2 && t->pointers; i++)
        if (!st_gpu_reaches(h, (char *)data[i] + e[i].lo))
            c.plan.extent = NULL; /* what they name is not known */
    return st_plan_execute_gpu(h, &c.plan, data, NULL);
}

/* ---- ahead of time ----------------------------------------------------------------------------------------------------------- */

static bool pack_list(int cc, int i, st_gpu_spec *s)
{
    static _Thread_local spec_text t;
    /* all of f32 and f64, panels of complex numbers */
    static const int variants[] = {NARROW_PANEL, WIDE_PANEL, SMALL, SMALL + 2, SMALL + 4};
    const int count = ST_COUNT(variants), real = 4 * count;
    (void)cc;
    if (i > real + 4) return false;
    *s = i == real + 4 ? move_spec
         : i < real    ? spec_of(types[i / (2 * count)], i & 1, variants[i / 2 % count], &t)
                       : spec_of(types[2 + (i - real) / 2], i & 1, NARROW_PANEL, &t);
    return true;
}
__attribute__((constructor)) static void enter_pack(void) { st_gpu_register_pack(pack_list); }
