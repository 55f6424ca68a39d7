/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_portable.c - the kernels of matvec_body.h for portable. */
#include "pointwise/cpu/vec.h"
#include "pointwise/matvec.h"

#define ARCH portable
#define GROUP 4
#define SWAP_F(a) vf_swap(a)
#define SWAP_D(a) vd_swap(a)

ST_INLINE vf vf_swap(vf a) { return (vf){a[1], a[0], a[3], a[2]}; }
ST_INLINE vd vd_swap(vd a) { return (vd){a[1], a[0]}; }
ST_INLINE void vf_fold(vf a, float out[2]) { out[0] = a[0] + a[2], out[1] = a[1] + a[3]; }
ST_INLINE void vd_fold(vd a, double out[2]) { out[0] = a[0], out[1] = a[1]; }

#include "pointwise/cpu/matvec_types.h"
