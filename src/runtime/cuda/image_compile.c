/* SPDX-License-Identifier: Apache-2.0 */
/* image_compile.c - NVRTC: a specification to machine code, and what ptxas says about it.
 *
 * Sources see every embedded header by its file name, and nothing else: no toolkit header, no folder. Code for a real architecture
 * ("sm_90a") comes with ptxas's report (-v), which is read here: registers, spills, stack and shared memory of the entry. For a virtual
 * one ("compute_80") the image is PTX, which the driver compiles when it loads it; there is no report then. */
#include "driver/driver.h"
#include "runtime/cuda/image.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *st_gpu_arch(int cc)
{
    /* written once a process; Hopper's matrix instructions exist in sm_90a alone, newer parts take the plain names */
    switch (cc) {
    case 70: return "sm_70";
    case 72: return "sm_72";
    case 75: return "sm_75";
    case 80: return "sm_80";
    case 86: return "sm_86";
    case 87: return "sm_87";
    case 88: return "sm_88";
    case 89: return "sm_89";
    case 90: return "sm_90a";
    case 100: return "sm_100";
    case 103: return "sm_103";
    case 110: return "sm_110";
    case 120: return "sm_120";
    case 121: return "sm_121";
    default: return NULL;
    }
}

int st_image_arch_cc(const char *arch)
{
    const char *digits = strchr(arch, '_');
    return digits ? atoi(digits + 1) : 0;
}

/* ---- ptxas's report -------------------------------------------------------------------------------------------------- */

static const char *line_end(const char *p)
{
    const char *e = strchr(p, '\n');
    return e ? e : p + strlen(p);
}

static bool has(const char *line, const char *end, const char *word, const char **at)
{
    const char *p = memmem(line, (size_t)(end - line), word, strlen(word));
    if (p && at) *at = p + strlen(word);
    return p != NULL;
}

/* the number that stands before `word` in the line, 0 where there is none */
static int before(const char *line, const char *end, const char *word)
{
    const char *p = memmem(line, (size_t)(end - line), word, strlen(word));
    if (!p) return 0;
    while (p > line && p[-1] == ' ') p--;
    while (p > line && p[-1] >= '0' && p[-1] <= '9') p--;
    return atoi(p);
}

static bool name_is(const char *p, const char *name)
{
    size_t n = strlen(name);
    return strncmp(p, name, n) == 0 && strchr(" '\n", p[n]) != NULL;
}

/* Spills and stack of functions that are no entries (not inlined) count for the entry: it calls them. */
static void read_report(const char *log, const char *entry, st_gpu_image *im)
{
    bool of_other_entry = false, properties = false, mine = false, function_is_mine = false;
    const char *kernel = "", *at;
    for (const char *p = log; *p;) {
        const char *end = line_end(p);
        if (has(p, end, "Compiling entry function '", &at)) {
            kernel = at;
            mine = name_is(at, entry);
        } else if (has(p, end, "Function properties for ", &at)) {
            properties = true;
            size_t n = strcspn(at, " \n");
            function_is_mine = name_is(at, entry);
            of_other_entry = !mine && *kernel && strncmp(kernel, at, n) == 0;
        } else if (properties && has(p, end, "bytes stack frame", NULL)) {
            properties = false;
            if (!of_other_entry) {
                im->spill_stores += before(p, end, "bytes spill stores");
                im->spill_loads += before(p, end, "bytes spill loads");
                int stack = before(p, end, "bytes stack frame");
                if (stack > im->stack) im->stack = stack;
            }
        } else if (has(p, end, "Used ", &at) && mine && function_is_mine) {
            im->registers = atoi(at);
            im->smem = before(p, end, "bytes smem");
        }
        p = *end ? end + 1 : end;
    }
}

bool st_image_complaint(const st_gpu_image *im, char *line, size_t n)
{
    for (const char *p = im->log ? im->log : ""; *p;) {
        const char *end = line_end(p);
        /* C75xx: setmaxnreg ignored, or wgmma serialised; some come as "info" */
        bool code = has(p, end, "C75", NULL);
        if (code || has(p, end, "arning", NULL)) {
            snprintf(line, n, "%.*s", (int)(end - p), p);
            return true;
        }
        p = *end ? end + 1 : end;
    }
    if (im->spill_stores || im->spill_loads) {
        snprintf(line, n, "%d registers, %d bytes of spill stores, %d bytes of spill loads", im->registers,
                 im->spill_stores, im->spill_loads);
        return true;
    }
    return false;
}

/* ---- the compiler ----------------------------------------------------------------------------------------------------- */

/* The lines of the log that name errors become frames: "gemm.cu(12): error: ..." */
static void error_frames(st_err *e, const char *log)
{
    int told = 0;
    for (const char *p = log; *p && told < 5;) {
        const char *end = line_end(p);
        if (has(p, end, "error", NULL) || has(p, end, "fatal", NULL)) {
            st_err_frame(e, "nvrtc", "%.*s", (int)(end - p), p);
            told++;
        }
        p = *end ? end + 1 : end;
    }
    if (!told && *log) st_err_frame(e, "nvrtc", "%.*s", (int)(line_end(log) - log), log);
}

static char *program_log(const st_libnvrtc *nv, st_nvrtc_program program)
{
    size_t n = 0;
    if (nv->log_size(program, &n)) n = 0;
    char *log = calloc(1, n + 1);
    if (log && n && nv->log(program, log)) *log = 0;
    return log;
}

static strata_status take_code(st_err *e, const st_libnvrtc *nv, st_nvrtc_program program, bool ptx,
                               const st_gpu_spec *s, st_gpu_image *im)
{
    size_t n = 0;
    int r = ptx ? nv->ptx_size(program, &n) : nv->cubin_size(program, &n);
    if (r || !n)
        return st_fail(e, STRATA_ERROR_INTERNAL, "%s: NVRTC %d.%d gave no code (error %d)", s->id,
                       nv->version / 1000, nv->version % 1000 / 10, r);
    if (!(im->bytes = malloc(n)))
        return st_fail(e, STRATA_ERROR_MEMORY, "%s: no memory for %zu bytes of code", s->id, n);
    im->size = n;
    r = ptx ? nv->ptx(program, im->bytes) : nv->cubin(program, im->bytes);
    if (r) {
        free(im->bytes);
        im->bytes = NULL;
        return st_fail(e, STRATA_ERROR_INTERNAL, "%s: NVRTC gave no code (error %d)", s->id, r);
    }
    return STRATA_OK;
}

enum { OWN_OPTIONS = 8, MAX_HEADERS = 256 };

static strata_status compile_program(st_err *e, const st_libnvrtc *nv, st_nvrtc_program program,
                                     const st_gpu_spec *s, const char *arch, st_gpu_image *im)
{
    bool ptx = strncmp(arch, "compute_", 8) == 0;
    char option[64];
    const char *options[ST_GPU_OPTIONS + OWN_OPTIONS];
    int n = 0;
    snprintf(option, sizeof option, "--gpu-architecture=%s", arch);
    options[n++] = option;
    options[n++] = "-std=c++17";
    options[n++] = "-default-device";
    options[n++] = "--diag-suppress=177"; /* a header's function that this kernel does not use */
    if (!ptx) options[n++] = "--ptxas-options=-v";
    for (int i = 0; i < ST_GPU_OPTIONS && s->option[i]; i++) options[n++] = s->option[i];
    int r = nv->compile(program, n, options);
    char *log = program_log(nv, program);
    if (!log) return st_fail(e, STRATA_ERROR_MEMORY, "%s: no memory for the compiler's log", s->id);
    if (r) {
        st_fail(e, STRATA_ERROR_INTERNAL, "%s: %s does not compile for %s with NVRTC %d.%d (error %d)", s->id,
                s->source, arch, nv->version / 1000, nv->version % 1000 / 10, r);
        error_frames(e, log);
        free(log);
        return STRATA_ERROR_INTERNAL;
    }
    im->log = log;
    if (!ptx) read_report(log, s->entry, im);
    return take_code(e, nv, program, ptx, s, im);
}

strata_status st_image_compile(st_err *e, const st_libnvrtc *nv, const st_gpu_spec *s, const char *arch,
                               st_gpu_image *im)
{
    *im = (st_gpu_image){0};
    const st_gpu_source *source = st_gpu_source_find(s->source);
    if (!source)
        return st_fail(e, STRATA_ERROR_INTERNAL, "%s: the library holds no kernel source %s", s->id,
                       s->source);
    const char *names[MAX_HEADERS], *texts[MAX_HEADERS];
    int headers = 0, count;
    const st_gpu_source *all = st_gpu_sources(&count);
    for (int i = 0; i < count && headers < MAX_HEADERS - 1; i++) {
        const char *dot = strrchr(all[i].name, '.');
        if (!dot || strcmp(dot, ".cuh") != 0) continue;
        names[headers] = all[i].name;
        texts[headers++] = all[i].text;
    }
    names[headers] = "generated.cuh";
    texts[headers++] = s->generated ? s->generated : "";
    uint64_t t0 = st_now_ns();
    st_nvrtc_program program = NULL;
    int r = nv->create(&program, source->text, s->source, headers, texts, names);
    if (r) return st_fail(e, STRATA_ERROR_INTERNAL, "%s: nvrtcCreateProgram: error %d", s->id, r);
    strata_status status = compile_program(e, nv, program, s, arch, im);
    nv->destroy(&program);
    im->ms = (double)(st_now_ns() - t0) / 1e6;
    if (status) {
        free(im->log);
        free(im->bytes);
        *im = (st_gpu_image){0};
    }
    return status;
}

strata_status st_gpu_compile(st_err *e, const st_gpu_spec *s, const char *arch, st_gpu_image *im)
{
    *im = (st_gpu_image){0};
    const st_libnvrtc *nv = st_libnvrtc_open(e, st_image_arch_cc(arch));
    return nv ? st_image_compile(e, nv, s, arch, im) : e->status;
}
