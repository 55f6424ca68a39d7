/* SPDX-License-Identifier: Apache-2.0 */
/* choose.c - from a problem to one of its candidates.
 *
 * Providers list candidates with predicted times. What the caller demands (tile, workspace, order, batch invariance, a kernel, a code) refuses
 * some of them, each with its reason. Of the rest the one of least predicted time is the usual choice, and its order of summation is the
 * problem's order. Measurements choose only among candidates of that order, unless the caller allows others. */
#include "plan/tuning.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t st_plan_limit(const strata_handle *h, const strata_choice *choice)
{
    return choice && choice->limit_workspace ? choice->workspace_limit : h->workspace_limit;
}

bool st_same_order(const st_candidate *a, const st_candidate *b)
{
    return a->order_arg == b->order_arg && !strcmp(a->order ? a->order : "", b->order ? b->order : "");
}

static void refuse(st_candidate *c, const char *fmt, ...) ST_PRINTF(2, 3);
static void refuse(st_candidate *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->why, sizeof c->why, fmt, ap);
    va_end(ap);
    c->us = -1;
}

/* The choice fixes the order of summation, so it may not depend on how many threads there are: candidates are predicted, and their
 * workspace is counted, for one thread. */
typedef struct alone {
    int threads;
    strata_parallel_for callers;
} alone;
static alone one_thread(strata_handle *h)
{
    const alone was = {h->threads, h->parallel_for};
    h->threads = 1;
    h->parallel_for = NULL;
    return was;
}
static void as_before(strata_handle *h, alone was)
{
    h->threads = was.threads;
    h->parallel_for = was.callers;
}

/* *full: a provider used all the room there was, so that others may be missing. */
static int list_candidates(strata_handle *h, const st_problem *pr, st_candidate *c, bool *full)
{
    const st_provider *all[64];
    const int providers = st_plan_providers(all, ST_COUNT(all));
    int n = 0;
    *full = false;
    for (int i = 0; i < providers; i++) {
        const st_provider *p = all[i];
        if (p->op != pr->op || p->where != (h->gpu ? ST_ON_CUDA : ST_ON_CPU)) continue;
        if (n == ST_MAX_CANDIDATES) {
            *full = true;
            break;
        }
        int k = p->enumerate(h, pr, c + n, ST_MAX_CANDIDATES - n);
        for (int j = n; j < n + k; j++) c[j].provider = p;
        n += k;
        *full |= n == ST_MAX_CANDIDATES;
    }
    return n;
}

static bool over_limit(st_candidate *c, size_t limit)
{
    if (c->us < 0 || c->workspace <= limit) return false;
    refuse(c, "needs %zu bytes of workspace and the limit is %zu", c->workspace, limit);
    c->over_limit = true;
    return true;
}

/* ---- tiles ---------------------------------------------------------------------------------------------------------------- */

static strata_status apply_tile(strata_handle *h, const st_problem *pr, const strata_tile *t, st_choice *c)
{
    if (t->reserved[0] | t->reserved[1])
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "%s: reserved words of strata_tile are not zero; start from {0}", pr->who);
    int32_t value;
    const char *negative = st_tile_negative(t, &value);
    if (negative)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "%s: the tile's %s is %d; sizes are positive, 0 leaves it open", pr->who, negative,
                       value);
    for (int i = 0; i < c->count; i++) {
        st_candidate *x = &c->list[i];
        const st_tiles *own = st_plan_tiles(x->provider);
        char before[sizeof x->why];
        memcpy(before, x->why, sizeof before);
        if (own) { /* also where the usual tile would not do */
            if (!own->refine(h, pr, x, t)) x->us = -1;
        } else if (x->us >= 0 && !st_tile_meets(t, &x->tile, NULL, x->why, sizeof x->why))
            x->us = -1; /* a provider without tiles of its own choice has the ones of its rows */
        x->by_tile = x->us < 0 && strcmp(before, x->why) != 0;
    }
    return STRATA_OK;
}

/* ---- orders --------------------------------------------------------------------------------------------------------------- */

/* The order that a batch-invariant choice keeps: of the usual choice for a problem with the canonical number of rows. */
static bool canonical_order(strata_handle *h, const st_problem *pr, size_t limit, st_candidate *order)
{
    const st_engine *e = st_plan_engine(pr->op);
    void *data = e && e->canonical ? malloc(pr->bytes + 1) : NULL;
    st_candidate *list = data ? calloc(ST_MAX_CANDIDATES, sizeof *list) : NULL;
    const st_candidate *best = NULL;
    if (list && e->canonical(pr, data)) {
        const st_problem canonical = {pr->op, pr->who, data, pr->bytes, pr->text};
        bool full;
        const int n = list_candidates(h, &canonical, list, &full);
        for (int i = 0; i < n; i++)
            if (list[i].us >= 0 && list[i].workspace <= limit && !list[i].row_count_matters &&
                (!best || list[i].us < best->us))
                best = &list[i];
        if (best) *order = *best;
    }
    free(list);
    free(data);
    return best != NULL;
}

typedef struct st_order_rule {
    const char *words; /* the caller's; NULL: any */
    bool invariant, fixed;
    st_candidate order; /* where fixed */
} st_order_rule;

static void keep_order(const st_order_rule *r, st_candidate *x)
{
    char words[192];
    if (x->us < 0) return;
    st_order_words(x, words, sizeof words);
    if (r->words && strcmp(words, r->words) != 0) {
        refuse(x, "sums in another order than the one asked for: %.90s", words);
    } else if (r->invariant && x->row_count_matters) {
        refuse(x, "the order of its sums depends on the number of rows: not batch-invariant");
    } else if (r->fixed && !st_same_order(x, &r->order)) {
        st_order_words(&r->order, words, sizeof words);
        refuse(x, "not the order of batch-invariant plans: %.100s", words);
    }
}

/* ---- codes ---------------------------------------------------------------------------------------------------------------- */

/* The candidate of a code: listed, or one more made from its kernel's row; NULL: no such kernel in the list, or (why[0]) it cannot. */
static st_candidate *from_code(strata_handle *h, const st_problem *pr, const st_code *code, st_choice *c,
                               char *why, size_t n)
{
    st_candidate *row = NULL;
    why[0] = 0;
    for (int i = 0; i < c->count; i++) {
        st_candidate *x = &c->list[i];
        if (st_code_kernel(x->kernel) != code->kernel) continue;
        if (!memcmp(x->arg, code->arg, sizeof x->arg)) return x;
        row = x;
    }
    if (!row) return NULL;
    const st_tiles *own = st_plan_tiles(row->provider);
    if (!own)
        return snprintf(why, n, "kernel %.95s: %.150s", row->kernel,
                        row->us < 0 ? row->why : "it has no such tile in this version"),
               NULL;
    if (c->count == ST_MAX_CANDIDATES) return snprintf(why, n, "too many candidates"), NULL;
    st_candidate made = *row;
    memcpy(made.arg, code->arg, sizeof made.arg);
    made.us = 0;
    made.why[0] = 0;
    made.over_limit = false;
    made.measured = 0;
    if (!own->refine(h, pr, &made, NULL))
        return snprintf(why, n, "kernel %.95s: %.150s", made.kernel, made.why), NULL;
    over_limit(&made, c->limit);
    keep_order(c->rule, &made);
    c->list[c->count] = made;
    return &c->list[c->count++];
}

static strata_status choose_code(strata_handle *h, const st_problem *pr, const strata_choice *choice,
                                 st_choice *c)
{
    st_code code;
    const char *reason;
    char why[256];
    if (!st_code_read(choice->code, &code, &reason))
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "%s: the plan code '%s' cannot be used: %s", pr->who,
                       ST_SHORT(choice->code), reason);
    st_candidate *x = from_code(h, pr, &code, c, why, sizeof why);
    if (!x && !why[0])
        return st_fail(&h->err, STRATA_ERROR_UNSUPPORTED,
                       "%s: the plan code '%s' names a kernel that this version does not have for this "
                       "problem on %s",
                       pr->who, ST_SHORT(choice->code), h->device);
    if (!x)
        return st_fail(&h->err, STRATA_ERROR_UNSUPPORTED, "%s: the plan code '%s' cannot be used: %s",
                       pr->who, ST_SHORT(choice->code), why);
    if (x->us < 0)
        return st_fail(&h->err, x->over_limit ? STRATA_ERROR_WORKSPACE : STRATA_ERROR_UNSUPPORTED,
                       "%s: the plan code '%s' cannot be used: kernel %s: %s", pr->who,
                       ST_SHORT(choice->code), x->kernel, x->why);
    if (st_code_order(x) != code.order && !choice->allow_reordering) {
        st_order_words(x, why, sizeof why);
        st_fail(&h->err, STRATA_ERROR_UNSUPPORTED,
                "%s: the plan code '%s' is of another order of summation; here kernel %s would sum so: %s",
                pr->who, ST_SHORT(choice->code), x->kernel, why);
        st_err_remedy(&h->err, "strata_choice.allow_reordering takes it all the same");
        return STRATA_ERROR_UNSUPPORTED;
    }
    c->best = x;
    c->by = ST_BY_CODE;
    return STRATA_OK;
}

/* A tile that was made from a listed kernel goes by both names. */
static bool is_named(const st_candidate *c, const char *id)
{
    return !strcmp(id, c->kernel) || !strcmp(id, c->listed);
}

/* ---- the choice ----------------------------------------------------------------------------------------------------------- */

/* Why candidates cannot be used, each reason once; where a tile was asked for, first those that would have done but for it. */
static void show_refused(strata_handle *h, const st_choice *list)
{
    const st_candidate *seen[ST_ERR_FRAMES];
    int shown = 0;
    for (int pass = 1; pass >= 0; pass--)
        for (int i = 0; i < list->count && shown < ST_ERR_FRAMES - 2; i++) {
            const st_candidate *c = &list->list[i];
            bool new = c->us < 0 && !c->twin && c->by_tile == pass;
            for (int j = 0; j < shown; j++) new &= strcmp(seen[j]->why, c->why) != 0;
            if (new) seen[shown++] = c;
        }
    while (shown--) /* the frame that is added last is shown first */
        st_err_frame(&h->err, "plan", "%s: %s", seen[shown]->kernel, seen[shown]->why);
}

/* A forced kernel that the list does not hold: another family's, or nobody's. */
static void unknown_kernel(strata_handle *h, const st_problem *pr, const char *forced, const st_choice *list)
{
    strata_kernel_info k = {.id = NULL};
    bool known = false;
    char others[400] = "";
    size_t at = 0;
    for (int i = 0; !known && strata_kernels(i, &k); i++) known = strcmp(k.id, forced) == 0;
    for (int i = 0, n = 0; i < list->count && n < 6; i++) {
        if (list->list[i].us < 0 || at + 100 > sizeof others) continue;
        at +=
            (size_t)snprintf(others + at, sizeof others - at, "%s%s", n++ ? ", " : "", list->list[i].kernel);
    }
    if (known)
        st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                "%s: kernel '%s' is one of the family %s and does not serve this problem%s", pr->who,
                ST_SHORT(forced), k.family,
                pr->op == ST_OP_FUSED ? " as a whole: products are steps of its kernels, and choose their own"
                                      : "");
    else
        st_fail(&h->err, STRATA_ERROR_ARGUMENT, "%s: there is no kernel '%s'; strata_kernels lists them",
                pr->who, ST_SHORT(forced));
    if (at) st_err_remedy(&h->err, "kernels that can do it: %s", others);
}

/* Says why none of the candidates can be used: the forced kernel's reason, else the limit when only that is in the way, else everyone's. */
static strata_status no_choice(strata_handle *h, const st_problem *pr, const strata_choice *choice,
                               const st_choice *list)
{
    const char *forced = choice ? choice->kernel : NULL;
    const st_candidate *c = list->list, *named = NULL;
    const int n = list->count;
    size_t least = SIZE_MAX; /* workspace that would do */
    for (int i = 0; i < n; i++) {
        if (forced && !is_named(&c[i], forced)) continue;
        if (!named) named = &c[i];
        if (c[i].over_limit && c[i].workspace < least) least = c[i].workspace;
    }
    const strata_status s = least != SIZE_MAX ? STRATA_ERROR_WORKSPACE : STRATA_ERROR_UNSUPPORTED;
    const char *demand = "";
    if (choice && choice->tile)
        demand = " with the tile that was asked for";
    else if (choice && choice->order)
        demand = " in the order that was asked for";
    else if (h->batch_invariant || (choice && choice->batch_invariant))
        demand = " batch-invariantly";
    if (forced && named) {
        st_fail(&h->err, s, "%s: kernel '%s' was asked for, but %s", pr->who, ST_SHORT(forced), named->why);
    } else if (forced) {
        unknown_kernel(h, pr, forced, list);
    } else if (least != SIZE_MAX) {
        st_fail(&h->err, s,
                "%s: no kernel that can do this%s keeps to the workspace limit of %zu bytes; %zu would do",
                pr->who, demand, list->limit, least);
    } else {
        st_fail(&h->err, s, "%s: no kernel can do this%s", pr->who, demand);
    }
    if (least != SIZE_MAX) st_err_remedy(&h->err, "a workspace limit of at least %zu bytes", least);
    if (!(forced && named)) show_refused(h, list);
    return h->err.status;
}

/* Measured times into the list; the fastest among those that may be taken. A measurement must beat the usual choice's by 2 % to replace it. */
static void choose_measured(strata_handle *h, const st_problem *pr, const strata_choice *choice,
                            const st_tuning_key *key, st_choice *c)
{
    st_tuned known[ST_TUNED_MAX];
    const int model = (int)(c->model - c->list);
    const int n = key ? st_tuning_find(key, known, ST_TUNED_MAX) : 0;
    const bool reorder = ((choice && choice->allow_reordering) || h->find_reorders) && !c->rule->invariant;
    int best = -1;
    for (int i = 0; i < n; i++) {
        st_code code;
        const char *reason;
        char why[256];
        st_candidate *x =
            st_code_read(known[i].code, &code, &reason) ? from_code(h, pr, &code, c, why, sizeof why) : NULL;
        if (!x || x->us < 0) continue;
        x->measured = known[i].us;
        if (!reorder && !st_same_order(x, &c->list[model])) continue;
        if (best < 0 || x->measured < c->list[best].measured) best = (int)(x - c->list);
    }
    if (best < 0) return;
    const double usual = c->list[model].measured;
    if (usual > 0 && c->list[best].measured > 0.98 * usual) best = model;
    c->best = &c->list[best];
    c->by = ST_BY_MEASUREMENT;
    c->reordered = !st_same_order(c->best, c->model);
}

static strata_status choose(strata_handle *h, const st_problem *pr, const strata_choice *choice,
                            const st_tuning_key *key, st_choice *c)
{
    strata_status s = STRATA_OK;
    st_order_rule rule = {.words = choice ? choice->order : NULL,
                          .invariant = h->batch_invariant || (choice && choice->batch_invariant)};
    c->limit = st_plan_limit(h, choice);
    rule.fixed = rule.invariant && canonical_order(h, pr, c->limit, &rule.order);
    c->rule = &rule;
    c->count = list_candidates(h, pr, c->list, &c->full);
    if (choice && choice->tile && (s = apply_tile(h, pr, choice->tile, c))) return s;
    for (int i = 0; i < c->count; i++) over_limit(&c->list[i], c->limit);
    for (int i = 0; i < c->count; i++) keep_order(c->rule, &c->list[i]);
    const char *forced = choice ? choice->kernel : NULL;
    for (int i = 0; i < c->count; i++) {
        st_candidate *x = &c->list[i];
        if (x->us >= 0 && (!forced || is_named(x, forced)) && (!c->model || x->us < c->model->us))
            c->model = x;
    }
    c->best = c->model;
    if (choice && choice->code) {
        const int model = c->model ? (int)(c->model - c->list) : -1;
        s = choose_code(h, pr, choice, c);
        if (!s && model >= 0) c->reordered = !st_same_order(c->best, &c->list[model]);
    } else if (!c->model) {
        s = no_choice(h, pr, choice, c);
    } else if (forced || (choice && choice->tile)) {
        c->by = ST_BY_CALLER;
    } else {
        choose_measured(h, pr, choice, key, c);
    }
    c->rule = NULL; /* it was this function's */
    return s;
}

strata_status st_plan_choose(strata_handle *h, const st_problem *pr, const strata_choice *choice,
                             st_choice *c)
{
    memset(c, 0, sizeof *c);
    if (choice)
        for (int i = 0; i < ST_COUNT(choice->reserved); i++)
            if (choice->reserved[i])
                return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                               "%s: reserved words of strata_choice are not zero; start from {0}", pr->who);
    if (choice && choice->code && (choice->kernel || choice->tile))
        return st_fail(
            &h->err, STRATA_ERROR_ARGUMENT,
            "%s: a plan code says kernel and tile; leave strata_choice.kernel and .tile NULL beside it",
            pr->who);
    c->list = calloc(ST_MAX_CANDIDATES, sizeof *c->list);
    if (!c->list) return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory to list candidates", pr->who);
    st_tuning_key key; /* names the threads that the plan is for */
    const bool named = st_tuning_key_of(h, pr, &key);
    const alone was = one_thread(h);
    const strata_status s = choose(h, pr, choice, named ? &key : NULL, c);
    as_before(h, was);
    return s;
}

/* Several threads may want more workspace than the limit that one thread keeps: then the plan is for one. */
strata_status st_plan_build(strata_handle *h, const st_problem *pr, size_t limit, const st_candidate *c,
                            strata_plan **plan)
{
    strata_status s = c->provider->build(h, pr, c, plan);
    if (!s && (*plan)->workspace > limit) {
        strata_plan_destroy(*plan);
        *plan = NULL;
        const alone was = one_thread(h);
        s = c->provider->build(h, pr, c, plan);
        as_before(h, was);
        /* what is still above the limit is what every kernel needs beside what the candidate said: scratch of an expression's evaluation */
        if (!s && (*plan)->workspace > limit) (*plan)->scratch = (*plan)->workspace - limit;
    }
    if (s) return s;
    strata_plan *p = *plan;
    p->op = pr->op;
    p->where = c->provider->where;
    p->chosen = *c;
    if (p->predicted > 0) p->chosen.us = p->predicted;
    snprintf(p->device, sizeof p->device, "%s", h->device);
    st_code_write(c, p->code);
    st_order_words(c, p->order, sizeof p->order);
    return STRATA_OK;
}
