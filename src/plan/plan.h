/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - providers, candidates and why-nots, choice, the plan cache.
 *
 * An engine describes a problem as plain zero-padded data (no pointers into the caller's memory) plus an optional text (an
 * expression). Providers enumerate candidates for it, in order of preference within a predicted time; plan picks the
 * first usable one of least predicted time (or the forced kernel) and the provider builds the plan. */
#ifndef ST_PLAN_PLAN_H
#define ST_PLAN_PLAN_H
#include "base/base.h"
#include "runtime/handle.h"
#include <strata/plan.h>

/* kinds of problem; a provider serves one */
typedef enum st_op {
    ST_OP_CONTRACT,
    ST_OP_POINTWISE,
    ST_OP_POOL,
    ST_OP_FUSED,
    ST_OP_CUSTOM,
    ST_OP_COUNT
} st_op;

/* devices that a provider's plans run on */
typedef enum st_where { ST_ON_CPU, ST_ON_CUDA } st_where;

typedef struct st_problem {
    st_op op;
    const char *who;  /* public function, for messages */
    const void *data; /* POD, compared by bytes */
    size_t bytes;
    const char *text; /* expression or NULL, compared by content */
} st_problem;

typedef struct st_candidate {
    const struct st_provider *provider;
    char kernel[96]; /* id */
    char listed
        [96]; /* of one made for a tile that the provider does not list: the id that it was made from; plan codes name that one */
    double us; /* predicted microseconds on one call; < 0: refused */
    size_t workspace;
    const char *order; /* summation order in words (static string) */
    int64_t
        order_arg; /* what else fixes the order (block length, number of parts); 0: the words say all. Equal words and numbers: equal bits */
    bool row_count_matters; /* the order of a row's sums depends on how many rows or items there are */
    const void *row;        /* the provider's table row */
    int64_t arg[8];         /* the provider's own (block sizes...), 0 to 2^30; part of the plan's code */
    strata_tile tile;       /* zero where there is nothing to say */
    char why[160];          /* when refused: the rule that refused, in words */
    bool over_limit;        /* refused by the plan layer, for its workspace alone */
    bool twin;              /* refused since another candidate comes to the same tile */
    bool by_tile;           /* refused for the tile that was asked for, not for the problem */
    double measured;        /* microseconds by the tuning database; 0: none */
} st_candidate;

typedef struct st_provider {
    const char *name;
    st_op op;
    /* Appends candidates (usable and refused) and returns how many were written, at most max. */
    int (*enumerate)(strata_handle *h, const st_problem *p, st_candidate *out, int max);
    /* Makes the plan; *plan is then owned by the caller. Fields `candidate`, `op`, `problem` are filled in by the plan layer. */
    strata_status (*build)(strata_handle *h, const st_problem *p, const st_candidate *c, strata_plan **plan);
    st_where where; /* only handles on such a device see it */
} st_provider;
void st_plan_register(const st_provider *p); /* idempotent; order of registration breaks ties */

/* Of a provider whose candidates have tiles to choose. */
typedef struct st_tiles {
    const st_provider *provider;
    /* Looks at candidate c of this provider's list again, for c->arg as it stands (tile NULL) or for the tile that is asked for (sets arg): fills in
     * prediction, workspace, order and tile. False: impossible, with c->why, exactly. */
    bool (*refine)(strata_handle *h, const st_problem *p, st_candidate *c, const strata_tile *tile);
    /* Settings of arg that are worth measuring beside c's, at most max; each is then refined. */
    int (*variants)(strata_handle *h, const st_problem *p, const st_candidate *c, int64_t (*arg)[8], int max);
} st_tiles;
void st_plan_register_tiles(const st_tiles *t); /* idempotent */

/* What an engine knows of its problems' shapes. */
typedef struct st_engine {
    st_op op;
    /* The problem as one line of text without tabs, its row and item counts rounded up to buckets: the tuning database's key. */
    void (*key)(const st_problem *p, char *text, size_t n);
    /* The problem with row and item counts that stand for all (p->bytes into data): its choice fixes the order of batch-invariant plans. False:
     * rows never share sums, any order that does not depend on their number does. */
    bool (*canonical)(const st_problem *p, void *data);
} st_engine;
void st_plan_register_engine(const st_engine *e); /* idempotent */

/* The bytes of an operand that a run may touch, relative to its address. */
typedef struct st_extent {
    int64_t lo, hi; /* [lo, hi); equal: none */
    bool read, written;
    bool
        by_value; /* one number that is only read: it may lie in host memory on a GPU too, where run reads it and passes its value */
} st_extent;

/* Before an operand that was prepared on a CPU. */
#define ST_PREPARED_MAGIC 0x70726570u
typedef struct st_prepared_head {
    uint32_t magic, form;
    uint64_t layout; /* hash of all that the layout depends on */
    uint64_t zero[6];
} st_prepared_head;
_Static_assert(sizeof(st_prepared_head) == 64, "what follows keeps the alignment");

/* That of a view, which is read and perhaps written; the tensor's address does not matter. */
st_extent st_plan_extent(const strata_tensor *t, bool written);

/* Every plan begins with this; providers append their own fields and allocate with st_plan_new. */
#define ST_PLAN_MAGIC 0x706c616eu
struct strata_plan {
    uint32_t magic; /* 0: destroyed; the memory of plans stays theirs (plan.c), so that this can be asked */
    int size_class;
    strata_plan *next_spare;
    strata_status (*run)(strata_handle *h, const strata_plan *p, void *const data[], const strata_run *r);
    void (*destroy)(strata_plan *p); /* frees what the provider's fields own, not the plan; may be NULL */
    bool (*may_miss)(const strata_plan *p, const strata_run *r,
                     int operand); /* this one's address may be NULL in this run; NULL: never */
    size_t workspace;              /* bytes that run needs */
    size_t scratch; /* of these, bytes that the workspace limit does not mean (the plan layer fills it in) */
    atomic_int refs;
    int operands; /* length of data[] */
    st_extent *
        extent; /* one an operand, freed with the plan; what staging copies. NULL: the plan cannot be staged */
    st_where where;
    st_op op;
    char device[32];
    char title[200];     /* the problem in words: "gemm f32 512x128x256, A row, B col" (build fills it) */
    double flops, bytes; /* useful operations and compulsory bytes, for roofline and benches */
    double
        predicted; /* microseconds, where building knows better than the candidate did (the sum of a plan's steps); 0: it does not */
    st_candidate chosen;
    char code[STRATA_PLAN_CODE];
    char order[192];
    char *text;              /* describe's text, made when the plan is built */
    struct st_kept *kept;    /* problem and candidates, of plans that callers own; NULL */
    const strata_plan *only; /* NULL, or the one step that this plan is: its candidates are this plan's */
    /* Constant operands (prepare.c). Bit i of preparable: data[i] can be. What is prepared lies in memory of the handle's device; on a CPU it begins
     * with a st_prepared_head, which runs compare. */
    uint64_t preparable;
    /* Operand `operand` as the view with which the plan was made (no address), or NULL: strata_prepare compares. */
    void (*view)(const strata_plan *p, int operand, strata_tensor *t);
    size_t (*prepared_bytes)(const strata_plan *p, int operand);
    strata_status (*prepare)(strata_handle *h, const strata_plan *p, int operand, const void *from, void *to);
};

/* ---- inside the layer ------------------------------------------------------------------------------------------------ */
typedef struct st_kept {
    st_problem problem; /* data, text and who are this struct's own */
    st_candidate *list;
    int count, chosen;
    size_t limit; /* of the workspace, when the choice was made */
} st_kept;

/* choose.c */
enum { ST_MAX_CANDIDATES = 1024 }; /* Hopper and the generic kernels list some 300 for 8-bit types */
typedef enum st_chosen_by { ST_BY_PREDICTION, ST_BY_MEASUREMENT, ST_BY_CALLER, ST_BY_CODE } st_chosen_by;
typedef struct st_choice {
    st_candidate *list;
    int count;
    const st_candidate *best, *model; /* model: what prediction alone prefers */
    st_chosen_by by;
    size_t limit;
    bool reordered; /* best sums in another order than model */
    bool full;      /* the list has no room left: further candidates may be missing */
    const struct st_order_rule *rule;
} st_choice;
/* Lists and chooses; c->list is the caller's to free. Fails with everyone's reasons. */
strata_status st_plan_choose(strata_handle *h, const st_problem *p, const strata_choice *choice,
                             st_choice *c);
bool st_same_order(const st_candidate *a, const st_candidate *b);
void st_order_words(const st_candidate *c, char *text, size_t n);
const st_engine *st_plan_engine(st_op op);
const st_tiles *st_plan_tiles(const st_provider *p);      /* NULL: it registered none */
int st_plan_providers(const st_provider *out[], int max); /* in the order of registration */
/* choice's limit or the handle's */
size_t st_plan_limit(const strata_handle *h, const strata_choice *choice);
/* Builds a candidate and fills in what the plan layer owns but text and kept. */
strata_status st_plan_build(strata_handle *h, const st_problem *p, size_t limit, const st_candidate *c,
                            strata_plan **plan);

/* plan.c */
void st_plan_candidate(const st_candidate *x, const st_candidate *chosen, strata_candidate *c);

/* What strata_kernels says of a kernel for GPUs. */
strata_kernel_info st_plan_gpu_kernel_info(const char *id, const char *family, const char *types,
                                           const char *isa, const char *order);

/* tile.c: the field below zero, or NULL; open fields from another tile; are all equal; is every number that was asked for what the tile has, else why (by
 * `rule`, where numbers follow from others) */
const char *st_tile_negative(const strata_tile *t, int32_t *value);
strata_tile st_tile_filled(const strata_tile *asked, const strata_tile *from);
bool st_tile_same(const strata_tile *a, const strata_tile *b);
bool st_tile_meets(const strata_tile *asked, const strata_tile *has, const char *rule, char *why, size_t n);

/* code.c */
void st_code_write(const st_candidate *c, char code[STRATA_PLAN_CODE]);
typedef struct st_code {
    uint64_t kernel; /* hash of its id */
    uint32_t order;  /* of its order: 24 bits of a hash */
    int64_t arg[8];
} st_code;
bool st_code_read(const char *text, st_code *code, const char **why);
uint64_t st_code_kernel(const char *id);
uint32_t st_code_order(const st_candidate *c);

/* text.c */
void st_plan_write_text(strata_plan *p, const st_choice *c);

/* tune.c: a search at the first use of a problem, on a handle that asked for it (strata_find) */
void st_plan_find_first(strata_handle *h, const st_problem *p);

/* A plan for the cache: chosen with the handle's modes, keeps no list. */
strata_status st_plan_make_cached(strata_handle *h, const st_problem *p, strata_plan **plan);
void *st_plan_new(size_t bytes); /* zeroed, refs = 1 */

/* Cached plan for the problem, borrowed: valid until the handle is destroyed or the plan is evicted (never during a call). */
strata_status st_plan_get(strata_handle *h, const st_problem *p, const strata_plan **plan);
/* The same under a short key of the caller's, which determines the problem: a cached plan that was kept there, or NULL when there is none, or when a plan has left the
 * cache or the handle's settings have changed since. st_plan_keep: of the plan that st_plan_get gave last. */
enum { ST_MEMO_WORDS = 10 };
const strata_plan *st_plan_recall(strata_handle *h, const int64_t key[ST_MEMO_WORDS]);
void st_plan_keep(strata_handle *h, const int64_t key[ST_MEMO_WORDS], const strata_plan *plan);
strata_status st_plan_execute_gpu(strata_handle *h, const strata_plan *p, void *const data[],
                                  const strata_run *r);
/* STRATA_ERROR_ALIAS when a caller's workspace (r's or the handle's) shares memory with an operand. */
strata_status st_plan_check_workspace(strata_handle *h, const strata_plan *p, void *const data[],
                                      const strata_run *r);
/* Runs a plan for a public call: refuses a plan of another device; on a GPU checks that it reaches the operands, or, on a handle that stages ("auto"),
 * copies host operands to the device and results back. Steps inside a plan call each other's `run` instead. */
ST_INLINE strata_status st_plan_execute(strata_handle *h, const strata_plan *p, void *const data[],
                                        const strata_run *r)
{
    if (ST_LIKELY(!h->gpu && p->where == ST_ON_CPU)) {
        if (!p->workspace) return p->run(h, p, data, r);
        if (ST_UNLIKELY((r && r->workspace) || h->workspace_is_callers)) {
            const strata_status alias = st_plan_check_workspace(h, p, data, r);
            if (alias) return alias;
        }
        const st_enter e = st_handle_enter(h);
        if (ST_UNLIKELY(e == ST_IN_USE)) return st_handle_in_use(p->title);
        const strata_status s = p->run(h, p, data, r);
        st_handle_leave(h, e);
        return s;
    }
    return st_plan_execute_gpu(h, p, data, r);
}
/* A new plan owned by the caller. choice may be NULL. */
strata_status st_plan_make(strata_handle *h, const st_problem *p, const strata_choice *choice,
                           strata_plan **plan);
/* Workspace for a run: r's, else the handle's; NULL with the error set. Never called for workspace 0 plans. */
void *st_plan_workspace(strata_handle *h, const strata_plan *p, const strata_run *r);

/* kernel lists behind strata_kernels(): each engine registers a function that fills row i, 0 past the end. Engines register at their
 * first use and, so that a program that only lists kernels sees them, from a constructor function of theirs. */
void st_plan_register_kernels(int (*list)(int i, strata_kernel_info *info));
#endif
