/* SPDX-License-Identifier: Apache-2.0 */
/* conv.h - what the files of convolution share: the checked sizes, and the contractions that a convolution is.
 *
 * Forward and the weight gradient are one windowed contraction each. The data gradient of a strided convolution is one for every
 * residue of the image's rows and columns modulo the strides, each with the taps that reach that residue. */
#ifndef ST_DNN_CONV_H
#define ST_DNN_CONV_H
#include "runtime/handle.h"
#include "tile/tile.h"
#include <strata/dnn.h>

typedef enum st_conv_kind { ST_CONV_FORWARD, ST_CONV_DATA, ST_CONV_WEIGHTS } st_conv_kind;

/* A checked convolution. t: image side, weights, output side of the network (x or dx, w or dw, y or dy). */
typedef struct st_conv {
    st_conv_kind kind;
    const char *who;
    strata_tensor x, w, y;
    int64_t n, c, h, wd, o, r, s, p, q, groups; /* wd: the image's width */
    int64_t pad[2], pad_end[2], stride[2], dilation[2];
    bool flip, accumulate;
    bool images_apart; /* batch invariance: each image is computed as one alone is */
    int64_t es;
    const char *epilogue;
    const strata_operand *operand;
    int operands;
    unsigned along_channels; /* bit i: operand i is a vector along the channels, written name[n] */
} st_conv;

/* One contraction of it: the problem and where its operands A, B, C begin, in elements from the tensors' addresses. */
typedef struct st_conv_part {
    st_contract problem;
    int64_t offset[3];
} st_conv_part;

/* conv_check.c: sizes from x and w alone; then everything, with y */
strata_status st_conv_sizes(strata_handle *h, const char *who, const strata_conv *o, const strata_tensor *x,
                            const strata_tensor *w, st_conv *c);
strata_status st_conv_check(strata_handle *h, st_conv_kind kind, const char *who, const strata_conv *o,
                            strata_tensor x, strata_tensor w, strata_tensor y, st_conv *c);

/* conv_parts.c */
int64_t st_conv_parts(const st_conv *c);
bool st_conv_part_at(const st_conv *c, int64_t i,
                     st_conv_part *part); /* false: nothing to do for this part */
/* Addresses of a part's operands: A, B, C, then the epilogue's. */
void st_conv_data(const st_conv *c, const st_conv_part *part, void *const in[], void **data);
#endif
