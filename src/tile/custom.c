/* SPDX-License-Identifier: Apache-2.0 */
/* custom.c - plans of users' own kernels; how a CPU runs them is in custom_cpu.c. On a GPU the text is what custom.cu includes, so that keys, caches, messages and launches are those of every kernel. */
#include "tile/custom.h"
#include "tile/tile.h"
#include "tile/cuda/epilogue.h"
#include "tile/epilogue.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHO "strata_custom_plan"

enum { MAX_SOURCE = 16 << 20, MAX_SCRATCH = 1 << 30 };

static strata_status run(strata_handle *h, const strata_plan *plan, void *const data[], const strata_run *r)
{
    const st_custom_plan *p = (const st_custom_plan *)plan;
    void *at[ST_CUSTOM_OPERANDS], *args[ST_CUSTOM_OPERANDS + 2], *epi_data[3 + ST_EPI_OPERANDS] = {NULL};
    st_epi_params e = {{NULL}, {0}, {0}, {0}};
    int n = 0;
    (void)r;
    const uint64_t t0 = st_trace_begin();
    for (; n < plan->operands; n++) {
        at[n] = data[n];
        args[n] = &at[n];
    }
    if (p->params_bytes) args[n++] = (void *)(uintptr_t)p->params;
    if (p->epilogue) {
        for (int i = 0; i < (int)p->c.epi_operands; i++) epi_data[3 + i] = data[p->epi[i]];
        st_cuda_epilogue_params(&p->c, false, epi_data, &e);
        args[n++] = &e;
    }
    const st_gpu_launch launch = {.kernel = p->kernel,
                                  .grid = {p->grid[0], p->grid[1], p->grid[2]},
                                  .block = {p->block[0], p->block[1], p->block[2]},
                                  .cluster = {p->cluster[0], p->cluster[1], p->cluster[2]},
                                  .smem = p->smem,
                                  .args = args};
    const strata_status s = st_gpu_run(h, &launch);
    if (ST_UNLIKELY(t0)) st_trace_end(t0, "tile", plan->chosen.kernel, "%s", plan->title);
    return s;
}

/* ---- the text ---------------------------------------------------------------------------------------------------------------- */

static strata_status read_file(strata_handle *h, const char *path, char **text)
{
    FILE *f = fopen(path, "rb");
    if (!f) return st_fail(&h->err, STRATA_ERROR_IO, WHO ": the source file %s: %s", path, strerror(errno));
    size_t n = 0, room = 1 << 16;
    char *s = malloc(room);
    for (size_t k; s && (k = fread(s + n, 1, room - n - 1, f)) > 0;) {
        n += k;
        if (n > MAX_SOURCE) break;
        if (n + 1 < room) continue;
        char *more = realloc(s, room *= 2);
        if (!more) free(s);
        s = more;
    }
    const bool failed = ferror(f);
    fclose(f);
    if (!s) return st_fail(&h->err, STRATA_ERROR_MEMORY, WHO ": no memory for the source file %s", path);
    s[n] = 0;
    if (!failed && n <= MAX_SOURCE && strlen(s) == n) {
        *text = s;
        return STRATA_OK;
    }
    free(s);
    return st_fail(&h->err, STRATA_ERROR_IO, WHO ": the source file %s %s", path,
                   failed           ? "cannot be read"
                   : n > MAX_SOURCE ? "has more than 16 MiB"
                                    : "holds a zero byte, so it is no text");
}

/* The user's text at the first inclusion, the epilogue at the second. */
static char *whole_text(const char *text, const char *name, const char *epilogue)
{
    static const char form[] =
        "#ifndef ST_CUSTOM_TEXT\n#define ST_CUSTOM_TEXT\n#line 1 \"%s\"\n%s\n#else\n%s\n#endif\n";
    const size_t n = sizeof form + strlen(text) + strlen(name) + strlen(epilogue);
    char *s = malloc(n);
    if (s) snprintf(s, n, form, name, text, epilogue);
    return s;
}

/* ---- checks ------------------------------------------------------------------------------------------------------------------ */

static bool is_name(const char *s)
{
    if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || *s == '_')) return false;
    for (; *s; s++)
        if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9') || *s == '_'))
            return false;
    return true;
}

static strata_status check_operands(strata_handle *h, const strata_operand *o, int *n)
{
    st_err *e = &h->err;
    static char nowhere;
    for (*n = 0; o && o[*n].name; ++*n) {
        strata_tensor t = o[*n].tensor;
        if (*n == ST_CUSTOM_OPERANDS)
            return st_fail(e, STRATA_ERROR_ARGUMENT,
                           WHO ": more than %d operands (does the list end in a row without name?)",
                           ST_CUSTOM_OPERANDS);
        if (!is_name(o[*n].name) || strlen(o[*n].name) >= ST_EXPR_NAME)
            return st_fail(e, STRATA_ERROR_ARGUMENT,
                           WHO ": the operand name '%.40s' is no name of at most %d letters", o[*n].name,
                           ST_EXPR_NAME - 1);
        if (!t.data) t.data = &nowhere;
        strata_status s = st_tensor_check(e, WHO, o[*n].name, &t);
        if (s) return s;
        for (int i = 0; i < *n; i++)
            if (!strcmp(o[i].name, o[*n].name))
                return st_fail(e, STRATA_ERROR_ARGUMENT, WHO ": operand %s is given twice", o[*n].name);
    }
    return STRATA_OK;
}

static strata_status check(strata_handle *h, const strata_custom *c, const strata_operand *o, int *n)
{
    st_err *e = &h->err;
    if (!c) return st_fail(e, STRATA_ERROR_ARGUMENT, WHO ": the description is NULL");
    for (int i = 0; i < ST_COUNT(c->reserved); i++)
        if (c->reserved[i])
            return st_fail(e, STRATA_ERROR_ARGUMENT,
                           WHO ": reserved words of strata_custom are not zero; start from {0}");
    const bool gpu = h->gpu != NULL;
    if (gpu ? !c->source && !c->file : !c->cpu) {
        st_fail(e, STRATA_ERROR_UNSUPPORTED, WHO ": the description has no kernel for %s: %s", h->device,
                gpu ? "source and file are NULL" : "cpu is NULL");
        st_err_remedy(e, gpu ? "give CUDA C in source or file"
                             : "give a function in cpu, or make the handle with \"cuda:0\"; an expression "
                               "(strata_fused, an "
                               "epilogue) runs on both devices");
        return STRATA_ERROR_UNSUPPORTED;
    }
    if (!c->entry || !is_name(c->entry))
        return st_fail(e, STRATA_ERROR_ARGUMENT,
                       WHO
                       ": entry is %s%.60s%s; it is the name of the kernel, on a GPU declared extern \"C\"",
                       c->entry ? "'" : "", c->entry ? c->entry : "NULL", c->entry ? "'" : "");
    for (int i = 0; gpu && c->options && c->options[i]; i++)
        if (i == ST_GPU_OPTIONS - 4)
            return st_fail(e, STRATA_ERROR_ARGUMENT,
                           WHO ": more than %d options (does the list end in NULL?)", ST_GPU_OPTIONS - 4);
    if (c->params_bytes > ST_CUSTOM_PARAMS || (!c->params) != (c->params_bytes == 0))
        return st_fail(e, STRATA_ERROR_ARGUMENT,
                       WHO ": params is %p with %zu bytes; give both or neither, at most %d bytes", c->params,
                       c->params_bytes, ST_CUSTOM_PARAMS);
    uint64_t threads = 1, pieces = 1;
    for (int i = 0; i < 3 && pieces >> 40 == 0; i++) pieces *= c->grid[i] ? c->grid[i] : 1;
    if (pieces >> 40)
        return st_fail(e, STRATA_ERROR_ARGUMENT, WHO ": grid is %ux%ux%u; a grid has at most 2^40 pieces",
                       c->grid[0], c->grid[1], c->grid[2]);
    for (int i = 0; i < 3 && gpu; i++) threads *= c->block[i] ? c->block[i] : 1;
    if (threads > 1024)
        return st_fail(e, STRATA_ERROR_ARGUMENT,
                       WHO ": block is %ux%ux%u, %llu threads; a block has at most 1024", c->block[0],
                       c->block[1], c->block[2], (unsigned long long)threads);
    const size_t most = gpu ? (size_t)h->gpu->smem_block : MAX_SCRATCH;
    if (c->shared_bytes > most)
        return st_fail(e, STRATA_ERROR_ARGUMENT, WHO ": shared_bytes is %zu; %s has at most %zu for a %s",
                       c->shared_bytes, h->device, most, gpu ? "block" : "thread");
    return check_operands(h, o, n);
}

/* The epilogue as a contraction has it: axes m, n and batch of the output, operands bound to them. */
static strata_status bind_epilogue(strata_handle *h, const strata_custom *c, const strata_operand *o, int n,
                                   st_custom_plan *p, st_expr **x, int *at)
{
    st_err *e = &h->err;
    const char *text = c->epilogue ? c->epilogue : "acc";
    int out = -1;
    for (int i = 0; i < n; i++)
        if (c->output && !strcmp(o[i].name, c->output)) out = i;
    if (out < 0)
        return st_fail(
            e, STRATA_ERROR_ARGUMENT,
            WHO ": output is %s%.60s%s; with an epilogue it names the operand that the kernel stores to",
            c->output ? "'" : "", c->output ? c->output : "NULL", c->output ? "'" : "");
    *at = out;
    const strata_tensor *C = &o[out].tensor;
    if (st_type_is_complex(C->type))
        return st_fail(e, STRATA_ERROR_UNSUPPORTED, WHO ": %s is of type %s; epilogues are of real types",
                       c->output, strata_type_name(C->type));
    if (C->rank < 2 || C->rank > 2 + ST_AXES)
        return st_fail(e, STRATA_ERROR_SHAPE,
                       WHO ": %s has rank %d; the output of an epilogue has rank 2 to %d", c->output, C->rank,
                       2 + ST_AXES);
    st_contract *q = &p->c;
    const int r = C->rank;
    q->tc = C->type;
    q->m = (st_axes){1, {{C->dim[r - 2], 0, 0, C->stride[r - 2]}}};
    q->n = (st_axes){1, {{C->dim[r - 1], 0, 0, C->stride[r - 1]}}};
    q->batch.count = r - 2;
    for (int d = 0; d < r - 2; d++) q->batch.ax[d] = (st_axis){C->dim[d], 0, 0, C->stride[d]};
    const char *names[ST_EPI_OPERANDS + 3] = {"acc", "out"};
    for (int i = 0; i < n; i++) {
        const st_epi_use use = st_tile_epilogue_use(text, o[i].name);
        if (!use.used || i == out) continue;
        const int k = (int)q->epi_operands;
        if (k == ST_EPI_OPERANDS)
            return st_fail(e, STRATA_ERROR_UNSUPPORTED, WHO ": the epilogue has more than %d operands",
                           ST_EPI_OPERANDS);
        st_epi_operand *to = &q->epi[k];
        memcpy(to->name, o[i].name, strlen(o[i].name));
        to->type = o[i].tensor.type;
        strata_status s = st_tile_bind_operand(e, WHO, C, &o[i], use.index, to);
        if (s) return s;
        p->epi[k] = i;
        names[2 + k] = o[i].name;
        q->epi_operands++;
    }
    strata_status s = st_expr_parse(e, WHO, text, names, q->tc == STRATA_F64, x);
    if (s) return s;
    const int var_out = st_expr_find(*x, "out");
    const st_expr_var *var;
    st_expr_vars(*x, &var);
    if (st_expr_reductions(*x) || st_expr_has_matmul(*x) || var_out < 0 || !var[var_out].output)
        s = st_fail(e, STRATA_ERROR_ARGUMENT,
                    WHO ": the epilogue '%s' must map elements (no reduction, no product) and write out",
                    c->epilogue);
    return s;
}

static strata_status extents(strata_handle *h, st_custom_plan *p, const strata_operand *o, int n)
{
    st_extent *e = calloc((size_t)n + 1, sizeof *e);
    if (!e) return st_fail(&h->err, STRATA_ERROR_MEMORY, WHO ": no memory for a plan");
    p->base.extent = e;
    p->base.operands = n;
    for (int i = 0; i < n; i++) e[i] = st_plan_extent(&o[i].tensor, true); /* what it writes is not known */
    return STRATA_OK;
}

static strata_status compile(strata_handle *h, const strata_custom *c, const char *epilogue,
                             st_custom_plan *p)
{
    char *read = NULL, id[96];
    strata_status s = c->source ? STRATA_OK : read_file(h, c->file, &read);
    if (s) return s;
    snprintf(id, sizeof id, "custom_%.60s_sm%d", c->entry, h->gpu->cc);
    char *text =
        whole_text(c->source ? c->source : read, c->file ? c->file : c->entry, epilogue ? epilogue : "");
    free(read);
    if (!text) return st_fail(&h->err, STRATA_ERROR_MEMORY, WHO ": no memory for the kernel's text");
    st_gpu_spec spec = {.id = id, .source = "custom.cu", .entry = c->entry, .generated = text};
    int n = 0;
    if (epilogue) {
        spec.option[n++] = "-DEPI=1";
        spec.option[n++] = p->c.tc == STRATA_F64 ? "-DST_ACC=double" : "-DST_ACC=float";
    }
    for (int i = 0; c->options && c->options[i]; i++) spec.option[n++] = c->options[i];
    s = st_gpu_kernel_get(h, &spec, &p->kernel);
    free(text);
    snprintf(p->base.chosen.kernel, sizeof p->base.chosen.kernel, "%s", id);
    return s;
}

static void write_text(st_custom_plan *p)
{
    char text[700];
    snprintf(text, sizeof text,
             "%s on %s\n  kernel     %s    grid %ux%ux%u, block %ux%ux%u, cluster %ux%ux%u, shared memory %u "
             "+ %d bytes, %d "
             "registers\n  order      the kernel's own",
             p->base.title, p->base.device, p->base.chosen.kernel, p->grid[0], p->grid[1], p->grid[2],
             p->block[0], p->block[1], p->block[2], p->cluster[0], p->cluster[1], p->cluster[2], p->smem,
             p->kernel->static_smem, p->kernel->registers);
    p->base.text = strdup(text);
}

static strata_status for_gpu(strata_handle *h, const strata_custom *c, const st_expr *x, st_custom_plan *p)
{
    char *epilogue = NULL;
    strata_status s = x ? st_cuda_epilogue_text(&h->err, &p->c, x, false, &epilogue) : STRATA_OK;
    p->epilogue = x != NULL;
    if (!s) s = compile(h, c, epilogue, p);
    free(epilogue);
    if (s) return s;
    p->base.run = run;
    p->base.where = ST_ON_CUDA;
    write_text(p);
    return STRATA_OK;
}

strata_status strata_custom_plan(strata_handle *h, const strata_custom *c, const strata_operand *operands,
                                 strata_plan **plan)
{
    int n = 0, out = -1;
    st_expr *x = NULL;
    strata_status s = st_handle_check(h, WHO);
    if (s) return s;
    if (!plan) return st_fail(&h->err, STRATA_ERROR_ARGUMENT, WHO ": the address for the plan is NULL");
    *plan = NULL;
    if ((s = check(h, c, operands, &n))) return s;
    st_custom_plan *p = st_plan_new(sizeof *p);
    if (!p) return st_fail(&h->err, STRATA_ERROR_MEMORY, WHO ": no memory for a plan");
    for (int i = 0; i < 3; i++) {
        p->grid[i] = c->grid[i] ? c->grid[i] : 1;
        p->block[i] = c->block[i] ? c->block[i] : 1;
        p->cluster[i] = c->cluster[i] ? c->cluster[i] : 1;
    }
    p->smem = (unsigned)c->shared_bytes;
    p->params_bytes = c->params_bytes;
    if (c->params_bytes) memcpy(p->params, c->params, c->params_bytes);
    p->base.op = ST_OP_CUSTOM;
    p->base.flops = c->flops;
    p->base.bytes = c->bytes;
    snprintf(p->base.device, sizeof p->base.device, "%s", h->device);
    snprintf(p->base.title, sizeof p->base.title, "custom kernel %.60s, %d operands", c->entry, n);
    snprintf(p->base.order, sizeof p->base.order, "the kernel's own");
    if (c->epilogue || (!h->gpu && c->output)) s = bind_epilogue(h, c, operands, n, p, &x, &out);
    if (!s) s = extents(h, p, operands, n);
    if (!s && h->gpu) s = for_gpu(h, c, x, p);
    if (!s && !h->gpu) {
        st_custom_cpu(h, c, x, out, p);
        x = NULL;
    }
    if (x) st_expr_free(x);
    if (s) {
        strata_plan_destroy(&p->base);
        return s;
    }
    *plan = &p->base;
    return STRATA_OK;
}
