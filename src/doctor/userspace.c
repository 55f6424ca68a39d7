/* SPDX-License-Identifier: Apache-2.0 */
/* userspace.c - the driver's user-space half: libcuda beside the kernel module, WSL's libcuda, and what the kernel log remembers. */
#include "doctor/machine.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>

static bool datacentre(const st_machine *m)
{
    for (int i = 0; i < m->gpu_count; i++)
        if (m->gpus[i].known && strcmp(m->gpus[i].gpu.segment, "datacentre") != 0) return false;
    return m->gpu_count > 0;
}

static bool needs_cuda(const st_machine *m) { return m->gpu_count > 0 || m->module_loaded; }

static void report_mismatch(st_doctor *d, const st_copy *c)
{
    st_machine *m = &d->m;
    st_finding *f;
    bool compat = strstr(c->real, "/compat/") != NULL;
    if (compat) {
        bool newer = atoi(c->version) > atoi(m->driver);
        if (datacentre(m) && newer) {
            f = st_report(d, ST_DRIVER, ST_FINDING_OK, "compat",
                          "cuda-compat libcuda %s is used on top of driver %s (allowed on data-centre GPUs)",
                          c->version, m->driver);
            st_evidence(f, "%s, found by %s", c->real, st_route_names[c->route]);
            return;
        }
        f = st_report(
            d, ST_DRIVER, ST_FINDING_FAULT, "compat_geforce",
            newer ? "a cuda-compat libcuda %s is on the library path; this GPU does not support forward "
                    "compatibility (error 804)"
                  : "a cuda-compat libcuda %s is on the library path though the driver is as new (error 803)",
            c->version);
        st_evidence(f, "%s, found by %s; kernel module %s", c->real, st_route_names[c->route], m->driver);
        st_fix(f,
               "remove /usr/local/cuda*/compat from LD_LIBRARY_PATH (or its file in /etc/ld.so.conf.d, then "
               "sudo ldconfig)%s",
               newer ? "; to run a newer CUDA update the driver itself" : "");
        st_avoid(f, "reinstalling the toolkit");
        return;
    }
    f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "module_user_mismatch",
                  "the running kernel module (%s) and the user-space driver libraries (%s) differ", m->driver,
                  c->version);
    st_evidence(f, "%s: %s; %s", m->driver_from, m->driver, c->real);
    if (*m->container) {
        st_fix(f,
               "remove the driver packages or library copies from the image (this file: %s) and let the "
               "NVIDIA runtime mount the host's",
               c->path);
        st_avoid(f, "installing a driver in the container");
        return;
    }
    bool user_newer = st_version_cmp(c->version, m->driver) > 0;
    const char *history = user_newer && st_root_exists(m->root, "/var/log/apt/history.log")
                              ? " (see /var/log/apt/history.log)"
                              : "";
    st_fix(f,
           user_newer ? "sudo reboot%s; without a reboot, no GPU program running: sudo rmmod nvidia_drm "
                        "nvidia_modeset nvidia_uvm nvidia && sudo modprobe nvidia. Then hold the "
                        "packages: sudo apt-mark hold 'nvidia-*' 'libnvidia-*'. If it survives a reboot: "
                        "sudo dkms autoinstall && sudo update-initramfs -u"
                      : "two installations are mixed%s (a .run driver beside packages, or a foreign libcuda "
                        "on the path): remove one; sudo nvidia-uninstall removes the .run one",
           history);
    st_avoid(f, "reinstalling CUDA toolkit or cuDNN: they are not at fault");
}

void st_probe_libcuda(st_doctor *d)
{
    st_machine *m = &d->m;
    if (m->wsl) return;
    const st_copy *c = m->libcuda = st_loader_choice(m, "libcuda.so.1");
    st_finding *f;
    if (!needs_cuda(m) || !m->module_loaded) return;
    for (int i = 0; i < st_doctor_count(d);
         i++) /* nothing about user space while the kernel side is broken */
        if (d->findings[i].state == ST_FINDING_FAULT) return;
    if (!c) {
        const st_copy *broken = NULL;
        for (int i = 0; i < m->copy_count; i++)
            if (!strcmp(m->copies[i].stem, "libcuda") && m->copies[i].broken) broken = &m->copies[i];
        f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "libcuda_missing",
                      broken
                          ? "libcuda.so.1 is a link whose target is missing"
                          : "the kernel module is loaded but its user-space library libcuda.so.1 is missing");
        if (broken)
            st_evidence(f, "%s is a broken link", broken->path);
        else
            st_evidence(f,
                        "no libcuda.so.1 in LD_LIBRARY_PATH, /etc/ld.so.cache and the default directories");
        if (*m->container)
            st_fix(f, "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility (docker run "
                      "--gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ...), then ldconfig");
        else
            st_fix(f,
                   "install the library of exactly driver %s: sudo apt install libnvidia-compute-%d (Debian: "
                   "libcuda1; Fedora: nvidia-driver-cuda-libs), then sudo ldconfig",
                   m->driver, atoi(m->driver));
        st_avoid(f, "copying the stub /usr/local/cuda/lib64/stubs/libcuda.so: it is for linking only");
        return;
    }
    if (c->route == ROUTE_STUB || strstr(c->real, "/stubs/")) {
        f = st_report(d, ST_RUNTIME, ST_FINDING_FAULT, "stub_on_path",
                      "programs load the stub libcuda, which is for linking only (error 34 or 35)");
        st_evidence(f, "%s, found by %s", c->path, st_route_names[c->route]);
        st_fix(f, "take the stubs directory out of LD_LIBRARY_PATH (or out of /etc/ld.so.conf.d, then sudo "
                  "ldconfig)");
        return;
    }
    if (c->damaged) {
        f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "libcuda_damaged", "libcuda.so.1 %s", c->damaged);
        st_evidence(f, "%s", c->real);
        st_fix(f,
               *m->container ? "remove the file from the image: an empty or foreign copy hides the one that "
                               "the NVIDIA runtime mounts; then ldconfig"
                             : "sudo apt install --reinstall libnvidia-compute-%d",
               atoi(m->driver));
        return;
    }
    if (c->version[0] && m->driver[0] && strcmp(c->version, m->driver) != 0) {
        report_mismatch(d, c);
        return;
    }
    f = st_report(d, ST_DRIVER, ST_FINDING_OK, "libcuda", "libcuda %s belongs to the loaded module",
                  c->version[0] ? c->version : "(version not told)");
    st_evidence(f, "%s, found by %s", c->real, st_route_names[c->route]);
    const st_copy *nvml = st_loader_choice(m, "libnvidia-ml.so.1");
    if (nvml && nvml->version[0] && m->driver[0] && strcmp(nvml->version, m->driver) != 0)
        report_mismatch(d, nvml);
}

/* ---- WSL2 ---------------------------------------------------------------------------------------------------------------- */
void st_probe_wsl(st_doctor *d)
{
    st_machine *m = &d->m;
    if (!m->wsl) return;
    st_finding *f;
    if (!st_root_exists(m->root, "/dev/dxg")) {
        st_report(d, ST_DRIVER, ST_FINDING_ABSENT, "no_driver",
                  "no GPU is offered to WSL, so no driver is in use");
        return;
    }
    const st_copy *c = m->libcuda = st_loader_choice(m, "libcuda.so.1");
    const char *dir = "/usr/lib/wsl/lib";
    if (!st_root_exists(m->root, "/usr/lib/wsl/lib/libcuda.so.1")) {
        f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "wsl_no_libcuda",
                      "WSL has a GPU device but no libcuda from the Windows driver");
        st_evidence(f, "/dev/dxg exists, %s/libcuda.so.1 does not", dir);
        st_fix(f, "install or update the NVIDIA driver in Windows (not in WSL), then in PowerShell: wsl "
                  "--update; wsl --shutdown");
        st_avoid(f, "installing a Linux driver inside WSL");
        return;
    }
    if (c && strncmp(c->path, "/usr/lib/wsl/", 13) && strncmp(c->real, "/usr/lib/wsl/", 13)) {
        f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "wsl_shadow",
                      "a Linux libcuda%s%s hides the one of the Windows driver", *c->version ? " " : "",
                      c->version);
        st_evidence(f, "libcuda.so.1 resolves to %s (%s) before %s/libcuda.so.1", c->path,
                    st_route_names[c->route], dir);
        st_fix(f, "sudo apt purge '^nvidia-driver-.*' '^libnvidia-.*' '^nvidia-utils-.*' cuda-drivers && "
                  "sudo ldconfig; for a toolkit install cuda-toolkit-X-Y, never cuda or cuda-drivers");
        st_avoid(f, "updating the Linux driver inside WSL: it must not be there; missing /dev/nvidia* is "
                    "normal here");
        return;
    }
    if (!c) {
        f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "wsl_unlisted",
                      "the loader does not know %s, so programs do not find libcuda.so.1", dir);
        st_evidence(f, "%s/libcuda.so.1 exists, /etc/ld.so.cache and LD_LIBRARY_PATH do not lead to it", dir);
        st_fix(f, "echo %s | sudo tee /etc/ld.so.conf.d/ld.wsl.conf && sudo ldconfig", dir);
        return;
    }
    f = st_report(d, ST_DRIVER, ST_FINDING_OK, "wsl_libcuda",
                  "libcuda comes from the Windows driver; no Linux driver is in the way");
    st_evidence(f, "%s, found by %s", c->path, st_route_names[c->route]);
    if (!st_loader_choice(m, "libcuda.so")) {
        bool cudnn8 = false;
        for (int i = 0; i < m->copy_count; i++)
            cudnn8 |=
                strncmp(m->copies[i].name, "libcudnn", 8) == 0 && strstr(m->copies[i].name, ".so.8") != NULL;
        f = st_report(d, ST_DRIVER, cudnn8 ? ST_FINDING_FAULT : ST_FINDING_NOTE, "wsl_unversioned",
                      "the loader knows libcuda.so.1 but not libcuda.so, which cuDNN 8 and some programs "
                      "open by that name");
        st_evidence(f, "no libcuda.so in /etc/ld.so.cache");
        st_fix(f, "export LD_LIBRARY_PATH=%s:$LD_LIBRARY_PATH", dir);
        st_avoid(f, "reinstalling cuDNN: its file is complete; ldconfig's 'is not a symbolic link' warning "
                    "is harmless");
    }
}

/* ---- kernel log ---------------------------------------------------------------------------------------------------------- */
static void report_xid(st_doctor *d, const st_hit *h, const char *file, bool this_boot)
{
    st_machine *m = &d->m;
    const st_table *t = st_facts_table(m->facts, "xid");
    const char *class = st_xid_class(m->facts, h->xid.number),
               *severity = st_table_get(t, h->row, "severity");
    bool hard = !strcmp(class, "hardware") || !strcmp(class, "bus") || !strcmp(class, "power"),
         fatal = !strcmp(severity, "fatal");
    enum st_layer layer = hard ? ST_HARDWARE : !strcmp(class, "driver") ? ST_DRIVER : ST_APPLICATION;
    enum st_state state = !strcmp(severity, "info")    ? ST_FINDING_NOTE
                          : this_boot && hard && fatal ? ST_FINDING_FAULT
                                                       : ST_FINDING_WARNING;
    st_finding *f =
        st_report(d, layer, state,
                  hard                 ? "xid_hardware"
                  : layer == ST_DRIVER ? "xid_driver"
                                       : "xid_application",
                  "Xid %d on GPU %s, %lld time%s: %s%s", h->xid.number, h->xid.device, (long long)h->count,
                  h->count == 1 ? "" : "s", st_table_get(t, h->row, "meaning"),
                  layer == ST_APPLICATION ? " (as a rule the program's fault, not the hardware's)" : "");
    st_evidence(f, "%s, line %lld: %s", file, (long long)h->first_line, h->text);
    const char *action = st_table_get(t, h->row, "first_action");
    st_fix(f, "%s", *action ? action : "look it up: strata explain");
    if (layer == ST_APPLICATION)
        st_avoid(
            f,
            "exchanging or testing the card: it is healthy unless the same fault follows it across programs");
}

static void read_log(st_doctor *d, const char *file, const char *text, size_t n, bool this_boot)
{
    st_matcher *x = st_matcher_open(d->m.facts);
    if (!x) return;
    st_matcher_feed(x, text, n);
    st_matcher_finish(x);
    const st_table *t = st_facts_table(d->m.facts, "errors");
    for (int i = 0; i < st_matcher_count(x); i++) {
        const st_hit *h = st_matcher_hit(x, i);
        if (h->kind == ST_HIT_XID && h->xid.device[0] && h->row >= 0) report_xid(d, h, file, this_boot);
        if (h->kind != ST_HIT_ERROR || strcmp(st_table_get(t, h->row, "severity"), "harmless") == 0) continue;
        const char *by = st_table_get(t, h->row, "printed_by"), *layer = st_table_get(t, h->row, "layer");
        if (strncmp(by, "kernel log", 10) != 0) continue;
        enum st_layer at = !strcmp(layer, "hardware")      ? ST_HARDWARE
                           : !strcmp(layer, "application") ? ST_APPLICATION
                                                           : ST_DRIVER;
        st_finding *f =
            st_report(d, at, ST_FINDING_WARNING, "kernel_log", "the kernel log says: %.200s", h->text);
        st_evidence(f, "%s, line %lld (%s)", file, (long long)h->first_line, st_table_get(t, h->row, "id"));
        st_fix(f, "%s", st_table_get(t, h->row, "fix"));
    }
    st_matcher_close(x);
}

void st_probe_log(st_doctor *d)
{
    static const char *const files[] = {"/var/log/dmesg", "/var/log/kern.log", "/var/log/syslog",
                                        "/var/log/messages"};
    enum { TAIL = 4 << 20 };
    size_t n;
    if (st_root_is_host(d->m.root) && d->m.gpu_count) {
        int size = klogctl(10 /* SYSLOG_ACTION_SIZE_BUFFER */, NULL, 0);
        char *text = size > 0 && size <= 64 << 20 ? malloc((size_t)size) : NULL;
        int k = text ? klogctl(3 /* SYSLOG_ACTION_READ_ALL */, text, size) : -1;
        if (k > 0) read_log(d, "dmesg", text, (size_t)k, true);
        if (k < 0)
            st_evidence(st_report(d, ST_DRIVER, ST_FINDING_NOTE, "no_kernel_log",
                                  "this user may not read the kernel log; as root the doctor would also look "
                                  "for Xid lines"),
                        "klogctl: %s", strerror(errno));
        free(text);
        if (k > 0) return;
    }
    for (int i = 0; i < ST_COUNT(files); i++) {
        char *text = st_root_read_tail(d->m.root, files[i], TAIL, &n);
        if (text) read_log(d, files[i], text, n, i == 0);
        free(text);
        if (text && i) break; /* syslog repeats kern.log */
    }
}
