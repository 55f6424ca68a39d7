/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c - strata_copy and strata_fill: any strides; on a GPU's handle cuda/copy.c does the work. Dims are sorted
 * by the output's stride and merged where both sides allow; the innermost run is copied by its element size. */
#include "runtime/runtime.h"
#include <string.h>

st_walk st_walk_plan(const strata_tensor *dst, const strata_tensor *src, int64_t size)
{
    st_walk w = {.n = 0};
    for (int i = 0; i < dst->rank; i++) {
        if (dst->dim[i] == 1) continue;
        int64_t d = dst->stride[i] * size, s = src ? src->stride[i] * size : 0, a = d < 0 ? -d : d;
        int k = w.n++;
        for (; k > 0 && (w.d[k - 1] < 0 ? -w.d[k - 1] : w.d[k - 1]) < a; k--) {
            w.len[k] = w.len[k - 1];
            w.d[k] = w.d[k - 1];
            w.s[k] = w.s[k - 1];
        }
        w.len[k] = dst->dim[i];
        w.d[k] = d;
        w.s[k] = s;
    }
    for (int i = w.n - 1; i > 0; i--) /* outer dim i-1 continues where inner dim i ends */
        if (w.d[i - 1] == w.d[i] * w.len[i] && (!src || w.s[i - 1] == w.s[i] * w.len[i])) {
            w.len[i] *= w.len[i - 1];
            memmove(w.len + i - 1, w.len + i, sizeof(int64_t) * (size_t)(w.n - i));
            memmove(w.d + i - 1, w.d + i, sizeof(int64_t) * (size_t)(w.n - i));
            memmove(w.s + i - 1, w.s + i, sizeof(int64_t) * (size_t)(w.n - i));
            w.n--;
        }
    return w;
}

static void run_copy(char *d, int64_t ds, const char *s, int64_t ss, int64_t n, int64_t size)
{
    if (ds == size && ss == size) {
        memcpy(d, s, (size_t)(n * size));
        return;
    }
    switch (size) {
    case 1:
        for (int64_t i = 0; i < n; i++) d[i * ds] = s[i * ss];
        return;
    case 2:
        for (int64_t i = 0; i < n; i++) memcpy(d + i * ds, s + i * ss, 2);
        return;
    case 4:
        for (int64_t i = 0; i < n; i++) memcpy(d + i * ds, s + i * ss, 4);
        return;
    case 8:
        for (int64_t i = 0; i < n; i++) memcpy(d + i * ds, s + i * ss, 8);
        return;
    default:
        for (int64_t i = 0; i < n; i++) memcpy(d + i * ds, s + i * ss, (size_t)size);
        return;
    }
}

static void walk_copy(const st_walk *w, int i, char *d, const char *s, int64_t size)
{
    if (i >= w->n - 1) {
        run_copy(d, w->n ? w->d[i] : size, s, w->n ? w->s[i] : size, w->n ? w->len[i] : 1, size);
        return;
    }
    for (int64_t k = 0; k < w->len[i]; k++) walk_copy(w, i + 1, d + k * w->d[i], s + k * w->s[i], size);
}

void st_walk_copy(const st_walk *w, char *d, const char *s, int64_t size) { walk_copy(w, 0, d, s, size); }

static strata_status whole_bytes(strata_handle *h, const char *who, const char *name, const strata_tensor *t)
{
    if (strata_type_bits((strata_type)t->type) >= 8) return STRATA_OK;
    return st_fail(&h->err, STRATA_ERROR_UNSUPPORTED,
                   "%s: %s has type %s; whole-byte types are copied (view the bytes as u8)", who, name,
                   strata_type_name((strata_type)t->type));
}

strata_status strata_copy(strata_handle *h, strata_tensor src, strata_tensor dst)
{
    static const char who[] = "strata_copy";
    strata_status r = st_handle_check(h, who);
    if (r || (r = st_tensor_check(&h->err, who, "src", &src)) ||
        (r = st_tensor_check_output(&h->err, who, "dst", &dst)))
        return r;
    if ((r = whole_bytes(h, who, "src", &src))) return r;
    if (src.type != dst.type)
        return st_fail(
            &h->err, STRATA_ERROR_TYPE,
            "%s: src is %s and dst is %s; both must have one type (strata_fused \"dst = src\" converts)", who,
            strata_type_name((strata_type)src.type), strata_type_name((strata_type)dst.type));
    bool same = src.rank == dst.rank;
    for (int d = 0; same && d < src.rank; d++) same = src.dim[d] == dst.dim[d];
    if (!same)
        return st_fail(&h->err, STRATA_ERROR_SHAPE, "%s: src is %s and dst is %s; the dims must agree", who,
                       ST_DIMS(src), ST_DIMS(dst));
    if (strata_count(dst) == 0 || st_tensor_same_view(&src, &dst)) return STRATA_OK;
    if (st_tensor_overlap(&src, &dst))
        return st_fail(&h->err, STRATA_ERROR_ALIAS,
                       "%s: src and dst overlap in memory without being the same view", who);
    uint64_t t0 = st_trace_begin();
    int64_t size = (int64_t)strata_type_bits((strata_type)src.type) / 8;
    st_walk w = st_walk_plan(&dst, &src, size);
    if (h->gpu)
        r = st_cuda_copy(h, &src, &dst, &w, size);
    else
        walk_copy(&w, 0, dst.data, src.data, size);
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "runtime", "copy", "%s %s", strata_type_name((strata_type)src.type), ST_DIMS(src));
    return r;
}

static void walk_fill(const st_walk *w, int i, char *d, const char *value, int64_t size)
{
    if (i >= w->n - 1) {
        int64_t n = w->n ? w->len[i] : 1, ds = w->n ? w->d[i] : size;
        run_copy(d, ds, value, 0, n, size);
        return;
    }
    for (int64_t k = 0; k < w->len[i]; k++) walk_fill(w, i + 1, d + k * w->d[i], value, size);
}

void st_walk_fill(const st_walk *w, char *d, const char *value, int64_t size)
{
    walk_fill(w, 0, d, value, size);
}

strata_status strata_fill(strata_handle *h, strata_tensor dst, strata_scalar value)
{
    static const char who[] = "strata_fill";
    strata_status r = st_handle_check(h, who);
    if (r || (r = st_tensor_check_output(&h->err, who, "dst", &dst)) ||
        (r = whole_bytes(h, who, "dst", &dst)))
        return r;
    double re, im;
    char here[16];
    if (value.ptr && h->gpu && !st_cuda_scalar_here(h, who, "value", &value, here)) return h->err.status;
    if (!st_scalar_value(&h->err, who, "value", value, &re, &im)) return h->err.status;
    char one[16] = {0};
    const bool complex = st_type_is_complex(dst.type);
    if (im != 0 && !complex)
        return st_fail(&h->err, STRATA_ERROR_TYPE,
                       "%s: value is %g%+gi and dst is %s, which has no imaginary part", who, re, im,
                       strata_type_name((strata_type)dst.type));
    if (value.ptr && value.type == dst.type) { /* its very bits: an i64 beyond 2^53, the payload of a NaN */
        memcpy(one, value.ptr, strata_type_bits((strata_type)dst.type) / 8);
    } else if (complex) {
        const int part = st_type_part(dst.type);
        st_store_f64(part, one, re);
        st_store_f64(part, one + (part == STRATA_F32 ? 4 : 8), im);
    } else {
        st_store_f64(dst.type, one, re);
    }
    int64_t size = (int64_t)strata_type_bits((strata_type)dst.type) / 8;
    if (strata_count(dst) == 0) return STRATA_OK;
    st_walk w = st_walk_plan(&dst, NULL, size);
    if (h->gpu) return st_cuda_fill(h, &dst, &w, one, size);
    walk_fill(&w, 0, dst.data, one, size);
    return STRATA_OK;
}
