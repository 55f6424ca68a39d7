/* SPDX-License-Identifier: Apache-2.0 */
/* pack_widen.h - 16-bit and 8-bit floats become f32 on their way into panels, so that the kernels of f32 multiply them: exact, every such value
 * is an f32. Where products of pairs of bf16 are as slow as on Sapphire Rapids this has twice their ceiling.
 *
 * A source type is a constant (WIDE_...) that each always_inline function gets. Orders of stores as in pack_body.h. Needs gemm_vec.h and pack_body.h for f32. */
enum { WIDE_F16, WIDE_BF16, WIDE_E4M3, WIDE_E5M2, WIDE_NONE };
#define WIDE_BYTES(kind) ((kind) == WIDE_NONE ? 4 : (kind) <= WIDE_BF16 ? 2 : 1)

/* One value by bits: the shorter exponent is put where f32 has its own and scaled by a power of two, which is exact for subnormal values too. */
ST_INLINE float widen_one(const int kind, const void *p)
{
    union {
        uint32_t u;
        float f;
    } x;
    uint16_t h;
    if (kind == WIDE_NONE) return *(const float *)p;
    if (kind == WIDE_E4M3) {
        const uint32_t b = *(const uint8_t *)p;
        x.u = (b & 0x7f) << 20;
        x.f *= 0x1p120f;
        x.u |= (b & 0x80) << 24 | ((b & 0x7f) == 0x7f ? 0x7fc00000u : 0);
        return x.f;
    }
    if (kind == WIDE_E5M2)
        h = (uint16_t)(*(const uint8_t *)p << 8);
    else
        memcpy(&h, p, 2);
    if (kind == WIDE_BF16) {
        x.u = (uint32_t)h << 16;
        return x.f;
    }
    x.u = (uint32_t)(h & 0x7fff) << 13;
    const bool special = (h & 0x7c00) == 0x7c00;
    if (!special) x.f *= 0x1p112f;
    x.u |= (uint32_t)(h & 0x8000) << 16 | (special ? 0x7f800000u : 0);
    return x.f;
}

#if defined(__AVX2__)
ST_INLINE __m256 widen8(const int kind, const void *p)
{
    if (kind == WIDE_BF16)
        return _mm256_castsi256_ps(
            _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
    if (kind == WIDE_F16) return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
    const __m128i b = _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)p));
    if (kind == WIDE_E5M2) return _mm256_cvtph_ps(_mm_slli_epi16(b, 8));
    const __m128i size = _mm_and_si128(b, _mm_set1_epi16(0x7f)),
                  none = _mm_cmpeq_epi16(size, _mm_set1_epi16(0x7f));
    __m128i h =
        _mm_or_si128(_mm_slli_epi16(size, 7), _mm_slli_epi16(_mm_andnot_si128(_mm_set1_epi16(0x7f), b), 8));
    h = _mm_or_si128(h, _mm_and_si128(none, _mm_set1_epi16(0x7e00)));
    return _mm256_mul_ps(_mm256_cvtph_ps(h), _mm256_set1_ps(256));
}
#endif
#if defined(__AVX512F__)
ST_INLINE __m512 widen16(const int kind, const void *p)
{
    if (kind == WIDE_BF16)
        return _mm512_castsi512_ps(
            _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
    if (kind == WIDE_F16) return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
    const __m256i b = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p));
    if (kind == WIDE_E5M2) return _mm512_cvtph_ps(_mm256_slli_epi16(b, 8));
    const __m256i size = _mm256_and_si256(b, _mm256_set1_epi16(0x7f)),
                  none = _mm256_cmpeq_epi16(size, _mm256_set1_epi16(0x7f));
    __m256i h = _mm256_or_si256(_mm256_slli_epi16(size, 7),
                                _mm256_slli_epi16(_mm256_andnot_si256(_mm256_set1_epi16(0x7f), b), 8));
    h = _mm256_or_si256(h, _mm256_and_si256(none, _mm256_set1_epi16(0x7e00)));
    return _mm512_mul_ps(_mm512_cvtph_ps(h), _mm512_set1_ps(256));
}
#endif

/* a vector of the kernel's width */
ST_INLINE V widen(const int kind, const void *p)
{
    if (kind == WIDE_NONE) return v_load((const T *)p);
#if defined(__AVX512F__)
    return widen16(kind, p);
#elif defined(__AVX2__)
    return widen8(kind, p);
#else
    const char *s = p;
    const int z = WIDE_BYTES(kind);
    return (V){widen_one(kind, s), widen_one(kind, s + z), widen_one(kind, s + 2 * z),
               widen_one(kind, s + 3 * z)};
#endif
}
/* n of its lanes, zeros in the others */
ST_INLINE V widen_part(const int kind, const void *p, int64_t n)
{
    char room[64] = {0};
    memcpy(room, p, (size_t)(n * WIDE_BYTES(kind)));
    return widen(kind, room);
}

ST_INLINE void wide_gather(const int kind, const int W, float *restrict dst, int64_t w, int64_t k,
                           const char *src, int64_t ls, int64_t ks)
{
    const int z = WIDE_BYTES(kind);
    for (int64_t p = 0; p < k; p++, dst += W) {
        const char *s = src + p * ks * z;
        for (int64_t i = 0; i < w; i++) dst[i] = widen_one(kind, s + i * ls * z);
        for (int64_t i = w; i < W; i++) dst[i] = 0;
    }
}

#if defined(__AVX2__)
/* lines contiguous along k: as pack_transpose.h */
#    define WIDE_TRANSPOSED(name, TR, TV, load, zero, store, turn)                                        \
        ST_INLINE void name(const int kind, const int W, float *restrict dst, int64_t w, int64_t k,       \
                            const char *src, int64_t ls)                                                  \
        {                                                                                                 \
            const int z = WIDE_BYTES(kind);                                                               \
            int64_t p = 0;                                                                                \
            for (; p + TR <= k; p += TR) {                                                                \
                for (int i0 = (W - 1) / TR * TR; i0 >= 0; i0 -= TR) {                                     \
                    TV r[TR];                                                                             \
                    const char *s = src + (i0 * ls + p) * z;                                              \
                    float *d = dst + p * W + i0;                                                          \
                    UNROLL                                                                                \
                    for (int i = 0; i < TR; i++, s += ls * z) r[i] = i0 + i < w ? load(kind, s) : zero(); \
                    UNROLL                                                                                \
                    for (int i = 0; i < (W < TR ? W : TR); i++)                                           \
                        __builtin_prefetch(src + ((W + i0 + i) * ls + p) * z);                            \
                    turn(r);                                                                              \
                    UNROLL                                                                                \
                    for (int q = 0; q < TR; q++) store(d + q * W, r[q]);                                  \
                }                                                                                         \
            }                                                                                             \
            wide_gather(kind, W, dst + p * W, w, k - p, src + p * z, ls, 1);                              \
        }
WIDE_TRANSPOSED(wide_transposed8, 8, __m256, widen8, _mm256_setzero_ps, _mm256_storeu_ps, transpose_ps8)
#    if defined(__AVX512F__)
WIDE_TRANSPOSED(wide_transposed, 16, __m512, widen16, _mm512_setzero_ps, _mm512_storeu_ps, transpose_ps16)
#    else
#        define wide_transposed wide_transposed8
#    endif
#endif

/* lines side by side, a panel of whole vectors */
ST_INLINE void wide_copied(const int kind, const int W, float *restrict dst, int64_t w, int64_t k,
                           const char *src, int64_t ks)
{
    const int z = WIDE_BYTES(kind);
    for (int64_t p = 0; p < k; p++) {
        const char *s = src + p * ks * z;
        float *d = dst + p * W;
        int64_t j = 0;
        for (; j + W <= w; j += W, d += k * W) UNROLL
        for (int x = 0; x < W; x += VL) {
            __builtin_prefetch(s + (4 * ks + j + x) * z);
            v_store(d + x, widen(kind, s + (j + x) * z));
        }
        if (j < w)
            for (int x = 0; x < W; x += VL) {
                const int64_t n = w - j - x;
                v_store(d + x, n >= VL ? widen(kind, s + (j + x) * z)
                               : n > 0 ? widen_part(kind, s + (j + x) * z, n)
                                       : v_zero());
            }
    }
}

ST_INLINE void wide_lines(const int kind, const int W, void *dst, int64_t w, int64_t k, const void *src,
                          int64_t ls, int64_t ks)
{
    const int z = WIDE_BYTES(kind);
    float *d = dst;
    const char *s = src;
    if (ls == 1 && ks != 1 && W % VL == 0) {
        wide_copied(kind, W, d, w, k, s, ks);
        return;
    }
    for (int64_t i = 0; i < w; i += W, d += W * k, s += W * ls * z) {
        const int64_t n = w - i < W ? w - i : W;
#if defined(__AVX2__)
        if (ks == 1 && W < 16) {
            wide_transposed8(kind, W, d, n, k, s, ls);
            continue;
        }
        if (ks == 1) {
            wide_transposed(kind, W, d, n, k, s, ls);
            continue;
        }
        if (ls == 1 && W < 8 && w - i >= 8 &&
            k > 2) { /* eight lines read, the next step overwrites the tail */
            for (int64_t p = 0; p < k - 2; p++) _mm256_storeu_ps(d + p * W, widen8(kind, s + p * ks * z));
            wide_gather(kind, W, d + (k - 2) * W, n, 2, s + (k - 2) * ks * z, ls, ks);
            continue;
        }
#endif
        wide_gather(kind, W, d, n, k, s, ls, ks);
    }
}
