/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_mixed_pack.c - factors into panels: as they lie, row by row of a list, or as an expression that is evaluated for a few thousand elements at a
 * time, panel by panel, and packed from there. */
#include "tile/gemm_mixed_plan.h"
#include <string.h>

int64_t st_mix_offset(const st_mix *x, const st_mix_term *t, int64_t item)
{
    int64_t off = 0;
    for (int d = x->batches - 1; d >= 0; d--) {
        off += item % x->batch[d] * t->sb[d];
        item /= x->batch[d];
    }
    return off;
}

/* Element i of a list that picks rows. */
static int64_t pick(const st_mix *x, const st_mix_term *t, void *const data[], int64_t i)
{
    const char *list = data[t->picks];
    (void)x;
    if (t->picks_type == STRATA_I32) {
        int32_t v;
        memcpy(&v, list + i * t->picks_step * 4, 4);
        return v;
    }
    int64_t v;
    memcpy(&v, list + i * t->picks_step * 8, 8);
    return v;
}

static strata_status check_factor(strata_handle *h, const char *who, const st_mix *x, const st_mix_factor *f,
                                  int64_t lines, void *const data[])
{
    for (int i = 0; i < f->terms; i++) {
        const st_mix_term *t = &f->term[i];
        for (int64_t j = 0; t->picks >= 0 && j < lines; j++) {
            const int64_t v = pick(x, t, data, j);
            if (v < 0 || v >= t->picks_from)
                return st_fail(
                    &h->err, STRATA_ERROR_ARGUMENT,
                    "%s: element %lld of the list that picks rows is %lld, and there are %lld rows "
                    "to pick from",
                    who, (long long)j, (long long)v, (long long)t->picks_from);
        }
    }
    return STRATA_OK;
}

strata_status st_mix_check_picks(strata_handle *h, const char *who, const st_mix_plan *p, void *const data[])
{
    const st_mix *x = p->x;
    strata_status s = STRATA_OK;
    for (int i = 0; i < x->na && !s; i++) s = check_factor(h, who, x, x->a[i], x->m, data);
    return s;
}

/* Steps of i within a group of g, at most `most`. */
static int64_t same_group(int64_t i, int64_t g, int64_t most)
{
    return g > 1 ? st_min64(most, g - i % g) : most;
}

/* The expression on `lines` lines and `steps` steps of k; the value of (line, step) goes to values[line * ls + step * ks]. */
static void evaluate(const st_mix *x, const st_mix_factor *f, void *const data[], int64_t item, int64_t i0,
                     int64_t lines, int64_t k0, int64_t steps, const st_mix_room *room, int64_t ls,
                     int64_t ks)
{
    st_expr_arg args[ST_EXPR_VARS];
    const int64_t es = (int64_t)strata_type_bits((strata_type)f->type) / 8;
    for (int64_t i = 0, rows; i < lines; i += rows) {
        rows = lines - i;
        for (int v = 0; v < f->terms; v++) {
            if (v == f->out) continue;
            rows = f->term[v].picks >= 0 ? 1 : same_group(i0 + i, f->term[v].gr, rows);
        }
        for (int64_t k = 0, cols; k < steps; k += cols) {
            cols = steps - k;
            for (int v = 0; v < f->terms; v++)
                if (v != f->out) cols = same_group(k0 + k, f->term[v].gc, cols);
            for (int v = 0; v < f->terms; v++) {
                const st_mix_term *t = &f->term[v];
                if (v == f->out) {
                    args[v] = (st_expr_arg){room->values + (i * ls + k * ks) * es, f->type, ls, ks};
                    continue;
                }
                const int64_t row = t->picks >= 0 ? pick(x, t, data, i0 + i) : (i0 + i) / t->gr;
                args[v] = st_expr_arg_at(data[t->data], t->type,
                                         st_mix_offset(x, t, item) + row * t->sr + (k0 + k) / t->gc * t->sc,
                                         t->gr > 1 ? 0 : t->sr, t->gc > 1 ? 0 : t->sc);
            }
            if (!f->by_k)
                for (int v = 0; v < f->terms; v++) { /* rows of the rectangle are steps then */
                    const int64_t s = args[v].sm;
                    args[v].sm = args[v].sn;
                    args[v].sn = s;
                }
            st_expr_map(f->x, args, f->by_k ? rows : cols, f->by_k ? cols : rows, 0, 0, room->scratch);
        }
    }
}

/* Rows of a list as they are. */
static void gather(const st_mix *x, const st_mix_factor *f, void *const data[], int64_t item, int64_t i0,
                   int64_t lines, int64_t k0, int64_t steps, char *values)
{
    const st_mix_term *t = &f->term[0];
    const int64_t es = (int64_t)strata_type_bits((strata_type)f->type) / 8, off = st_mix_offset(x, t, item);
    for (int64_t i = 0; i < lines; i++) {
        const char *from =
            (const char *)data[t->data] + (off + pick(x, t, data, i0 + i) * t->sr + k0 * t->sc) * es;
        char *to = values + i * steps * es;
        if (t->sc == 1)
            memcpy(to, from, (size_t)(steps * es));
        else
            for (int64_t k = 0; k < steps; k++) memcpy(to + k * es, from + k * t->sc * es, (size_t)es);
    }
}

void st_mix_pack(const st_mix_plan *p, bool a, int factor, void *const data[], int64_t item, char *dst,
                 int64_t i0, int64_t w, int64_t k0, int64_t kc, const st_mix_room *room)
{
    const st_mix *x = p->x;
    const st_mix_factor *f = a ? x->a[factor] : x->b[factor];
    const st_packed_kernel *kr = p->kernel;
    const int64_t width = a ? kr->mr : (int64_t)kr->nv * kr->vl,
                  es = (int64_t)strata_type_bits((strata_type)f->type) / 8,
                  some = st_max64(ST_MIX_VALUES / width / 64 * 64, 64);
    const st_pack_fn fn = a ? p->pack_a[factor] : p->pack_b[factor];
    const uint32_t ma = (uint32_t)p->move_a[a ? factor : 0], mb = (uint32_t)p->move_b[a ? 0 : factor];
    const st_mix_term *t = &f->term[0];
    if (!f->x && t->picks < 0 && !kr->head) {
        fn(dst, w, kc,
           (const char *)data[t->data] + (st_mix_offset(x, t, item) + i0 * t->sr + k0 * t->sc) * es, t->sr,
           t->sc);
        return;
    }
    for (int64_t i = 0; i < w; i += width, dst += st_packed_bytes(kr, width, kc)) {
        const int64_t lines = st_min64(width, w - i);
        char *body = dst + width * kr->head;
        if (!f->x && t->picks < 0) {
            fn(body, lines, kc,
               (const char *)data[t->data] + (st_mix_offset(x, t, item) + (i0 + i) * t->sr + k0 * t->sc) * es,
               t->sr, t->sc);
        } else {
            for (int64_t k = 0; k < kc; k += some) {
                const int64_t steps = st_min64(some, kc - k);
                const bool by_k = !f->x || f->by_k;
                if (f->x)
                    evaluate(x, f, data, item, i0 + i, lines, k0 + k, steps, room, by_k ? steps : 1,
                             by_k ? 1 : lines);
                else
                    gather(x, f, data, item, i0 + i, lines, k0 + k, steps, room->values);
                fn(body + k / kr->unit * width * kr->size, lines, steps, room->values, by_k ? steps : 1,
                   by_k ? 1 : lines);
            }
        }
        if (kr->head) /* as gemm_pack.c: sum of a b from sums of bytes moved into the other sign's range */
            (a ? kr->head_a : kr->head_b)(dst, st_ceil_div(kc, kr->unit), (int32_t)(a ? mb : 0 - ma),
                                          (int32_t)(a ? 0 : 0 - ma * mb * (uint32_t)kc));
    }
}
