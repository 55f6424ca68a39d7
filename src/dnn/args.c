/* SPDX-License-Identifier: Apache-2.0 */
/* args.c - the checks that the dnn operators share. */
#include "dnn/args.h"

bool st_dnn_present(const strata_tensor *t) { return t->data != NULL || t->error != 0; }

strata_status st_dnn_reserved(strata_handle *h, const char *who, const uint64_t reserved[4])
{
    for (int i = 0; i < 4; i++)
        if (reserved[i])
            return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                           "%s: reserved[%d] of the options is %llu and must be 0: zero the struct", who, i,
                           (unsigned long long)reserved[i]);
    return STRATA_OK;
}

strata_status st_dnn_same_dims(strata_handle *h, const char *who, const char *an, const strata_tensor *a,
                               const char *bn, const strata_tensor *b)
{
    bool same = a->rank == b->rank;
    for (int d = 0; same && d < a->rank; d++) same = a->dim[d] == b->dim[d];
    if (same) return STRATA_OK;
    return st_fail(&h->err, STRATA_ERROR_SHAPE, "%s: %s is %s and %s is %s: their dims must be equal", who,
                   an, ST_DIMS(*a), bn, ST_DIMS(*b));
}

strata_status st_dnn_check_alias(strata_handle *h, const char *who, const st_dnn_arg *args, int n,
                                 bool in_place)
{
    for (int i = 0; i < n; i++) {
        if (!args[i].output || !st_dnn_present(args[i].t)) continue;
        for (int j = 0; j < n; j++) {
            if (j == i || !st_dnn_present(args[j].t) || (args[j].output && j > i)) continue;
            if (!st_tensor_overlap(args[i].t, args[j].t)) continue;
            const bool same_allowed = in_place && !args[j].output && !args[i].alone;
            if (same_allowed && st_tensor_same_view(args[i].t, args[j].t)) continue;
            return st_fail(&h->err, STRATA_ERROR_ALIAS, "%s: the output %s overlaps %s in memory%s", who,
                           args[i].name, args[j].name,
                           same_allowed ? "; only the identical view is allowed here"
                                        : ": give it memory of its own");
        }
    }
    return STRATA_OK;
}

strata_status st_dnn_check(strata_handle *h, const char *who, const st_dnn_arg *args, int n, bool in_place)
{
    int first = -1;
    for (int i = 0; i < n; i++) {
        const strata_tensor *t = args[i].t;
        if (args[i].optional && !st_dnn_present(t)) continue;
        strata_status s = args[i].output ? st_tensor_check_output(&h->err, who, args[i].name, t)
                                         : st_tensor_check(&h->err, who, args[i].name, t);
        if (s) return s;
        if (t->type != STRATA_F32 && t->type != STRATA_F64)
            return st_fail(&h->err, STRATA_ERROR_TYPE, "%s: %s is %s; supported are f32 and f64", who,
                           args[i].name, strata_type_name((strata_type)t->type));
        if (first < 0) first = i;
        if (t->type != args[first].t->type)
            return st_fail(&h->err, STRATA_ERROR_TYPE,
                           "%s: %s is %s and %s is %s: all operands must have one type", who,
                           args[first].name, strata_type_name((strata_type)args[first].t->type), args[i].name,
                           strata_type_name((strata_type)t->type));
    }
    return st_dnn_check_alias(h, who, args, n, in_place);
}
