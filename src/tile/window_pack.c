/* SPDX-License-Identifier: Apache-2.0 */
/* window_pack.c - copies a piece of an operand into a panel: dst[step * pitch + lane], zeros outside the image and past the
 * last lane.
 *
 * Two ways: lanes that lie side by side (pixels of an image row) are copied step by step in segments, each clipped to the
 * image; steps that lie side by side (channels of a pixel) are transposed, one address a lane. */
#include "tile/window.h"
#include <string.h>

typedef struct lane_info {
    int64_t offset, coord[ST_BOUNDS]; /* where the lane begins and its share of the bounds' coordinates */
} lane_info;
typedef struct segment {
    int64_t first, count;
} segment;
enum { LANES = 64, TURN_STEPS = 512 };
static const double zeros[TURN_STEPS] = {0}; /* what lanes outside the image read */

static void decode(int n, const int64_t *len, int64_t i, int64_t *idx)
{
    for (int d = n - 1; d >= 0; d--) {
        idx[d] = i % len[d];
        i /= len[d];
    }
}

/* Fills the lanes' places and cuts them where the innermost axis begins anew; returns the number of segments. */
static int place_lanes(const st_win_source *s, int64_t l0, int64_t lanes, lane_info *info, segment *seg)
{
    int64_t idx[ST_AXES] = {0};
    decode(s->lanes, s->lane_len, l0, idx);
    int n = 0;
    for (int64_t i = 0; i < lanes; i++) {
        int64_t off = 0;
        for (int d = 0; d < s->lanes; d++) off += idx[d] * s->lane_stride[d];
        info[i].offset = off;
        for (int b = 0; b < s->bounds; b++)
            info[i].coord[b] =
                s->bound[b].offset + (s->bound[b].lane >= 0 ? s->bound[b].il * idx[s->bound[b].lane] : 0);
        if (i == 0 || idx[s->lanes - 1] == 0) seg[n++] = (segment){i, 0};
        seg[n - 1].count++;
        for (int d = s->lanes - 1; d >= 0; d--) {
            if (++idx[d] < s->lane_len[d]) break;
            idx[d] = 0;
        }
    }
    return n;
}

/* count elements from src, `stride` apart, to dst */
static void copy_line(int64_t es, char *dst, const char *src, int64_t stride, int64_t count)
{
    if (stride == 1) {
        int64_t bytes = count * es, i = 0;
        for (; i + 16 <= bytes; i += 16) memcpy(dst + i, src + i, 16);
        for (; i < bytes; i += 4) memcpy(dst + i, src + i, 4);
    } else if (es == 4) {
        uint32_t *d = (uint32_t *)dst;
        const uint32_t *s = (const uint32_t *)src;
        for (int64_t i = 0; i < count; i++) d[i] = s[i * stride];
    } else {
        uint64_t *d = (uint64_t *)dst;
        const uint64_t *s = (const uint64_t *)src;
        for (int64_t i = 0; i < count; i++) d[i] = s[i * stride];
    }
}

static void zero_line(int64_t es, char *dst, int64_t count)
{
    for (int64_t i = 0; i < count * es; i += 4) memset(dst + i, 0, 4);
}

/* One step: every segment's run of lanes, clipped by the bounds (whose shares of this step are in sc). */
static void copy_step(const st_win_source *s, const char *base, int64_t so, const int64_t *sc,
                      const lane_info *info, const segment *seg, int segs, char *dst)
{
    const int inner = s->lanes - 1;
    for (int g = 0; g < segs; g++) {
        const lane_info *f = &info[seg[g].first];
        int64_t lo = 0, hi = seg[g].count;
        for (int b = 0; b < s->bounds; b++) {
            const int64_t x = f->coord[b] + sc[b], limit = s->bound[b].limit;
            const int64_t il = s->bound[b].lane == inner ? s->bound[b].il : 0;
            if (il == 0) {
                if (x < 0 || x >= limit) hi = 0;
            } else if (il > 0) { /* 0 <= x + il * i < limit */
                if (x < 0) lo = st_max64(lo, st_ceil_div(-x, il));
                hi = x >= limit ? 0 : st_min64(hi, st_ceil_div(limit - x, il));
            } else {
                if (x >= limit) lo = st_max64(lo, st_ceil_div(x - limit + 1, -il));
                hi = x < 0 ? 0 : st_min64(hi, x / -il + 1);
            }
        }
        if (lo >= hi) lo = hi = 0;
        char *d = dst + seg[g].first * s->es;
        zero_line(s->es, d, lo);
        copy_line(s->es, d + lo * s->es, base + (f->offset + so + lo * s->lane_stride[inner]) * s->es,
                  s->lane_stride[inner], hi - lo);
        zero_line(s->es, d + hi * s->es, seg[g].count - hi);
    }
}

void st_win_pack(const st_win_source *s, st_conv_turn_fn turn, const void *base, int64_t l0, int64_t lanes,
                 int64_t s0, int64_t steps, void *dst, int64_t pitch, int64_t width)
{
    lane_info info[LANES];
    segment seg[LANES];
    const int segs = place_lanes(s, l0, lanes, info, seg);
    const int si = s->steps - 1, li = s->lanes - 1;
    bool bound_inside = false; /* the innermost step axis moves a bounded coordinate */
    for (int b = 0; b < s->bounds; b++) bound_inside = bound_inside || s->bound[b].step == si;
    const bool by_lane = s->step_stride[si] == 1 && !bound_inside && s->step_len[si] >= 4 &&
                         !(s->lane_stride[li] == 1 && s->lane_len[li] > s->step_len[si]);
    int64_t idx[ST_AXES];
    for (int64_t k = 0; k < steps;) {
        decode(s->steps, s->step_len, s0 + k, idx);
        int64_t so = 0, sc[ST_BOUNDS] = {0},
                n = st_min64(st_min64(steps - k, TURN_STEPS), s->step_len[si] - idx[si]);
        for (int d = 0; d < s->steps; d++) so += idx[d] * s->step_stride[d];
        for (int b = 0; b < s->bounds; b++)
            sc[b] = s->bound[b].step >= 0 ? s->bound[b].is * idx[s->bound[b].step] : 0;
        char *d = (char *)dst + k * pitch * s->es;
        if (by_lane) {
            const void *line[LANES];
            for (int64_t i = 0; i < lanes; i++) {
                bool in = true;
                for (int b = 0; b < s->bounds; b++) {
                    const int64_t x = info[i].coord[b] + sc[b];
                    in = in && x >= 0 && x < s->bound[b].limit;
                }
                line[i] = in ? (const char *)base + (info[i].offset + so) * s->es : (const void *)zeros;
            }
            turn(d, pitch, line, lanes, n); /* zeros up to a whole vector, which `width` is */
        } else {
            for (int64_t i = 0; i < n; i++) {
                copy_step(s, base, so + i * s->step_stride[si], sc, info, seg, segs, d + i * pitch * s->es);
                for (int b = 0; b < s->bounds; b++)
                    if (s->bound[b].step == si) sc[b] += s->bound[b].is;
            }
        }
        if (!by_lane && lanes < width)
            for (int64_t i = 0; i < n; i++) zero_line(s->es, d + (i * pitch + lanes) * s->es, width - lanes);
        k += n;
    }
}

void st_win_pack_line(const st_win_source *s, const void *base, int64_t lane, int64_t s0, int64_t steps,
                      void *dst)
{
    lane_info info;
    segment seg;
    place_lanes(s, lane, 1, &info, &seg);
    const int si = s->steps - 1;
    bool bound_inside = false;
    for (int b = 0; b < s->bounds; b++) bound_inside = bound_inside || s->bound[b].step == si;
    int64_t idx[ST_AXES];
    char *d = dst;
    for (int64_t k = 0, n; k < steps; k += n, d += n * s->es) {
        decode(s->steps, s->step_len, s0 + k, idx);
        n = bound_inside ? 1 : st_min64(steps - k, s->step_len[si] - idx[si]);
        int64_t so = info.offset;
        bool in = true;
        for (int x = 0; x < s->steps; x++) so += idx[x] * s->step_stride[x];
        for (int b = 0; b < s->bounds; b++) {
            const int64_t x =
                info.coord[b] + (s->bound[b].step >= 0 ? s->bound[b].is * idx[s->bound[b].step] : 0);
            in = in && x >= 0 && x < s->bound[b].limit;
        }
        if (in)
            copy_line(s->es, d, (const char *)base + so * s->es, s->step_stride[si], n);
        else
            zero_line(s->es, d, n);
    }
}
