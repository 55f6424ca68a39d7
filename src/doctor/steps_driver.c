/* SPDX-License-Identifier: Apache-2.0 */
/* steps_driver.c - libcuda call by call: opening it, cuInit, the devices; then a context, memory, a kernel given as PTX, and the rates that
 * memory and arithmetic reach. The kernel's numbers are compared with the same arithmetic here.
 *
 * The PTX asks for sm_50 only, so that every driver since 2016 can compile it; NVRTC takes no part here. */
#include "doctor/steps_cuda.h"
#include "doctor/machine.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS = 1 << 20, FMA_BLOCK = 256, FMA_CHAINS = 8, FMA_UNROLL = 16 };

static const st_symbol symbols[] = {
#define ST_FN(name, symbol, args) {#symbol, offsetof(st_cuda_calls, name)},
#include "doctor/steps_cuda.inc"
#undef ST_FN
};

static st_cuda_calls table; /* of this process, which does nothing else */

bool st_cuda_call(st_steps *s, const char *function, int r)
{
    if (r == 0) return true;
    st_step_failed(s, function, r, st_cu_result_name(r));
    return false;
}

/* A device node that exists and may be opened by its mode and still is refused: the cgroup's device rules (v2 keeps them in the kernel). */
static void try_node(st_steps *s)
{
    static const char *const nodes[] = {"/dev/nvidiactl", "/dev/nvidia-uvm"};
    for (int i = 0; i < ST_COUNT(nodes); i++) {
        if (access(nodes[i], R_OK | W_OK)) continue;
        int fd = open(nodes[i], O_RDWR | O_CLOEXEC);
        if (fd >= 0) close(fd);
        if (fd >= 0 || (errno != EPERM && errno != EACCES)) continue;
        st_finding *f = st_step_result(
            s, ST_FINDING_FAULT, "cgroup_devices",
            "%s may be opened by its mode, and opening it is refused: the cgroup's device rules forbid it",
            nodes[i]);
        st_evidence(f, "open(%s, O_RDWR): %s", nodes[i], strerror(errno));
        st_fix(f, "start the container with the GPUs (docker run --gpus all; podman --device "
                  "nvidia.com/gpu=all). A container that lost its GPUs after "
                  "'systemctl daemon-reload': restart it, and give the devices explicitly "
                  "(--device=/dev/nvidiactl ...) or use cgroupfs");
        st_avoid(f, "chmod on the device files: their mode is right");
        return;
    }
}

static bool open_library(st_steps *s)
{
    static const char *const places[] = {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1",
                                         "/usr/local/nvidia/lib64/libcuda.so.1",
                                         "/run/opengl-driver/lib/libcuda.so.1"};
    st_tried tried = {.count = 0};
    const char *named = st_env("STRATA_CUDA_LIB");
    st_step(s, ST_DRIVER, "dlopen libcuda.so.1");
    void *lib = named ? st_try_open(&tried, named) : NULL;
    for (int i = 0; i < ST_COUNT(places) && !lib && !named; i++) lib = st_try_open(&tried, places[i]);
    if (!lib) {
        st_evidence(st_step_result(s, ST_FINDING_ABSENT, "no_libcuda", "libcuda.so.1 cannot be opened"), "%s",
                    tried.text);
        return false;
    }
    const char *missing = st_fill_table(lib, &table, symbols, ST_COUNT(symbols), true);
    st_library_path((const void *)(uintptr_t)table.init, table.path, sizeof table.path);
    if (missing) {
        st_finding *f = st_step_result(s, ST_FINDING_FAULT, "libcuda_symbols",
                                       "libcuda lacks the function %s: it is a stub, damaged, or older than "
                                       "driver 450",
                                       missing);
        st_evidence(f, "dlsym(%s) in %s", missing, table.path);
        st_fix(f,
               "install the driver's own library (libnvidia-compute-NNN) and take stubs off LD_LIBRARY_PATH");
    }
    return !missing;
}

static void device_line(st_steps *s, int i, char *text, size_t n)
{
    st_cu_device d;
    char name[96] = "?";
    size_t bytes = 0;
    text[0] = 0;
    int major = 0, minor = 0;
    if (!st_cuda_call(s, "cuDeviceGet", table.device_get(&d, i)) ||
        !st_cuda_call(s, "cuDeviceGetName", table.device_get_name(name, sizeof name, d)) ||
        !st_cuda_call(s, "cuDeviceTotalMem_v2", table.device_total_mem(&bytes, d)) ||
        !st_cuda_call(s, "cuDeviceGetAttribute",
                      table.device_get_attribute(&major, ST_CU_ATTR_CC_MAJOR, d)) ||
        !st_cuda_call(s, "cuDeviceGetAttribute", table.device_get_attribute(&minor, ST_CU_ATTR_CC_MINOR, d)))
        return;
    st_put(text, n, "%s, compute capability %d.%d, %.1f GiB", name, major, minor, (double)bytes / 0x1p30);
}

/* Opens, initialises, counts. The number of devices, 0 where it ended before. */
static int initialise(st_steps *s, bool quiet)
{
    char text[200];
    int version = 0, count = 0;
    if (!open_library(s)) return 0;
    if (!quiet) st_step_result(s, ST_FINDING_OK, "libcuda_open", "libcuda opens: %s", table.path);
    st_step(s, ST_DRIVER, "cuInit");
    double t = st_seconds();
    if (!st_cuda_call(s, "cuInit", table.init(0))) {
        try_node(s);
        return 0;
    }
    t = st_seconds() - t;
    if (!st_cuda_call(s, "cuDriverGetVersion", table.driver_get_version(&version))) return 0;
    if (!quiet)
        st_step_result(s, t > 3 ? ST_FINDING_NOTE : ST_FINDING_OK, "cuinit",
                       "cuInit succeeds in %.0f ms, driver for CUDA %d.%d%s", t * 1000, version / 1000,
                       version % 1000 / 10,
                       t > 3 ? " (slow: switch persistence mode on, sudo nvidia-smi -pm 1)" : "");
    st_step(s, ST_DRIVER, "cuDeviceGetCount");
    if (!st_cuda_call(s, "cuDeviceGetCount", table.device_get_count(&count))) return 0;
    if (count == 0) {
        st_finding *f =
            st_step_result(s, ST_FINDING_FAULT, "cuda_no_device", "libcuda initialises and finds no device");
        st_evidence(f, "cuDeviceGetCount gave 0");
        st_fix(f, "look at CUDA_VISIBLE_DEVICES and NVIDIA_VISIBLE_DEVICES, and at MIG: a GPU in MIG mode "
                  "without instances has no device");
        return 0;
    }
    for (int i = 0; i < count && i < 16 && !quiet; i++) {
        device_line(s, i, text, sizeof text);
        if (text[0]) st_step_result(s, ST_FINDING_OK, "cuda_device", "device %d: %s", i, text);
    }
    return count;
}

const st_cuda_calls *st_steps_context(st_steps *s, bool quiet, int *cc)
{
    st_cu_device d;
    st_cu_context ctx;
    int major = 0, minor = 0;
    if (!initialise(s, quiet)) return NULL;
    st_step(s, ST_DRIVER, "cuDevicePrimaryCtxRetain");
    double t = st_seconds();
    if (!st_cuda_call(s, "cuDeviceGet", table.device_get(&d, 0)) ||
        !st_cuda_call(s, "cuDevicePrimaryCtxRetain", table.primary_ctx_retain(&ctx, d)) ||
        !st_cuda_call(s, "cuCtxSetCurrent", table.ctx_set_current(ctx)))
        return NULL;
    table.device = d;
    table.device_get_attribute(&major, ST_CU_ATTR_CC_MAJOR, d);
    table.device_get_attribute(&minor, ST_CU_ATTR_CC_MINOR, d);
    *cc = major * 10 + minor;
    if (!quiet)
        st_step_result(s, ST_FINDING_OK, "cuda_context", "a context on device 0 is made in %.0f ms",
                       (st_seconds() - t) * 1000);
    return &table;
}

/* ---- memory ------------------------------------------------------------------------------------------------------------ */
static bool memory_round(st_steps *s)
{
    size_t bytes = WORDS * sizeof(uint32_t);
    uint32_t *host = malloc(2 * bytes);
    st_cu_ptr p = 0, q = 0;
    if (!host) return false;
    for (uint32_t i = 0; i < WORDS; i++) host[i] = i * 2654435761u;
    memset(host + WORDS, 0, bytes);
    st_step(s, ST_DRIVER, "cuMemAlloc, copies there and back");
    size_t left = 0, total = 0;
    bool ok = st_cuda_call(s, "cuMemGetInfo_v2", table.mem_get_info(&left, &total)) &&
              st_cuda_call(s, "cuMemAlloc_v2", table.mem_alloc(&p, bytes)) &&
              st_cuda_call(s, "cuMemAlloc_v2", table.mem_alloc(&q, bytes)) &&
              st_cuda_call(s, "cuMemcpyHtoD_v2", table.memcpy_htod(p, host, bytes)) &&
              st_cuda_call(s, "cuMemcpyDtoD_v2", table.memcpy_dtod(q, p, bytes)) &&
              st_cuda_call(s, "cuMemcpyDtoH_v2", table.memcpy_dtoh(host + WORDS, q, bytes));
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < WORDS && ok; i++) wrong += host[i] != host[WORDS + i];
    if (ok && wrong) {
        st_finding *f =
            st_step_result(s, ST_FINDING_FAULT, "memory_wrong",
                           "%u of %d words came back changed from the GPU's memory", wrong, WORDS);
        st_evidence(f, "cuMemcpyHtoD, DtoD and DtoH of 4 MiB, each reported success");
        st_fix(f, "look for Xid 48, 63, 64, 94, 95 in the kernel log (dmesg | strata explain); reseat the "
                  "card; exchange it when it repeats");
        s->f.layer = ST_HARDWARE;
    } else if (ok) {
        st_step_result(s, ST_FINDING_OK, "memory",
                       "4 MiB to the GPU, within it and back are whole; %.1f of %.1f GiB are free",
                       (double)left / 0x1p30, (double)total / 0x1p30);
    }
    if (p) table.mem_free(p);
    if (q) table.mem_free(q);
    free(host);
    return ok && !wrong;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------------- */
static const char fill_ptx[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry strata_fill(.param .u64 p, .param .u32 n)\n{\n"
    " .reg .pred q; .reg .b32 i, b, t, m, v; .reg .b64 a, o;\n"
    " ld.param.u64 a, [p]; ld.param.u32 m, [n];\n cvta.to.global.u64 a, a;\n"
    " mov.u32 b, %ctaid.x; mov.u32 t, %ntid.x; mov.u32 i, %tid.x; mad.lo.u32 i, b, t, i;\n"
    " setp.ge.u32 q, i, m; @q bra END;\n"
    " mad.lo.u32 v, i, 3, 7; xor.b32 v, v, i;\n mul.wide.u32 o, i, 4; add.u64 a, a, o;\n st.global.u32 [a], "
    "v;\n"
    "END: ret;\n}\n";

static bool load_module(st_steps *s, const void *image, st_cu_module *module)
{
    char log[1024] = "";
    int option[] = {5, 6}; /* CU_JIT_ERROR_LOG_BUFFER and its size */
    void *value[] = {log, (void *)(uintptr_t)sizeof log};
    int r = table.module_load_data_ex(module, image, 2, option, value);
    if (r == 0) return true;
    st_finding *f = st_step_failed(s, "cuModuleLoadDataEx", r, st_cu_result_name(r));
    for (char *p = log; *p; p++)
        if (*p == '\n') *p = ' ';
    if (log[0]) st_evidence(f, "cuModuleLoadDataEx returned %d (%s): %.240s", r, st_cu_result_name(r), log);
    return false;
}

bool st_steps_run_fill(st_steps *s, const st_cuda_calls *cu, const void *image, const char *made_by)
{
    st_cu_module module = NULL;
    st_cu_function fn = NULL;
    st_cu_ptr p = 0;
    unsigned n = WORDS - 17; /* the last block is not full */
    uint32_t *host = calloc(WORDS, 4), wrong = 0;
    void *args[] = {&p, &n};
    bool ok = host && load_module(s, image, &module) &&
              st_cuda_call(s, "cuModuleGetFunction", cu->module_get_function(&fn, module, "strata_fill")) &&
              st_cuda_call(s, "cuMemAlloc_v2", cu->mem_alloc(&p, WORDS * 4)) &&
              st_cuda_call(s, "cuMemcpyHtoD_v2", cu->memcpy_htod(p, host, WORDS * 4)) &&
              st_cuda_call(s, "cuLaunchKernel",
                           cu->launch_kernel(fn, (n + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, args, NULL)) &&
              st_cuda_call(s, "cuCtxSynchronize", cu->ctx_synchronize()) &&
              st_cuda_call(s, "cuMemcpyDtoH_v2", cu->memcpy_dtoh(host, p, WORDS * 4));
    for (uint32_t i = 0; i < WORDS && ok; i++) wrong += host[i] != (i < n ? (i * 3 + 7) ^ i : 0);
    if (ok && wrong) {
        st_finding *f =
            st_step_result(s, ST_FINDING_FAULT, "kernel_wrong",
                           "a kernel ran without an error and %u of %d words are wrong", wrong, WORDS);
        st_evidence(f, "strata_fill, %s", made_by);
        st_fix(f, "dmesg | strata explain; run it again: errors that move point to the hardware");
        s->f.layer = ST_HARDWARE;
    } else if (ok)
        st_step_result(s, ST_FINDING_OK, strstr(made_by, "NVRTC") ? "kernel" : "kernel_ptx",
                       "a kernel %s runs on the GPU and its %u numbers are right", made_by, n);
    if (p) cu->mem_free(p);
    if (module) cu->module_unload(module);
    free(host);
    return ok && !wrong;
}

/* ---- rates -------------------------------------------------------------------------------------------------------------- */
static double elapsed(st_cu_event a, st_cu_event b)
{
    float ms = 0;
    return table.event_synchronize(b) || table.event_elapsed_time(&ms, a, b) ? 0 : ms * 1e-3;
}

static const char *of_peak(double peak, char *text, size_t n)
{
    text[0] = 0;
    if (peak > 0) st_put(text, n, ", the part's figure is %.4g", peak);
    return text;
}

static void memory_rate(st_steps *s, st_cu_event a, st_cu_event b)
{
    size_t bytes = (size_t)256 << 20;
    st_cu_ptr p = 0, q = 0;
    int khz = 0, bits = 0;
    char text[64];
    st_step(s, ST_HARDWARE, "copies within the GPU's memory");
    bool ok = table.mem_alloc(&p, bytes) == 0 && table.mem_alloc(&q, bytes) == 0;
    if (!ok)
        st_step_result(s, ST_FINDING_NOTE, "memory_rate", "not measured: 512 MiB of GPU memory are not free");
    double best = 0;
    for (int i = 0; i < 6 && ok; i++) {
        if (!st_cuda_call(s, "cuEventRecord", table.event_record(a, NULL))) ok = false;
        for (int k = 0; k < 4 && ok; k++)
            ok = st_cuda_call(s, "cuMemcpyDtoDAsync_v2", table.memcpy_dtod_async(q, p, bytes, NULL));
        if (!ok || !st_cuda_call(s, "cuEventRecord", table.event_record(b, NULL))) break;
        double t = elapsed(a, b), rate = t > 0 ? 8 * (double)bytes / t * 1e-9 : 0;
        if (i && rate > best) best = rate;
    }
    table.device_get_attribute(&khz, ST_CU_ATTR_MEMORY_CLOCK_KHZ, table.device);
    table.device_get_attribute(&bits, ST_CU_ATTR_MEMORY_BUS_BITS, table.device);
    double peak = 2e3 * khz * (bits / 8) * 1e-9;
    if (ok && best > 0) {
        st_figure fig = st_steps_figure(s, &table);
        if (fig.memory_gbs > 0) peak = fig.memory_gbs;
        bool low = peak > 0 && best < 0.7 * peak;
        st_finding *f = st_step_result(s, low ? ST_FINDING_WARNING : ST_FINDING_OK, "memory_rate",
                                       "memory moves %.0f GB/s (reads and writes)%s", best,
                                       of_peak(peak, text, sizeof text));
        st_evidence(f, "cuMemcpyDtoD of 256 MiB, best of 5; %s",
                    fig.memory_gbs > 0 ? fig.source : "the peak is memory clock times bus width");
        if (low)
            st_fix(f, "look at clocks and throttle reasons: strata doctor --watch; another program on the "
                      "GPU halves it too");
    }
    if (p) table.mem_free(p);
    if (q) table.mem_free(q);
}

static void link_rate(st_steps *s, st_cu_event a, st_cu_event b)
{
    size_t bytes = (size_t)64 << 20;
    st_cu_ptr p = 0;
    void *host = NULL;
    double rate[2] = {0, 0};
    st_step(s, ST_HARDWARE, "copies over the bus");
    bool ok = table.mem_alloc(&p, bytes) == 0 && table.mem_host_alloc(&host, bytes, 0) == 0;
    for (int i = 0; i < 6 && ok; i++) {
        bool up = i & 1;
        table.event_record(a, NULL);
        ok = up ? table.memcpy_htod_async(p, host, bytes, NULL) == 0
                : table.memcpy_dtoh_async(host, p, bytes, NULL) == 0;
        table.event_record(b, NULL);
        double t = elapsed(a, b), r = t > 0 ? (double)bytes / t * 1e-9 : 0;
        if (r > rate[up]) rate[up] = r;
    }
    if (ok) {
        bool low = rate[0] < 2.5 || rate[1] < 2.5;
        st_finding *f =
            st_step_result(s, low ? ST_FINDING_WARNING : ST_FINDING_OK, "link_rate",
                           "the bus moves %.1f GB/s to the GPU and %.1f GB/s back", rate[1], rate[0]);
        st_evidence(
            f, "64 MiB of page-locked memory; PCIe 3.0, 4.0, 5.0 with 16 lanes reach about 12, 25, 55 GB/s");
        if (low)
            st_fix(f, "seat the card in a slot with 16 lanes of the processor; look at the link with strata "
                      "doctor (PCIe line)");
    } else
        st_step_result(s, ST_FINDING_NOTE, "link_rate",
                       "not measured: 64 MiB of page-locked memory are not to be had");
    if (host) table.mem_free_host(host);
    if (p) table.mem_free(p);
}

/* a loop of FMA_UNROLL rounds over FMA_CHAINS independent chains x = x * a + b; the sum of the chains is stored */
static char *fma_ptx(void)
{
    char *text = malloc(32768);
    size_t n = 0, room = 32768;
    if (!text) return NULL;
#define ADD(...) n += (size_t)snprintf(text + n, n < room ? room - n : 0, __VA_ARGS__)
    ADD(".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry strata_fma(.param .u64 p, .param "
        ".u32 rounds, .param .f32 fa, .param .f32 fb)\n{\n"
        " .reg .pred q; .reg .b32 i, b, t, r; .reg .b64 a, o; .reg .f32 x<%d>, m, c;\n ld.param.u64 a, [p]; "
        "ld.param.u32 r, [rounds]; ld.param.f32 m, [fa]; "
        "ld.param.f32 c, [fb];\n cvta.to.global.u64 a, a;\n mov.u32 b, %%ctaid.x; mov.u32 t, %%ntid.x; "
        "mov.u32 i, %%tid.x; mad.lo.u32 i, b, t, i;\n",
        FMA_CHAINS);
    ADD(" cvt.rn.f32.u32 x0, i;\n");
    for (int k = 1; k < FMA_CHAINS; k++) ADD(" add.rn.f32 x%d, x%d, m;\n", k, k - 1);
    ADD("LOOP:\n");
    for (int u = 0; u < FMA_UNROLL; u++)
        for (int k = 0; k < FMA_CHAINS; k++) ADD(" fma.rn.f32 x%d, x%d, m, c;\n", k, k);
    ADD(" sub.u32 r, r, 1; setp.ne.u32 q, r, 0; @q bra LOOP;\n");
    for (int k = 1; k < FMA_CHAINS; k++) ADD(" add.rn.f32 x0, x0, x%d;\n", k);
    ADD(" mul.wide.u32 o, i, 4; add.u64 a, a, o; st.global.f32 [a], x0; ret;\n}\n");
#undef ADD
    return text;
}

static float fma_here(unsigned i, unsigned rounds, float m, float c)
{
    float x[FMA_CHAINS];
    x[0] = (float)i;
    for (int k = 1; k < FMA_CHAINS; k++) x[k] = x[k - 1] + m;
    for (unsigned r = 0; r < rounds * FMA_UNROLL; r++)
        for (int k = 0; k < FMA_CHAINS; k++) x[k] = fmaf(x[k], m, c);
    for (int k = 1; k < FMA_CHAINS; k++) x[0] += x[k];
    return x[0];
}

static void arithmetic_rate(st_steps *s, st_cu_event a, st_cu_event b)
{
    int sms = 1, khz = 0;
    unsigned rounds = 512;
    float m = 0.999f, c = 0.25f;
    st_cu_module module = NULL;
    st_cu_function fn;
    st_cu_ptr p = 0;
    st_step(s, ST_HARDWARE, "f32 arithmetic");
    table.device_get_attribute(&sms, ST_CU_ATTR_SMS, table.device);
    table.device_get_attribute(&khz, ST_CU_ATTR_CLOCK_KHZ, table.device);
    unsigned blocks = (unsigned)sms * 16, threads = blocks * FMA_BLOCK;
    char text[64], *ptx = fma_ptx();
    float *host = malloc(threads * sizeof *host);
    void *args[] = {&p, &rounds, &m, &c};
    double best = 0;
    bool ok = ptx && host && load_module(s, ptx, &module) &&
              st_cuda_call(s, "cuModuleGetFunction", table.module_get_function(&fn, module, "strata_fma")) &&
              st_cuda_call(s, "cuMemAlloc_v2", table.mem_alloc(&p, threads * sizeof *host));
    for (int i = 0; i < 8 && ok; i++) {
        table.event_record(a, NULL);
        ok = st_cuda_call(s, "cuLaunchKernel",
                          table.launch_kernel(fn, blocks, 1, 1, FMA_BLOCK, 1, 1, 0, NULL, args, NULL));
        table.event_record(b, NULL);
        double t = elapsed(a, b),
               rate = t > 0 ? 2.0 * threads * rounds * FMA_UNROLL * FMA_CHAINS / t * 1e-12 : 0;
        if (i && rate > best) best = rate;
    }
    ok = ok && st_cuda_call(s, "cuMemcpyDtoH_v2", table.memcpy_dtoh(host, p, threads * sizeof *host));
    unsigned wrong = 0, step = threads / 61 ? threads / 61 : 1;
    for (unsigned i = 0; i < threads && ok; i += step) wrong += !(host[i] == fma_here(i, rounds, m, c));
    st_figure fig = st_steps_figure(s, &table);
    double peak = fig.f32_tflops > 0 ? fig.f32_tflops : fig.lanes * 2.0 * sms * khz * 1e-9;
    if (ok && wrong) {
        st_finding *f =
            st_step_result(s, ST_FINDING_FAULT, "arithmetic_wrong",
                           "the GPU's fused multiply-adds differ from this processor's in %u places", wrong);
        st_evidence(f, "strata_fma, %u rounds, compared bit by bit", rounds);
        st_fix(f, "run it again; when it stays: dmesg | strata explain, lower overclocked clocks, exchange "
                  "the card");
    } else if (ok && best > 0) {
        bool low = peak > 0 && best < 0.7 * peak;
        st_finding *f = st_step_result(s, low ? ST_FINDING_WARNING : ST_FINDING_OK, "arithmetic_rate",
                                       "f32 arithmetic reaches %.1f TFLOP/s%s, bit for bit as here", best,
                                       of_peak(peak, text, sizeof text));
        st_evidence(f, "fused multiply-adds in registers, best of 7; %s",
                    fig.f32_tflops > 0 ? fig.source : "the peak is lanes times clock");
        if (low)
            st_fix(f, "look at clocks, power and temperature: strata doctor --watch; another program on the "
                      "GPU takes its share");
    }
    if (p) table.mem_free(p);
    if (module) table.module_unload(module);
    free(ptx);
    free(host);
}

void st_steps_driver(st_steps *s, bool deep)
{
    char text[200];
    int cc;
    if (!deep) {
        double t = st_seconds();
        int n = initialise(s, true);
        if (!n || s->pending) return;
        device_line(s, 0, text, sizeof text);
        if (text[0])
            st_evidence(st_step_result(s, ST_FINDING_OK, "cuda_works",
                                       "libcuda initialises in %.0f ms and sees %d device%s; the first: %s",
                                       (st_seconds() - t) * 1000, n, n == 1 ? "" : "s", text),
                        "cuInit, cuDeviceGetCount in %s", table.path);
        return;
    }
    if (!st_steps_context(s, false, &cc) || !memory_round(s)) return;
    st_step(s, ST_DRIVER, "a kernel from PTX");
    if (!st_steps_run_fill(s, &table, fill_ptx, "compiled from PTX by the driver")) return;
    st_cu_event a, b;
    if (!st_cuda_call(s, "cuEventCreate", table.event_create(&a, 0)) ||
        !st_cuda_call(s, "cuEventCreate", table.event_create(&b, 0)))
        return;
    memory_rate(s, a, b);
    link_rate(s, a, b);
    arithmetic_rate(s, a, b);
    table.event_destroy(a);
    table.event_destroy(b);
}
