/* SPDX-License-Identifier: Apache-2.0 */
/* blas_rows.h - the kernels of level 1 and of level 2 by type and instruction set, the fastest first; the last row of a type always works. The including file says
 * FAMILY (vector) and TABLE (the type of its tables, st_<FAMILY>_<type>_<arch>_kernels), and gets rows[], find_row and list_row. */
#include "base/cpu.h"
#include <strata/plan.h>

#define ST_BLAS_TYPES(X, arch, ISA) \
    X(f32, STRATA_F32, arch, ISA)   \
    X(f64, STRATA_F64, arch, ISA)   \
    X(c64, STRATA_C64, arch, ISA)   \
    X(c128, STRATA_C128, arch, ISA)
#if defined(__x86_64__)
#    define ST_BLAS_ROWS(X)                     \
        ST_BLAS_TYPES(X, avx512, ST_ISA_AVX512) \
        ST_BLAS_TYPES(X, avx2, ST_ISA_AVX2)     \
        ST_BLAS_TYPES(X, portable, ST_ISA_PORTABLE)
#else
#    define ST_BLAS_ROWS(X) ST_BLAS_TYPES(X, portable, ST_ISA_PORTABLE)
#endif
#define ST_BLAS_STRING_(x) #x
#define ST_BLAS_STRING(x) ST_BLAS_STRING_(x)
#define ST_BLAS_NAME_(family, type, arch) st_##family##_##type##_##arch##_kernels
#define ST_BLAS_NAME(family, type, arch) ST_BLAS_NAME_(family, type, arch)

#define PROTOTYPE(type, TYPE, arch, ISA) extern const TABLE ST_BLAS_NAME(FAMILY, type, arch);
ST_BLAS_ROWS(PROTOTYPE)
#undef PROTOTYPE

static const struct row {
    const char *id, *types, *isa_name;
    int type;
    unsigned isa;
    const TABLE *k;
} rows[] = {
#define ROW(type, TYPE, arch, ISA) \
    {ST_BLAS_STRING(FAMILY) "_" #type "_" #arch, #type, #arch, TYPE, ISA, &ST_BLAS_NAME(FAMILY, type, arch)},
    ST_BLAS_ROWS(ROW)
#undef ROW
};

static const TABLE *find_row(int type, unsigned isa)
{
    for (int i = 0; i < ST_COUNT(rows); i++)
        if (rows[i].type == type && (rows[i].isa & ~isa) == 0) return rows[i].k;
    return NULL;
}

static int list_row(int i, const char *order, strata_kernel_info *info)
{
    if (i < 0 || i >= ST_COUNT(rows)) return 0;
    const bool usable = (rows[i].isa & ~st_cpu_get()->isa) == 0;
    *info = (strata_kernel_info){
        rows[i].id,
        ST_BLAS_STRING(FAMILY),
        rows[i].types,
        rows[i].isa_name,
        order,
        usable,
        usable ? NULL : "needs an instruction set that this machine or STRATA_ISA does not offer"};
    return 1;
}
