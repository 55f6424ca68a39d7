/* SPDX-License-Identifier: Apache-2.0 */
/* steps_compile.c - a kernel of our own through NVRTC: found, compiled for this GPU, run, compared. And what the maker states of the part. */
#include "doctor/machine.h"
#include "doctor/steps_cuda.h"
#include <stdlib.h>
#include <string.h>

static const char source[] = "extern \"C\" __global__ void strata_fill(unsigned *p, unsigned n)\n"
                             "{\n"
                             "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                             "    if (i < n) p[i] = (i * 3u + 7u) ^ i;\n"
                             "}\n";

static bool nvrtc_call(st_steps *s, const char *function, int r)
{
    if (r == 0) return true;
    st_step_failed(s, function, r, st_nvrtc_result_name(r));
    return false;
}

/* a cubin for the device; NULL after the failure was reported */
static char *compile(st_steps *s, const st_libnvrtc *rtc, int cc)
{
    char arch[48], log[400] = "";
    const char *options[] = {arch};
    st_nvrtc_program program;
    size_t n = 0;
    st_put(arch, sizeof arch, "--gpu-architecture=sm_%d", cc);
    if (!nvrtc_call(s, "nvrtcCreateProgram", rtc->create(&program, source, "strata_fill.cu", 0, NULL, NULL)))
        return NULL;
    int r = rtc->compile(program, 1, options);
    char *text = rtc->log_size(program, &n) == 0 && n > 1 && n < 1 << 20 ? malloc(n + 1) : NULL;
    if (text && rtc->log(program, text) == 0) {
        text[n] = 0;
        st_put(log, sizeof log, "%.380s", text);
    }
    free(text);
    char *image = NULL;
    if (r) {
        st_finding *f = st_step_failed(s, "nvrtcCompileProgram", r, st_nvrtc_result_name(r));
        for (char *p = log; *p; p++)
            if (*p == '\n') *p = ' ';
        st_evidence(f, "nvrtcCompileProgram(%s) returned %d (%s): %.200s", arch, r, st_nvrtc_result_name(r),
                    log);
    } else if (nvrtc_call(s, "nvrtcGetCUBINSize", rtc->cubin_size(program, &n)) &&
               (image = malloc(n ? n : 1)) != NULL &&
               !nvrtc_call(s, "nvrtcGetCUBIN", rtc->cubin(program, image))) {
        free(image);
        image = NULL;
    }
    rtc->destroy(&program);
    return image;
}

void st_steps_compile(st_steps *s)
{
    st_err why;
    int cc = 0;
    char made[120];
    memset(&why, 0, sizeof why);
    const st_cuda_calls *cu = st_steps_context(s, true, &cc);
    if (s->faults || s->pending) return;
    st_step(s, ST_RUNTIME, "NVRTC");
    double t = st_seconds();
    const st_libnvrtc *rtc = st_libnvrtc_open(&why, cc);
    if (!rtc) {
        st_finding *f = st_step_result(
            s, cu ? ST_FINDING_WARNING : ST_FINDING_ABSENT, "no_nvrtc",
            cc ? "no NVRTC here compiles for this GPU (sm_%d)" : "no NVRTC is here (sm_%d asked)", cc);
        st_evidence(f, "%.380s", why.text);
        st_fix(f, "pip install nvidia-cuda-nvrtc (CUDA 13) or nvidia-cuda-nvrtc-cu12, or a toolkit; name it "
                  "with STRATA_NVRTC_LIB=/path/libnvrtc.so.N");
        return;
    }
    st_evidence(st_step_result(s, ST_FINDING_OK, "nvrtc", "NVRTC %d.%d opens", rtc->version / 1000,
                               rtc->version % 1000 / 10),
                "%s", rtc->path);
    st_step(s, ST_RUNTIME, "nvrtcCompileProgram");
    int target = cc;
    for (int i = 0; !target && i < ST_COUNT(rtc->archs) && rtc->archs[i]; i++) target = rtc->archs[i];
    t = st_seconds();
    char *image = compile(s, rtc, target);
    if (!image) return;
    st_step_result(s, ST_FINDING_OK, "nvrtc_compile", "a kernel compiles for sm_%d in %.0f ms%s", target,
                   (st_seconds() - t) * 1000, cu ? "" : "; there is no GPU to run it on");
    if (cu) {
        st_step(s, ST_RUNTIME, "the compiled kernel");
        st_put(made, sizeof made, "compiled by NVRTC %d.%d for sm_%d", rtc->version / 1000,
               rtc->version % 1000 / 10, cc);
        st_steps_run_fill(s, cu, image, made);
    }
    free(image);
}

st_figure st_steps_figure(st_steps *s, const st_cuda_calls *cu)
{
    st_figure g = {0, 0, 0, ""};
    char name[96] = "", key[16];
    int major = 0, minor = 0;
    (void)s;
    st_facts *facts = st_facts_open();
    if (!facts) return g;
    cu->device_get_name(name, sizeof name, cu->device);
    cu->device_get_attribute(&major, ST_CU_ATTR_CC_MAJOR, cu->device);
    cu->device_get_attribute(&minor, ST_CU_ATTR_CC_MINOR, cu->device);
    const st_table *t = st_facts_table(facts, "part_figures"), *lanes = st_facts_table(facts, "sm_lanes");
    for (int i = 0; i < t->rows; i++)
        if (strcmp(st_table_get(t, i, "name"), name) == 0) {
            g.memory_gbs = atof(st_table_get(t, i, "memory_gbs"));
            g.f32_tflops = atof(st_table_get(t, i, "f32_tflops"));
            st_put(g.source, sizeof g.source, "%s", st_table_get(t, i, "source"));
        }
    st_put(key, sizeof key, "%d.%d", major, minor);
    g.lanes = atoi(st_table_get(lanes, st_table_find(lanes, "cc", key), "f32_lanes"));
    st_facts_close(facts);
    return g;
}

double st_steps_f16_figure(const char *name)
{
    st_facts *facts = st_facts_open();
    if (!facts) return 0;
    const st_table *t = st_facts_table(facts, "part_figures");
    double v = atof(st_table_get(t, st_table_find(t, "name", name), "f16_tflops"));
    st_facts_close(facts);
    return v;
}
