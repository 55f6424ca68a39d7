/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c - many fixed strings in one pass: Wu and Manber, "A fast algorithm for multi-pattern searching" (1994), blocks of two bytes.
 *
 * Every string is represented by its window, the `width` bytes of it that are rarest in logs (width: the shortest string's length, at
 * most MAX_WIDTH). shift[pair] says how far the end of the window may move when the text has that pair there: most pairs occur in
 * no window, so most steps skip width - 1 bytes. Where the shift is 0 the strings with that last pair are compared. */
#include "facts/scan.h"
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 65536, MAX_WIDTH = 12 };
typedef struct entry {
    const char *s;
    int length, window, id; /* window: offset of the window in s */
} entry;
struct st_scan {
    int n, width;
    uint8_t shift[PAIRS];
    uint16_t bucket
        [PAIRS]; /* first entry + 1 of those whose window ends with the pair; entries are sorted by it */
    entry *e;
    char *bytes;
};

static unsigned pair_at(const char *p)
{
    uint16_t v;
    memcpy(&v, p, 2);
    return v;
}

/* how common a byte is in logs, roughly (letters as in English; digits and spaces lead) */
static int commonness(unsigned char c)
{
    static const char order[] = " e0taoin1rs2dl3hc456789umpf-:.gwyb[]/=";
    const char *at = c ? strchr(order, c) : NULL;
    return at ? 45 - (int)(at - order) : 2;
}

static int rarest_window(const char *s, int length, int width)
{
    int best = 0, least = 1 << 30;
    for (int o = 0; o + width <= length; o++) {
        int sum = 0;
        for (int i = 0; i < width; i++) sum += commonness((unsigned char)s[o + i]);
        if (sum < least) {
            least = sum;
            best = o;
        }
    }
    return best;
}

static int by_pair(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    unsigned p = pair_at(x->s + x->window), q = pair_at(y->s + y->window);
    return p != q ? (p < q ? -1 : 1) : x->id - y->id;
}

st_scan *st_scan_new(const char *const *s, int n)
{
    st_scan *x = n > 0 && n < 30000 ? calloc(1, sizeof *x) : NULL;
    if (!x) return NULL;
    size_t total = 0;
    x->width = MAX_WIDTH;
    for (int i = 0; i < n; i++) {
        size_t k = strlen(s[i]);
        if (k < ST_SCAN_MIN) {
            st_scan_free(x);
            return NULL;
        }
        if ((int)k < x->width) x->width = (int)k;
        total += k;
    }
    x->n = n;
    x->e = calloc((size_t)n, sizeof *x->e);
    x->bytes = malloc(total);
    if (!x->e || !x->bytes) {
        st_scan_free(x);
        return NULL;
    }
    memset(x->shift, x->width - 1, PAIRS);
    char *to = x->bytes;
    for (int i = 0; i < n; i++) {
        entry *e = &x->e[i];
        e->length = (int)strlen(s[i]);
        e->s = memcpy(to, s[i], (size_t)e->length);
        to += e->length;
        e->id = i;
        int window = rarest_window(e->s, e->length, x->width);
        for (int j = 0; j + 2 <= x->width; j++) {
            uint8_t *shift = &x->shift[pair_at(e->s + window + j)];
            if (x->width - 2 - j < *shift) *shift = (uint8_t)(x->width - 2 - j);
        }
        e->window = window + x->width - 2; /* now the offset of its last pair */
    }
    qsort(x->e, (size_t)n, sizeof *x->e, by_pair);
    for (int i = n - 1; i >= 0; i--) x->bucket[pair_at(x->e[i].s + x->e[i].window)] = (uint16_t)(i + 1);
    return x;
}

void st_scan_free(st_scan *x)
{
    if (!x) return;
    free(x->e);
    free(x->bytes);
    free(x);
}

bool st_scan_next(const st_scan *x, const char *begin, const char *end, st_scan_cursor *c, int *id,
                  const char **place)
{
    const char *q = c->q; /* the place of a window's last pair */
    const uint8_t *shift = x->shift;
    int from = c->entry;
    while (end - q >= 2) {
        unsigned pair = pair_at(q), s = shift[pair];
        if (ST_LIKELY(s)) {
            q += s;
            continue;
        }
        for (int i = from ? from : x->bucket[pair] - 1; i < x->n; i++) {
            const entry *e = &x->e[i];
            if (pair_at(e->s + e->window) != pair) break;
            if (q - begin < e->window || end - q < e->length - e->window) continue;
            if (memcmp(q - e->window, e->s, (size_t)e->length)) continue;
            *id = e->id;
            *place = q - e->window;
            *c = (st_scan_cursor){q, i + 1};
            return true;
        }
        from = 0;
        q++;
    }
    return false;
}
