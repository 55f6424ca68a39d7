/* SPDX-License-Identifier: Apache-2.0 */
/* strata.h - the whole public interface. Every function returns a strata_status unless it says otherwise; strata_error()
 * gives the reason in words. No function prints, aborts or exits; on an argument error nothing is written. */
#ifndef STRATA_H
#define STRATA_H
#include <strata/base.h>
#include <strata/runtime.h>
#include <strata/plan.h>
#include <strata/pointwise.h>
#include <strata/blas.h>
#include <strata/dnn.h>
#include <strata/custom.h>
#endif
