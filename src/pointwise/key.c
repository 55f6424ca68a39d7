/* SPDX-License-Identifier: Apache-2.0 */
/* key.c - programs, normalisations and pooling windows as the tuning database sees them.
 *
 * A program's key has its text, axes, and each operand's type and dims; the outermost dim of those of the space's rank is rounded up to buckets, so that a
 * batch that changes from call to call is one problem. What has no room in words (a long text, strides) is in a hash. The other families are named by
 * the public function and a hash of the whole problem. Lines are independent, or joined in an order that every kernel of the family shares, so batch
 * invariance asks for no canonical problem. */
#include "pointwise/program.h"
#include <stdio.h>
#include <string.h>

static int64_t bucket(int64_t n)
{
    int64_t up = 16;
    if (n <= 16) return n;
    while (up < n && up < INT64_MAX / 4) up += up % 3 ? up / 2 : up / 3; /* 16 24 32 48 64 ... */
    return up;
}

static void program_key(const st_problem *p, char *text, size_t n)
{
    const int64_t *key = p->data, *k = key + ST_KEY_HEAD;
    const int count = (int)key[3];
    int rank = 0;
    for (int o = 0; o < count; o++) {
        const int r = (int)(k[0] >> 8);
        rank = r > rank ? r : rank;
        k += 1 + ST_KEY_NAME + 2 * r;
    }
    const char *program = p->text ? p->text : "";
    uint64_t hash = st_hash(program, strlen(program), (uint64_t)key[1] << 32 | (uint64_t)key[2]);
    char dims[160] = "";
    size_t at = 0;
    k = key + ST_KEY_HEAD;
    for (int o = 0; o < count; o++) {
        const int r = (int)(k[0] >> 8), type = (int)(k[0] & 0xff);
        const int64_t *dim = k + 1 + ST_KEY_NAME, *stride = dim + r;
        hash = st_hash(k, (1 + ST_KEY_NAME) * sizeof *k, hash);
        char word[80] = "";
        size_t w = (size_t)snprintf(word, sizeof word, " %s", strata_type_name((strata_type)type));
        for (int d = 0; d < r; d++) {
            const bool rows = d == 0 && r == rank && r > 1;
            const int64_t len = rows ? bucket(dim[d]) : dim[d], step = dim[d] > 1 ? stride[d] : 0;
            hash = st_hash(&len, sizeof len, hash);
            hash = st_hash(&step, sizeof step, hash);
            if (w + 24 < sizeof word)
                w += (size_t)snprintf(word + w, sizeof word - w, "%s%s%lld", d ? "x" : ":", rows ? "<=" : "",
                                      (long long)len);
        }
        if (at + w < sizeof dims) memcpy(dims + at, word, w + 1), at += w;
        k += 1 + ST_KEY_NAME + 2 * r;
    }
    char words[60];
    snprintf(words, sizeof words, "%.59s", program);
    for (char *c = words; *c; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e) *c = ' ';
    snprintf(text, n, "program %s%s %016llx", words, dims, (unsigned long long)hash);
}

static void key_of(const st_problem *p, char *text, size_t n)
{
    const int64_t family = p->op == ST_OP_POINTWISE ? *(const int64_t *)p->data : 0;
    if (family == ST_PW_PROGRAM)
        program_key(p, text, n);
    else
        snprintf(text, n, "%.60s %016llx%016llx", p->op == ST_OP_POOL ? "pool" : "lines",
                 (unsigned long long)st_hash(p->data, p->bytes, 11),
                 (unsigned long long)st_hash(p->data, p->bytes, 12));
}

const st_engine st_pw_engine = {ST_OP_POINTWISE, key_of, NULL},
                st_pw_pool_engine = {ST_OP_POOL, key_of, NULL};
