/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - `strata doctor --plan "rtx 2080 ti, pytorch 2.8"`: which versions fit together, before anything is installed.
 *
 * The request is a list of parts; each narrows one choice (GPU, driver, CUDA, cuDNN, PyTorch, Python, gcc). The answer is every row
 * of the PyTorch table that is left with the reason of every one that is not, and the toolkit and driver ranges. */
#include "doctor/json.h"
#include "doctor/machine.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct request {
    const st_facts *facts;
    st_gpu gpu;
    bool has_gpu;
    char gpu_words[64], torch[16], cuda[16], cudnn[24], driver[24], python[16], gcc[16];
} request;

typedef struct answer {
    char text[260];
} answer;

static bool take_version(const char *part, const char *const *words, char *out, size_t n)
{
    for (int i = 0; words[i]; i++) {
        size_t k = strlen(words[i]);
        if (strncasecmp(part, words[i], k)) continue;
        part += k;
        part += strspn(part, " =v><~");
        if (!isdigit((unsigned char)*part)) return false;
        st_put(out, n, "%.*s", (int)strspn(part, "0123456789."), part);
        return true;
    }
    return false;
}

static bool understand(request *q, const char *part)
{
    static const char *const torch[] = {"pytorch", "torch", NULL},
                             *const cuda[] = {"cuda toolkit", "toolkit", "cuda", NULL},
                             *const cudnn[] = {"cudnn", NULL},
                             *const driver[] = {"nvidia driver", "driver", "nvidia-driver", NULL},
                             *const python[] = {"python", NULL}, *const gcc[] = {"gcc", "g++", NULL};
    if (take_version(part, torch, q->torch, sizeof q->torch)) {
        char *dot = strchr(q->torch, '.'); /* "2.8.0" is release 2.8 */
        if (dot && (dot = strchr(dot + 1, '.')) != NULL) *dot = 0;
        return true;
    }
    if (take_version(part, cudnn, q->cudnn, sizeof q->cudnn) ||
        take_version(part, cuda, q->cuda, sizeof q->cuda) ||
        take_version(part, driver, q->driver, sizeof q->driver) ||
        take_version(part, python, q->python, sizeof q->python) ||
        take_version(part, gcc, q->gcc, sizeof q->gcc))
        return true;
    int cc = st_cc_of(part);
    bool by_cc = cc && st_gpu_by_cc(q->facts, cc, &q->gpu);
    if (!by_cc && !st_gpu_by_name(q->facts, part, &q->gpu)) return false;
    q->has_gpu = true;
    st_put(q->gpu_words, sizeof q->gpu_words, "%s", by_cc ? part : q->gpu.name);
    return true;
}

/* why row i of the PyTorch table does not fit; "" when it does */
static void objection(const request *q, const st_table *t, int i, char *out, size_t n)
{
    const char *list = st_table_get(t, i, "sm_list_x86_64"), *need = st_table_get(t, i, "min_driver_linux"),
               *cudnn = st_table_get(t, i, "cudnn"), *cuda = st_table_get(t, i, "cuda");
    const char *lo = st_table_get(t, i, "python_min"), *hi = st_table_get(t, i, "python_max");
    out[0] = 0;
    if (q->has_gpu && st_cc_in_list(list, q->gpu.cc) == 0)
        st_put(out, n, "no code for sm_%d (has %.*s)", q->gpu.cc, (int)strcspn(list, "("), list);
    else if (q->has_gpu && !*list && q->gpu.cc >= 100 && st_version_cmp(cuda, "12.8") < 0)
        st_put(out, n, "CUDA %s knows no sm_%d", cuda, q->gpu.cc);
    else if (q->has_gpu && isdigit((unsigned char)q->gpu.last_toolkit[0]) &&
             st_version_cmp(cuda, q->gpu.last_toolkit) > 0)
        st_put(out, n, "CUDA %s dropped sm_%d", cuda, q->gpu.cc);
    else if (q->driver[0] && *need && st_version_cmp(q->driver, need) < 0)
        st_put(out, n, "needs driver %s", need);
    else if (q->driver[0] && q->gpu.cc >= 100 && st_version_cmp(q->driver, "570.26") < 0)
        st_put(out, n, "sm_%d needs driver 570.26", q->gpu.cc);
    else if (q->cuda[0] && strncmp(cuda, q->cuda, strlen(q->cuda)))
        st_put(out, n, "is built for CUDA %s", cuda);
    else if (q->cudnn[0] && *cudnn && strncmp(cudnn, q->cudnn, strlen(q->cudnn)))
        st_put(out, n, "brings cuDNN %s", cudnn);
    else if (q->python[0] && *lo && (st_version_cmp(q->python, lo) < 0 || st_version_cmp(q->python, hi) > 0))
        st_put(out, n, "is built for Python %s to %s", lo, hi);
}

static void gpu_lines(const request *q, FILE *out)
{
    const st_gpu *g = &q->gpu;
    bool ended = isdigit((unsigned char)g->last_toolkit[0]);
    fprintf(out, "GPU      %s: %s, compute capability %d.%d (sm_%d)\n", q->gpu_words,
            *g->arch ? g->arch : "?", g->cc / 10, g->cc % 10, g->cc);
    fprintf(out, "driver   %s%s%s\n",
            isdigit((unsigned char)g->last_branch[0]) ? "branch " : "any current branch",
            isdigit((unsigned char)g->last_branch[0]) ? g->last_branch : "",
            isdigit((unsigned char)g->last_branch[0])
                ? " is the last that supports it"
                : (g->cc >= 100 ? ", 570.26 or newer, with the open kernel module" : ""));
    if (!strcmp(g->open_module, "no"))
        fprintf(out, "         proprietary kernel module only (the open one needs Turing or newer)\n");
    fprintf(out, "toolkit  CUDA %s to %s can compile for it%s\n", *g->first_toolkit ? g->first_toolkit : "?",
            ended ? g->last_toolkit : "the newest",
            ended ? "; a driver that shows CUDA 13 does not change that" : "");
    const char *no_more = g->cc && g->cc < 75 ? "9.10.2 is the last that supports it" : "any current release";
    if (g->cc >= 50) fprintf(out, "cuDNN    %s\n", no_more);
}

static void cuda_lines(const request *q, FILE *out)
{
    const char *floor = st_cuda_min_driver(q->facts, q->cuda, false),
               *windows = st_cuda_min_driver(q->facts, q->cuda, true);
    const st_table *t = st_facts_table(q->facts, "driver_min"),
                   *h = st_facts_table(q->facts, "nvcc_host_compiler");
    int row = st_table_find(t, "toolkit", q->cuda);
    if (!floor) {
        fprintf(out, "CUDA     %s is not in the tables\n", q->cuda);
        return;
    }
    fprintf(out, "CUDA     %s runs on driver %s or newer%s%s", q->cuda, floor, windows ? ", Windows " : "",
            windows ? windows : "");
    if (row >= 0 && isdigit((unsigned char)*st_table_get(t, row, "driver_linux")))
        fprintf(out, "; it was shipped with %s (PTX made by it needs that branch)",
                st_table_get(t, row, "driver_linux"));
    fputc('\n', out);
    int host = st_table_find(h, "toolkit", q->cuda);
    if (host < 0) return;
    const char *gcc = st_table_get(h, host, "max_gcc"), *clang = st_table_get(h, host, "max_clang");
    fprintf(out, "compiler nvcc %s takes gcc up to %s%s%s%s\n", q->cuda, gcc, *clang ? ", clang up to " : "",
            clang,
            q->gcc[0] && st_version_cmp(q->gcc, gcc) > 0 ? ": your gcc is too new (nvcc -ccbin g++-N)" : "");
}

static void driver_lines(const request *q, FILE *out)
{
    bool exact;
    const char *max = st_driver_cuda(q->facts, q->driver, &exact);
    fprintf(
        out,
        "driver   %s: programs up to CUDA %s%s (what nvidia-smi shows; a maximum, no installed toolkit)\n",
        q->driver, max ? max : "?", exact ? "" : " or newer");
    if (q->has_gpu && isdigit((unsigned char)q->gpu.last_branch[0]) &&
        atoi(q->driver) > atoi(q->gpu.last_branch))
        fprintf(out, "         does not support the %s: take branch %s\n", q->gpu_words, q->gpu.last_branch);
}

static int torch_lines(const request *q, FILE *out, st_json *j)
{
    const st_table *t = st_facts_table(q->facts, "pytorch");
    int fits = 0, known = 0;
    char no[160], last[16] = "";
    if (j) st_json_open(j, "pytorch", '[');
    for (int i = 0; i < t->rows; i++) {
        const char *release = st_table_get(t, i, "torch"), *variant = st_table_get(t, i, "variant");
        if (!*variant || (q->torch[0] && strcmp(release, q->torch))) continue;
        known++;
        objection(q, t, i, no, sizeof no);
        fits += !no[0];
        if (j) {
            st_json_open(j, NULL, '{');
            st_json_string(j, "torch", release);
            st_json_string(j, "variant", variant);
            st_json_string(j, "cuda", st_table_get(t, i, "cuda"));
            st_json_string(j, "cudnn", st_table_get(t, i, "cudnn"));
            st_json_string(j, "min_driver", st_table_get(t, i, "min_driver_linux"));
            st_json_bool(j, "fits", !no[0]);
            st_json_string(j, "because", no[0] ? no : NULL);
            st_json_string(j, "source", st_table_get(t, i, "source"));
            st_json_close(j, '}');
            continue;
        }
        if (!q->torch[0] && no[0]) continue; /* without a release only what fits is listed */
        bool told = st_cc_in_list(st_table_get(t, i, "sm_list_x86_64"), q->gpu.cc) >= 0;
        fprintf(out, "%-8s %s %s: CUDA %s, cuDNN %s, driver %s or newer, Python %s to %s%s%s%s\n",
                strcmp(last, release) ? "PyTorch" : "", release, variant, st_table_get(t, i, "cuda"),
                st_table_get(t, i, "cudnn"), st_table_get(t, i, "min_driver_linux"),
                st_table_get(t, i, "python_min"), st_table_get(t, i, "python_max"),
                no[0] ? "  -- NO: " : "  -- fits", no,
                !no[0] && q->has_gpu && !told ? " (the tables lack its list of architectures)" : "");
        st_put(last, sizeof last, "%s", release);
    }
    if (j) st_json_close(j, ']');
    if (!j && q->torch[0] && !known) fprintf(out, "PyTorch  %s is not in the tables\n", q->torch);
    if (!j && q->torch[0] && fits) {
        for (int i = 0; i < t->rows; i++) {
            objection(q, t, i, no, sizeof no);
            if (no[0] || strcmp(st_table_get(t, i, "torch"), q->torch) || !*st_table_get(t, i, "variant"))
                continue;
            fprintf(out, "install  pip install torch==%s.* --index-url https://download.pytorch.org/whl/%s\n",
                    q->torch, st_table_get(t, i, "variant"));
            break;
        }
    }
    if (!j && q->torch[0] && known && !fits) { /* the newest release that would do */
        for (int i = 0; i < t->rows; i++) {
            objection(q, t, i, no, sizeof no);
            if (no[0] || !*st_table_get(t, i, "variant")) continue;
            fprintf(out, "instead  PyTorch %s %s fits\n", st_table_get(t, i, "torch"),
                    st_table_get(t, i, "variant"));
            break;
        }
    }
    return fits;
}

int st_doctor_plan(const char *text, FILE *out, bool json)
{
    request q = {.facts = NULL};
    st_facts *f = st_facts_open();
    if (!f) return ST_CANNOT_LOOK;
    q.facts = f;
    int parts = 0;
    for (const char *p = text; *p;) {
        char part[64];
        p += strspn(p, " ,;\t");
        size_t n = strcspn(p, ",;");
        if (!n) break;
        while (n && isspace((unsigned char)p[n - 1])) n--;
        st_put(part, sizeof part, "%.*s", (int)(n < 63 ? n : 63), p);
        p += strcspn(p, ",;");
        if (!understand(&q, part)) {
            fprintf(out,
                    "not understood: \"%s\". Known parts: a GPU name or compute capability, pytorch X.Y, "
                    "cuda X.Y, cudnn X.Y.Z, driver N, python X.Y, gcc N\n",
                    ST_SHORT(part));
            st_facts_close(f);
            return ST_BAD_USAGE;
        }
        parts++;
    }
    if (!parts) {
        fprintf(out, "an empty plan: give parts such as \"rtx 2080 ti, pytorch 2.8\"\n");
        st_facts_close(f);
        return ST_BAD_USAGE;
    }
    int fits;
    if (json) {
        st_json j = {.f = out};
        char cc[16];
        st_put(cc, sizeof cc, "%d.%d", q.gpu.cc / 10, q.gpu.cc % 10);
        st_json_open(&j, NULL, '{');
        st_json_string(&j, "gpu", q.has_gpu ? q.gpu_words : NULL);
        st_json_string(&j, "compute_capability", q.has_gpu ? cc : NULL);
        st_json_string(&j, "last_driver_branch", q.has_gpu ? q.gpu.last_branch : NULL);
        st_json_string(&j, "first_toolkit", q.has_gpu ? q.gpu.first_toolkit : NULL);
        st_json_string(&j, "last_toolkit", q.has_gpu ? q.gpu.last_toolkit : NULL);
        st_json_string(&j, "cuda_min_driver", q.cuda[0] ? st_cuda_min_driver(f, q.cuda, false) : NULL);
        st_json_string(&j, "driver_max_cuda", q.driver[0] ? st_driver_cuda(f, q.driver, NULL) : NULL);
        fits = torch_lines(&q, out, &j);
        st_json_close(&j, '}');
    } else {
        if (q.has_gpu) gpu_lines(&q, out);
        if (q.driver[0]) driver_lines(&q, out);
        if (q.cuda[0]) cuda_lines(&q, out);
        fits = torch_lines(&q, out, NULL);
        if (!fits) fprintf(out, "nothing fits all of it\n");
    }
    st_facts_close(f);
    return fits ? ST_HEALTHY : ST_FAULT;
}
