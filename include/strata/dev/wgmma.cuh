/* SPDX-License-Identifier: Apache-2.0 */
/* wgmma.cuh - one warpgroup's matrix instruction, D[64 x WN] += A[64 x 32 bytes] * B[WN x 32 bytes]^T, both in shared memory.
 *
 * The includer defines WN (columns: 16 to 256), TA and TB (PTX names of the operand types: f16, bf16, tf32, e4m3, e5m2, s8) and, for 16-bit types, AMN and BMN
 * (1: the operand's rows are contiguous instead of its k). wgmma(d, a, b, more): d is WN/2 accumulators (float; int for s8), a and b descriptors,
 * more = 0 starts a new sum. With ABYTES 4 also wgmma_regs(d, f, b, more): A's 64 rows x 8 k from registers, thread t holding rows 16 (t/32) + t%32/4 (+ 8 in
 * f[1], f[3]) and k t%4 (+ 4 in f[2], f[3]). Only sm_90a has the instruction.
 *
 * Descriptors (PTX ISA, "asynchronous warpgroup level matrix shared memory layout"): address/16, leading and stride byte offsets/16, 128-byte swizzle, atoms of 8 rows of 128 bytes on
 * 1024-byte boundaries. k contiguous: the next 8 rows are 1024 bytes on; the next 32 bytes of k add 2 to the descriptor. Rows contiguous:
 * an atom is 64 rows by 8 k, the next 8 k 1024 bytes on, the next 64 rows `lead` bytes on; the next 16 k add 2048/16.
 *
 * Accumulators: thread t of the warpgroup holds rows 16 (t/32) + t%32/4 (+ 8) and columns 8 j + 2 (t%4) + {0, 1} in d[4j], d[4j+1] and (8 rows down) d[4j+2], d[4j+3]. */
#ifndef STRATA_DEV_WGMMA_CUH
#define STRATA_DEV_WGMMA_CUH
#include "types.cuh"

INL u64 desc_k(u32 a) { return (u64)((a & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62; }
INL u64 desc_mn(u32 a, u32 lead)
{
    return (u64)((a & 0x3ffff) >> 4) | (u64)(lead >> 4) << 16 | 64ull << 32 | 1ull << 62;
}
/* the descriptor `units` of 16 bytes further on: the address never leaves its 14 bits */
INL u64 desc_add(u64 d, u32 units) { return (d & 0xffffffff00000000ull) | (u32)((u32)d + units); }
INL void wgmma_fence(void) { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
INL void wgmma_commit(void) { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> INL void wgmma_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

#define ST_STR_(x) #x
#define ST_STR(x) ST_STR_(x)
/* clang-format off */
#define ST_R0 "%0,%1,%2,%3,%4,%5,%6,%7"
#define ST_R1 "%8,%9,%10,%11,%12,%13,%14,%15"
#define ST_R2 "%16,%17,%18,%19,%20,%21,%22,%23"
#define ST_R3 "%24,%25,%26,%27,%28,%29,%30,%31"
#define ST_R4 "%32,%33,%34,%35,%36,%37,%38,%39"
#define ST_R5 "%40,%41,%42,%43,%44,%45,%46,%47"
#define ST_R6 "%48,%49,%50,%51,%52,%53,%54,%55"
#define ST_R7 "%56,%57,%58,%59,%60,%61,%62,%63"
#define ST_R8 "%64,%65,%66,%67,%68,%69,%70,%71"
#define ST_R9 "%72,%73,%74,%75,%76,%77,%78,%79"
#define ST_R10 "%80,%81,%82,%83,%84,%85,%86,%87"
#define ST_R11 "%88,%89,%90,%91,%92,%93,%94,%95"
#define ST_R12 "%96,%97,%98,%99,%100,%101,%102,%103"
#define ST_R13 "%104,%105,%106,%107,%108,%109,%110,%111"
#define ST_R14 "%112,%113,%114,%115,%116,%117,%118,%119"
#define ST_R15 "%120,%121,%122,%123,%124,%125,%126,%127"
#define ST_O8(c, d, b) c(d[b]), c(d[b + 1]), c(d[b + 2]), c(d[b + 3]), c(d[b + 4]), c(d[b + 5]), c(d[b + 6]), c(d[b + 7])
#if WN == 16
#    define ST_REGS ST_R0
#    define ST_OPS(c, d) ST_O8(c, d, 0)
#    define ST_DA "%8"
#    define ST_DB "%9"
#    define ST_DS "%10"
#elif WN == 32
#    define ST_REGS ST_R0 "," ST_R1
#    define ST_OPS(c, d) ST_O8(c, d, 0), ST_O8(c, d, 8)
#    define ST_DA "%16"
#    define ST_DB "%17"
#    define ST_DS "%18"
#elif WN == 48
#    define ST_REGS ST_R0 "," ST_R1 "," ST_R2
#    define ST_OPS(c, d) ST_O8(c, d, 0), ST_O8(c, d, 8), ST_O8(c, d, 16)
#    define ST_DA "%24"
#    define ST_DB "%25"
#    define ST_DS "%26"
#elif WN == 64
#    define ST_REGS ST_R0 "," ST_R1 "," ST_R2 "," ST_R3
#    define ST_OPS(c, d) ST_O8(c, d, 0), ST_O8(c, d, 8), ST_O8(c, d, 16), ST_O8(c, d, 24)
#    define ST_DA "%32"
#    define ST_DB "%33"
#    define ST_DS "%34"
#elif WN == 80
#    define ST_REGS ST_R0 "," ST_R1 "," ST_R2 "," ST_R3 "," ST_R4
#    define ST_OPS(c, d) ST_O8(c, d, 0), ST_O8(c, d, 8), ST_O8(c, d, 16), ST_O8(c, d, 24), ST_O8(c, d, 32)
#    define ST_DA "%40"
#    define ST_DB "%41"
#    define ST_DS "%42"
#elif WN == 96
#    define ST_REGS ST_R0 "," ST_R1 "," ST_R2 "," ST_R3 "," ST_R4 "," ST_R5
#    define ST_OPS(c, d) ST_O8(c, d, 0), ST_O8(c, d, 8), ST_O8(c, d, 16), ST_O8(c, d, 24), ST_O8(c, d, 32), ST_O8(c, d, 40)
#    define ST_DA "%48"
#    define ST_DB "%49"
#    define ST_DS "%50"
#elif WN == 112
#    define ST_REGS ST_R0 "," ST_R1 "," ST_R2 "," ST_R3 "," ST_R4 "," ST_R5 "," ST_R6
#    define ST_OPS(c, d) ST_O8(c, d, 0), ST_O8(c, d, 8), ST_O8(c, d, 16), ST_O8(c, d, 24), ST_O8(c, d, 32), ST_O8(c, d, 40), ST_O8(c, d, 48)
#    define ST_DA "%56"
#    define ST_DB "%57"
#    define ST_DS "%58"
#elif WN == 128
#    define ST_REGS ST_R0 "," ST_R1 "," ST_R2 "," ST_R3 "," ST_R4 "," ST_R5 "," ST_R6 "," ST_R7
#    define ST_OPS(c, d) ST_O8(c, d, 0), ST_O8(c, d, 8), ST_O8(c, d, 16), ST_O8(c, d, 24), ST_O8(c, d, 32), ST_O8(c, d, 40), ST_O8(c, d, 48), ST_O8(c, d, 56)
#    define ST_DA "%64"
#    define ST_DB "%65"
#    define ST_DS "%66"
#elif WN == 144
#    define ST_REGS ST_R0 "," ST_R1 "," ST_R2 "," ST_R3 "," ST_R4 "," ST_R5 "," ST_R6 "," ST_R7 "," ST_R8
#    define ST_OPS(c, d) ST_O8(c, d, 0), ST_O8(c, d, 8), ST_O8(c, d, 16), ST_O8(c, d, 24), ST_O8(c, d, 32), ST_O8(c, d, 40), ST_O8(c, d, 48), ST_O8(c, d, 56), ST_O8(c, d, 64)
#    define ST_DA "%72"
#    define ST_DB "%73"
#    define ST_DS "%74"
#elif WN == 160
#    define ST_REGS ST_R0 "," ST_R1 "," ST_R2 "," ST_R3 "," ST_R4 "," ST_R5 "," ST_R6 "," ST_R7 "," ST_R8 "," ST_R9
#    define ST_OPS(c, d) ST_O8(c, d, 0), ST_O8(c, d, 8), ST_O8(c, d, 16), ST_O8(c, d, 24), ST_O8(c, d, 32), ST_O8(c, d, 40), ST_O8(c, d, 48), ST_O8(c, d, 56), ST_O8(c, d, 64), ST_O8(c, d, 72)
#    define ST_DA "%80"
#    define ST_DB "%81"
#    define ST_DS "%82"
#elif WN == 176
#    define ST_REGS ST_R0 "," ST_R1 "," ST_R2 "," ST_R3 "," ST_R4 "," ST_R5 "," ST_R6 "," ST_R7 "," ST_R8 "," ST_R9 "," ST_R10
#    define ST_OPS(c, d) ST_O8(c, d, 0), ST_O8(c, d, 8), ST_O8(c, d, 16), ST_O8(c, d, 24), ST_O8(c, d, 32), ST_O8(c, d, 40), ST_O8(c, d, 48), ST_O8(c, d, 56), ST_O8(c, d, 64), ST_O8(c, d, 72), ST_O8(c, d, 80)
#    define ST_DA "%88"
#    define ST_DB "%89"
#    define ST_DS "%90"
#elif WN == 192
#    define ST_REGS ST_R0 "," ST_R1 "," ST_R2 "," ST_R3 "," ST_R4 "," ST_R5 "," ST_R6 "," ST_R7 "," ST_R8 "," ST_R9 "," ST_R10 "," ST_R11
#    define ST_OPS(c, d) ST_O8(c, d, 0), ST_O8(c, d, 8), ST_O8(c, d, 16), ST_O8(c, d, 24), ST_O8(c, d, 32), ST_O8(c, d, 40), ST_O8(c, d, 48), ST_O8(c, d, 56), ST_O8(c, d, 64), ST_O8(c, d, 72), ST_O8(c, d, 80), ST_O8(c, d, 88)
#    define ST_DA "%96"
#    define ST_DB "%97"
#    define ST_DS "%98"
#elif WN == 208
#    define ST_REGS ST_R0 "," ST_R1 "," ST_R2 "," ST_R3 "," ST_R4 "," ST_R5 "," ST_R6 "," ST_R7 "," ST_R8 "," ST_R9 "," ST_R10 "," ST_R11 "," ST_R12
#    define ST_OPS(c, d) ST_O8(c, d, 0), ST_O8(c, d, 8), ST_O8(c, d, 16), ST_O8(c, d, 24), ST_O8(c, d, 32), ST_O8(c, d, 40), ST_O8(c, d, 48), ST_O8(c, d, 56), ST_O8(c, d, 64), ST_O8(c, d, 72), ST_O8(c, d, 80), ST_O8(c, d, 88), ST_O8(c, d, 96)
#    define ST_DA "%104"
#    define ST_DB "%105"
#    define ST_DS "%106"
#elif WN == 224
#    define ST_REGS ST_R0 "," ST_R1 "," ST_R2 "," ST_R3 "," ST_R4 "," ST_R5 "," ST_R6 "," ST_R7 "," ST_R8 "," ST_R9 "," ST_R10 "," ST_R11 "," ST_R12 "," ST_R13
#    define ST_OPS(c, d) ST_O8(c, d, 0), ST_O8(c, d, 8), ST_O8(c, d, 16), ST_O8(c, d, 24), ST_O8(c, d, 32), ST_O8(c, d, 40), ST_O8(c, d, 48), ST_O8(c, d, 56), ST_O8(c, d, 64), ST_O8(c, d, 72), ST_O8(c, d, 80), ST_O8(c, d, 88), ST_O8(c, d, 96), ST_O8(c, d, 104)
#    define ST_DA "%112"
#    define ST_DB "%113"
#    define ST_DS "%114"
#elif WN == 240
#    define ST_REGS ST_R0 "," ST_R1 "," ST_R2 "," ST_R3 "," ST_R4 "," ST_R5 "," ST_R6 "," ST_R7 "," ST_R8 "," ST_R9 "," ST_R10 "," ST_R11 "," ST_R12 "," ST_R13 "," ST_R14
#    define ST_OPS(c, d) ST_O8(c, d, 0), ST_O8(c, d, 8), ST_O8(c, d, 16), ST_O8(c, d, 24), ST_O8(c, d, 32), ST_O8(c, d, 40), ST_O8(c, d, 48), ST_O8(c, d, 56), ST_O8(c, d, 64), ST_O8(c, d, 72), ST_O8(c, d, 80), ST_O8(c, d, 88), ST_O8(c, d, 96), ST_O8(c, d, 104), ST_O8(c, d, 112)
#    define ST_DA "%120"
#    define ST_DB "%121"
#    define ST_DS "%122"
#elif WN == 256
#    define ST_REGS ST_R0 "," ST_R1 "," ST_R2 "," ST_R3 "," ST_R4 "," ST_R5 "," ST_R6 "," ST_R7 "," ST_R8 "," ST_R9 "," ST_R10 "," ST_R11 "," ST_R12 "," ST_R13 "," ST_R14 "," ST_R15
#    define ST_OPS(c, d) ST_O8(c, d, 0), ST_O8(c, d, 8), ST_O8(c, d, 16), ST_O8(c, d, 24), ST_O8(c, d, 32), ST_O8(c, d, 40), ST_O8(c, d, 48), ST_O8(c, d, 56), ST_O8(c, d, 64), ST_O8(c, d, 72), ST_O8(c, d, 80), ST_O8(c, d, 88), ST_O8(c, d, 96), ST_O8(c, d, 104), ST_O8(c, d, 112), ST_O8(c, d, 120)
#    define ST_DA "%128"
#    define ST_DB "%129"
#    define ST_DS "%130"
#else
#    error WN must be a multiple of 16 from 16 to 256
#endif
/* clang-format on */
#ifdef INTEGER
#    define ST_ACC_REG(x) "+r"(x)
#    define ST_SHAPE "k32.s32."
#    define ST_TAIL ";"
typedef int acc_t;
#else
#    define ST_ACC_REG(x) "+f"(x)
#    if ABYTES == 2
#        define ST_SHAPE "k16.f32."
#        define ST_TAIL ", 1, 1, " ST_STR(AMN) ", " ST_STR(BMN) ";"
#    elif ABYTES == 4
#        define ST_SHAPE "k8.f32."
#        define ST_TAIL ", 1, 1;"
#    else
#        define ST_SHAPE "k32.f32."
#        define ST_TAIL ", 1, 1;"
#    endif
typedef float acc_t;
#endif
#if ABYTES == 4 && (WN == 64 || WN == 128 || WN == 192 || WN == 256)
#    if WN == 64
#        define ST_RS "{%32,%33,%34,%35}, %36, p, 1, 1;\n}"
#        define ST_RS_MORE "%37"
#    elif WN == 128
#        define ST_RS "{%64,%65,%66,%67}, %68, p, 1, 1;\n}"
#        define ST_RS_MORE "%69"
#    elif WN == 192
#        define ST_RS "{%96,%97,%98,%99}, %100, p, 1, 1;\n}"
#        define ST_RS_MORE "%101"
#    else
#        define ST_RS "{%128,%129,%130,%131}, %132, p, 1, 1;\n}"
#        define ST_RS_MORE "%133"
#    endif
INL void wgmma_regs(acc_t *d, const u32 *f, u64 b, int more)
{
    asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, " ST_RS_MORE
                 ", 0;\n wgmma.mma_async.sync.aligned.m64n" ST_STR(WN) ST_SHAPE ST_STR(TA) "." ST_STR(TB) " {" ST_REGS "}, " ST_RS
                 : ST_OPS(ST_ACC_REG, d)
                 : "r"(f[0]), "r"(f[1]), "r"(f[2]), "r"(f[3]), "l"(b), "r"(more));
}
#endif
INL void wgmma(acc_t *d, u64 a, u64 b, int more)
{
    asm volatile(
        "{\n .reg .pred p;\n setp.ne.b32 p, " ST_DS ", 0;\n wgmma.mma_async.sync.aligned.m64n" ST_STR(WN)
            ST_SHAPE ST_STR(TA) "." ST_STR(TB) " {" ST_REGS "}, " ST_DA ", " ST_DB ", p" ST_TAIL "\n}"
        : ST_OPS(ST_ACC_REG, d)
        : "l"(a), "l"(b), "r"(more));
}
#endif
