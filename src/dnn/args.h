/* SPDX-License-Identifier: Apache-2.0 */
/* args.h - the checks that the dnn operators share; every message names the argument, its value and the rule. */
#ifndef ST_DNN_ARGS_H
#define ST_DNN_ARGS_H
#include "base/base.h"
#include "runtime/handle.h"

/* An operand of a call: what checks and messages need to know about it. */
typedef struct st_dnn_arg {
    const char *name;
    const strata_tensor *t;
    bool output, optional, alone; /* alone: not even an identical view may share an output's memory */
} st_dnn_arg;

/* Checks each tensor, that all are f32 or all f64, and that no output overlaps another operand (the same view as an input is
 * allowed where in_place is set). An optional argument whose data is NULL is absent. */
strata_status st_dnn_check(strata_handle *h, const char *who, const st_dnn_arg *args, int n, bool in_place);
/* No output overlaps another operand; part of the above, for operators that check their types themselves. */
strata_status st_dnn_check_alias(strata_handle *h, const char *who, const st_dnn_arg *args, int n,
                                 bool in_place);
/* b has a's dims. */
strata_status st_dnn_same_dims(strata_handle *h, const char *who, const char *an, const strata_tensor *a,
                               const char *bn, const strata_tensor *b);
strata_status st_dnn_reserved(strata_handle *h, const char *who, const uint64_t reserved[4]);
bool st_dnn_present(const strata_tensor *t); /* data is not NULL (or the maker's refusal is to be reported) */
#endif
