/* SPDX-License-Identifier: Apache-2.0 */
/* fused_scaled.c - one product of factors whose blocks have scales, "(X * SX[m, k/128]) @ (W * SW[k/128, n/128])", of 8-bit floats: as one kernel where the device has
 * it (st_tile_scaled_plan), which multiplies the sums of every 128 of k. Else the factors are multiplied out. */
#include "blas/fused_scaled.h"
#include "tile/epilogue.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct st_factor {
    int matrix, scale; /* operands; scale -1: none */
    st_block_scale block;
} st_factor;

static bool refuse(char *why, size_t n, const char *words)
{
    snprintf(why, n, "%s", words);
    return false;
}

/* Is the loader's text the product of the two operands and nothing more? */
static bool is_product(const char *text, const char *a, const char *b)
{
    char want[2 * ST_EXPR_NAME + 8];
    const char *at = strchr(text, '=');
    if (!at) return false;
    snprintf(want, sizeof want, "%s*%s", a, b);
    const char *w = want;
    for (at++; *at; at++) {
        if (strchr(" ()\t\n\r", *at)) continue;
        if (*at != *w++) return false;
    }
    return !*w;
}

/* Factor k as st_fused_text counts. `right`: of '@'. */
static bool take_factor(const st_fused *f, int k, bool right, st_factor *x, char *why, size_t n)
{
    *x = (st_factor){.matrix = k, .scale = -1};
    if (k >= f->n) {
        const st_fused_loader *l = &f->t.loader[k - f->n];
        int at[2] = {-1, -1}, count = 0;
        for (int o = 0; o < f->n; o++)
            if (l->used >> o & 1) {
                if (count < 2) at[count] = o;
                count++;
            }
        if (count != 2 || l->picks ||
            !(is_product(l->text, f->name[at[0]], f->name[at[1]]) ||
              is_product(l->text, f->name[at[1]], f->name[at[0]])))
            return refuse(why, n, "a factor is more than a matrix times its scales");
        const st_fused_place *p = l->place;
        const int scale = p[at[0]].row_group || p[at[0]].col_group ? 0 : 1;
        x->scale = at[scale];
        x->matrix = at[!scale];
        const st_fused_place *s = &p[x->scale], *m = &p[x->matrix];
        const strata_tensor *S = &f->op[x->scale].tensor, *M = &f->op[x->matrix].tensor;
        const int64_t kg = right ? s->row_group : s->col_group, og = right ? s->col_group : s->row_group;
        if (kg != 128 || s->along || m->along || m->row_group || m->col_group)
            return refuse(why, n, "the scales are not of blocks of 128 of k");
        if (S->type != STRATA_F32 || S->rank != 2 || M->rank != 2 || S->flags || M->flags)
            return refuse(why, n, "the scales are no f32 matrix");
        const int kd = right ? 0 : 1, od = !kd;
        x->block = (st_block_scale){og ? og : 1, S->stride[od], S->stride[kd]};
        if (S->dim[od] == 1) x->block.rows = st_max64(M->dim[od], 1);
        if (S->dim[kd] != st_ceil_div(M->dim[kd], 128) ||
            S->dim[od] != st_ceil_div(M->dim[od], x->block.rows))
            return refuse(why, n, "the scales' dims are not those of the matrix in blocks");
    }
    const strata_tensor *t = &f->op[x->matrix].tensor;
    if ((t->type != STRATA_F8E4M3 && t->type != STRATA_F8E5M2) || t->rank != 2 || t->flags)
        return refuse(why, n, "the factors are not plain matrices of 8-bit floats");
    return true;
}

typedef struct st_scaled {
    st_factor x[2];
    st_contract c;
    char *text; /* of the epilogue; free() */
    bool plain;
    int at[5 + ST_EPI_OPERANDS], count;
} st_scaled;

/* The whole problem as one contraction. text is NULL where it fails. */
static bool describe(const st_fused *f, int out, st_scaled *s, char *why, size_t n)
{
    memset(s, 0, sizeof *s);
    if (f->t.products != 1 || !f->t.loaders) return refuse(why, n, "the product's factors have no scales");
    if (!take_factor(f, f->t.x[0], false, &s->x[0], why, n) ||
        !take_factor(f, f->t.w[0], true, &s->x[1], why, n))
        return false;
    const strata_tensor *C = &f->op[out].tensor;
    if (C->rank != 2 || C->flags) return refuse(why, n, "the output is no plain matrix");
    st_product_describe(&f->op[s->x[0].matrix].tensor, &f->op[s->x[1].matrix].tensor, C, &s->c);
    if (!(s->text = st_fused_rewrite(&f->t, f->op, f->n, 0, f->name[out])))
        return refuse(why, n, "no memory");
    s->at[0] = s->x[0].matrix;
    s->at[1] = s->x[1].matrix;
    s->at[2] = out;
    int k = 0;
    for (int i = 0; i < f->n; i++) {
        const st_epi_use use = st_tile_epilogue_use(s->text, f->name[i]);
        if (i == out || !use.used) continue;
        st_epi_operand *o = &s->c.epi[k];
        bool fits = k < ST_EPI_OPERANDS && strlen(f->name[i]) < sizeof o->name;
        if (fits) {
            memcpy(o->name, f->name[i], strlen(f->name[i]));
            o->type = f->op[i].tensor.type;
            st_err e = {.status = STRATA_OK};
            fits = !st_tile_bind_operand(&e, f->who, C, &f->op[i], use.index, o);
        }
        if (!fits) {
            free(s->text);
            s->text = NULL;
            return refuse(why, n, "an operand of the epilogue does not fit");
        }
        s->at[3 + k++] = i;
    }
    s->c.epi_operands = k;
    s->plain = k == 0 && !strcmp(s->text, "out = acc");
    for (int i = 0; i < 2; i++) s->at[3 + k + i] = s->x[i].scale >= 0 ? s->x[i].scale : s->x[i].matrix;
    s->count = 5 + k;
    return true;
}

bool st_fused_scaled(const st_fused *f, int out, double *us, size_t *workspace, char *why, size_t n)
{
    st_scaled s;
    if (!describe(f, out, &s, why, n)) return false;
    const st_block_scale scale[2] = {s.x[0].block, s.x[1].block};
    const bool fits = st_tile_scaled_fits(f->h, &s.c, s.plain ? NULL : s.text, scale, us, workspace, why, n);
    free(s.text);
    return fits;
}

strata_status st_fused_scaled_plan(const st_fused *f, int out, strata_plan **plan, int *at, int *count,
                                   int x[2])
{
    st_scaled s;
    char why[160];
    *plan = NULL;
    if (!describe(f, out, &s, why, sizeof why))
        return st_fail(f->e, STRATA_ERROR_INTERNAL, "%s: %s", f->who, why);
    const st_block_scale scale[2] = {s.x[0].block, s.x[1].block};
    const strata_status st = st_tile_scaled_plan(f->h, f->who, &s.c, s.plain ? NULL : s.text, scale, plan);
    free(s.text);
    memcpy(at, s.at, sizeof(int) * (size_t)s.count);
    *count = s.count;
    x[0] = s.x[0].matrix;
    x[1] = s.x[1].matrix;
    return st;
}
