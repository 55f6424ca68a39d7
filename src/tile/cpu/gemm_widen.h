/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_widen.h - products of 16-bit and 8-bit floats by the kernels of f32 in gemm_body.h, which is included before: packing widens.
 * Including file: ROW(type), the row's id for a source type. */
#define WIDE_PACK(name, kind)                                                                           \
    static void pack_a_##name(void *dst, int64_t w, int64_t k, const void *src, int64_t ls, int64_t ks) \
    {                                                                                                   \
        wide_lines(kind, MR, dst, w, k, src, ls, ks);                                                   \
    }                                                                                                   \
    static void pack_b_##name(void *dst, int64_t w, int64_t k, const void *src, int64_t ls, int64_t ks) \
    {                                                                                                   \
        wide_lines(kind, NR, dst, w, k, src, ls, ks);                                                   \
    }                                                                                                   \
    static void first_##name(const st_ukr_args *x, const void *a, const void *b, void *c)               \
    {                                                                                                   \
        ukr_first_body(1, kind, x, a, b, c);                                                            \
    }
WIDE_PACK(f16, WIDE_F16)
WIDE_PACK(bf16, WIDE_BF16)
WIDE_PACK(e4m3, WIDE_E4M3)
WIDE_PACK(e5m2, WIDE_E5M2)

const st_packed_kernel WIDE_ROW(f16) = {PACKED_KERNEL, .first = first_f16, .pack_a = pack_a_f16,
                                        .pack_b = pack_b_f16};
const st_packed_kernel WIDE_ROW(bf16) = {PACKED_KERNEL, .first = first_bf16, .pack_a = pack_a_bf16,
                                         .pack_b = pack_b_bf16};
const st_packed_kernel WIDE_ROW(f8) = {PACKED_KERNEL,          .first = first_e4m3,   .pack_a = pack_a_e4m3,
                                       .pack_b = pack_b_e4m3,  .first_2 = first_e5m2, .pack_a_2 = pack_a_e5m2,
                                       .pack_b_2 = pack_b_e5m2};
