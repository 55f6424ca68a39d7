/* SPDX-License-Identifier: Apache-2.0 */
/* varies.h - questions about a program's values. Apart from program.h because expr/ir.h and plan/plan.h both have an st_op. */
#ifndef ST_POINTWISE_VARIES_H
#define ST_POINTWISE_VARIES_H
#include "expr/expr.h"

/* Whether what is stored to variable `var` differs along the reduced dims other than through reductions. reduced[i]: variable i does;
 * row, col: index(-2) and index(-1) do. */
bool st_pw_output_varies(const st_expr *x, int var, const bool *reduced, bool row, bool col);
/* Whether the program asks for index(-1) or index(-2). */
bool st_pw_has_index(const st_expr *x);
bool st_pw_has_argmax(const st_expr *x);
#endif
