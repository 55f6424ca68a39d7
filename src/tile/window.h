/* SPDX-License-Identifier: Apache-2.0 */
/* window.h - windowed contractions on the CPU: what convolutions run on.
 *
 * The forms share the microkernel of cpu/conv_kernel.h:
 *   direct  rows are pixels (m), read in place from the image; columns are n, B packed into a panel right before use. Taps outside
 *           the image read a row of zeros through a table of addresses; inside, nothing but offsets changes between taps.
 *           (forward and data gradient where channels lie innermost)
 *   taps    rows are the window's taps and the channels below them (m), columns are n, the sum runs over pixels (k), whose
 *           range is clipped to the image for each tap. Long sums are cut in pieces that the shape alone fixes. (weight gradient)
 *   panel   columns are m, packed into panels of pixels as they are needed; rows are n, read in place. Takes any strides and
 *           bounds. (images with pixels innermost; few pixels with large weights)
 *   paddirect, padtaps  the first two on a padded copy of the image, for images of few channels
 *   depthwise  groups of few channels and filters, channels innermost: lanes are the filters of whole groups
 * A plan works on a simplified copy of the problem: axes of length 1 dropped, neighbours merged, bounds that always hold dropped. */
#ifndef ST_TILE_WINDOW_H
#define ST_TILE_WINDOW_H
#include "tile/contract.h"
#include "tile/cpu/conv_kernel.h"

enum {
    ST_WIN_DIRECT,
    ST_WIN_TAPS,
    ST_WIN_PANEL,
    ST_WIN_PADDIRECT,
    ST_WIN_PADTAPS,
    ST_WIN_DEPTHWISE,
    ST_WIN_FORMS
};
enum { ST_WIN_CHUNK = 240 }; /* most pixels of a task of the direct form */

/* Lines of lanes (columns of a panel) x steps, read through axes; elements outside a bound are zero. */
typedef struct st_win_source {
    int64_t es;       /* bytes of an element */
    int lanes, steps; /* numbers of axes */
    int64_t lane_len[ST_AXES], lane_stride[ST_AXES];
    int64_t step_len[ST_AXES], step_stride[ST_AXES];
    int bounds;
    struct {
        int64_t limit, offset, il,
            is;         /* coordinate = offset + il * (index of lane axis) + is * (index of step axis) */
        int lane, step; /* -1: absent */
    } bound[ST_BOUNDS];
} st_win_source;

typedef struct st_win_pad st_win_pad; /* window_padded.c */

typedef struct st_win_plan {
    st_contract_plan head;
    st_contract c; /* simplified */
    const st_conv_kernel *kernel;
    int form;
    int64_t es, M, N, K, G;
    int64_t blocks, width; /* column blocks and the pitch of a panel: the widest block's lanes */
    int64_t kparts, steps; /* even parts of k, summed one after another; steps of the longest */
    int workers;           /* threads that the workspace serves */
    size_t shared, local;  /* workspace: shared bytes, then `local` bytes a worker */
    double us;
    st_win_source source; /* what is packed: B (direct, taps) or A (panel) */
    /* direct */
    int64_t inner, ks, taps;       /* run axis: length and stride in A; number of taps */
    bool b_dense;                  /* B's columns lie one after another, each all of k */
    int64_t chunk, chunks, ranges; /* pixels of a chunk; tasks of a block of columns, each of whole chunks */
    int64_t *tap_a, *tap_c[ST_BOUNDS]; /* offset in A and share of the bounds' coordinates of every tap */
    int64_t reach[ST_BOUNDS][2];       /* least and greatest share of the taps */
    st_conv_run *run;                  /* runs inside the image, all parts */
    int64_t *part_run;                 /* first run of every part */
    void *zeros, *zero_row;
    /* taps */
    int64_t outer_rows, free_rows; /* rows along bound axes and along free ones */
    int64_t run_len, run_a, run_b, outer_k;
    int64_t pieces, row_tasks, row_tiles;
    bool b_in_place;
    /* panel */
    int64_t row_split; /* parts of the rows */
    int64_t tail;      /* columns beyond whole vectors that are dot products */
    /* padded forms */
    st_win_pad *pad;
} st_win_plan;

/* Copies lanes [l0, l0 + lanes) x steps [s0, s0 + steps) of a source into dst[step * pitch + lane], zeros up to `width` lanes. */
void st_win_pack(const st_win_source *s, st_conv_turn_fn turn, const void *base, int64_t l0, int64_t lanes,
                 int64_t s0, int64_t steps, void *dst, int64_t pitch, int64_t width);

/* The same for one lane, as a line: dst[step]. */
void st_win_pack_line(const st_win_source *s, const void *base, int64_t lane, int64_t s0, int64_t steps,
                      void *dst);

/* C (+)= a finished tile: rows r0.. of `rows_are_m ? m : n`, columns c0.. of the other, tile[row * pitch + col]. */
void st_win_scatter(const st_win_plan *p, bool rows_are_m, void *c, const void *tile, int64_t pitch,
                    int64_t r0, int64_t rows, int64_t c0, int64_t cols, double alpha, double beta);
/* alpha = 0: C := beta * C and the epilogue; A and B are not read. */
void st_win_beta_only(const st_win_plan *p, void *const data[], double beta, void *scratch);
/* Runs the epilogue, if there is one, on m0.. x n0.. of batch item g, where C holds the product. */
size_t st_win_epilogue_scratch(const st_win_plan *p);
void st_win_epilogue(const st_win_plan *p, void *const data[], int64_t g, int64_t m0, int64_t rows,
                     int64_t n0, int64_t cols, void *scratch);
/* Column block j: first column and number; width in vectors. */
void st_win_block(const st_win_plan *p, int64_t total, int64_t j, int64_t *first, int64_t *count, int *vecs);
void st_win_part(const st_win_plan *p, int64_t part, int64_t *k0, int64_t *k1);
/* window_panel.c: columns that are left to dot products */
int64_t st_win_tail(const st_contract *c, const st_conv_kernel *kn);
/* Do B's columns lie one after another, each all of k? */
bool st_win_b_dense(const st_win_plan *p);
/* Runs tasks on the team, or on this thread when the plan's workspace does not serve so many. */
void st_win_for(strata_handle *h, const st_win_plan *p, int64_t tasks, double us, st_task_fn fn, void *arg);

/* window.c: a plan of one form for a problem, whatever its cost */
strata_status st_win_make(strata_handle *h, const st_problem *problem, const st_kernel_row *row, int form,
                          st_win_plan **out);

/* window_padded.c: the copies' size in elements for c, which is rewritten to read one of them, that is a group of images, and how many
 * times that is all; -1 with why when it does not fit */
int64_t st_win_pad_size(st_contract *c, bool taps, double *times, const char **why);
void st_win_pad_free(st_win_pad *d);
strata_status st_win_padded_build(strata_handle *h, st_win_plan *p, const st_problem *problem,
                                  const st_kernel_row *row);
strata_status st_win_padded_run(strata_handle *h, const strata_plan *plan, void *const data[],
                                const strata_run *r);

/* Taps form: B is read in place where its columns lie side by side and a step does not jump far (pages, cache sets). */
bool st_win_b_in_place(const st_contract *c, const st_conv_kernel *k);

/* Offsets in A and shares of the bounds' coordinates of every tap. */
strata_status st_win_tap_tables(strata_handle *h, st_win_plan *p);
/* Offsets in A and C and bound coordinates of up to ST_WIN_CHUNK pixels from m0. */
typedef struct st_win_pixels {
    int64_t a[ST_WIN_CHUNK], c[ST_WIN_CHUNK], at[ST_BOUNDS][ST_WIN_CHUNK];
} st_win_pixels;
void st_win_place(const st_win_plan *p, int64_t m0, int64_t count, st_win_pixels *x);
/* Are all taps of pixels i .. i + mr - 1 inside the image? */
bool st_win_inside(const st_win_plan *p, const st_win_pixels *x, int64_t i, int64_t mr);

/* window_depthwise.c: NULL, or why it does not serve c; the axis of k that a group's channels are, -1 with one channel */
const char *st_win_depthwise_fits(const st_contract *c, const st_conv_kernel *k, int64_t *channels_axis);
strata_status st_win_depthwise_build(strata_handle *h, st_win_plan *p);
strata_status st_win_depthwise_run(strata_handle *h, const strata_plan *plan, void *const data[],
                                   const strata_run *r);

strata_status st_win_direct_build(strata_handle *h, st_win_plan *p);
strata_status st_win_taps_build(strata_handle *h, st_win_plan *p);
strata_status st_win_panel_build(strata_handle *h, st_win_plan *p);
strata_status st_win_direct_run(strata_handle *h, const strata_plan *plan, void *const data[],
                                const strata_run *r);
strata_status st_win_taps_run(strata_handle *h, const strata_plan *plan, void *const data[],
                              const strata_run *r);
strata_status st_win_panel_run(strata_handle *h, const strata_plan *plan, void *const data[],
                               const strata_run *r);
#endif
