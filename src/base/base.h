/* SPDX-License-Identifier: Apache-2.0 */
/* base.h - what every layer shares: macros, the error chain, checked arithmetic, type conversion. */
#ifndef ST_BASE_BASE_H
#define ST_BASE_BASE_H
#include <strata/base.h>
#include <stdarg.h>
#include <stdatomic.h>

#define ST_INLINE static inline __attribute__((always_inline))
#define ST_NOINLINE __attribute__((noinline))
#define ST_LIKELY(x) __builtin_expect(!!(x), 1)
#define ST_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define ST_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define ST_COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* ---- errors -------------------------------------------------------------------------------------------------------
 * One st_err a handle (its first member) and one a thread for calls without a handle. The layer that finds the fault calls
 * st_fail with the whole sentence; layers above may add frames ("tile", "gemm_f32... workspace 1 MB") on the way out, and
 * the public function gives its own name with st_err_name first. */
enum { ST_ERR_FRAMES = 8 };
typedef struct st_err {
    strata_status status;
    int frames;
    char text[768]; /* "strata_gemm: A is 3x4 and ..." */
    struct {
        char layer[12];
        char text[180];
    } frame[ST_ERR_FRAMES];
    char remedy[256]; /* line after "try" */
    char composed[2600];
} st_err;

st_err *st_err_of(strata_handle *h); /* the handle's, or the thread's when h is NULL */
st_err *st_err_thread(void);
/* Starts a new error: returns s, so that `return st_fail(e, STRATA_ERROR_SHAPE, "strata_gemm: ...", ...)` reads well. */
strata_status st_fail(st_err *e, strata_status s, const char *fmt, ...) ST_PRINTF(3, 4);
strata_status st_vfail(st_err *e, strata_status s, const char *fmt, va_list ap);
void st_err_frame(st_err *e, const char *layer, const char *fmt, ...) ST_PRINTF(3, 4);
void st_err_remedy(st_err *e, const char *fmt, ...) ST_PRINTF(2, 3);

/* ---- checked arithmetic: true on overflow -------------------------------------------------------------------------- */
ST_INLINE bool st_mul_over(int64_t a, int64_t b, int64_t *r) { return __builtin_mul_overflow(a, b, r); }
ST_INLINE bool st_add_over(int64_t a, int64_t b, int64_t *r) { return __builtin_add_overflow(a, b, r); }
ST_INLINE int64_t st_min64(int64_t a, int64_t b) { return a < b ? a : b; }
ST_INLINE int64_t st_max64(int64_t a, int64_t b) { return a > b ? a : b; }
ST_INLINE int64_t st_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
ST_INLINE int64_t st_round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

/* ---- types --------------------------------------------------------------------------------------------------------- */
float st_f16_to_f32(uint16_t h);
uint16_t st_f32_to_f16(float f); /* round to nearest even */
ST_INLINE float st_bf16_to_f32(uint16_t h)
{
    union {
        uint32_t u;
        float f;
    } x = {(uint32_t)h << 16};
    return x.f;
}
uint16_t st_f32_to_bf16(float f);
float st_f8e4m3_to_f32(uint8_t h);
uint8_t st_f32_to_f8e4m3(float f); /* saturates to 448 (OCP OFP8), NaN stays NaN */
float st_f8e5m2_to_f32(uint8_t h);
uint8_t st_f32_to_f8e5m2(float f); /* saturates to 57344 */
bool st_type_is_float(int type);
bool st_type_is_integer(int type);
ST_INLINE bool st_type_is_complex(int type) { return type == STRATA_C64 || type == STRATA_C128; }
/* the type of a complex number's parts; any other type itself */
ST_INLINE int st_type_part(int type)
{
    return type == STRATA_C64 ? STRATA_F32 : type == STRATA_C128 ? STRATA_F64 : type;
}
/* one element through f64; i64 beyond 2^53 rounds. Whole-byte real types only; false otherwise. */
bool st_load_f64(int type, const void *p, double *v);
bool st_store_f64(int type, void *p, double v);

/* A scalar's value now. False (and a failure named after `who` and `name` in e) when its type is not a real whole-byte type. */
bool st_scalar_value(st_err *e, const char *who, const char *name, strata_scalar s, double *re, double *im);

/* ---- tensors -------------------------------------------------------------------------------------------------------- */
/* Fails when the maker refused, the rank is out of range, a dim is negative, reserved words are not zero, the type is unknown,
 * sizes overflow, or data is NULL with elements to touch. `who` is the public function, `name` the argument ("A"). */
strata_status st_tensor_check(st_err *e, const char *who, const char *name, const strata_tensor *t);
/* The same for operators that take structured views: `flags` are the STRATA_TENSOR_ flags allowed; a combination that no maker gives is refused. */
strata_status st_tensor_check_flags(st_err *e, const char *who, const char *name, const strata_tensor *t,
                                    uint32_t flags);
strata_status st_tensor_check_output_flags(st_err *e, const char *who, const char *name,
                                           const strata_tensor *t, uint32_t flags);
/* Types of less than a byte (i4, u4, bit): one dim at most has elements inside a byte, and there they follow each other; all other strides are
 * whole bytes. Other types pass. */
strata_status st_tensor_check_bits(st_err *e, const char *who, const char *name, const strata_tensor *t);
ST_INLINE bool st_type_is_sub_byte(int type)
{
    return type == STRATA_I4 || type == STRATA_U4 || type == STRATA_BIT;
}
/* Width of a band: diagonals below (upper = false) or above the main one. */
ST_INLINE int64_t st_band_width(const strata_tensor *t, bool upper)
{
    return (int64_t)((uint64_t)t->error_arg >> (upper ? 32 : 0) & 0xffffffffu);
}
/* also: no zero stride on a dim > 1 and no two elements in one place (an output must not overlap itself) */
strata_status st_tensor_check_output(st_err *e, const char *who, const char *name, const strata_tensor *t);
/* lowest and one-past-highest byte that the view touches; both NULL for no elements */
void st_tensor_span(const strata_tensor *t, const char **lo, const char **hi);
bool st_tensor_overlap(const strata_tensor *a, const strata_tensor *b);   /* spans meet (conservative) */
bool st_tensor_same_view(const strata_tensor *a, const strata_tensor *b); /* same data, type, dims, strides */
/* "3x4" into buf */
const char *st_dims(const strata_tensor *t, char *buf, size_t n);
#define ST_DIMS(t) st_dims(&(t), (char[96]){0}, 96)
/* What a message repeats of the caller's own text: all of it up to 80 bytes, else its beginning, "..." and its end; line breaks and other control
 * characters as blanks. */
enum { ST_CUT = 84 };
const char *st_cut(const char *s, char room[ST_CUT]);
#define ST_SHORT(s) st_cut(s, (char[ST_CUT]){0})

/* ---- hash ------------------------------------------------------------------------------------------------------------ */
uint64_t st_hash(const void *p, size_t n, uint64_t seed);
uint64_t st_now_ns(void);  /* monotonic */
bool st_env_allowed(void); /* false in a privileged process (AT_SECURE): STRATA_* is then ignored */
const char *st_env(const char *name); /* getenv, or NULL when not allowed */

#endif
