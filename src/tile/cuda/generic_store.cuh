/* SPDX-License-Identifier: Apache-2.0 */
/* generic_store.cuh - the generic kernels' last step, from accumulators to C: columns' offsets, factors, halves of C, the epilogue; or the workspace's part where k is cut. generic.cuh
 * includes it. */
/* Offsets of a thread's columns in C, once a tile: COUNT groups of V, STEP columns apart from n0 on. One stride is multiplied where it is used. */
template <int COUNT, int V, int STEP> struct st_columns {
    static constexpr bool table = !SPLIT && NAX != 1;
    static constexpr int EACH = CV >= V ? 1 : V;
    u32 n0;
    i64 off[table ? COUNT * EACH : 1];
    __device__ __forceinline__ void begin(const st_params &p, u32 first)
    {
        n0 = first;
        if constexpr (table)
#pragma unroll
            for (int i = 0; i < COUNT * EACH; i++) {
                const u32 n = first + i / EACH * STEP + i % EACH;
                off[i] = list_offset<OF_C>(p.n, n < p.N ? n : 0);
            }
    }
    __device__ __forceinline__ u32 at(int j) const { return n0 + j * STEP; }
    __device__ __forceinline__ i64 offset(const st_params &p, int j, int i) const
    {
        if constexpr (table) return off[j * EACH + (EACH == 1 ? 0 : i)] + (EACH == 1 ? i : 0);
        return (i64)(at(j) + i) * p.n.ax[0].c;
    }
};

/* alpha, beta and what a complex type's parts are computed in */
template <class T> struct st_factor {
    static constexpr bool complex = false;
    ST_ACC alpha, beta;
    __device__ __forceinline__ void begin(const st_params &p)
    {
        alpha = (ST_ACC)p.alpha;
        beta = (ST_ACC)p.beta;
    }
    __device__ __forceinline__ bool reads() const { return beta != 0; }
};
template <class T> struct st_complex_factor {
    static constexpr bool complex = true;
    ST_ACC alpha, alpha_im, beta, beta_im;
    __device__ __forceinline__ void begin(const st_params &p)
    {
        alpha = (ST_ACC)p.alpha;
        beta = (ST_ACC)p.beta;
        alpha_im = (ST_ACC)p.alpha_im;
        beta_im = (ST_ACC)p.beta_im;
    }
    __device__ __forceinline__ bool reads() const { return beta != 0 || beta_im != 0; }
    /* a term whose factor is real is not spread: 0 * Inf would be NaN */
    template <class V> __device__ __forceinline__ T of(const V &v, const T &old) const
    {
        ST_ACC re = alpha * v.re, im = alpha * v.im;
        if (alpha_im != 0) {
            re -= alpha_im * v.im;
            im += alpha_im * v.re;
        }
        if (reads()) {
            re += beta * old.re;
            im += beta * old.im;
            if (beta_im != 0) {
                re -= beta_im * old.im;
                im += beta_im * old.re;
            }
        }
        T r;
        r.re = re;
        r.im = im;
        return r;
    }
};
template <> struct st_factor<c64> : st_complex_factor<c64> {};
template <> struct st_factor<c128> : st_complex_factor<c128> {};

template <class Acc> struct st_store {
    i64 batch;
#if !SPLIT
    TC *base;
#endif
    st_factor<TC> factor;
    __device__ __forceinline__ void begin(const st_params &p, const st_tile &t)
    {
        batch = SPLIT ? ((i64)t.split * p.G + t.g) * p.M : 0;
#if !SPLIT
        base = matrix<TC, OF_C>(p, t.g);
#endif
        factor.begin(p);
    }
    /* Is the element stored? `more`: and so many columns behind it. */
    __device__ __forceinline__ bool keeps(const st_params &p, u32 m, u32 n, int more) const
    {
        const i64 d = (i64)m - (i64)n + p.offset[OF_C];
        return (RULE_C & R_LOWER) != 0 ? d >= more : (RULE_C & R_UPPER) != 0 ? d <= 0 : true;
    }
    /* wholly left of a real diagonal or right of it, so that columns need no look at each */
    __device__ __forceinline__ bool keeps_all(const st_params &p, u32 m, u32 n, int v) const
    {
        const i64 d = (i64)m - (i64)n + p.offset[OF_C];
        if (RULE_C == 0) return true;
        return keeps(p, m, n, v - 1) && ((RULE_C & R_HERMITIAN) == 0 || d < 0 || d >= v);
    }
    /* All of a thread's sums in row m: v(j) are those of column group j, V of them. */
    template <int COUNT, int V, int STEP, class F>
    __device__ __forceinline__ void row(const st_params &p, const st_tile &t, u32 m, const st_columns<COUNT, V, STEP> &cols, F v) const
    {
        if (m >= p.M) return;
#if SPLIT
        Acc *to = (Acc *)p.part + (batch + m) * p.N;
#else
        TC *to = base + list_offset<OF_C>(p.m, m);
#endif
#pragma unroll
        for (int j = 0; j < COUNT; j++) {
            const u32 n = cols.at(j);
            const Acc *x = v(j);
#if SPLIT
            if (CV >= V && n + V <= p.N)
                *(lanes<Acc, V> *)(to + n) = *(const lanes<Acc, V> *)x;
            else
#pragma unroll
                for (int i = 0; i < V; i++)
                    if (n + i < p.N) to[n + i] = x[i];
#else
            if (CV >= V && n + V <= p.N && keeps_all(p, m, n, V)) {
                lanes<TC, V> r, *at = (lanes<TC, V> *)(to + cols.offset(p, j, 0));
                if (factor.reads()) r = *at;
#pragma unroll
                for (int i = 0; i < V; i++) r.e[i] = value(p, t, m, n + i, x[i], r.e[i]);
                *at = r;
            } else
#pragma unroll
                for (int i = 0; i < V; i++)
                    if (n + i < p.N && keeps(p, m, n + i, 0)) {
                        TC *at = to + cols.offset(p, j, i), old;
                        if (factor.reads()) old = *at;
                        *at = value(p, t, m, n + i, x[i], old);
                    }
#endif
        }
    }
    template <class T> __device__ __forceinline__ T value(const st_params &p, const st_tile &t, u32 m, u32 n, Acc v, const T &old) const
    {
        const st_factor<T> &f = factor;
        if constexpr (st_factor<T>::complex) {
            if ((RULE_C & R_HERMITIAN) != 0 && (i64)m - (i64)n + p.offset[OF_C] == 0) {
                T was = old;
                was.im = 0;
                T r = f.of(v, was);
                r.im = 0;
                return r;
            }
            return f.of(v, old);
        } else {
            ST_ACC x = f.alpha * (ST_ACC)v;
            if (f.reads()) x += f.beta * (sizeof(ST_ACC) == 8 ? (ST_ACC)to_f64(old) : (ST_ACC)to_f32(old));
#if EPI
            x = st_epilogue(p.epi, x, m, n, t.g);
#endif
            return from<T>(x);
        }
    }
};
