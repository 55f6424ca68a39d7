/* SPDX-License-Identifier: Apache-2.0 */
/* steps_nvml.c - state and health of the GPUs through NVML: memory and who holds it, ECC, remapped rows, clocks, modes, the PCIe link. */
#include "doctor/steps_nvml.h"
#include "doctor/machine.h"
#include "facts/cause.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const st_symbol symbols[] = {
#define ST_FN(name, symbol, args) {#symbol, offsetof(st_nvml_calls, name)},
#include "doctor/steps_nvml.inc"
#undef ST_FN
};
static st_nvml_calls table; /* of this process, which does nothing else */

/* Counts a call that succeeded; one that this GPU or driver does not offer is passed over, any other failure is a finding. */
static bool asked(st_steps *s, const char *call, int r)
{
    if (r == 0) return true;
    if (r == ST_NVML_NOT_SUPPORTED || r == 13 /* function not found */ || r == 4 /* no permission */)
        return false;
    st_finding *f = st_step_failed(s, call, r, st_nvml_result_name(r));
    bool lost = r == 15 || r == 16;
    f->state = lost ? ST_FINDING_FAULT : ST_FINDING_WARNING;
    if (lost) f->layer = ST_HARDWARE;
    return false;
}
#define ASK(name, call, ...) (table.name && asked(s, call, table.name(__VA_ARGS__)))

const st_nvml_calls *st_steps_nvml_open(st_steps *s, unsigned *devices)
{
    static const char *const places[] = {"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1",
                                         "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
                                         "/run/opengl-driver/lib/libnvidia-ml.so.1"};
    st_tried tried = {.count = 0};
    const char *named = st_env("STRATA_NVML_LIB");
    *devices = 0;
    st_step(s, ST_DRIVER, "dlopen libnvidia-ml.so.1");
    void *lib = named ? st_try_open(&tried, named) : NULL;
    for (int i = 0; i < ST_COUNT(places) && !lib && !named; i++) lib = st_try_open(&tried, places[i]);
    if (!lib) {
        st_evidence(
            st_step_result(s, ST_FINDING_ABSENT, "no_nvml", "NVML (libnvidia-ml.so.1) cannot be opened"),
            "%s", tried.text);
        return NULL;
    }
    st_fill_table(lib, &table, symbols, ST_COUNT(symbols), true);
    if (!table.init || !table.count || !table.by_index) {
        st_evidence(st_step_result(s, ST_FINDING_FAULT, "nvml_symbols",
                                   "libnvidia-ml lacks its basic functions: it is a stub or damaged"),
                    "%s", named ? named : places[0]);
        return NULL;
    }
    st_library_path((const void *)(uintptr_t)table.init, table.path, sizeof table.path);
    st_step(s, ST_DRIVER, "nvmlInit_v2");
    int r = table.init();
    if (r) {
        st_step_failed(s, "nvmlInit_v2", r, st_nvml_result_name(r));
        return NULL;
    }
    st_step(s, ST_DRIVER, "nvmlDeviceGetCount_v2");
    if (!asked(s, "nvmlDeviceGetCount_v2", table.count(devices))) return NULL;
    if (*devices > ST_NVML_MAX_DEVICES) *devices = ST_NVML_MAX_DEVICES;
    return &table;
}

void st_nvml_throttle_words(unsigned long long bits, char *out, size_t n, bool *hard)
{
    static const struct {
        unsigned bit;
        bool hard;
        const char *word;
    } reasons[] = {{0x4, false, "power limit"}, {0x8, true, "hardware slowdown"},
                   {0x20, true, "temperature"}, {0x40, true, "temperature (hardware)"},
                   {0x80, true, "power brake"}, {0x2, false, "application clocks"},
                   {0x10, false, "sync boost"}};
    out[0] = 0;
    *hard = false;
    for (int i = 0; i < ST_COUNT(reasons); i++) {
        if (!(bits & reasons[i].bit)) continue;
        size_t used = strlen(out);
        st_put(out + used, n - used, "%s%s", used ? ", " : "", reasons[i].word);
        *hard |= reasons[i].hard;
    }
}

/* ---- who holds memory ----------------------------------------------------------------------------------------------------- */
/* "R", "Z", ... of /proc/PID/stat; 0: no such process here */
static char process_state(unsigned pid, char *name, size_t n)
{
    char path[64], line[512] = "";
    st_put(path, sizeof path, "/proc/%u/stat", pid);
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    size_t k = fread(line, 1, sizeof line - 1, f);
    fclose(f);
    line[k] = 0;
    const char *open = strchr(line, '('), *close = strrchr(line, ')');
    if (!open || !close || close < open) return 0;
    st_put(name, n, "%.*s", (int)(close - open - 1), open + 1);
    return close[1] == ' ' ? close[2] : 0;
}

static unsigned long long report_process(st_steps *s, unsigned gpu, const st_nvml_process *p)
{
    char name[64] = "", size[40] = "an unknown amount";
    bool known = p->used_bytes != ~0ull;
    char state = process_state(p->pid, name, sizeof name);
    if (known) st_put(size, sizeof size, "%.1f GiB", (double)p->used_bytes / 0x1p30);
    st_finding *f;
    if (!state) {
        f = st_step_result(s, ST_FINDING_NOTE, "gpu_foreign_process",
                           "GPU %u: process %u, which is not to be seen from here, holds %s of its memory "
                           "(another container, the host, or gone)",
                           gpu, p->pid, size);
        st_evidence(f, "nvmlDeviceGetComputeRunningProcesses_v3; /proc/%u does not exist", p->pid);
        st_fix(f,
               "on the host: ps -fp %u; when it is gone there too, the driver kept its memory: end what "
               "shares the GPU, or reset it (nvidia-smi --gpu-reset -i %u)",
               p->pid, gpu);
    } else if (state == 'Z') {
        f = st_step_result(s, ST_FINDING_WARNING, "gpu_zombie",
                           "GPU %u: process %u (%s) is a zombie and still holds %s of its memory", gpu,
                           p->pid, name, size);
        st_evidence(f, "/proc/%u/stat says Z", p->pid);
        st_fix(f,
               "end its parent (ps -o ppid= -p %u), which has not collected it; a thread may hang in the "
               "driver: dmesg | strata explain",
               p->pid);
    } else {
        f = st_step_result(s, ST_FINDING_NOTE, "gpu_process",
                           "GPU %u: process %u (%s) holds %s of its memory", gpu, p->pid, name, size);
        st_evidence(f, "NVML; /proc/%u/stat says %c", p->pid, state);
    }
    return known ? p->used_bytes : 0;
}

static void report_memory(st_steps *s, unsigned gpu, st_nvml_device d, const st_nvml_memory *m)
{
    enum { MOST = 64 };
    static st_nvml_process list[MOST];
    unsigned n = MOST, all = 0;
    unsigned long long sum = 0;
    st_step(s, ST_APPLICATION, "nvmlDeviceGetComputeRunningProcesses_v3");
    if (ASK(compute_processes, "nvmlDeviceGetComputeRunningProcesses_v3", d, &n, list)) {
        for (unsigned i = 0; i < n && i < MOST; i++) sum += report_process(s, gpu, &list[i]);
        all += n;
    }
    n = MOST;
    if (ASK(graphics_processes, "nvmlDeviceGetGraphicsRunningProcesses_v3", d, &n, list)) {
        for (unsigned i = 0; i < n && i < MOST; i++) sum += report_process(s, gpu, &list[i]);
        all += n;
    }
    /* the driver keeps some hundred MiB for itself */
    if (m->used > sum + (2ull << 30)) {
        st_finding *f =
            st_step_result(s, ST_FINDING_WARNING, "gpu_memory_unowned",
                           "GPU %u: %.1f GiB are in use beyond what the %u processes seen from here hold",
                           gpu, (double)(m->used - sum) / 0x1p30, all);
        st_evidence(f, "nvmlDeviceGetMemoryInfo: used %.1f of %.1f GiB", (double)m->used / 0x1p30,
                    (double)m->total / 0x1p30);
        st_fix(f, "on the host: sudo fuser -v /dev/nvidia*; another container or a dead program whose "
                  "threads hang holds it");
    }
    if (m->total && m->total - m->used < m->total / 20) {
        st_finding *f = st_step_result(s, ST_FINDING_WARNING, "gpu_memory_full",
                                       "GPU %u: its memory is full (%.1f of %.1f GiB): programs fail with "
                                       "out of memory, cuBLAS with NOT_INITIALIZED",
                                       gpu, (double)m->used / 0x1p30, (double)m->total / 0x1p30);
        st_evidence(f, "nvmlDeviceGetMemoryInfo");
        st_fix(f, "end a program that holds it (see above)");
    }
}

/* ---- health -------------------------------------------------------------------------------------------------------------- */
static void report_ecc(st_steps *s, unsigned gpu, st_nvml_device d)
{
    unsigned long long bad = 0, mended = 0;
    unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0, pages = 0, single = 0;
    int retire = 0;
    st_finding *f;
    st_step(s, ST_HARDWARE, "nvmlDeviceGetTotalEccErrors");
    if (ASK(ecc_errors, "nvmlDeviceGetTotalEccErrors", d, ST_NVML_ECC_UNCORRECTED, ST_NVML_ECC_SINCE_BOOT,
            &bad) &&
        bad) {
        f = st_step_result(s, ST_FINDING_WARNING, "ecc_uncorrected",
                           "GPU %u: %llu uncorrected memory errors since the driver was loaded", gpu, bad);
        st_evidence(f, "nvmlDeviceGetTotalEccErrors(uncorrected, volatile)");
        st_fix(f,
               "reset the GPU without users: sudo nvidia-smi --gpu-reset -i %u (then the row is remapped); "
               "exchange the card when it comes back",
               gpu);
        st_avoid(f, "reinstalling software: this is the card's memory");
    }
    if (ASK(ecc_errors, "nvmlDeviceGetTotalEccErrors", d, ST_NVML_ECC_CORRECTED, ST_NVML_ECC_SINCE_BOOT,
            &mended) &&
        mended > 1000) {
        f = st_step_result(s, ST_FINDING_NOTE, "ecc_corrected",
                           "GPU %u: %llu memory errors were corrected since the driver was loaded", gpu,
                           mended);
        st_evidence(f, "nvmlDeviceGetTotalEccErrors(corrected, volatile)");
    }
    if (ASK(remapped, "nvmlDeviceGetRemappedRows", d, &corrected, &uncorrected, &pending, &failed)) {
        if (failed) {
            f = st_step_result(s, ST_FINDING_FAULT, "remap_failed",
                               "GPU %u: a bad memory row could not be remapped, the spare rows are used up",
                               gpu);
            st_evidence(f, "nvmlDeviceGetRemappedRows: failure occurred (%u corrected, %u uncorrected)",
                        corrected, uncorrected);
            st_fix(f, "exchange the card (NVIDIA's criterion for a return)");
            st_avoid(f, "reinstalling software");
        } else if (pending) {
            f = st_step_result(s, ST_FINDING_WARNING, "remap_pending",
                               "GPU %u: a bad memory row waits to be remapped", gpu);
            st_evidence(f, "nvmlDeviceGetRemappedRows: pending");
            st_fix(f, "sudo nvidia-smi --gpu-reset -i %u without users, or reboot", gpu);
        } else if (corrected + uncorrected) {
            f = st_step_result(s, ST_FINDING_NOTE, "remapped",
                               "GPU %u: %u memory rows are remapped to spare ones", gpu,
                               corrected + uncorrected);
            st_evidence(f, "nvmlDeviceGetRemappedRows: %u corrected, %u uncorrected", corrected, uncorrected);
        }
    }
    for (int cause = 0; cause < 2 && table.retired; cause++) {
        unsigned n = 0;
        int r = table.retired(d, cause, &n, NULL);
        if (r == 0 || r == ST_NVML_INSUFFICIENT_SIZE) pages += n, single += cause == 0 ? n : 0;
    }
    if (pages) {
        bool waits = ASK(retired_pending, "nvmlDeviceGetRetiredPagesPendingStatus", d, &retire) && retire;
        f = st_step_result(s, waits || pages >= 60 ? ST_FINDING_WARNING : ST_FINDING_NOTE, "retired_pages",
                           "GPU %u: %u memory pages are retired%s", gpu, pages,
                           waits ? ", more wait for a reboot" : "");
        st_evidence(f, "nvmlDeviceGetRetiredPages: %u by single-bit, %u by double-bit errors", single,
                    pages - single);
        st_fix(f, pages >= 60 ? "exchange the card: 60 retired pages are NVIDIA's criterion for a return"
                              : "nothing, or reboot where some wait");
    }
}

static void report_modes(st_steps *s, unsigned gpu, st_nvml_device d)
{
    int on = 1, mode = 0;
    unsigned mig = 0, next = 0, width = 0, most = 0, replays = 0;
    st_nvml_device slice;
    st_finding *f;
    st_step(s, ST_DRIVER, "nvmlDeviceGetComputeMode");
    if (ASK(compute_mode, "nvmlDeviceGetComputeMode", d, &mode) && mode >= 2) {
        f = st_step_result(s, mode == 2 ? ST_FINDING_FAULT : ST_FINDING_NOTE, "compute_mode",
                           mode == 2
                               ? "GPU %u is in compute mode prohibited: no CUDA program may use it (error 46)"
                               : "GPU %u is in exclusive mode: one process at a time (error 46 for a second)",
                           gpu);
        st_evidence(f, "nvmlDeviceGetComputeMode: %d", mode);
        st_fix(f, "sudo nvidia-smi -i %u -c DEFAULT", gpu);
    }
    if (ASK(mig_mode, "nvmlDeviceGetMigMode", d, &mig, &next) && mig) {
        bool none = table.mig_device && table.mig_device(d, 0, &slice) != 0;
        f = st_step_result(s, none ? ST_FINDING_FAULT : ST_FINDING_NOTE, "mig",
                           none ? "GPU %u is in MIG mode without instances: programs find no device"
                                : "GPU %u is divided (MIG): programs see a part of it",
                           gpu);
        st_evidence(f, "nvmlDeviceGetMigMode: current 1");
        st_fix(f,
               none ? "sudo nvidia-smi mig -cgi 0 -C (one instance of all), or leave MIG: sudo nvidia-smi -i "
                      "%u -mig 0"
                    : "nvidia-smi -L lists the parts of GPU %u",
               gpu);
    }
    if (ASK(persistence, "nvmlDeviceGetPersistenceMode", d, &on) && !on) {
        f = st_step_result(
            s, ST_FINDING_NOTE, "persistence",
            "GPU %u: persistence mode is off, so the driver starts it anew for every first program (seconds)",
            gpu);
        st_evidence(f, "nvmlDeviceGetPersistenceMode: off");
        st_fix(f, "sudo systemctl enable --now nvidia-persistenced, or sudo nvidia-smi -pm 1");
    }
    st_step(s, ST_HARDWARE, "nvmlDeviceGetCurrPcieLinkWidth");
    if (ASK(link_width, "nvmlDeviceGetCurrPcieLinkWidth", d, &width) &&
        ASK(max_link_width, "nvmlDeviceGetMaxPcieLinkWidth", d, &most) && width && width < most) {
        f = st_step_result(s, ST_FINDING_WARNING, "pcie_width", "GPU %u: its PCIe link has %u of %u lanes",
                           gpu, width, most);
        st_evidence(f, "nvmlDeviceGetCurrPcieLinkWidth, nvmlDeviceGetMaxPcieLinkWidth");
        st_fix(f, "reseat the card; a slot of the processor with all lanes; no riser cable");
    }
    if (ASK(replays, "nvmlDeviceGetPcieReplayCounter", d, &replays) && replays > 1000) {
        f = st_step_result(s, ST_FINDING_WARNING, "pcie_replays",
                           "GPU %u: %u packets were sent again over PCIe: a bad contact", gpu, replays);
        st_evidence(f, "nvmlDeviceGetPcieReplayCounter");
        st_fix(f,
               "reseat the card, exchange riser or cable, lower the link's generation in the firmware setup");
    }
}

static void report_clocks(st_steps *s, unsigned gpu, st_nvml_device d)
{
    unsigned celsius = 0;
    unsigned long long bits = 0;
    char words[160];
    bool hard;
    st_step(s, ST_HARDWARE, "nvmlDeviceGetCurrentClocksThrottleReasons");
    if (ASK(throttle, "nvmlDeviceGetCurrentClocksThrottleReasons", d, &bits)) {
        st_nvml_throttle_words(bits, words, sizeof words, &hard);
        if (hard) {
            st_finding *f = st_step_result(s, ST_FINDING_WARNING, "throttled",
                                           "GPU %u: its clocks are held down now: %s", gpu, words);
            st_evidence(f, "nvmlDeviceGetCurrentClocksThrottleReasons: 0x%llx", bits);
            st_fix(f, "look at cooling, power cables and the power supply; strata doctor --watch shows it "
                      "over time");
        }
    }
    if (ASK(temperature, "nvmlDeviceGetTemperature", d, 0, &celsius) && celsius >= 90) {
        st_finding *f =
            st_step_result(s, ST_FINDING_WARNING, "hot", "GPU %u is %u degrees Celsius hot", gpu, celsius);
        st_evidence(f, "nvmlDeviceGetTemperature");
        st_fix(f, "look at fans, dust and the flow of air");
    }
}

static void one_device(st_steps *s, unsigned i)
{
    st_nvml_device d;
    st_nvml_memory m = {0, 0, 0};
    char name[96] = "GPU", ecc[24] = "";
    int on = 0, next = 0;
    unsigned celsius = 0, mw = 0;
    st_step(s, ST_DRIVER, "nvmlDeviceGetHandleByIndex_v2");
    int r = table.by_index(i, &d);
    if (r) {
        st_finding *f = st_step_failed(s, "nvmlDeviceGetHandleByIndex_v2", r, st_nvml_result_name(r));
        char text[300];
        st_put(text, sizeof text, "GPU %u: %s", i, f->text);
        st_put(f->text, sizeof f->text, "%s", text);
        if (r == 15 || r == 16) f->layer = ST_HARDWARE;
        return;
    }
    (void)ASK(name, "nvmlDeviceGetName", d, name, sizeof name);
    bool memory = ASK(memory, "nvmlDeviceGetMemoryInfo", d, &m);
    if (ASK(ecc_mode, "nvmlDeviceGetEccMode", d, &on, &next))
        st_put(ecc, sizeof ecc, ", ECC %s", on ? "on" : "off");
    bool warm = ASK(temperature, "nvmlDeviceGetTemperature", d, 0, &celsius),
         power = ASK(power, "nvmlDeviceGetPowerUsage", d, &mw);
    char state[80] = "";
    if (warm) st_put(state, sizeof state, ", %u C", celsius);
    if (power) st_put(state + strlen(state), sizeof state - strlen(state), ", %u W", mw / 1000);
    if (memory)
        st_evidence(st_step_result(s, ST_FINDING_OK, "nvml_device",
                                   "NVML, GPU %u: %s, %.1f of %.1f GiB in use%s%s", i, name,
                                   (double)m.used / 0x1p30, (double)m.total / 0x1p30, state, ecc),
                    "%s", table.path);
    report_modes(s, i, d);
    report_ecc(s, i, d);
    report_clocks(s, i, d);
    if (memory) report_memory(s, i, d, &m);
}

void st_steps_nvml(st_steps *s)
{
    unsigned n;
    const st_nvml_calls *t = st_steps_nvml_open(s, &n);
    if (!t) return;
    if (n == 0) {
        st_finding *f =
            st_step_result(s, ST_FINDING_WARNING, "nvml_no_device", "NVML starts and lists no GPU");
        st_evidence(f, "nvmlDeviceGetCount_v2 gave 0; %s", t->path);
        st_fix(f, "dmesg | strata explain (RmInitAdapter); in a container: NVIDIA_VISIBLE_DEVICES");
    }
    for (unsigned i = 0; i < n; i++) one_device(s, i);
    if (t->shutdown) {
        st_step(s, ST_DRIVER, "nvmlShutdown");
        t->shutdown();
    }
}
