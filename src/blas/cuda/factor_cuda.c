/* SPDX-License-Identifier: Apache-2.0 */
/* factor_cuda.c - chooses how many threads have an item, and where it lies, and launches factor.cu. */
#include "blas/factor.h"
#include "runtime/gpu.h"
#include <stdio.h>

enum { OPS = ST_FACTOR_OPS, TYPES = 4, TEAMS_LIST = 6 };
static const char *const op_name[OPS] = {"getrf", "getrs", "getri", "matinv", "geqrf", "gels"};
static const struct {
    int type;
    const char *name, *real;
} types[TYPES] = {{STRATA_F32, "f32", "f32"},
                  {STRATA_F64, "f64", "f64"},
                  {STRATA_C64, "c64", "f32"},
                  {STRATA_C128, "c128", "f64"}};
static const int team_of[TEAMS_LIST] = {8, 16, 32, 64, 128, 256};

typedef struct factor_text {
    char id[96], text[7][32];
} factor_text;

static st_gpu_spec spec_of(int op, int type, int team, bool smem, factor_text *t)
{
    const bool complex = types[type].type == STRATA_C64 || types[type].type == STRATA_C128;
    const int teams = team <= 32 ? 128 / team : 1;
    snprintf(t->id, sizeof t->id, "%s_batched_%s_%d%s_cuda", op_name[op], types[type].name, team,
             smem ? "" : "_inplace");
    snprintf(t->text[0], sizeof t->text[0], "-DOP=%d", op);
    snprintf(t->text[1], sizeof t->text[1], "-DT=%s", types[type].name);
    snprintf(t->text[2], sizeof t->text[2], "-DR=%s", types[type].real);
    snprintf(t->text[3], sizeof t->text[3], "-DCOMPLEX=%d", complex);
    snprintf(t->text[4], sizeof t->text[4], "-DG=%d", team);
    snprintf(t->text[5], sizeof t->text[5], "-DTEAMS=%d", teams);
    snprintf(t->text[6], sizeof t->text[6], "-DSMEM=%d", smem);
    st_gpu_spec s = {.id = t->id, .source = "factor.cu", .entry = "factor_batched"};
    for (int i = 0; i < 7; i++) s.option[i] = t->text[i];
    return s;
}

/* Bytes of shared memory of an item that lies there. */
static int64_t smem_of(const st_factor *f, bool whole)
{
    const int64_t least = f->m < f->n ? f->m : f->n, size = st_factor_size(f);
    int64_t bytes = (least + 3) / 4 * 16;
    if (!whole) return bytes;
    bytes += f->m * (f->n | 1) * size;
    const int64_t nrhs = f->op == ST_GETRI || f->op == ST_MATINV ? f->n
                         : f->op == ST_GETRS || f->op == ST_GELS ? f->nrhs
                                                                 : 0;
    if (nrhs) bytes += f->m * (nrhs | 1) * size;
    return (bytes + 15) / 16 * 16;
}

strata_status st_factor_cuda(strata_handle *h, const char *who, const st_factor *f)
{
    const int64_t rows = f->m > f->n ? f->m : f->n, least = f->m < f->n ? f->m : f->n,
                  most = (int64_t)1 << 20;
    int type = 0, team = 0;
    if (rows > most || f->nrhs > most)
        return st_fail(&h->err, STRATA_ERROR_UNSUPPORTED,
                       "%s: the matrices are %lldx%lld; on %s at most %lld rows and columns", who,
                       (long long)f->m, (long long)f->n, h->device, (long long)most);
    while (types[type].type != f->type) type++;
    const int64_t limit = h->gpu->smem_block;
    bool smem = smem_of(f, true) <= limit;
    if (!smem && f->op == ST_MATINV)
        return st_fail(&h->err, STRATA_ERROR_UNSUPPORTED,
                       "%s: the matrices are %lldx%lld; on %s they must fit shared memory (%lld bytes "
                       "needed, %lld there): use strata_getrf and "
                       "strata_getri",
                       who, (long long)f->m, (long long)f->n, h->device, (long long)smem_of(f, true),
                       (long long)limit);
    if (smem_of(f, false) > limit)
        return st_fail(&h->err, STRATA_ERROR_UNSUPPORTED,
                       "%s: the matrices are %lldx%lld; on %s at most %lld pivots are kept", who,
                       (long long)f->m, (long long)f->n, h->device, (long long)limit / 4);
    /* threads for the rows of the rest, on average half of them: as many as the smaller side, and more for long columns */
    const int64_t want = smem ? st_max64(least, rows / 2) : rows;
    while (team < TEAMS_LIST - 1 && team_of[team] < want) team++;
    while (!smem && team_of[team] < 64) team++; /* in place nobody may repeat another's item */
    int teams = team_of[team] <= 32 ? 128 / team_of[team] : 1;
    const int64_t bytes = smem_of(f, smem);
    if (bytes * teams > limit) { /* a block's teams do not fit together: one team of a whole block */
        while (team_of[team] < 64) team++;
        teams = 1;
    }
    factor_text t;
    const st_gpu_kernel *k;
    const st_gpu_spec spec = spec_of(f->op, type, team_of[team], smem, &t);
    strata_status s = st_gpu_kernel_get(h, &spec, &k);
    if (s) return s;
    st_factor copy = *f;
    int64_t each = bytes;
    void *args[] = {&copy, &each};
    const int64_t blocks = st_ceil_div(f->items, teams);
    const st_gpu_launch launch = {.kernel = k,
                                  .grid = {(unsigned)st_min64(blocks, 1 << 30), 1, 1},
                                  .block = {(unsigned)(team_of[team] * teams), 1, 1},
                                  .smem = (unsigned)(bytes * teams),
                                  .args = args};
    return st_gpu_run(h, &launch);
}

/* Ahead of time: LU, solutions and inverses of f32 and f64, teams of up to a warp, in shared memory. */
static bool pack_list(int cc, int i, st_gpu_spec *s)
{
    static _Thread_local factor_text t;
    (void)cc;
    if (i >= 3 * 2 * 3) return false;
    *s = spec_of(i / 6, i / 3 % 2, team_of[i % 3], true, &t);
    return true;
}
__attribute__((constructor)) static void enter_pack(void) { st_gpu_register_pack(pack_list); }
