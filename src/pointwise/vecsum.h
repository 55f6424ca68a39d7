/* SPDX-License-Identifier: Apache-2.0 */
/* vecsum.h - what of one or two vectors gives one number, on GPUs: BLAS's dot, nrm2, asum, iamax and iamin. (On the CPU: vector.h.) */
#ifndef ST_POINTWISE_VECSUM_H
#define ST_POINTWISE_VECSUM_H
#include "base/base.h"
#include "runtime/handle.h"

typedef enum st_vecsum_op { ST_VECSUM_DOT, ST_VECSUM_NRM2, ST_VECSUM_ASUM, ST_VECSUM_EXTREME } st_vecsum_op;
typedef struct st_vecsum {
    int64_t family;   /* ST_PW_VECSUM */
    int64_t op, type; /* of the vectors: f32 f64 c64 c128 */
    int64_t n, x, y;  /* n > 0; strides of any sign, y of DOT alone; the addresses are those of element 0 */
    int64_t conjugate, least; /* DOT: conj(x_i) y_i; EXTREME: of the smallest magnitude */
    int64_t
        wide; /* the result is f64 (NRM2, ASUM) or i64 (EXTREME); else the parts' type, i32; of DOT the vectors' type */
    int64_t alignment; /* as in st_matvec */
} st_vecsum;

/* data: x, y (NULL but for DOT), the result. Checked by the caller (blas). */
strata_status st_vecsum_run(strata_handle *h, const char *who, const st_vecsum *v, void *const data[3]);
#endif
