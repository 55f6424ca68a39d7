/* SPDX-License-Identifier: Apache-2.0 */
/* fused.c - strata_fused and strata_fused_plan: a program without a product goes to the pointwise engine as it is, one with products to fused_plan.c. Here are
 * the checks of what every call may change: the operands' views and where they lie. */
#include "blas/fused.h"
#include "pointwise/pointwise.h"
#include <string.h>

#define WHO "strata_fused"

/* An output may lie in no other operand's memory: products are read long before they are stored. */
static strata_status check_apart(st_err *e, const char *who, const strata_operand *o, int n,
                                 const st_fused_use *u)
{
    for (int k = 0; k < n; k++) {
        if (!(u->outputs >> k & 1)) continue;
        for (int i = 0; i < n; i++) {
            if (i == k || !st_tensor_overlap(&o[k].tensor, &o[i].tensor)) continue;
            if (k == u->out && u->x >= 0 && u->w >= 0)
                return st_fail(e, STRATA_ERROR_ALIAS,
                               "%s: %s, which receives %s @ %s, overlaps %s in memory; it must be apart from "
                               "every other operand",
                               who, o[k].name, o[u->x].name, o[u->w].name, o[i].name);
            return st_fail(
                e, STRATA_ERROR_ALIAS,
                "%s: %s, which the program writes, overlaps %s in memory; beside a product outputs must "
                "be apart from every other operand",
                who, o[k].name, o[i].name);
        }
    }
    return STRATA_OK;
}

static strata_status check_options(strata_handle *h, const char *who, const strata_fused_options *o)
{
    for (int i = 0; o && i < ST_COUNT(o->reserved); i++)
        if (o->reserved[i])
            return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                           "%s: reserved words of strata_fused_options are not zero; start from {0}", who);
    return STRATA_OK;
}

/* Products are seen by their sign; a stray one is an error of the parser behind it. */
static bool has_product(const char *program) { return program && strchr(program, '@'); }

strata_status strata_fused(strata_handle *h, const char *program, const strata_operand *operands,
                           const strata_fused_options *options)
{
    strata_status s = st_handle_check(h, WHO);
    if (s || (s = check_options(h, WHO, options))) return s;
    const uint32_t axes = options ? options->axes : 0;
    if (!has_product(program)) return st_pw_run(h, WHO, program, operands, axes);
    int64_t key[ST_KEY_WORDS];
    void *data[ST_EXPR_VARS];
    int n;
    if ((s = st_pw_check_operands(h, WHO, operands, &n))) return s;
    st_fused_init();
    const size_t bytes = st_pw_program_key(key, operands, n, axes, st_pw_program_second(h, operands, n));
    const st_problem pr = {ST_OP_FUSED, WHO, key, bytes, program};
    const strata_plan *plan;
    const uint64_t t0 = st_trace_begin();
    if ((s = st_plan_get(h, &pr, &plan))) return s;
    const st_fused_use use = st_fused_plan_use(plan);
    if ((s = check_apart(&h->err, WHO, operands, n, &use))) return s;
    for (int i = 0; i < n; i++) data[i] = operands[i].tensor.data;
    s = st_plan_execute(h, plan, data, NULL);
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "blas", WHO, "%s, %s, workspace %zu", plan->title, plan->chosen.kernel,
                     plan->workspace);
    return s;
}

strata_status strata_fused_plan(strata_handle *h, const char *program, const strata_operand *operands,
                                const strata_fused_options *options, const strata_choice *choice,
                                strata_plan **plan)
{
    static const char who[] = "strata_fused_plan";
    static char nowhere[64];
    strata_operand o[ST_EXPR_VARS + 1] = {{NULL, {0}}};
    int64_t key[ST_KEY_WORDS];
    int n = 0;
    strata_status s = st_handle_check(h, who);
    if (s) return s;
    if (!plan) return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "%s: the address for the plan is NULL", who);
    *plan = NULL;
    if (!program) return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "%s: the program is NULL", who);
    if ((s = check_options(h, who, options))) return s;
    for (; operands && operands[n].name && n < ST_EXPR_VARS;
         n++) { /* a plan is for shapes: views without address are as good */
        o[n] = operands[n];
        if (!o[n].tensor.data) o[n].tensor.data = nowhere;
    }
    if ((s = st_pw_check_operands(h, who, operands ? o : NULL, &n))) return s;
    const uint32_t axes = options ? options->axes : 0;
    const bool product = has_product(program);
    if (product)
        st_fused_init();
    else
        st_pw_init();
    /* on a GPU a plan serves every address of its operands' elements, since later ones are not known */
    const size_t bytes = st_pw_program_key(key, o, n, axes, h->gpu ? 1 : st_threads(h));
    const st_problem pr = {product ? ST_OP_FUSED : ST_OP_POINTWISE, who, key, bytes, program};
    /* the steps' own plans take the handle's limit */
    const size_t limit = h->workspace_limit;
    if (choice && choice->limit_workspace) h->workspace_limit = choice->workspace_limit;
    s = st_plan_make(h, &pr, choice, plan);
    h->workspace_limit = limit;
    if (!s && product) st_fused_describe(*plan);
    return s;
}
