/* SPDX-License-Identifier: Apache-2.0 */
/* epilogue.h - runs a contraction's epilogue expression on a rectangle of C. Variables: `acc` (the finished product), `out` (C), and the
 * problem's named operands with their strides along the m, n and batch axes. */
#ifndef ST_TILE_EPILOGUE_H
#define ST_TILE_EPILOGUE_H
#include "tile/tile.h"
#include <strata/pointwise.h>

/* Where `acc` is when it is not in C: element (m0 + i, n0 + j) at ptr + i*sm + j*sn (elements of `type`). */
typedef struct st_epi_acc {
    void *ptr;
    int type;
    int64_t sm, sn;
} st_epi_acc;

size_t st_epilogue_scratch(const st_expr *x); /* bytes, a multiple of 64; 0 for NULL */
/* data[]: A, B, C, operands. g: index of the batch item; the rectangle is m0.. x n0.. in flattened m and n. acc NULL: C holds the
 * product and is updated in place. */
void st_epilogue_run(const st_expr *x, const st_contract *c, void *const data[], const st_epi_acc *acc,
                     int64_t g, int64_t m0, int64_t rows, int64_t n0, int64_t cols, void *scratch);
/* One operand of an epilogue over C: its strides along m, n and the batch dims of C, or why it does not fit. */
strata_status st_tile_bind_operand(st_err *e, const char *who, const strata_tensor *C,
                                   const strata_operand *x, st_index index, st_epi_operand *to);
#endif
