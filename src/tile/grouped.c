/* SPDX-License-Identifier: Apache-2.0 */
/* grouped.c - groups of products: one dispatch of the team for those too small for all threads, one launch for those of one kind on a GPU.
 *
 * Bits are those of one call after another on a CPU, where a plan gives the same for any number of threads. On a GPU a member's k is never cut into parts, which
 * a call of its own may do. */
#include "tile/grouped.h"
#include "runtime/gpu.h"
#include "tile/contract.h"
#include "tile/cuda/gemm_sm90.h"
#include "tile/cuda/generic.h"
#include <stdlib.h>
#include <string.h>

static strata_status alone(strata_handle *h, const char *who, const st_member *m)
{
    return st_tile_contract_complex(h, who, m->c, NULL, m->alpha, m->beta, m->data);
}

/* ---- CPU -------------------------------------------------------------------------------------------------------------------- */

enum { SMALL_US = 200, ROUNDS = 4 };

typedef struct st_share {
    const strata_plan *plan;
    double us; /* on one thread, at the least */
    int64_t member;
} st_share;

typedef struct st_job {
    strata_handle *h;
    const char *who;
    const st_member *m;
    const st_share *share;
    char *workspace;
    size_t slice;
    int64_t count;
    atomic_int_fast64_t next, failed; /* failed: a share's number + 1; 0: none */
    st_err err;                       /* its error */
} st_job;

static int longest_first(const void *a, const void *b)
{
    const st_share *x = a, *y = b;
    if (x->us != y->us) return x->us > y->us ? -1 : 1;
    return x->member < y->member ? -1 : x->member > y->member;
}

/* Members on this thread: through a copy of the handle that has this thread alone, and its own slice of the workspace. */
static void run_shares(void *arg, int id, int n)
{
    (void)n;
    st_job *j = arg;
    strata_handle own;
    memcpy(&own, j->h, sizeof own);
    own.threads = 1;
    own.parallel_for = NULL;
    for (int_fast64_t i; (i = atomic_fetch_add(&j->next, 1)) < j->count;) {
        const st_share *s = &j->share[i];
        const st_member *m = &j->m[s->member];
        const strata_scalar va = strata_complex(m->alpha[0], m->alpha[1]),
                            vb = strata_complex(m->beta[0], m->beta[1]);
        const strata_run r = {.alpha = &va,
                              .beta = &vb,
                              .workspace = j->workspace ? j->workspace + (size_t)id * j->slice : NULL,
                              .workspace_bytes = j->slice};
        int_fast64_t none = 0;
        if (!s->plan->run(&own, s->plan, m->data, &r)) continue;
        if (atomic_compare_exchange_strong(&j->failed, &none, i + 1)) j->err = own.err;
    }
}

static bool runs_alone(const st_share *s, int64_t left, double total, int threads)
{
    return s->us * threads > total || (s->us > SMALL_US && left < (int64_t)ROUNDS * threads);
}

static strata_status on_cpu(strata_handle *h, const char *who, const st_member *m, int64_t count, int64_t *at)
{
    st_share *share = calloc((size_t)count, sizeof *share);
    if (!share) return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory for a list of products", who);
    const int threads = st_threads(h);
    double total = 0;
    strata_status s = STRATA_OK;
    int64_t n = 0;
    for (; n < count && !s; n++) {
        const st_problem pr = {ST_OP_CONTRACT, who, m[n].c, sizeof *m[n].c, NULL};
        *at = n;
        if ((s = st_plan_get(h, &pr, &share[n].plan))) break;
        atomic_fetch_add(&((strata_plan *)(uintptr_t)share[n].plan)->refs,
                         1); /* a later one may drive it out of the cache */
        share[n].member = n;
        const double flop = share[n].plan->flops / st_contract_peak(h->cpu, (int)m[n].c->tc),
                     memory = share[n].plan->bytes / ST_CONTRACT_BYTES_PER_US;
        total += share[n].us = 0.1 + (flop > memory ? flop : memory);
    }
    int64_t first = 0;
    st_job j = {.h = h, .who = who, .m = m};
    if (!s) {
        qsort(share, (size_t)count, sizeof *share, longest_first);
        for (; first < count && !s && runs_alone(&share[first], count - first, total, threads); first++) {
            const st_member *x = &m[ *at = share[first].member];
            s = alone(h, who, x);
            total -= share[first].us;
        }
        for (int64_t i = first; i < count; i++)
            j.slice = j.slice > share[i].plan->workspace ? j.slice : share[i].plan->workspace;
        j.slice = (size_t)st_round_up((int64_t)j.slice, 4096);
    }
    bool room = j.slice * (size_t)threads <= h->workspace_limit && !h->workspace_is_callers;
    if (!s && first < count && room && j.slice)
        room = (j.workspace = st_workspace(h, j.slice * (size_t)threads)) != NULL;
    if (!s && !room) {
        for (; first < count && !s; first++) s = alone(h, who, &m[ *at = share[first].member]);
    } else if (!s && first < count) {
        j.share = share + first;
        j.count = count - first;
        st_team_run_apart(h, (int)st_min64(threads, j.count), total, run_shares, &j);
        const int_fast64_t failed = atomic_load(&j.failed);
        if (failed) {
            *at = j.share[failed - 1].member;
            h->err = j.err;
            s = h->err.status;
        }
    }
    for (int64_t i = 0; i < n; i++) strata_plan_destroy((strata_plan *)(uintptr_t)share[i].plan);
    free(share);
    return s;
}

/* ---- GPU -------------------------------------------------------------------------------------------------------------------- */

static const st_group_runner runners[] = {st_sm90_group, st_generic_group};

static bool one_class(const st_contract *a, const st_contract *b)
{
    return a->ta == b->ta && a->tb == b->tb && a->tc == b->tc && a->math == b->math;
}

static bool computes(const st_member *m)
{
    return st_axes_len(&m->c->m) > 0 && st_axes_len(&m->c->n) > 0 && st_axes_len(&m->c->batch) > 0;
}
/* Does the device reach what the member reads and writes? The words for what it does not reach are a call's of its own. */
static bool reached(strata_handle *h, const st_member *m)
{
    for (int i = 0; i < 3; i++)
        if (!m->data[i] || m->c->pointers || !st_gpu_reaches(h, m->data[i])) return false;
    return true;
}

static strata_status on_gpu(strata_handle *h, const char *who, const st_member *m, int64_t count, int64_t *at)
{
    const st_member **list = calloc((size_t)count, sizeof *list);
    bool *done = calloc((size_t)count * 3, 1), *seen = done ? done + count : NULL,
         *part = done ? done + 2 * count : NULL;
    int64_t *number = calloc((size_t)count, sizeof *number);
    strata_status s = STRATA_OK;
    if (!list || !done || !number)
        s = st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory for a list of products", who);
    for (int64_t i = 0; i < count && !s && !h->batch_invariant; i++) {
        if (seen[i]) continue;
        int64_t n = 0;
        for (int64_t k = i; k < count; k++) {
            if (seen[k] || !one_class(m[i].c, m[k].c)) continue;
            seen[k] = true;
            if (!computes(&m[k]) || !reached(h, &m[k])) continue;
            number[n] = k;
            list[n++] = &m[k];
        }
        for (int r = 0; r < ST_COUNT(runners) && n > 1 && !s; r++) {
            memset(part, 0, (size_t)n);
            *at = -1;
            s = runners[r](h, who, list, n, part);
            int64_t left = 0;
            for (int64_t k = 0; k < n; k++) {
                if (part[k]) {
                    done[number[k]] = true;
                    continue;
                }
                number[left] = number[k];
                list[left++] = list[k];
            }
            n = left;
        }
    }
    if (!s) st_gpu_run_end(h);
    for (int64_t i = 0; i < count && !s; i++)
        if (!done[i]) s = alone(h, who, &m[ *at = i]);
    free(list);
    free(done);
    free(number);
    return s;
}

strata_status st_tile_grouped(strata_handle *h, const char *who, const st_member *m, int64_t count,
                              int64_t *at)
{
    *at = -1;
    if (count == 0) return STRATA_OK;
    st_tile_init();
    if (count == 1) {
        *at = 0;
        return alone(h, who, m);
    }
    return h->gpu ? on_gpu(h, who, m, count, at) : on_cpu(h, who, m, count, at);
}
