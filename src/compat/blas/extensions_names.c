/* SPDX-License-Identifier: Apache-2.0 */
/* extensions_names.c - the names of the extensions, four times from extensions.inc. */
#include "compat/blas/extensions.h"

#define BODY "compat/blas/extensions.inc"
#include "compat/blas/every_type.inc"
