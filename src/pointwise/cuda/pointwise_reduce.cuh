/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise_reduce.cuh - what reductions accumulate. acc_<kind>, of the program's type R, takes a few elements (a thread's); tot_<kind> takes those and merges with
 * others, sums of type A: R where a line has at most 65536 elements, which a tree of threads adds up, f64 where threads go on and on. merge(a, b) and merge(b, a) give
 * the same bits, so that every thread of a butterfly gets the same total. */
#ifndef STRATA_POINTWISE_REDUCE_CUH
#define STRATA_POINTWISE_REDUCE_CUH
#include "math.cuh"

#define BOTH(name, f32_op, f64_op)                            \
    INL float name(float a, float b) { return f32_op(a, b); } \
    INL double name(double a, double b) { return f64_op(a, b); }
BOTH(add_of, st_add_f32, st_add_f64)
BOTH(sub_of, st_sub_f32, st_sub_f64)
BOTH(mul_of, st_mul_f32, st_mul_f64)
BOTH(max_of, st_max_f32, st_max_f64)
BOTH(min_of, st_min_f32, st_min_f64)
#undef BOTH
INL float fma_of(float a, float b, float c) { return st_fma_f32(a, b, c); }
INL double fma_of(double a, double b, double c) { return st_fma_f64(a, b, c); }
template <class R> INL R infinite(bool negative)
{
    return (R)f32_of_bits(negative ? 0xff800000u : 0x7f800000u);
}

/* how many elements, and 1 / that */
template <class A> struct length {
    A n, inverse;
};
/* s / n, by a product that is corrected: exact where the quotient is a number */
template <class A> INL A over(A s, const length<A> &n)
{
    const A a = mul_of(s, n.inverse), b = fma_of(fma_of(-a, n.n, s), n.inverse, a);
    return b - b == 0 ? b : a;
}

template <class R> struct acc_sum {
    R s;
    METHOD void clear() { s = 0; }
    METHOD void add(R v) { s = add_of(s, v); }
    METHOD void add(R a, R b) { s = fma_of(a, b, s); }
};
template <class R, class A> struct tot_sum {
    A s;
    METHOD void clear() { s = 0; }
    METHOD void take(const acc_sum<R> &b) { s = add_of(s, (A)b.s); }
    METHOD void merge(const tot_sum &b) { s = add_of(s, b.s); }
    METHOD R value() const { return (R)s; }
    METHOD R mean(const length<A> &n) const { return (R)over(s, n); }
};
template <class R> struct acc_prod {
    R s;
    METHOD void clear() { s = 1; }
    METHOD void add(R v) { s = mul_of(s, v); }
};
template <class R, class A> struct tot_prod {
    A s;
    METHOD void clear() { s = 1; }
    METHOD void take(const acc_prod<R> &b) { s = mul_of(s, (A)b.s); }
    METHOD void merge(const tot_prod &b) { s = mul_of(s, b.s); }
    METHOD R value() const { return (R)s; }
};

/* one number that is combined with itself: the same for a few elements and for many */
#define SELECTION(kind, NEUTRAL, OF, COMBINE)                             \
    template <class R> struct acc_##kind {                                \
        R s;                                                              \
        METHOD void clear() { s = NEUTRAL; }                              \
        METHOD void add(R v) { s = COMBINE(s, OF); }                      \
    };                                                                    \
    template <class R, class A> struct tot_##kind {                       \
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
template <class R, class A> struct tot_argmax {
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

/* x - c and its square for a c near the mean. Equal values leave d and d^2 n times over, with d of a few bits, so that their mean and a variance of 0 come out exactly. A
 * mean that is not finite has no lower part. */
template <class R> struct acc_moments {
    R s, q;
    METHOD void clear() { s = 0, q = 0; }
    METHOD void add(R v, R c)
    {
        const R d = sub_of(v, c);
        s = add_of(s, d);
        q = fma_of(d, d, q);
    }
};
template <class R, class A> struct tot_moments {
    A s, q;
    METHOD void clear() { s = 0, q = 0; }
    METHOD void take(const acc_moments<R> &b) { s = add_of(s, (A)b.s), q = add_of(q, (A)b.q); }
    METHOD void merge(const tot_moments &b) { s = add_of(s, b.s), q = add_of(q, b.q); }
    METHOD A more(const length<A> &n) const
    {
        const A a = over(s, n);
        return a - a == 0 ? a : 0;
    }
    METHOD A spread(const length<A> &n) const
    {
        const A a = more(n), v = sub_of(over(q, n), mul_of(a, a));
        return v < 0 ? 0 : v; /* a NaN stays */
    }
    METHOD R variance(const length<A> &n) const { return (R)spread(n); }
    METHOD R scatter(const length<A> &n) const { return (R)mul_of(spread(n), n.n); }
    METHOD R mean_hi(const length<A> &n, R m) const { return (R)add_of((A)m, more(n)); }
    /* Knuth's two-sum, which also holds where A has more digits */
    METHOD R mean_lo(const length<A> &n, R m) const
    {
        const A a = more(n), hi = (A)mean_hi(n, m), b = sub_of(hi, (A)m);
        const A lo = add_of(sub_of((A)m, sub_of(hi, b)), sub_of(a, b));
        return lo - lo == 0 ? (R)lo : (R)0;
    }
};
#endif
