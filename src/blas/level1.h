/* SPDX-License-Identifier: Apache-2.0 */
/* level1.h - BLAS level 1 on GPUs where one real program over the vectors does not do: complex ones, and sums. Arguments are checked. */
#ifndef ST_BLAS_LEVEL1_H
#define ST_BLAS_LEVEL1_H
#include "base/base.h"
#include "runtime/handle.h"

/* The parts of a complex vector, n x 2; a real vector itself. */
strata_tensor st_level1_parts(const strata_tensor *t);
/* y := a x + b y of complex vectors; x NULL: y := b y */
strata_status st_level1_axpby(strata_handle *h, const char *who, const double a[2], const strata_tensor *x,
                              const double b[2], const strata_tensor *y);
strata_status st_level1_dot(strata_handle *h, const char *who, bool conjugate, const strata_tensor *x,
                            const strata_tensor *y, const strata_tensor *r);
/* the sum of the parts' absolute values, or the root of that of their squares, which neither overflows nor vanishes; any type */
strata_status st_level1_sum(strata_handle *h, const char *who, bool squares, const strata_tensor *x,
                            const strata_tensor *r);
/* x, y := c x + s y, c y - conj(s) x */
strata_status st_level1_rot(strata_handle *h, const char *who, double c, const double s[2],
                            const strata_tensor *x, const strata_tensor *y);
#endif
