/* SPDX-License-Identifier: Apache-2.0 */
/* factor_types.h - factor_body.h for the four element types, and TABLE of them. Complex products are the plain formula: what NaN and infinity give beyond that
 * is no promise of a factorisation. */
#include "blas/factor.h"
#include <float.h>
#include <math.h>
#if defined(__GNUC__) && !defined(__clang__)
#    pragma GCC optimize("O3", "cx-limited-range")
#endif

#define T float
#define R float
#define R_MAX FLT_MAX
#define R_SQRT sqrtf
#define COMPLEX 0
#define NAME(x) s_##x
#include "blas/cpu/factor_body.h"
#undef T
#undef NAME
#undef COMPLEX
#define T _Complex float
#define COMPLEX 1
#define NAME(x) c_##x
#include "blas/cpu/factor_body.h"
#undef T
#undef R
#undef R_MAX
#undef R_SQRT
#undef NAME
#undef COMPLEX
#define T double
#define R double
#define R_MAX DBL_MAX
#define R_SQRT sqrt
#define COMPLEX 0
#define NAME(x) d_##x
#include "blas/cpu/factor_body.h"
#undef T
#undef NAME
#undef COMPLEX
#define T _Complex double
#define COMPLEX 1
#define NAME(x) z_##x
#include "blas/cpu/factor_body.h"

const st_factor_table TABLE = {{s_item, d_item, c_item, z_item}};
