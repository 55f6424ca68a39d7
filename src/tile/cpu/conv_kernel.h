/* SPDX-License-Identifier: Apache-2.0 */
/* conv_kernel.h - what the microkernel of windowed contractions looks like to its drivers (window_*.c).
 *
 * One kernel serves every form: up to eight rows, each read in place by broadcasting from its own address, times columns read as
 * vectors (a packed panel, or an operand in place). The sum runs over a list of runs: `len` steps that go `ks` elements along
 * every row and `ldb` along the columns. Between runs the rows jump by run.a (all alike: the taps of a window), or to addresses
 * of their own out of a table (pixels at the border, some of which point to zeros). Nothing of the window is ever copied. */
#ifndef ST_TILE_CPU_CONV_KERNEL_H
#define ST_TILE_CPU_CONV_KERNEL_H
#include "base/base.h"

enum { ST_CONV_ROWS = 8, ST_CONV_VECS = 4 };

typedef struct st_conv_run {
    int64_t a, b, len; /* offsets in elements from the rows' addresses and from call.b */
} st_conv_run;

typedef struct st_conv_call {
    const void *const
        *rows; /* one address a row; table kernels: ST_CONV_ROWS addresses a run (run.a is then not used) */
    const st_conv_run *run;
    int64_t runs;
    int64_t ks, ldb;
    const void *b;
    void *c; /* C := alpha * sum + beta * C; beta = 0 never reads C */
    int64_t ldc;
    double alpha, beta;
    int64_t last; /* lanes of the last vector that C has, 1..vl */
    const char
        *ahead; /* each step asks the second-level cache for the line here and goes ahead_step bytes on */
    int64_t ahead_step;
} st_conv_call;
typedef void (*st_conv_fn)(const st_conv_call *q);

/* The pixels that a vector of them would leave nearly empty: c[i * ldc + j] := alpha * sum over runs of row[i][..] * x[j][..] + beta * c, where
 * both sides lie along k (runs' b counts elements of x). */
enum { ST_CONV_DOTS = 2 };
typedef struct st_conv_dots {
    const void *const *rows;
    const st_conv_run *run;
    int64_t runs;
    const void *x[ST_CONV_DOTS];
    void *c;
    int64_t ldc;
    double alpha, beta;
} st_conv_dots;
typedef void (*st_conv_dots_fn)(const st_conv_dots *q);

/* dst[p * ldd + i] = line[i][p] for p < k, i < w; lanes past w up to a whole vector become zeros. */
typedef void (*st_conv_turn_fn)(void *dst, int64_t ldd, const void *const *line, int64_t w, int64_t k);

/* Channels as lanes: c[i][lane] := alpha * sum over taps of row[i][xo[t] + lane] * w[wo[t] + lane] + beta * c[i][lane] */
enum { ST_CONV_PIXELS = 4 };
typedef struct st_conv_lanes {
    const void *row[ST_CONV_PIXELS], *w;
    void *c[ST_CONV_PIXELS];
    const int64_t *xo, *wo;
    int64_t taps, lanes;
    double alpha, beta;
} st_conv_lanes;
typedef void (*st_conv_lanes_fn)(const st_conv_lanes *q);

/* The same where a group has `in` channels and `out` filters, out a divisor of the vector and at least in: the lanes of a vector are filters of whole
 * groups. c[i][lane] := alpha * sum over taps t and channels e < in of row[i][xo[t] + lane / out * in + e] * w[(wo[t] + e) * pitch + lane] + beta *
 * c[i][lane]. pick[e * vl + lane] = lane / out * in + e, 32-bit numbers beside f32 and 64-bit ones beside f64. */
typedef struct st_conv_groups {
    st_conv_lanes lanes;
    int64_t in, out, pitch; /* pitch: whole vectors */
    const void *pick;
} st_conv_groups;
typedef void (*st_conv_groups_fn)(const st_conv_groups *q);

typedef struct st_conv_kernel {
    int vl, vecs;                                         /* lanes of a vector, vectors of the widest tile */
    int rows[ST_CONV_VECS + 1];                           /* most rows of a tile of that many vectors */
    st_conv_fn fn[2][ST_CONV_VECS + 1][ST_CONV_ROWS + 1]; /* [with a table][vectors][rows] */
    st_conv_turn_fn turn;
    st_conv_dots_fn dots[ST_CONV_DOTS + 1][ST_CONV_ROWS + 1]; /* [pixels][rows] */
    st_conv_lanes_fn lanes[ST_CONV_PIXELS + 1];               /* [pixels] */
    st_conv_groups_fn groups[ST_CONV_PIXELS + 1];
} st_conv_kernel;
#endif
