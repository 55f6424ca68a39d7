/* SPDX-License-Identifier: Apache-2.0 */
/* match.c - known errors in a stream of text.
 *
 * One pass of the multi-string scan (scan.c) over the literals of all patterns finds candidates; only the candidate's line goes
 * through the row's regular expression, and only when the literal alone does not decide. Lines are looked at through a window of
 * WINDOW bytes on each side of the candidate, so that text without line breaks costs no more than other text. A row counts once a line. */
#include "facts/facts.h"
#include "facts/scan.h"
#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __SSE2__
#    include <emmintrin.h>
#endif

enum { BUFFER = 1 << 18, KEEP = 8192, WINDOW = 4096, MAX_HITS = 4096 };

typedef struct rule {
    enum st_hit_kind kind;
    int row;
    bool exact, compiled;
    regex_t re;
    int64_t done; /* offset in the stream up to which this rule was decided */
    int hit;      /* index + 1 */
} rule;
typedef struct literal {
    int rule;
} literal;

struct st_matcher {
    const st_facts *facts;
    st_scan *scan;
    rule *rules;
    int rule_count, literal_count, refused;
    literal *literals;
    st_hit *hits;
    int hit_count, hit_room;
    char *buffer; /* [0, used): not yet scanned, but for its first `old` bytes, kept as context */
    size_t used, old;
    int64_t offset; /* of buffer[0] in the stream */
    int64_t lines;  /* newlines before `counted` */
    const char *counted;
    int64_t bare_done;
    int64_t xid_line_end; /* where the last Xid line ended: its other words are not news */
    bool in_line;         /* bytes came after the last newline */
    char line[2 * WINDOW + 2];
};

static int64_t count_newlines(const char *p, const char *end)
{
    int64_t n = 0;
#ifdef __SSE2__
    const __m128i newline = _mm_set1_epi8('\n'), zero = _mm_setzero_si128();
    while (end - p >= 16) {
        __m128i sum = zero, wide;
        int rounds = end - p >= 16 * 255 ? 255 : (int)((end - p) / 16);
        for (int i = 0; i < rounds; i++, p += 16)
            sum =
                _mm_sub_epi8(sum, _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)p), newline));
        wide = _mm_sad_epu8(sum, zero);
        n += _mm_cvtsi128_si32(wide) + _mm_cvtsi128_si32(_mm_srli_si128(wide, 8));
    }
#endif
    for (; p < end; p++) n += *p == '\n';
    return n;
}

static bool add_rules(st_matcher *m, const char *table, enum st_hit_kind kind, const char **words, int room)
{
    const st_table *t = st_facts_table(m->facts, table);
    int pattern = st_table_column(t, "pattern");
    st_literals *l = malloc(sizeof *l);
    if (!l) return false;
    for (int i = 0; i < t->rows; i++) {
        const char *text = st_table_at(t, i, pattern);
        rule *r = &m->rules[m->rule_count];
        st_literals_of(text, l);
        bool good = l->n > 0 && m->literal_count + l->n <= room;
        for (int j = 0; j < l->n; j++) good = good && strlen(l->s[j]) >= ST_SCAN_MIN;
        *r = (rule){.kind = kind, .row = i, .exact = l->exact};
        if (good && !l->exact) good = r->compiled = regcomp(&r->re, text, REG_EXTENDED | REG_NOSUB) == 0;
        if (!good) {
            m->refused++;
            continue;
        }
        for (int j = 0; j < l->n; j++) {
            m->literals[m->literal_count].rule = m->rule_count;
            words[m->literal_count] = strdup(l->s[j]);
            if (!words[m->literal_count++]) {
                free(l);
                return false;
            }
        }
        m->rule_count++;
    }
    free(l);
    return true;
}

st_matcher *st_matcher_open(const st_facts *f)
{
    st_matcher *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->facts = f;
    int rows = st_facts_table(f, "errors")->rows + st_facts_table(f, "common_advice")->rows + 1;
    int room = rows * ST_LITERALS / 4 + ST_LITERALS;
    const char **words = calloc((size_t)room, sizeof *words);
    m->rules = calloc((size_t)rows, sizeof *m->rules);
    m->literals = calloc((size_t)room, sizeof *m->literals);
    m->hits = calloc(m->hit_room = 64, sizeof *m->hits);
    m->buffer = malloc(BUFFER);
    bool good = words && m->rules && m->literals && m->hits && m->buffer;
    if (good) {
        m->rules[m->rule_count++] = (rule){.kind = ST_HIT_XID};
        good = (words[0] = strdup("NVRM: Xid (")) != NULL;
        m->literal_count = good;
    }
    good = good && add_rules(m, "errors", ST_HIT_ERROR, words, room) &&
           add_rules(m, "common_advice", ST_HIT_ADVICE, words, room);
    if (good) m->scan = st_scan_new(words, m->literal_count);
    if (words)
        for (int i = 0; i < m->literal_count; i++) free((char *)words[i]);
    free(words);
    if (!m->scan) {
        st_matcher_close(m);
        return NULL;
    }
    m->counted = m->buffer;
    return m;
}

void st_matcher_close(st_matcher *m)
{
    if (!m) return;
    for (int i = 0; m->rules && i < m->rule_count; i++)
        if (m->rules[i].compiled) regfree(&m->rules[i].re);
    st_scan_free(m->scan);
    free(m->rules);
    free(m->literals);
    free(m->hits);
    free(m->buffer);
    free(m);
}

static st_hit *new_hit(st_matcher *m)
{
    if (m->hit_count == MAX_HITS) return NULL;
    if (m->hit_count == m->hit_room) {
        st_hit *more = realloc(m->hits, 2 * (size_t)m->hit_room * sizeof *more);
        if (!more) return NULL;
        m->hits = more;
        m->hit_room *= 2;
    }
    st_hit *h = &m->hits[m->hit_count++];
    memset(h, 0, sizeof *h);
    return h;
}

static void fill(st_matcher *m, st_hit *h, size_t n)
{
    size_t room = sizeof h->text - 1;
    if (h->count == 0) {
        h->first_line = m->lines + 1;
        size_t k = n < room ? n : room;
        for (size_t i = 0; i < k; i++)
            h->text[i] = (unsigned char)m->line[i] < 32 || m->line[i] == 127 ? ' ' : m->line[i];
        while (k && h->text[k - 1] == ' ') k--;
        h->text[k] = 0;
    }
    h->count++;
    h->last_line = m->lines + 1;
}

static void count_xid(st_matcher *m, const st_xid *given, size_t n)
{
    const st_xid x = *given;
    st_hit *h = NULL;
    for (int i = 0; i < m->hit_count && !h; i++)
        if (m->hits[i].kind == ST_HIT_XID && m->hits[i].xid.number == x.number &&
            strcmp(m->hits[i].xid.device, x.device) == 0)
            h = &m->hits[i];
    if (!h && (h = new_hit(m)) != NULL) {
        char key[16];
        const st_table *t = st_facts_table(m->facts, "xid");
        snprintf(key, sizeof key, "%d", x.number);
        h->kind = ST_HIT_XID;
        h->row = st_table_find(t, "xid", key);
        h->xid = x;
    }
    if (h) fill(m, h, n);
}

/* a kernel line holds one; a person's "Xid 31, Xid 43" several */
static bool decide_xid(st_matcher *m, size_t n)
{
    st_xid x;
    const char *p = m->line;
    bool any = false;
    while (st_xid_next(&p, m->line + n, &x)) {
        count_xid(m, &x, n);
        any = true;
        if (x.device[0]) break;
    }
    return any;
}

static void decide(st_matcher *m, rule *r, size_t n)
{
    if (r->compiled && regexec(&r->re, m->line, 0, NULL, 0)) return;
    st_hit *h = r->hit ? &m->hits[r->hit - 1] : new_hit(m);
    if (!h) return;
    if (!r->hit) {
        r->hit = m->hit_count;
        h->kind = r->kind;
        h->row = r->row;
    }
    fill(m, h, n);
}

/* copies the line around p into m->line; gives its length and where it stops */
static size_t line_around(st_matcher *m, const char *p, const char *end, const char **stop)
{
    const char *from = p - m->buffer > WINDOW ? p - WINDOW : m->buffer,
               *to = end - p > WINDOW ? p + WINDOW : end;
    const char *begin = memrchr(from, '\n', (size_t)(p - from));
    begin = begin ? begin + 1 : from;
    *stop = memchr(p, '\n', (size_t)(to - p));
    if (!*stop) *stop = to;
    size_t n = (size_t)(*stop - begin);
    memcpy(m->line, begin, n);
    for (char *z = m->line; (z = memchr(z, 0, (size_t)(m->line + n - z))) != NULL;) *z = ' ';
    m->line[n] = 0;
    return n;
}

/* one candidate at p: its line through the rule */
static void candidate(st_matcher *m, rule *r, const char *p, const char *end)
{
    int64_t at = m->offset + (p - m->buffer);
    if (at < r->done) return;
    const char *stop;
    size_t n = line_around(m, p, end, &stop);
    r->done = m->offset + (stop - m->buffer);
    if (r->kind == ST_HIT_ERROR && at < m->xid_line_end) return;
    m->lines += count_newlines(m->counted, p);
    m->counted = p;
    if (r->kind == ST_HIT_XID) {
        if (decide_xid(m, n)) m->xid_line_end = r->done;
    } else
        decide(m, r, n);
}

/* "Xid 79" as people and other tools write it; the kernel's own lines are the scan's. X is rare, so a memchr pass is cheap. */
static void scan_bare_xids(st_matcher *m, const char *end)
{
    const char *counted = m->counted, *p = m->buffer;
    int64_t lines = m->lines;
    while ((p = memchr(p, 'X', (size_t)(end - p))) != NULL) {
        bool is = end - p >= 5 && ((p[1] == 'i' && p[2] == 'd') || (p[1] == 'I' && p[2] == 'D')) &&
                  strchr(" :=#", p[3]) &&
                  !(p - m->buffer >= 6 && memcmp(p - 6, "NVRM: ", 6) == 0 && p[4] == '(');
        if (is && m->offset + (p - m->buffer) >= m->bare_done) {
            const char *stop;
            size_t n = line_around(m, p, end, &stop);
            m->lines += count_newlines(m->counted, p);
            m->counted = p;
            decide_xid(m, n);
            m->bare_done = m->offset + (stop - m->buffer);
        }
        p++;
    }
    m->counted = counted;
    m->lines = lines;
}

/* scans buffer[old, n) with buffer[0, old) as context */
static void scan(st_matcher *m, size_t n)
{
    const char *end = m->buffer + n, *place;
    st_scan_cursor c = {m->buffer, 0};
    int id;
    scan_bare_xids(m, end);
    while (st_scan_next(m->scan, m->buffer, end, &c, &id, &place)) {
        candidate(m, &m->rules[m->literals[id].rule], place, end);
    }
    m->lines += count_newlines(m->counted, end);
    m->counted = end;
}

static void flush(st_matcher *m, bool last)
{
    size_t n = m->used, keep = 0;
    if (!last) {
        char *stop = memrchr(m->buffer, '\n', m->used);
        if (stop && (size_t)(stop + 1 - m->buffer) > m->old)
            n = (size_t)(stop + 1 - m->buffer);
        else if (m->used < BUFFER)
            return;
        else
            keep = KEEP; /* a line longer than the buffer: go on with a piece of it as context */
    }
    scan(m, n);
    size_t from = n - keep;
    memmove(m->buffer, m->buffer + from, m->used - from);
    m->used -= from;
    m->offset += (int64_t)from;
    m->old = keep;
    m->counted = m->buffer + keep;
}

void st_matcher_feed(st_matcher *m, const void *text, size_t n)
{
    const char *p = text;
    while (n) {
        size_t k = BUFFER - m->used < n ? BUFFER - m->used : n;
        memcpy(m->buffer + m->used, p, k);
        m->used += k;
        p += k;
        n -= k;
        if (m->used == BUFFER) flush(m, false);
    }
}

int st_matcher_read(st_matcher *m, int fd)
{
    for (;;) {
        ssize_t k = read(fd, m->buffer + m->used, BUFFER - m->used);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return errno;
        if (k == 0) return 0;
        m->used += (size_t)k;
        if (m->used == BUFFER) flush(m, false);
    }
}

static int by_line(const void *a, const void *b)
{
    const st_hit *x = a, *y = b;
    if (x->first_line != y->first_line) return x->first_line < y->first_line ? -1 : 1;
    return x->kind != y->kind ? (int)x->kind - (int)y->kind : x->row - y->row;
}

void st_matcher_finish(st_matcher *m)
{
    m->in_line = m->used > 0 && m->buffer[m->used - 1] != '\n';
    flush(m, true);
    if (m->in_line) m->lines++;
    qsort(m->hits, (size_t)m->hit_count, sizeof *m->hits, by_line);
    for (int i = 0; i < m->rule_count; i++) m->rules[i].hit = 0;
}

int st_matcher_count(const st_matcher *m) { return m->hit_count; }
const st_hit *st_matcher_hit(const st_matcher *m, int i)
{
    return i < 0 || i >= m->hit_count ? NULL : &m->hits[i];
}
int64_t st_matcher_lines(const st_matcher *m) { return m->lines; }
int64_t st_matcher_bytes(const st_matcher *m) { return m->offset + (int64_t)m->used; }
int st_matcher_refused(const st_matcher *m) { return m->refused; }
