/* SPDX-License-Identifier: Apache-2.0 */
/* problem.c - problems as words of a command line, made into plans: what `strata plan` and `strata tune` share. The operands are reserved
 * address space without memory behind it, so that a problem larger than the machine can be planned too. */
#include "cli/problem.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MAX_OPERANDS = 8, MAX_RESERVED = 16 };

typedef struct reserved {
    void *p[MAX_RESERVED];
    size_t bytes[MAX_RESERVED];
    int n;
} reserved;

static void *reserve(reserved *r, double elements, size_t size)
{
    static const size_t page = 4096;
    double bytes = elements * (double)size;
    if (r->n == MAX_RESERVED || bytes > 3e13) return NULL;
    size_t b = (size_t)bytes / page * page + 2 * page;
    void *p = mmap(NULL, b, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return NULL;
    r->p[r->n] = p;
    r->bytes[r->n++] = b;
    return p;
}

static void release(reserved *r)
{
    while (r->n) r->n--, munmap(r->p[r->n], r->bytes[r->n]);
}

/* The operands that an epilogue names: name[n] and name[m] are vectors, any other name that is not a function, not `acc` and
 * not assigned to is a tensor of the output's dims. */
typedef struct names {
    char text[MAX_OPERANDS][32];
    char axis[MAX_OPERANDS]; /* 'm', 'n' or 0 */
    int n;
} names;

static bool scan_names(const char *e, names *out)
{
    out->n = 0;
    while (*e) {
        if (!isalpha((unsigned char)*e) && *e != '_') {
            if (isdigit((unsigned char)*e)) /* numbers such as 1e-5 hold a letter */
                while (isalnum((unsigned char)*e) || *e == '.' ||
                       ((*e == '-' || *e == '+') && (e[-1] == 'e' || e[-1] == 'E')))
                    e++;
            else
                e++;
            continue;
        }
        const char *b = e;
        while (isalnum((unsigned char)*e) || *e == '_') e++;
        size_t len = (size_t)(e - b);
        const char *after = e;
        while (*after == ' ') after++;
        /* "[n]", or what was meant as it, such as "[n": what is wrong with that the parser says */
        char axis = 0;
        if (*after == '[') {
            const char in = after[1 + strspn(after + 1, " ")];
            axis = in == 'm' || in == 'n' ? in : 0;
            e = after + strcspn(after, "]+-*/(;,");
            e += *e == ']';
        }
        if (*after == '(' || (*after == '=' && after[1] != '=') || (len == 3 && memcmp(b, "acc", 3) == 0))
            continue;
        if (len > 31) return false;
        int at = 0;
        while (at < out->n && !(strlen(out->text[at]) == len && memcmp(out->text[at], b, len) == 0)) at++;
        if (at < out->n) continue;
        if (out->n == MAX_OPERANDS) return false;
        memcpy(out->text[at], b, len);
        out->text[at][len] = 0;
        out->axis[at] = axis;
        out->n++;
    }
    return true;
}

/* names assigned in an earlier statement ("t = acc * 2; out = t") are not operands */
static bool is_assigned(const char *e, const char *name)
{
    size_t len = strlen(name);
    for (const char *p = e; (p = strstr(p, name)) != NULL; p += len) {
        const char *q = p + len;
        if (p > e && (isalnum((unsigned char)p[-1]) || p[-1] == '_')) continue;
        while (*q == ' ') q++;
        if (*q == '=' && q[1] != '=') return true;
    }
    return false;
}

static int operands(reserved *r, const char *epilogue, strata_tensor out, int64_t m, int64_t n,
                    strata_type type, names *nm, strata_operand *ops)
{
    int count = 0;
    if (!scan_names(epilogue, nm)) return -1;
    for (int i = 0; i < nm->n; i++) {
        if (is_assigned(epilogue, nm->text[i])) continue;
        strata_tensor t = out;
        if (nm->axis[i]) {
            int64_t len = nm->axis[i] == 'm' ? m : n;
            t = strata_vector(reserve(r, (double)len, 8), type, len, 1);
        } else {
            t.data = reserve(r, (double)strata_count(out), strata_type_bits(type) / 8);
        }
        if (!t.data) return -1;
        ops[count].name = nm->text[i];
        ops[count++].tensor = t;
    }
    ops[count].name = NULL;
    return count;
}

static strata_type type_of(const char *name) { return name ? strata_type_from_name(name) : STRATA_F32; }

static double bytes_of(strata_type type) { return (double)strata_type_bits(type) / 8; }

static int bad_type(const char *verb, const char *name)
{
    return cli_bad(
        verb,
        "unknown type '%s'; known: f64 f32 c64 c128 f16 bf16 f8e4m3 f8e5m2 i64 i32 i8 u8 i4 u4 bool bit",
        CLI_SHORT(name));
}

/* `p` by address: it is written by the call that is the first argument */
static int finish(strata_status s, strata_handle *h, const char *verb, strata_plan **made, double flops,
                  double bytes, strata_type type, cli_problem *out)
{
    if (s) return cli_failed(verb, h);
    *out = (cli_problem){*made, flops, bytes, type};
    return CLI_OK;
}

static int plan_gemm(const char *verb, strata_handle *h, int n, const char **w, const cli_problem_words *c,
                     const strata_choice *choice, cli_problem *made)
{
    int64_t d[3];
    int used = 0;
    if (n >= 1 && strchr(w[0], 'x')) {
        if (cli_dims(w[0], 0, INT64_C(1) << 40, d, 3) != 3)
            return cli_bad(verb, "'%s' is not MxNxK", CLI_SHORT(w[0]));
        used = 1;
    } else {
        for (; used < 3; used++)
            if (used >= n || !cli_integer(w[used], 0, INT64_C(1) << 40, &d[used]))
                return cli_bad(verb, "gemm needs M N K (each 0 to 2^40)%s%s%s", used < n ? "; '" : "",
                               used < n ? CLI_SHORT(w[used]) : "", used < n ? "' is not one" : "");
    }
    const char *tname = used < n ? w[used] : NULL, *epilogue = used + 1 < n ? w[used + 1] : c->epilogue;
    if (used + 2 < n)
        return cli_bad(verb, "too many words after gemm M N K TYPE EPILOGUE, at '%s'",
                       CLI_SHORT(w[used + 2]));
    strata_type type = type_of(tname);
    if (type == STRATA_NONE) return bad_type(verb, tname);
    const char *tr = c->trans ? c->trans : "NN";
    if (strlen(tr) != 2 || strspn(tr, "NT") != 2)
        return cli_bad(verb, "--trans is NN, NT, TN or TT, not '%s'", CLI_SHORT(tr));
    static const char *const modes[] = {"exact", "tf32", "bf16x6", "fast"};
    int math = 0;
    while (c->math && math < 4 && strcmp(c->math, modes[math]) != 0) math++;
    if (math == 4)
        return cli_bad(verb, "--math is exact, tf32, bf16x6 or fast, not '%s'", CLI_SHORT(c->math));
    /* what a product of small types is usually stored as */
    const strata_type out = type == STRATA_I8                                ? STRATA_I32
                            : type == STRATA_F8E4M3 || type == STRATA_F8E5M2 ? STRATA_BF16
                                                                             : type;
    reserved r = {.n = 0};
    size_t size = strata_type_bits(type) / 8 + 1;
    const bool complex = type == STRATA_C64 || type == STRATA_C128;
    double m = (double)d[0], nn = (double)d[1], k = (double)d[2];
    void *pa = reserve(&r, m * k, size), *pb = reserve(&r, k * nn, size), *pc = reserve(&r, m * nn, 9);
    int code = CLI_FAILED;
    strata_operand ops[MAX_OPERANDS + 1];
    names nm;
    if (!pa || !pb || !pc) {
        cli_bad(verb, "the operands (%lldx%lldx%lld) do not fit the address space", (long long)d[0],
                (long long)d[1], (long long)d[2]);
    } else {
        strata_tensor A =
            strata_matrix(pa, type, d[0], d[2], tr[0] == 'T' ? STRATA_COL_MAJOR : STRATA_ROW_MAJOR, 0);
        strata_tensor B =
            strata_matrix(pb, type, d[2], d[1], tr[1] == 'T' ? STRATA_COL_MAJOR : STRATA_ROW_MAJOR, 0);
        strata_tensor C = strata_matrix(pc, out, d[0], d[1], STRATA_ROW_MAJOR, 0);
        strata_gemm_options o = {
            .epilogue = epilogue, .operands = epilogue ? ops : NULL, .math = (strata_math)math};
        strata_plan *p = NULL;
        if (epilogue && operands(&r, epilogue, C, d[0], d[1], type, &nm, ops) < 0)
            cli_bad(verb, "the epilogue names more than %d operands, or too long names", MAX_OPERANDS);
        else
            code = finish(strata_gemm_plan(h, STRATA_ONE, A, B, STRATA_ZERO, C, epilogue || math ? &o : NULL,
                                           choice, &p),
                          h, verb, &p, (complex ? 8 : 2) * m * nn * k,
                          (m * k + k * nn) * bytes_of(type) + m * nn * bytes_of(out), type, made);
    }
    release(&r);
    return code;
}

static bool pair(const char *s, int64_t lo, int64_t hi, int64_t v[2])
{
    if (!s) return true;
    int n = cli_dims(s, lo, hi, v, 2);
    if (n == 1) v[1] = v[0];
    return n > 0;
}

static int plan_conv(const char *verb, strata_handle *h, int n, const char **w, const cli_problem_words *c,
                     const strata_choice *choice, cli_problem *made)
{
    int64_t x[4], f[3], out[4];
    const int64_t big = 1 << 24;
    if (n < 2 || n > 3)
        return cli_bad(verb, "conv needs an image NxCxHxW and filters OxRxS (then, if wanted, a type)");
    if (cli_dims(w[0], 1, big, x, 4) != 4)
        return cli_bad(verb, "'%s' is not an image NxCxHxW", CLI_SHORT(w[0]));
    int nf = cli_dims(w[1], 1, big, f, 3);
    if (nf < 2) return cli_bad(verb, "'%s' is not OxRxS (filters, rows, columns)", CLI_SHORT(w[1]));
    if (nf == 2) f[2] = f[1];
    strata_type type = type_of(n > 2 ? w[2] : NULL);
    if (type == STRATA_NONE) return bad_type(verb, w[2]);
    strata_conv o = {0};
    int64_t groups = 1;
    if (!pair(c->stride, 1, 4096, o.stride) || !pair(c->pad, 0, 4096, o.pad) ||
        !pair(c->dilation, 1, 4096, o.dilation) || (c->groups && !cli_integer(c->groups, 1, big, &groups)))
        return cli_bad(verb, "--stride, --pad and --dilation take one number or RxC, --groups one number");
    o.groups = groups;
    if (x[1] % groups || f[0] % groups)
        return cli_bad(verb, "groups (%lld) must divide the channels (%lld) and the filters (%lld)",
                       (long long)groups, (long long)x[1], (long long)f[0]);
    bool nchw = c->layout && strcmp(c->layout, "nchw") == 0;
    if (c->layout && !nchw && strcmp(c->layout, "nhwc") != 0)
        return cli_bad(verb, "--layout is nhwc or nchw, not '%s'", CLI_SHORT(c->layout));
    strata_tensor (*image)(const void *, strata_type, int64_t, int64_t, int64_t, int64_t) =
        nchw ? strata_nchw : strata_nhwc;
    reserved r = {.n = 0};
    size_t size = strata_type_bits(type) / 8 + 1;
    int64_t cg = x[1] / groups;
    strata_tensor X = image(reserve(&r, (double)x[0] * (double)x[1] * (double)x[2] * (double)x[3], size),
                            type, x[0], x[1], x[2], x[3]);
    strata_tensor W = image(reserve(&r, (double)f[0] * (double)cg * (double)f[1] * (double)f[2], size), type,
                            f[0], cg, f[1], f[2]);
    int code = CLI_FAILED;
    strata_operand ops[MAX_OPERANDS + 1];
    names nm;
    strata_plan *p = NULL;
    if (!X.data || !W.data) {
        cli_bad(verb, "the operands do not fit the address space");
    } else if (strata_conv_output(h, &o, X, W, out)) {
        code = cli_failed(verb, h);
    } else {
        strata_tensor Y =
            image(reserve(&r, (double)out[0] * (double)out[1] * (double)out[2] * (double)out[3], size), type,
                  out[0], out[1], out[2], out[3]);
        const char *pass = c->pass ? c->pass : "forward";
        double filters = (double)strata_count(W), pixels = (double)strata_count(Y);
        double flops = 2 * pixels * filters / (double)f[0],
               bytes = ((double)strata_count(X) + filters + pixels) * bytes_of(type);
        if (!Y.data)
            cli_bad(verb, "the operands do not fit the address space");
        else if (strcmp(pass, "forward") == 0) {
            if (c->epilogue &&
                operands(&r, c->epilogue, Y, out[0] * out[2] * out[3], out[1], type, &nm, ops) < 0) {
                cli_bad(verb, "the epilogue names more than %d operands, or too long names", MAX_OPERANDS);
            } else {
                o.epilogue = c->epilogue;
                o.operands = c->epilogue ? ops : NULL;
                code = finish(strata_conv_forward_plan(h, &o, X, W, Y, choice, &p), h, verb, &p, flops, bytes,
                              type, made);
            }
        } else if (strcmp(pass, "data") == 0)
            code = finish(strata_conv_backward_data_plan(h, &o, Y, W, X, choice, &p), h, verb, &p, flops,
                          bytes, type, made);
        else if (strcmp(pass, "weights") == 0)
            code = finish(strata_conv_backward_weights_plan(h, &o, X, Y, W, choice, &p), h, verb, &p, flops,
                          bytes, type, made);
        else
            code = cli_bad(verb, "--pass is forward, data or weights, not '%s'", CLI_SHORT(pass));
    }
    release(&r);
    return code;
}

int cli_problem_plan(const char *verb, strata_handle *h, int n, const char **w, const cli_problem_words *c,
                     const strata_choice *choice, cli_problem *made)
{
    static const char *const known[] = {"gemm", "conv"};
    memset(made, 0, sizeof *made);
    if (strcmp(w[0], "gemm") == 0) return plan_gemm(verb, h, n - 1, w + 1, c, choice, made);
    if (strcmp(w[0], "conv") == 0) return plan_conv(verb, h, n - 1, w + 1, c, choice, made);
    const char *near = cli_nearest(w[0], known, 2, sizeof *known);
    return cli_bad(verb,
                   near ? "unknown operator '%s'; did you mean '%s'? known: gemm conv"
                        : "unknown operator '%s'; known: gemm conv",
                   CLI_SHORT(w[0]), near);
}
