/* SPDX-License-Identifier: Apache-2.0 */
/* epilogue.c - prints a contraction's epilogue as the function st_epilogue of generated.cuh.
 *
 * Where an operand's list of axes is one axis, its stride is a parameter, so that the text (and the compiled kernel) serves every size; where it is several, the
 * index is split by constants, and axes without a stride are left out. The value for C (`out`) is returned; other outputs are stored on the way. */
#include "tile/cuda/epilogue.h"
#include "tile/cuda/generic.h"
#include "tile/contract.h"
#include <stdlib.h>
#include <string.h>

typedef struct printer {
    const st_contract *c;
    const st_expr *x;
    const char *m, *n; /* the kernel's indices that count c's m and n */
    bool f64;
} printer;

static const st_expr_var *variable(const printer *p, int v)
{
    const st_expr_var *vars;
    st_expr_vars(p->x, &vars);
    return &vars[v];
}
static int operand(const printer *p, int v)
{
    const char *name = variable(p, v)->name;
    for (int i = 0; i < (int)p->c->epi_operands; i++)
        if (!strcmp(name, p->c->epi[i].name)) return i;
    return -1;
}

/* " + " terms of one list */
static void put_list(st_text *t, const st_axes *l, const int64_t *stride, const char *index,
                     const char *param, int operand)
{
    if (l->count <= 1) {
        st_text_put(t, " + %s * e.%s[%d]", index, param, operand);
        return;
    }
    int64_t below = 1;
    for (int64_t d = l->count - 1; d >= 0; d--) {
        if (stride[d] && d > 0)
            st_text_put(t, " + %s / %lldLL %% %lldLL * %lldLL", index, (long long)below,
                        (long long)l->ax[d].len, (long long)stride[d]);
        else if (stride[d])
            st_text_put(t, " + %s / %lldLL * %lldLL", index, (long long)below, (long long)stride[d]);
        below *= l->ax[d].len;
    }
}
static void put_element(const printer *p, st_text *t, int i)
{
    const st_epi_operand *o = &p->c->epi[i];
    st_text_put(t, "((%s *)e.ptr[%d])[0", st_cuda_type((int)o->type), i);
    put_list(t, &p->c->m, o->sm, p->m, "sm", i);
    put_list(t, &p->c->n, o->sn, p->n, "sn", i);
    put_list(t, &p->c->batch, o->sb, "g", "sb", i);
    st_text_put(t, "]");
}

static void load(void *user, st_text *t, int v)
{
    const printer *p = user;
    const int i = operand(p, v);
    if (i < 0) { /* acc; check_epilogue has refused to read out */
        st_text_put(t, "(%s)acc", p->f64 ? "double" : "float");
        return;
    }
    st_text_put(t, "%s(", p->f64 ? "to_f64" : "to_f32");
    put_element(p, t, i);
    st_text_put(t, ")");
}
static void store(void *user, st_text *t, int v, const char *value)
{
    const printer *p = user;
    const int i = operand(p, v);
    if (i < 0) {
        st_text_put(t, "    result = (ST_ACC)%s;\n", value);
        return;
    }
    st_text_put(t, "    ");
    put_element(p, t, i);
    st_text_put(t, " = from<%s>(%s);\n", st_cuda_type((int)p->c->epi[i].type), value);
}

strata_status st_cuda_epilogue_text(st_err *e, const st_contract *c, const st_expr *x, bool swapped,
                                    char **text)
{
    *text = NULL;
    if (!x) return STRATA_OK;
    printer p = {c, x, swapped ? "n" : "m", swapped ? "m" : "n", c->tc == STRATA_F64};
    const st_cuda_names names = {load, store, p.m, p.n, &p};
    st_text t = {0};
    st_text_put(&t, "INL ST_ACC st_epilogue(const st_epi &e, ST_ACC acc, i64 m, i64 n, i64 g)\n{\n"
                    "    ST_ACC result = acc;\n");
    st_expr_cuda_map(x, &names, &t);
    st_text_put(&t, "    return result;\n}\n");
    if (t.failed || !t.s) {
        free(t.s);
        return st_fail(e, STRATA_ERROR_MEMORY, "no memory for the text of an epilogue");
    }
    *text = t.s;
    return STRATA_OK;
}

void st_cuda_epilogue_params(const st_contract *c, bool swapped, void *const data[], st_epi_params *p)
{
    (void)swapped; /* the text pairs each stride with its index */
    for (int i = 0; i < (int)c->epi_operands; i++) {
        p->ptr[i] = data[3 + i];
        p->sm[i] = c->m.count == 1 ? c->epi[i].sm[0] : 0;
        p->sn[i] = c->n.count == 1 ? c->epi[i].sn[0] : 0;
        p->sb[i] = c->batch.count == 1 ? c->epi[i].sb[0] : 0;
    }
}
