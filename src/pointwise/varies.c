/* SPDX-License-Identifier: Apache-2.0 */
/* varies.c - see varies.h. */
#include "pointwise/varies.h"
#include "expr/ir.h"

bool st_pw_output_varies(const st_expr *x, int var, const bool *reduced, bool row, bool col)
{
    bool varies[ST_EXPR_VALUES], result = false;
    for (int i = 0; i < x->nvalues; i++) {
        const st_value *a = &x->value[i];
        varies[i] = false;
        if (a->op == ST_OP_VAR)
            varies[i] = reduced[a->var];
        else if (a->op == ST_OP_INDEX)
            varies[i] = a->var == -1 ? col : row;
        else if (!(st_expr_ops[a->op].flags & ST_OPF_R))
            for (int j = 0; j < ST_EXPR_ARGS; j++)
                if (a->arg[j] >= 0) varies[i] |= varies[a->arg[j]];
    }
    for (int i = 0; i < x->nstores; i++)
        if (x->store[i].var == var) result |= varies[x->store[i].value];
    return result;
}

static bool has(const st_expr *x, st_op op)
{
    for (int i = 0; i < x->nvalues; i++)
        if (x->value[i].op == op) return true;
    return false;
}

bool st_pw_has_index(const st_expr *x) { return has(x, ST_OP_INDEX); }
bool st_pw_has_argmax(const st_expr *x) { return has(x, ST_OP_ARGMAX); }
