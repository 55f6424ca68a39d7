/* SPDX-License-Identifier: Apache-2.0 */
/* triangular.c - the halving of a triangle: with A = [A11 0; A21 A22], A X = B is A11 X1 = B1, then A22 X2 = B2 - A21 X1; the product in
 * place goes the other way, B2 := A22 B2 first, then B2 += A21 B1, then B1 := A11 B1. Of upper triangles the parts change places.
 *
 * Halving rather than steps of one width: the products beside the diagonal are as large as they can be, so that B is read and written
 * log2(n / leaf) times. The splits depend on n alone, and so do the orders of the sums. */
#include "tile/triangular.h"
#include "tile/contract.h"
#include "tile/structured.h"
#include "tile/cuda/triangle_cuda.h"
#include <string.h>

static int64_t bytes_of(int64_t type) { return (int64_t)strata_type_bits((strata_type)type) / 8; }

/* to := alpha A from + beta to, A being the n1 x n2 block of the triangle at (r, c). */
static strata_status product(strata_handle *h, const char *who, const st_triangle *t, int64_t to, int64_t n1,
                             int64_t from, int64_t n2, const double alpha[2], const double beta[2])
{
    const int64_t es = bytes_of(t->type);
    st_contract c;
    memset(&c, 0, sizeof c);
    c.ta = c.tb = c.tc = t->type;
    c.m = (st_axes){1, {{n1, t->ars, 0, t->brs}}};
    c.n = (st_axes){1, {{t->cols, 0, t->bcs, t->bcs}}};
    c.k = (st_axes){1, {{n2, t->acs, t->brs, 0}}};
    c.batch = t->batch;
    for (int d = 0; d < (int)c.batch.count; d++) c.batch.ax[d].c = c.batch.ax[d].b;
    c.rule_a.conj = t->rule.conj;
    c.pointers = t->pointers | (t->pointers & 2) << 1;
    void *data[3] = {(void *)(uintptr_t)t->a, t->b, t->b}, *room;
    const int64_t from_item[3] = {t->from_a, t->from_b, t->from_b};
    int64_t bytes[3] = {to * t->ars + from * t->acs, from * t->brs, to * t->brs};
    for (int i = 0; i < 3; i++) bytes[i] = (bytes[i] + (c.pointers >> i & 1 ? from_item[i] : 0)) * es;
    if (!c.pointers) {
        for (int i = 0; i < 3; i++) data[i] = (char *)data[i] + bytes[i];
        return st_tile_contract_complex(h, who, &c, NULL, alpha, beta, data);
    }
    strata_status s =
        st_cuda_move_addresses(h, 3, data, bytes, (unsigned)c.pointers, st_axes_len(&t->batch), &room);
    if (!s) s = st_tile_contract_complex(h, who, &c, NULL, alpha, beta, data);
    if (room) st_gpu_free(h, room);
    return s;
}

strata_status st_triangle_scale(strata_handle *h, const char *who, const st_triangle *t, const double beta[2])
{
    st_contract c;
    memset(&c, 0, sizeof c);
    c.ta = c.tb = c.tc = t->type;
    c.m = (st_axes){1, {{t->n, 0, 0, t->brs}}};
    c.n = (st_axes){1, {{t->cols, 0, 0, t->bcs}}};
    c.batch = t->batch;
    for (int d = 0; d < (int)c.batch.count; d++)
        c.batch.ax[d] = (st_axis){c.batch.ax[d].len, 0, 0, c.batch.ax[d].b};
    if (t->pointers & 2) c.pointers = 4;
    c.k = (st_axes){1, {{0, 0, 0, 0}}}; /* a sum of nothing */
    static const double none[2];
    return st_tile_contract_complex(h, who, &c, NULL, none, beta, (void *[]){t->b, t->b, t->b});
}

/* The order of the first part: whole leaves, the larger half. */
static int64_t split(int64_t n, int64_t leaf)
{
    const int64_t leaves = st_ceil_div(n, leaf);
    return (leaves + 1) / 2 * leaf;
}

static strata_status halve(strata_handle *h, const char *who, const st_triangle *t, const double alpha[2])
{
    const int64_t leaf = st_triangle_leaf_order(h, t->type);
    if (t->n <= leaf) return (h->gpu ? st_cuda_triangle_block : st_triangle_leaf)(h, who, t, alpha);
    static const double one[2] = {1, 0}, minus[2] = {-1, 0};
    const int64_t n1 = split(t->n, leaf), n2 = t->n - n1, es = bytes_of(t->type);
    const bool lower = t->rule.half == ST_HALF_LOWER;
    st_triangle first = *t, second = *t;
    first.n = n1;
    second.n = n2;
    const int64_t on_a = n1 * (t->ars + t->acs), on_b = n1 * t->brs;
    if (t->pointers & 1)
        second.from_a += on_a;
    else
        second.a = (const char *)t->a + on_a * es;
    if (t->pointers & 2)
        second.from_b += on_b;
    else
        second.b = (char *)t->b + on_b * es;
    /* one part's rows are finished by the other part's: a solution gives to them, a product takes from what still is B */
    const st_triangle *giver = lower ? &first : &second, *taker = lower ? &second : &first;
    const int64_t to = lower ? n1 : 0, from = lower ? 0 : n1;
    strata_status s;
    if (t->solve) {
        if ((s = halve(h, who, giver, alpha)) ||
            (s = product(h, who, t, to, taker->n, from, giver->n, minus, alpha)))
            return s;
        return halve(h, who, taker, one);
    }
    if ((s = halve(h, who, taker, alpha)) ||
        (s = product(h, who, t, to, taker->n, from, giver->n, alpha, one)))
        return s;
    return halve(h, who, giver, alpha);
}

/* A small product in place, at once. C^T = B^T A^T where the rows of B are contiguous along A's order. */
static bool small(strata_handle *h, const st_triangle *t, const double alpha[2])
{
    if (h->gpu || t->solve || t->pointers || t->batch.count || t->n > ST_TRIANGLE_SMALL ||
        t->cols > ST_TRIANGLE_SMALL || atomic_load_explicit(&st_trace_on, memory_order_relaxed))
        return false;
    static const double none[2];
    const st_side plain = {{0, 0, 0, 0, 0}, t->bcs, t->brs, NULL, 0}; /* its lines are columns of B */
    const int conj = st_type_is_complex((int)t->type) && t->rule.conj;
    st_rule rule = t->rule;
    rule.conj = 0;
    st_small_structured s = {.type = (int)t->type, .a_data = t->a, .b_data = t->b, .c = t->b};
    if (t->brs == 1 || t->n == 1) {
        s.conj = 2 * conj;
        s.M = t->cols;
        s.N = s.K = t->n;
        s.crs = t->bcs;
        s.a = plain;
        s.b = (st_side){rule, t->ars, t->acs, NULL, 0};
        s.a_data = t->b;
        s.b_data = t->a;
    } else if (t->bcs == 1 || t->cols == 1) {
        s.conj = conj;
        s.M = s.K = t->n;
        s.N = t->cols;
        s.crs = t->brs;
        s.a = (st_side){rule, t->ars, t->acs, NULL, 0};
        s.b = plain;
    } else {
        return false;
    }
    return st_structured_small(h->cpu, &s, alpha, none);
}

strata_status st_tile_triangle(strata_handle *h, const char *who, const st_triangle *t, const double alpha[2])
{
    st_triangle one = *t;
    const int64_t items = st_axes_len(&t->batch);
    if (t->n == 0 || t->cols == 0 || items == 0) return STRATA_OK;
    if (alpha[0] == 0 && alpha[1] == 0) return st_triangle_scale(h, who, t, alpha);
    if (small(h, t, alpha)) return STRATA_OK;
    if (h->gpu) return st_cuda_triangle_call(h, who, t, alpha, halve);
    if (!t->pointers) return halve(h, who, t, alpha);
    /* addresses on the CPU: item by item */
    const int64_t es = bytes_of(t->type);
    one.pointers = 0;
    one.batch.count = 0;
    for (int64_t i = 0; i < items; i++) {
        one.a = t->pointers & 1 ? ((void *const *)t->a)[i]
                                : (const char *)t->a + st_axes_offset(&t->batch, 'a', i) * es;
        one.b = t->pointers & 2 ? ((void **)t->b)[i] : (char *)t->b + st_axes_offset(&t->batch, 'b', i) * es;
        const strata_status s = halve(h, who, &one, alpha);
        if (s) return s;
    }
    return STRATA_OK;
}
