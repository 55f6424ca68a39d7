/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_overlap.c - do two views, or two indices of one view, meet in memory? Exactly, as an equation in whole numbers:
 *
 *     sum of c[k] * u[k] = target,   0 <= u[k] <= top[k],   all c[k] > 0
 *
 * with one term for each dim (|stride|, length - 1) and one for the places inside the elements that meet. Terms are sorted by falling c
 * and searched from the largest; what the smaller terms can reach bounds each choice, and their common divisor rules most of the
 * rest out, so that blocks of one matrix take two candidates a dim. (The formulation is that of NumPy's shares_memory.) The problem
 * is hard in general: after MAX_STEPS the answer is the safe one, yes. */
#include "base/tensor.h"

enum { MAX_TERMS = 2 * STRATA_MAX_RANK + 1, MAX_STEPS = 20000 };
typedef __int128 st_wide;

typedef struct st_terms {
    int n, steps;
    int64_t c[MAX_TERMS];
    st_wide top[MAX_TERMS];
    st_wide reach[MAX_TERMS + 1]; /* what terms k.. can sum to */
    int64_t gcd[MAX_TERMS + 1];   /* of c[k..]; 0 for none */
} st_terms;

/* Keeps the terms sorted; equal coefficients become one term. */
static void add_term(st_terms *t, int64_t c, st_wide top)
{
    int i = t->n;
    if (top <= 0 || c == 0) return;
    for (int k = 0; k < t->n; k++)
        if (t->c[k] == c) {
            t->top[k] += top;
            return;
        }
    for (t->n++; i > 0 && t->c[i - 1] < c; i--) {
        t->c[i] = t->c[i - 1];
        t->top[i] = t->top[i - 1];
    }
    t->c[i] = c;
    t->top[i] = top;
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static void close_terms(st_terms *t)
{
    t->steps = 0;
    t->reach[t->n] = 0;
    t->gcd[t->n] = 0;
    for (int k = t->n - 1; k >= 0; k--) {
        t->gcd[k] = gcd(t->c[k], t->gcd[k + 1]);
        t->reach[k] = t->reach[k + 1] + (st_wide)t->c[k] * t->top[k];
    }
}

static bool solvable(st_terms *t, int k, st_wide target)
{
    if (target < 0 || target > t->reach[k]) return false;
    if (k == t->n) return true; /* reach is 0, so target is */
    if (target % t->gcd[k]) return false;
    if (k == t->n - 1) return true;
    st_wide c = t->c[k], over = target - t->reach[k + 1];
    st_wide first = over > 0 ? (over + c - 1) / c : 0, last = target / c;
    if (last > t->top[k]) last = t->top[k];
    for (st_wide u = last; u >= first; u--) {
        if (++t->steps > MAX_STEPS) return true;
        if (solvable(t, k + 1, target - u * c)) return true;
    }
    return false;
}

static int64_t magnitude(int64_t s) { return s < 0 ? -s : s; }
static int64_t type_bits(const strata_tensor *t) { return (int64_t)strata_type_bits((strata_type)t->type); }

/* Lowest element of a + sum(sa * i) + p = lowest of b + sum(sb * j) + q, with p and q inside the elements; all in units of `g` bits, the
 * coarsest that measures both sizes and the distance. Turning j and q round (j' = length - 1 - j) makes every sign positive. */
static ST_NOINLINE bool meet(const strata_tensor *a, const strata_tensor *b)
{
    int64_t ba = type_bits(a), bb = type_bits(b), apart = ((const char *)b->data - (const char *)a->data) * 8;
    int64_t g = gcd(gcd(ba, bb), magnitude(apart));
    ba /= g;
    bb /= g;
    st_wide target = apart / g;
    st_terms t;
    t.n = 0;
    for (int d = 0; d < a->rank; d++) {
        int64_t s = a->stride[d];
        if (s < 0) target -= (st_wide)(a->dim[d] - 1) * s * ba;
        add_term(&t, magnitude(s) * ba, a->dim[d] - 1);
    }
    for (int d = 0; d < b->rank; d++) {
        int64_t s = b->stride[d];
        if (s < 0) target += (st_wide)(b->dim[d] - 1) * s * bb;
        add_term(&t, magnitude(s) * bb, b->dim[d] - 1);
        target += (st_wide)(b->dim[d] - 1) * magnitude(s) * bb;
    }
    add_term(&t, 1, ba + bb - 2);
    target += bb - 1;
    close_terms(&t);
    return solvable(&t, 0, target);
}

bool st_tensor_overlap(const strata_tensor *va, const strata_tensor *vb)
{
    const char *al, *ah, *bl, *bh;
    const int64_t size = st_view_usual(va), other = st_view_usual(vb);
    if (ST_LIKELY(size && other && !((va->flags | vb->flags) & ST_VIEW_STORES)) &&
        (!st_view_usual_span(va, size, &al, &ah) || !st_view_usual_span(vb, other, &bl, &bh) || ah <= bl ||
         bh <= al))
        return false;
    if ((va->flags | vb->flags) & STRATA_TENSOR_POINTERS) return false; /* addresses: the caller's duty */
    strata_tensor room[2];
    const strata_tensor *a = st_view_plain(va, &room[0]), *b = st_view_plain(vb, &room[1]);
    st_tensor_span(a, &al, &ah);
    st_tensor_span(b, &bl, &bh);
    return al && bl && al < bh && bl < ah && meet(a, b);
}

/* Two indices i and j name one place when sum(s * (i - j)) = 0 with i != j. Some dim's difference is then positive (else swap i and j):
 * for each dim in turn, its term starts at 1. */
static ST_NOINLINE bool collide(const int64_t *s, const int64_t *len, int n)
{
    for (int first = 0; first < n; first++) {
        /* difference of dim `first` in 1..len-1, of the others in -(len-1)..len-1, shifted to start at 0 */
        st_wide target = -(st_wide)s[first];
        st_terms t;
        t.n = 0;
        for (int i = 0; i < n; i++) {
            add_term(&t, s[i], (st_wide)len[i] - 2 + (i == first ? 0 : len[i]));
            if (i != first) target += (st_wide)(len[i] - 1) * s[i];
        }
        close_terms(&t);
        if (solvable(&t, 0, target)) return true;
    }
    return false;
}

bool st_view_collides(const strata_tensor *v)
{
    int64_t s[STRATA_MAX_RANK], len[STRATA_MAX_RANK], reach = 0;
    int n = 0;
    for (int d = 0; d < v->rank; d++) {
        if (v->dim[d] <= 1) continue;
        int64_t a = magnitude(v->stride[d]);
        if (a == 0) return true;
        int i = n++;
        for (; i > 0 && s[i - 1] > a; i--) {
            s[i] = s[i - 1];
            len[i] = len[i - 1];
        }
        s[i] = a;
        len[i] = v->dim[d];
    }
    bool nested = true; /* the usual case: each stride steps over all that the smaller ones reach */
    for (int i = 0; i < n && nested; i++) {
        nested = s[i] > reach;
        reach += (len[i] - 1) * s[i];
    }
    return !nested && collide(s, len, n);
}
