/* SPDX-License-Identifier: Apache-2.0 */
/* map.c - tensor maps, the descriptors that the tensor memory accelerator (TMA) reads: made on the host, passed to kernels by value. */
#include "runtime/cuda/cuda.h"
#include <string.h>

enum { MAX_RANK = 5, L2_128 = 2 };
_Static_assert(sizeof(st_gpu_map) == sizeof(st_cu_tensor_map), "a tensor map has 128 bytes");

/* CUtensorMapDataType; -1: TMA does not move it as a type. 8-byte types of pairs go as 64 bits. */
static int map_type(int type)
{
    switch (type) {
    case STRATA_U8:
    case STRATA_I8:
    case STRATA_BOOL:
    case STRATA_F8E4M3:
    case STRATA_F8E5M2: return 0;
    case STRATA_I32: return 3;
    case STRATA_C64: return 4;
    case STRATA_I64: return 5;
    case STRATA_F16: return 6;
    case STRATA_F32: return 7;
    case STRATA_F64: return 8;
    case STRATA_BF16: return 9;
    case ST_GPU_TF32: return 11;
    default: return -1;
    }
}

static int swizzle_code(int bytes)
{
    return bytes == 0 ? 0 : bytes == 32 ? 1 : bytes == 64 ? 2 : bytes == 128 ? 3 : -1;
}

static const char *type_word(int type)
{
    return type == ST_GPU_TF32 ? "tf32" : strata_type_name((strata_type)type);
}

/* A dim of one element has no stride that matters: it gets one that the driver takes. */
static uint64_t map_stride(const int64_t *dim, const int64_t *stride, int i)
{
    if (dim[i] > 1) return (uint64_t)stride[i];
    int64_t s = 16;
    for (int k = 1; k < i; k++)
        if (dim[k] > 1) s = st_max64(s, st_min64(stride[k] * dim[k], (int64_t)1 << 39));
    return (uint64_t)st_round_up(s, 16);
}

static strata_status refuse(strata_handle *h, const char *why, int type, int rank, const void *base)
{
    return st_fail(&h->err, STRATA_ERROR_INTERNAL, "a tensor map of %s, rank %d, at %p cannot be made: %s",
                   type_word(type), rank, base, why);
}

/* The rules that the driver would break off with one code for. */
static const char *broken_rule(int rank, const void *base, const int64_t *dim, const int64_t *stride,
                               int type, int swizzle)
{
    if (rank < 1 || rank > MAX_RANK) return "the rank must be 1 to 5";
    if (map_type(type) < 0) return "TMA does not move this type";
    if (swizzle_code(swizzle) < 0) return "the swizzle must be 0, 32, 64 or 128 bytes";
    if ((uintptr_t)base & 15) return "the address must be a multiple of 16";
    for (int i = 0; i < rank; i++)
        if (dim[i] < 1 || dim[i] > (int64_t)1 << 32) return "every dim must be 1 to 2^32";
    for (int i = 1; i < rank; i++)
        if (dim[i] > 1 && (stride[i] < 0 || stride[i] & 15 || stride[i] >= (int64_t)1 << 40))
            return "strides must be multiples of 16 bytes below 2^40";
    return NULL;
}

strata_status st_gpu_map_tiled(strata_handle *h, st_gpu_map *map, int type, int rank, const void *base,
                               const int64_t *dim, const int64_t *stride, const int *box, int swizzle)
{
    const char *rule = broken_rule(rank, base, dim, stride, type, swizzle);
    uint64_t d[MAX_RANK], s[MAX_RANK];
    uint32_t b[MAX_RANK], one[MAX_RANK];
    if (rule) return refuse(h, rule, type, rank, base);
    for (int i = 0; i < rank; i++) {
        if (box[i] < 1 || box[i] > 256)
            return refuse(h, "a box has 1 to 256 elements along each dim", type, rank, base);
        d[i] = (uint64_t)dim[i];
        if (i) s[i - 1] = map_stride(dim, stride, i);
        b[i] = (uint32_t)box[i];
        one[i] = 1;
    }
    const st_libcuda *cu = st_cuda_of(h)->cu; /* pure arithmetic: no context is needed */
    st_cu_result r =
        cu->tensor_map_tiled((st_cu_tensor_map *)(void *)map, map_type(type), (uint32_t)rank,
                             (void *)(uintptr_t)base, d, s, b, one, 0, swizzle_code(swizzle), L2_128, 0);
    return r ? st_cuda_fail(&h->err, st_cuda_of(h), NULL, "cuTensorMapEncodeTiled", r,
                            "a tensor map of %s, rank %d, dim 0 of %lld with a box of %d and a swizzle of %d "
                            "bytes was refused",
                            type_word(type), rank, (long long)dim[0], box[0], swizzle)
             : STRATA_OK;
}

strata_status st_gpu_map_im2col(strata_handle *h, st_gpu_map *map, int type, int rank, const void *base,
                                const int64_t *dim, const int64_t *stride, const int *lower, const int *upper,
                                int channels, int pixels, const int *step, int swizzle)
{
    const char *rule = broken_rule(rank, base, dim, stride, type, swizzle);
    uint64_t d[MAX_RANK], s[MAX_RANK];
    uint32_t e[MAX_RANK];
    if (!rule && rank < 3) rule = "windows need rank 3 to 5";
    if (!rule && (channels < 1 || channels > 256 || pixels < 1 || pixels > 1024))
        rule = "1 to 256 channels, 1 to 1024 pixels";
    if (rule) return refuse(h, rule, type, rank, base);
    for (int i = 0; i < rank; i++) {
        d[i] = (uint64_t)dim[i];
        if (i) s[i - 1] = map_stride(dim, stride, i);
        e[i] = step ? (uint32_t)step[i] : 1;
    }
    const st_libcuda *cu = st_cuda_of(h)->cu;
    st_cu_result r = cu->tensor_map_im2col((st_cu_tensor_map *)(void *)map, map_type(type), (uint32_t)rank,
                                           (void *)(uintptr_t)base, d, s, lower, upper, (uint32_t)channels,
                                           (uint32_t)pixels, e, 0, swizzle_code(swizzle), L2_128, 0);
    return r ? st_cuda_fail(&h->err, st_cuda_of(h), NULL, "cuTensorMapEncodeIm2col", r,
                            "a tensor map for windows of %s, rank %d, was refused", type_word(type), rank)
             : STRATA_OK;
}
