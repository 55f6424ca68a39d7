/* SPDX-License-Identifier: Apache-2.0 */
/* addresses.c - matrices given by an array of addresses (strata_pointers): every entry is an address, and what is written shares memory with nothing.
 *
 * The usual batch costs a few comparisons a matrix: results in the order of their addresses, apart from the range of the inputs. Otherwise addresses are
 * sorted and neighbours whose bytes meet are compared exactly, so that tiles of one large matrix are told from tiles that overlap. After TESTS
 * comparisons a matrix the rest passes unseen: matrices that are woven into each other would take the square of their number.
 *
 * Arrays in memory of a GPU are not looked at. */
#include "blas/product.h"
#include "runtime/gpu.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TESTS = 16, TESTS_LEAST = 256, FEW = 48 };

typedef struct place {
    uintptr_t at;
    int64_t entry;
} place;

/* One operand: the matrices' view (its address is set as needed), where they are, their bytes relative to an address. */
typedef struct list {
    const char *name;
    strata_tensor one;
    const void *const *address; /* NULL: one operand as it is, not by addresses */
    int64_t n;
    int64_t lo, hi;
    uintptr_t least, most; /* bytes of all of them: [least, most) */
    bool rising;           /* each behind the one before it */
} list;

static uintptr_t at(const list *l, int64_t i)
{
    return (uintptr_t)(l->address ? l->address[i] : l->one.data);
}

static void set_address(strata_tensor *t, uintptr_t address) { t->data = (void *)address; }

/* False: this one has no elements, or lies where it cannot be seen. */
static bool take(strata_handle *h, const strata_tensor *t, const char *name, list *l)
{
    static char somewhere;
    const char *lo, *hi;
    memset(l, 0, sizeof *l);
    l->name = name;
    l->one = *t;
    l->n = 1;
    if (t->flags & STRATA_TENSOR_POINTERS) {
        if (t->dim[0] == 0 || (h->gpu && st_gpu_reaches(h, t->data))) return false;
        l->address = t->data;
        l->n = t->dim[0];
        l->one.rank--;
        memmove(l->one.dim, t->dim + 1, sizeof(int64_t) * (size_t)l->one.rank);
        memmove(l->one.stride, t->stride + 1, sizeof(int64_t) * (size_t)l->one.rank);
        l->one.flags &= ~STRATA_TENSOR_POINTERS;
        l->one.data = &somewhere;
    }
    st_tensor_span(&l->one, &lo, &hi);
    if (!lo) return false;
    l->lo = lo - (const char *)l->one.data;
    l->hi = hi - (const char *)l->one.data;
    return true;
}

static strata_status measure(strata_handle *h, const char *who, list *l)
{
    uintptr_t least = UINTPTR_MAX, most = 0, before = 0;
    const uintptr_t size = (uintptr_t)(l->hi - l->lo);
    l->rising = true;
    for (int64_t i = 0; i < l->n; i++) {
        const uintptr_t p = at(l, i);
        if (ST_UNLIKELY(!p)) {
            st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                    "%s: %s is an array of %lld addresses, of which number %lld (counted from 0) is NULL",
                    who, l->name, (long long)l->n, (long long)i);
            st_err_remedy(&h->err, "give each matrix an address; a shorter batch leaves the last ones out");
            return STRATA_ERROR_ARGUMENT;
        }
        l->rising &= i == 0 || (p > before && p - before >= size);
        least = p < least ? p : least;
        most = p > most ? p : most;
        before = p;
    }
    l->least = least + (uintptr_t)l->lo;
    l->most = most + (uintptr_t)l->hi;
    return STRATA_OK;
}

/* ---- sorting: by bytes of the distance from the least, lowest first ---------------------------------------------------------- */
static place *sorted(const list *l)
{
    place *a = malloc(2 * sizeof *a * (size_t)l->n), *b = a ? a + l->n : NULL;
    uintptr_t least = UINTPTR_MAX, most = 0;
    if (!a) return NULL;
    for (int64_t i = 0; i < l->n; i++) {
        a[i] = (place){at(l, i), i};
        least = a[i].at < least ? a[i].at : least;
        most = a[i].at > most ? a[i].at : most;
    }
    if (l->rising) return a;
    if (l->n <= FEW) {
        for (int64_t i = 1; i < l->n; i++) {
            const place x = a[i];
            int64_t k = i;
            for (; k > 0 && a[k - 1].at > x.at; k--) a[k] = a[k - 1];
            a[k] = x;
        }
        return a;
    }
    place *from = a, *to = b;
    for (int shift = 0; shift < 64 && (most - least) >> shift; shift += 8) {
        int64_t first[257] = {0};
        for (int64_t i = 0; i < l->n; i++) first[((from[i].at - least) >> shift & 255) + 1]++;
        for (int d = 0; d < 256; d++) first[d + 1] += first[d];
        for (int64_t i = 0; i < l->n; i++) to[first[(from[i].at - least) >> shift & 255]++] = from[i];
        place *t = from;
        from = to;
        to = t;
    }
    if (from != a) memcpy(a, from, sizeof *a * (size_t)l->n);
    return a;
}

/* ---- pairs ----------------------------------------------------------------------------------------------------------------------- */

/* Tiles of one matrix: both have the strides (L, s) or (s, L) with L beyond a row of either. Then only two rows of the one can meet the other. */
static bool tiles(const list *x, const list *y, int *large)
{
    if (x->one.rank != 2 || y->one.rank != 2 || x->one.type != y->one.type) return false;
    for (int d = 0; d < 2; d++)
        if (x->one.stride[d] != y->one.stride[d] || x->one.stride[d] <= 0) return false;
    *large = x->one.stride[0] > x->one.stride[1] ? 0 : 1;
    const int64_t L = x->one.stride[*large], s = x->one.stride[!*large],
                  longest = st_max64(x->one.dim[!*large], y->one.dim[!*large]);
    return L / s >= longest;
}

static bool meet(const list *x, uintptr_t px, const list *y, uintptr_t py)
{
    const int64_t size = (int64_t)strata_type_bits((strata_type)x->one.type) / 8, apart = (int64_t)(py - px);
    int l;
    if (size > 0 && apart % size == 0 && tiles(x, y, &l)) {
        const int64_t d = apart / size, L = x->one.stride[l], s = x->one.stride[!l];
        int64_t i =
            d / L -
            (d % L < 0); /* d = i L + j s: the difference of a row of x and one of y, of their columns */
        for (int k = 0; k < 2; k++, i++) {
            const int64_t rest = d - i * L, j = rest / s;
            if (i < x->one.dim[l] && i > -y->one.dim[l] && rest % s == 0 && j < x->one.dim[!l] &&
                j > -y->one.dim[!l])
                return true;
        }
        return false;
    }
    strata_tensor a = x->one, b = y->one;
    set_address(&a, px);
    set_address(&b, py);
    return st_tensor_overlap(&a, &b);
}

static strata_status refuse(strata_handle *h, const char *who, const list *x, const place *a, const list *y,
                            const place *b)
{
    char other[64] = "";
    if (y->address)
        snprintf(other, sizeof other, "matrix %lld of %s (%p)", (long long)b->entry, y->name, (void *)b->at);
    else
        snprintf(other, sizeof other, "%s (%p)", y->name, (void *)b->at);
    if (x->address)
        st_fail(&h->err, STRATA_ERROR_ALIAS,
                "%s: matrix %lld of %s (%p), which is written, overlaps %s in memory", who,
                (long long)a->entry, x->name, (void *)a->at, other);
    else
        st_fail(&h->err, STRATA_ERROR_ALIAS, "%s: %s (%p), which is written, overlaps %s in memory", who,
                x->name, (void *)a->at, other);
    st_err_remedy(&h->err, "give every matrix that is written memory of its own");
    return STRATA_ERROR_ALIAS;
}

/* Of x, which is written, against y (or x itself), both sorted. */
static strata_status sweep(strata_handle *h, const char *who, const list *x, const place *px, const list *y,
                           const place *py)
{
    int64_t left = TESTS * st_max64(x->n, y->n) + TESTS_LEAST, from = 0;
    const bool self = px == py;
    for (int64_t i = 0; i < x->n; i++) {
        const uintptr_t lo = px[i].at + (uintptr_t)x->lo, hi = px[i].at + (uintptr_t)x->hi;
        while (from < y->n && py[from].at + (uintptr_t)y->hi <= lo) from++;
        for (int64_t k = self ? i + 1 : from; k < y->n && py[k].at + (uintptr_t)y->lo < hi; k++) {
            if (k > from && !self && py[k].at == py[k - 1].at) continue; /* one input for many */
            if (left-- == 0) return STRATA_OK;
            if (meet(x, px[i].at, y, py[k].at)) return refuse(h, who, x, &px[i], y, &py[k]);
        }
    }
    return STRATA_OK;
}

static bool ranges_meet(const list *x, const list *y) { return x->least < y->most && y->least < x->most; }

strata_status st_addresses_check(strata_handle *h, const char *who, const strata_tensor *const t[],
                                 const char *const name[], unsigned written, int n)
{
    list l[ST_ADDRESSES];
    place *p[ST_ADDRESSES] = {0};
    bool there[ST_ADDRESSES] = {0};
    strata_status s = STRATA_OK;
    for (int i = 0; i < n && !s; i++)
        if (t[i] && (there[i] = take(h, t[i], name[i], &l[i]))) s = measure(h, who, &l[i]);
    for (int i = 0; i < n && !s; i++)
        for (int k = 0; k < n && !s; k++) {
            if (!there[i] || !there[k] || !(written >> i & 1) || !(l[i].address || l[k].address)) continue;
            if (i == k ? l[i].rising : !ranges_meet(&l[i], &l[k])) continue;
            if (!p[i]) p[i] = sorted(&l[i]);
            if (!p[k]) p[k] = sorted(&l[k]);
            if (p[i] && p[k]) s = sweep(h, who, &l[i], p[i], &l[k], p[k]); /* without memory it is not seen */
        }
    for (int i = 0; i < n; i++) free(p[i]);
    return s;
}
