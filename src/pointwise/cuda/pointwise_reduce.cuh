/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise_reduce.cuh - what reductions accumulate. acc_<kind> takes a few elements (a thread's, at most 32) in the program's type; tot_<kind> takes those and merges with
 * others, sums in f64. merge(a, b) and merge(b, a) give the same bits, so that every thread of a butterfly gets the same total. */
#ifndef STRATA_POINTWISE_REDUCE_CUH
#define STRATA_POINTWISE_REDUCE_CUH
#include "math.cuh"

/* how many elements, and 1 / that */
struct length {
    double n, inverse;
};
/* s / n, by a product that is corrected: exact where the quotient is a number */
INL double over(double s, const length &n)
{
    const double a = s * n.inverse, b = st_fma_f64(st_fma_f64(-a, n.n, s), n.inverse, a);
    return b - b == 0 ? b : a;
}

INL float fma_of(float a, float b, float c) { return st_fma_f32(a, b, c); }
INL double fma_of(double a, double b, double c) { return st_fma_f64(a, b, c); }
INL float add_of(float a, float b) { return st_add_f32(a, b); }
INL double add_of(double a, double b) { return st_add_f64(a, b); }
INL float max_of(float a, float b) { return st_max_f32(a, b); }
INL double max_of(double a, double b) { return st_max_f64(a, b); }
INL float min_of(float a, float b) { return st_min_f32(a, b); }
INL double min_of(double a, double b) { return st_min_f64(a, b); }
template <class R> INL R infinite(bool negative)
{
    return (R)f32_of_bits(negative ? 0xff800000u : 0x7f800000u);
}

template <class R> struct acc_sum {
    R s;
    METHOD void clear() { s = 0; }
    METHOD void add(R v) { s = add_of(s, v); }
    METHOD void add(R a, R b) { s = fma_of(a, b, s); }
};
template <class R> struct tot_sum {
    double s;
    METHOD void clear() { s = 0; }
    METHOD void take(const acc_sum<R> &b) { s = st_add_f64(s, (double)b.s); }
    METHOD void merge(const tot_sum &b) { s = st_add_f64(s, b.s); }
    METHOD R value() const { return (R)s; }
    METHOD R mean(const length &n) const { return (R)over(s, n); }
};
template <class R> struct acc_prod {
    R s;
    METHOD void clear() { s = 1; }
    METHOD void add(R v) { s = s * v; }
};
template <class R> struct tot_prod {
    double s;
    METHOD void clear() { s = 1; }
    METHOD void take(const acc_prod<R> &b) { s = s * (double)b.s; }
    METHOD void merge(const tot_prod &b) { s = s * b.s; }
    METHOD R value() const { return (R)s; }
};

/* one number that is combined with itself: the same for a few elements and for many */
#define SELECTION(kind, NEUTRAL, OF, COMBINE)                             \
    template <class R> struct acc_##kind {                                \
        R s;                                                              \
        METHOD void clear() { s = NEUTRAL; }                              \
        METHOD void add(R v) { s = COMBINE(s, OF); }                      \
    };                                                                    \
    template <class R> struct tot_##kind {                                \
        R s;                                                              \
        METHOD void clear() { s = NEUTRAL; }                              \
        METHOD void take(const acc_##kind<R> &b) { s = COMBINE(s, b.s); } \
        METHOD void merge(const tot_##kind &b) { s = COMBINE(s, b.s); }   \
        METHOD R value() const { return s; }                              \
    };
SELECTION(max, infinite<R>(true), v, max_of)
SELECTION(min, infinite<R>(false), v, min_of)
SELECTION(absmax, (R)0, (v < 0 ? -v : v), max_of)
SELECTION(any, (R)0, (v != 0 ? (R)1 : (R)0), max_of)
SELECTION(all, (R)1, (v != 0 ? (R)1 : (R)0), min_of)
#undef SELECTION

/* the first position of the largest value; a NaN is larger than all. Position -1: no element yet. */
template <class R> struct acc_argmax {
    R s;
    i64 at;
    METHOD void clear() { s = infinite<R>(true), at = -1; }
    METHOD void add(R v, i64 position)
    {
        /* elements come in order of position, so the first of equals stays */
        if (at < 0 || (s == s && !(v <= s))) s = v, at = position;
    }
};
template <class R> struct tot_argmax {
    R s;
    i64 at;
    METHOD void clear() { s = infinite<R>(true), at = -1; }
    METHOD void join(R v, i64 position)
    {
        if (position < 0) return;
        const bool nan = s != s, other = v != v;
        const bool more =
            at < 0 || (other ? !nan || position < at : !nan && (v > s || (v == s && position < at)));
        if (more) s = v, at = position;
    }
    METHOD void take(const acc_argmax<R> &b) { join(b.s, b.at); }
    METHOD void merge(const tot_argmax &b) { join(b.s, b.at); }
    METHOD R value() const { return at < 0 ? (R)0 : (R)at; }
};

/* x - c and its square for a c near the mean. Equal values leave d and d^2 n times over, so that their mean and a variance of 0 come out exactly. A mean that is
 * not finite has no lower part. */
template <class R> struct acc_moments {
    R s, q;
    METHOD void clear() { s = 0, q = 0; }
    METHOD void add(R v, R c)
    {
        const R d = add_of(v, -c);
        s = add_of(s, d);
        q = fma_of(d, d, q);
    }
};
template <class R> struct tot_moments {
    double s, q;
    METHOD void clear() { s = 0, q = 0; }
    METHOD void take(const acc_moments<R> &b)
    {
        s = st_add_f64(s, (double)b.s), q = st_add_f64(q, (double)b.q);
    }
    METHOD void merge(const tot_moments &b) { s = st_add_f64(s, b.s), q = st_add_f64(q, b.q); }
    METHOD double more(const length &n) const
    {
        const double a = over(s, n);
        return a - a == 0 ? a : 0;
    }
    METHOD double spread(const length &n) const
    {
        const double a = more(n), v = st_sub_f64(over(q, n), st_mul_f64(a, a));
        return v < 0 ? 0 : v; /* a NaN stays */
    }
    METHOD R variance(const length &n) const { return (R)spread(n); }
    METHOD R scatter(const length &n) const { return (R)(spread(n) * n.n); }
    METHOD float mean_hi(const length &n, float m) const { return (float)st_add_f64((double)m, more(n)); }
    METHOD float mean_lo(const length &n, float m) const
    {
        const double hi = (double)mean_hi(n, m), lo = st_add_f64(st_sub_f64((double)m, hi), more(n));
        return lo - lo == 0 ? (float)lo : 0.f;
    }
    METHOD double mean_hi(const length &n, double m) const { return st_add_f64(m, more(n)); }
    METHOD double mean_lo(const length &n, double m) const /* Knuth's two-sum */
    {
        const double a = more(n), hi = st_add_f64(m, a), b = st_sub_f64(hi, m);
        const double lo = st_add_f64(st_sub_f64(m, st_sub_f64(hi, b)), st_sub_f64(a, b));
        return lo - lo == 0 ? lo : 0;
    }
};
#endif
