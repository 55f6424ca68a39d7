/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.h - what products offer to the operators beside them. */
#ifndef ST_BLAS_GEMM_H
#define ST_BLAS_GEMM_H
#include "plan/plan.h"
#include <strata/blas.h>

/* Does strata_gemm take these types on this handle? */
bool st_gemm_types_fit(const strata_handle *h, int a, int b, int c);
/* strata_gemm_plan for C := A B under another function's name; the addresses in the tensors do not matter but may not be NULL. */
strata_status st_gemm_make(strata_handle *h, const char *who, const strata_tensor *A, const strata_tensor *B,
                           const strata_tensor *C, const strata_gemm_options *o, strata_plan **plan);
#endif
