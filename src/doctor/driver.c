/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c - the kernel side: is the module loaded, and if not, why not; which GPUs it serves; device nodes; NVSwitch. */
#include "doctor/machine.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static void module_version(st_machine *m)
{
    char *text = st_root_read(m->root, "/proc/driver/nvidia/version", 4096, NULL);
    const char *at = text ? strstr(text, "Kernel Module") : NULL;
    for (const char *p = at; p && *p && *p != '\n'; p++) {
        /* the first number with a dot behind the words: "... Kernel Module for x86_64  580.159.04  Release Build" */
        if (!isdigit((unsigned char)*p) || isalnum((unsigned char)p[-1]) || p[-1] == '_') continue;
        size_t k = strspn(p, "0123456789.");
        if (memchr(p, '.', k) && k < sizeof m->driver) {
            st_put(m->driver, sizeof m->driver, "%.*s", (int)k, p);
            st_put(m->driver_from, sizeof m->driver_from, "/proc/driver/nvidia/version");
            break;
        }
        p += k ? k - 1 : 0;
    }
    m->module_open = text && strstr(text, "Open Kernel Module") != NULL;
    m->module_loaded = at != NULL;
    free(text);
    char line[64];
    if (st_root_line(m->root, "/sys/module/nvidia/version", line, sizeof line) && *line) {
        m->module_loaded = true;
        if (!m->driver[0]) {
            st_put(m->driver, sizeof m->driver, "%s", line);
            st_put(m->driver_from, sizeof m->driver_from, "/sys/module/nvidia/version");
        }
    }
    char *modules = st_root_read(m->root, "/proc/modules", 1 << 20, NULL);
    if (modules) {
        m->module_loaded |= strncmp(modules, "nvidia ", 7) == 0 || strstr(modules, "\nnvidia ") != NULL;
        m->nouveau_loaded = strncmp(modules, "nouveau ", 8) == 0 || strstr(modules, "\nnouveau ") != NULL;
    }
    m->nouveau_loaded |= st_root_exists(m->root, "/sys/module/nouveau");
    free(modules);
}

/* nvidia.ko, compressed or not, in a folder of the running kernel's modules */
static bool module_in(st_machine *m, const char *dir)
{
    static const char *const names[] = {"nvidia", "nvidia-current"}; /* the second is Debian's */
    static const char *const ends[] = {"", ".xz", ".zst", ".gz"};
    char path[400];
    for (int k = 0; k < ST_COUNT(names); k++)
        for (int i = 0; i < ST_COUNT(ends); i++) {
            st_put(path, sizeof path, "%s/%s.ko%s", dir, names[k], ends[i]);
            if (st_root_exists(m->root, path)) return true;
        }
    return false;
}

static bool module_file(st_machine *m, const char *kernel, char *where, size_t n)
{
    static const char *const dirs[] = {"updates/dkms",
                                       "updates",
                                       "extra",
                                       "extra/nvidia",
                                       "kernel/drivers/video",
                                       "kernel/drivers/video/nvidia",
                                       "misc",
                                       "extramodules",
                                       "weak-updates"};
    char base[200], path[400];
    for (int top = 0; top < 2; top++) {
        st_put(base, sizeof base, "%s/lib/modules/%s", top ? "/usr" : "", kernel);
        for (int i = 0; i < ST_COUNT(dirs); i++) {
            st_put(path, sizeof path, "%s/%s", base, dirs[i]);
            if (module_in(m, path)) return st_put(where, n, "%s", path), true;
        }
        st_list l;
        st_put(path, sizeof path, "%s/kernel", base);
        if (!st_root_list(m->root, path, &l)) continue;
        for (int i = 0; i < l.n; i++) { /* Ubuntu's pre-signed modules: kernel/nvidia-580/ */
            if (strncmp(l.name[i], "nvidia-", 7) != 0) continue;
            st_put(path, sizeof path, "%s/kernel/%s", base, l.name[i]);
            bool is = module_in(m, path);
            st_put(path, sizeof path, "%s/kernel/%s/bits", base, l.name[i]);
            if (is || module_in(m, path)) {
                st_list_free(&l);
                return st_put(where, n, "%s", path), true;
            }
        }
        st_list_free(&l);
    }
    return false;
}

/* other kernels for which DKMS built a module; "" when there is no DKMS tree */
static bool dkms_state(st_machine *m, char *version, size_t vn, char *kernels, size_t kn)
{
    static const char *const trees[] = {"/var/lib/dkms/nvidia", "/var/lib/dkms/nvidia-current"};
    st_list l, k;
    version[0] = kernels[0] = 0;
    const char *tree = trees[st_root_exists(m->root, trees[0]) ? 0 : 1];
    if (!st_root_list(m->root, tree, &l)) return false;
    for (int i = 0; i < l.n; i++) {
        if (!isdigit((unsigned char)l.name[i][0])) continue;
        st_put(version, vn, "%s", l.name[i]);
        char path[400];
        st_put(path, sizeof path, "%s/%s", tree, l.name[i]);
        if (!st_root_list(m->root, path, &k)) continue;
        for (int j = 0; j < k.n; j++) {
            if (!isdigit((unsigned char)k.name[j][0])) continue;
            size_t used = strlen(kernels);
            st_put(kernels + used, kn - used, "%s%s", used ? ", " : "", k.name[j]);
        }
        st_list_free(&k);
    }
    st_list_free(&l);
    return version[0] != 0;
}

/* 1 on, 0 off, -1 not known */
static int secure_boot(st_machine *m)
{
    size_t n;
    char *p = st_root_read(
        m->root, "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", 16, &n);
    int on = p && n >= 5 ? p[4] == 1 : -1;
    free(p);
    return on;
}

static bool blacklisted(st_machine *m, char *where, size_t n)
{
    st_list l;
    bool found = false;
    if (!st_root_list(m->root, "/etc/modprobe.d", &l)) return false;
    for (int i = 0; i < l.n && !found; i++) {
        char path[400];
        st_put(path, sizeof path, "/etc/modprobe.d/%s", l.name[i]);
        char *text = st_root_read(m->root, path, 65536, NULL);
        int number = 1;
        for (char *p = text; p && *p; number++) {
            if (strncmp(p, "blacklist nvidia", 16) == 0 && (p[16] == '\n' || p[16] == 0 || p[16] == ' ')) {
                st_put(where, n, "%s:%d", path, number);
                found = true;
                break;
            }
            p = strchr(p, '\n');
            if (p) p++;
        }
        free(text);
    }
    st_list_free(&l);
    return found;
}

static const char *install_command(const st_machine *m)
{
    if (!strcmp(m->os_id, "ubuntu")) return "sudo ubuntu-drivers install && sudo reboot";
    if (!strcmp(m->os_id, "debian"))
        return "sudo apt install linux-headers-amd64 nvidia-driver firmware-misc-nonfree && sudo reboot   "
               "(components contrib non-free)";
    if (!strcmp(m->os_id, "fedora"))
        return "sudo dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda && sudo reboot   (RPM Fusion)";
    if (!strcmp(m->os_id, "arch")) return "sudo pacman -S nvidia-open nvidia-utils && sudo reboot";
    return "install the NVIDIA driver of your distribution, then reboot";
}

/* The user-space half is installed, so the driver was meant to be here, but no module fits the running kernel. */
static bool report_unbuilt(st_doctor *d)
{
    st_machine *m = &d->m;
    const st_copy *c = st_loader_choice(m, "libcuda.so.1");
    if (!c || !c->version[0]) return false;
    st_finding *f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "module_unbuilt",
                              "driver %s is installed but has no kernel module for the running kernel %s",
                              c->version, m->kernel);
    st_evidence(f, "%s exists; /lib/modules/%s has no nvidia.ko, and there is no DKMS tree", c->real,
                m->kernel);
    if (!strcmp(m->os_id, "ubuntu"))
        st_fix(f, "sudo apt install linux-modules-nvidia-%d-%s (or nvidia-dkms-%d) && sudo modprobe nvidia",
               atoi(c->version), m->kernel, atoi(c->version));
    else if (!strcmp(m->os_id, "fedora"))
        st_fix(f, "sudo akmods --force --kernels %s && sudo modprobe nvidia", m->kernel);
    else
        st_fix(f,
               "install the driver's kernel module for %s (the DKMS package and the kernel's headers), then "
               "sudo modprobe nvidia",
               m->kernel);
    st_avoid(f, "reinstalling CUDA, cuDNN or PyTorch: they are not at fault");
    return true;
}

/* The GPU is there and the module is not: the first reason that the files show. */
static void report_missing(st_doctor *d)
{
    st_machine *m = &d->m;
    const st_pci_gpu *g = &m->gpus[0];
    char where[400] = "", version[64], kernels[256], text[512];
    st_finding *f;
    for (int i = 0; i < m->gpu_count; i++)
        if (!strcmp(m->gpus[i].driver, "vfio-pci")) {
            f = st_report(
                d, ST_DRIVER, ST_FINDING_FAULT, "vfio",
                "GPU %s is reserved for virtual machines (bound to vfio-pci), so no program here can use it",
                m->gpus[i].bus);
            st_evidence(f, "/sys/bus/pci/devices/%s/driver -> vfio-pci", m->gpus[i].bus);
            st_fix(f,
                   "echo %s | sudo tee /sys/bus/pci/drivers/vfio-pci/unbind; remove its id from the vfio-pci "
                   "options in /etc/modprobe.d and the kernel command line; sudo modprobe nvidia",
                   m->gpus[i].bus);
            st_avoid(f, "reinstalling the driver: it cannot bind a card that another driver holds");
            return;
        }
    bool on_nouveau = m->nouveau_loaded && (!strcmp(g->driver, "nouveau") || !g->driver[0]);
    if (on_nouveau) {
        f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "nouveau",
                      "the open nouveau driver holds the GPU; the NVIDIA module cannot bind it");
        st_evidence(f, "/sys/bus/pci/devices/%s/driver -> %s", g->bus,
                    g->driver[0] ? g->driver : "(none), and module nouveau is loaded");
        st_fix(f,
               "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' | sudo tee "
               "/etc/modprobe.d/blacklist-nouveau.conf && sudo %s && sudo reboot",
               st_debian_like(m) ? "update-initramfs -u" : "dracut -f");
        st_avoid(f, "installing CUDA or cuDNN again: without the NVIDIA driver nothing above it can work");
        return;
    }
    if (module_file(m, m->kernel, where, sizeof where)) {
        char black[400];
        if (secure_boot(m) == 1) {
            f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "secure_boot",
                          "the NVIDIA module is built but not loaded, and Secure Boot is on: the kernel "
                          "refuses a module whose key is not enrolled");
            st_evidence(f, "%s/nvidia.ko exists, /proc/modules has no nvidia, efivar SecureBoot = 1", where);
            st_fix(
                f,
                "sudo mokutil --import /var/lib/shim-signed/mok/MOK.der && sudo reboot, then choose Enroll "
                "MOK; or install the pre-signed linux-modules-nvidia package; or switch Secure Boot off");
            st_avoid(f, "reinstalling the driver: it builds the same module with the same key");
        } else if (blacklisted(m, black, sizeof black)) {
            f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "module_blacklisted",
                          "the NVIDIA module is blacklisted, so it is not loaded at boot");
            st_evidence(f, "%s: blacklist nvidia", black);
            st_fix(f, "remove that line, then: sudo modprobe nvidia (prime-select nvidia where it came from "
                      "prime-select intel)");
        } else {
            f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "module_not_loaded",
                          "the NVIDIA module is built for this kernel but not loaded");
            st_evidence(f, "%s/nvidia.ko exists, /proc/modules has no nvidia", where);
            st_fix(f, "sudo modprobe nvidia; if it is refused: dmesg | strata explain");
        }
        return;
    }
    if (dkms_state(m, version, sizeof version, kernels, sizeof kernels)) {
        f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "dkms_stale",
                      "driver %s has no module for the running kernel %s (a kernel update whose DKMS build "
                      "failed or did not run)",
                      version, *m->kernel ? m->kernel : "(unknown)");
        st_evidence(f, "/var/lib/dkms/nvidia/%s has kernels: %s; /lib/modules/%s has no nvidia.ko", version,
                    *kernels ? kernels : "none", m->kernel);
        st_fix(f, "sudo %s-%s && sudo dkms autoinstall -k %s && sudo modprobe nvidia",
               st_debian_like(m) ? "apt install linux-headers" : "dnf install kernel-devel", m->kernel,
               m->kernel);
        st_avoid(f, "reinstalling CUDA, cuDNN or PyTorch: they are not at fault");
        return;
    }
    if (report_unbuilt(d)) return;
    st_put(text, sizeof text, "%s", install_command(m));
    f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "module_missing",
                  "no NVIDIA driver is installed for the running kernel%s%s", *m->kernel ? " " : "",
                  m->kernel);
    st_evidence(f, "GPU %s has %s%s; /lib/modules/%s has no nvidia.ko, /var/lib/dkms/nvidia is missing",
                g->bus, g->driver[0] ? "driver " : "no driver bound", g->driver,
                *m->kernel ? m->kernel : "*");
    st_fix(f, "%s", text);
    st_avoid(f, "installing cuDNN, CUDA or another PyTorch: the driver comes first");
}

/* module loaded: does it serve these GPUs? */
static bool report_unserved(st_doctor *d)
{
    st_machine *m = &d->m;
    for (int i = 0; i < m->gpu_count; i++) {
        const st_pci_gpu *g = &m->gpus[i];
        if (!strcmp(g->driver, "nvidia") || g->lost || !g->known || !m->driver[0]) continue;
        int last = atoi(g->gpu.last_branch), branch = atoi(m->driver);
        st_finding *f;
        if (m->module_open && !strcmp(g->gpu.open_module, "no")) {
            f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "open_module_old_gpu",
                          "the open kernel module %s does not support the %s (%s has no GSP processor; open "
                          "modules need Turing or newer)",
                          m->driver, g->gpu.name, g->gpu.arch);
            st_evidence(f, "%s says Open Kernel Module; GPU %s is 10de:%04x", m->driver_from, g->bus,
                        g->device);
            st_fix(f,
                   "install the proprietary module: sudo apt install nvidia-driver-%s (not -open) && sudo "
                   "reboot",
                   last ? g->gpu.last_branch : "580");
            return true;
        }
        if (last && branch > last) {
            f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "driver_drops_gpu",
                          "driver %s no longer supports the %s; %s is its last branch", m->driver,
                          g->gpu.name, g->gpu.last_branch);
            st_evidence(f, "%s; GPU %s (10de:%04x, %s) is not bound to nvidia", m->driver_from, g->bus,
                        g->device, g->gpu.arch);
            st_fix(f,
                   "sudo apt install nvidia-driver-%s && sudo apt-mark hold nvidia-driver-%s && sudo reboot",
                   g->gpu.last_branch, g->gpu.last_branch);
            st_avoid(f, "a newer driver: newer branches do not know this GPU any more");
            return true;
        }
        const char *need =
            *g->gpu.first_toolkit ? st_cuda_min_driver(m->facts, g->gpu.first_toolkit, false) : NULL;
        if (g->gpu.cc >= 100) need = "570.26";
        if (need && st_version_cmp(m->driver, need) < 0) {
            f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "driver_before_gpu",
                          "driver %s is older than the %s; it needs %s or newer", m->driver, g->gpu.name,
                          need);
            st_evidence(f, "%s; GPU %s is 10de:%04x", m->driver_from, g->bus, g->device);
            st_fix(f, "install a newer driver branch (570 or later for Blackwell), then reboot");
            return true;
        }
        if (!strcmp(g->driver, "vfio-pci")) continue;
        f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "gpu_unbound",
                      "the NVIDIA module %s is loaded but does not drive GPU %s", m->driver, g->bus);
        st_evidence(f, "/sys/bus/pci/devices/%s/driver -> %s", g->bus, g->driver[0] ? g->driver : "(none)");
        st_fix(f, "dmesg | strata explain (look for RmInitAdapter or 'not supported'); with another driver "
                  "bound: unbind it, then sudo modprobe -r nvidia && sudo modprobe nvidia");
        return true;
    }
    return false;
}

static bool may_use(const st_machine *m, const struct stat *s)
{
    if (m->uid <= 0) return true;
    if ((s->st_mode & 06) == 06) return true;
    for (int i = 0; i < m->group_count; i++)
        if ((long)s->st_gid == m->groups[i] && (s->st_mode & 060) == 060) return true;
    return (long)s->st_uid == m->uid && (s->st_mode & 0600) == 0600;
}

static void report_nodes(st_doctor *d)
{
    st_machine *m = &d->m;
    static const char *const nodes[] = {"/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm"};
    struct stat s;
    bool missing[3], any = false;
    st_finding *f;
    for (int i = 0; i < 3; i++) any |= missing[i] = !st_root_stat(m->root, nodes[i], &s);
    if (missing[1]) { /* a container may be given any one GPU */
        char path[32];
        for (int k = 1; k < 16 && missing[1]; k++) {
            st_put(path, sizeof path, "/dev/nvidia%d", k);
            missing[1] = !st_root_exists(m->root, path);
        }
    }
    any = missing[0] || missing[1] || missing[2];
    if (*m->container && missing[0] && missing[1]) {
        const char *wish = st_environ(m, "NVIDIA_VISIBLE_DEVICES");
        f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "container_no_gpu",
                      "the host has a working driver (%s), but this container was started without its GPUs",
                      m->driver);
        st_evidence(f, "%s exists, /dev/nvidiactl and /dev/nvidia0 do not; NVIDIA_VISIBLE_DEVICES=%s",
                    m->driver_from, wish ? (*wish ? wish : "(empty)") : "(not set)");
        if (!strcmp(m->container, "kubernetes"))
            st_fix(f, "ask for a GPU in the pod (resources.limits: nvidia.com/gpu: 1) on a node that runs "
                      "the NVIDIA device plugin");
        else if (!strcmp(m->container, "podman"))
            st_fix(f, "podman run --device nvidia.com/gpu=all ... (after: sudo nvidia-ctk cdi generate "
                      "--output=/etc/cdi/nvidia.yaml)");
        else
            st_fix(f, "docker run --gpus all ...; if that is refused, on the host: sudo nvidia-ctk runtime "
                      "configure --runtime=docker && sudo systemctl restart docker");
        st_avoid(f, "installing a driver inside the container: it uses the host's");
        return;
    }
    if (missing[0] || missing[1]) {
        f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "nodes_missing",
                      "the driver is loaded but its device nodes are missing");
        st_evidence(f, "%s%s missing", missing[0] ? "/dev/nvidiactl " : "",
                    missing[1] ? "/dev/nvidia0 " : "");
        st_fix(f, "sudo nvidia-modprobe -c 0 -u (or run nvidia-smi once as root); sudo systemctl enable "
                  "--now nvidia-persistenced keeps them");
        return;
    }
    if (missing[2]) {
        f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "uvm_missing",
                      "/dev/nvidia-uvm is missing: nvidia-smi works, CUDA programs fail with error 999 or 3");
        st_evidence(f, "/dev/nvidia-uvm does not exist%s",
                    st_root_exists(m->root, "/sys/module/nvidia_uvm") ? ""
                                                                      : ", module nvidia_uvm is not loaded");
        st_fix(f, *m->container ? "start the container through the NVIDIA runtime (--gpus all), or add "
                                  "--device /dev/nvidia-uvm --device /dev/nvidia-uvm-tools"
                                : "sudo modprobe nvidia_uvm && sudo nvidia-modprobe -c 0 -u");
        st_avoid(f, "reinstalling the toolkit");
        return;
    }
    for (int i = 0; i < 3; i++)
        if (st_root_stat(m->root, nodes[i], &s) && !may_use(m, &s)) {
            f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "nodes_permission",
                          "this user (uid %ld) may not open %s", m->uid, nodes[i]);
            st_evidence(f, "%s has mode %04o, owner %u, group %u", nodes[i], (unsigned)s.st_mode & 07777,
                        s.st_uid, s.st_gid);
            st_fix(f, "sudo usermod -aG video $USER and log in again where the group is video; else options "
                      "nvidia NVreg_DeviceFileMode=0666 in /etc/modprobe.d and reboot");
            return;
        }
    if (!any)
        st_evidence(
            st_report(d, ST_DRIVER, ST_FINDING_OK, "nodes", "device nodes are there and may be opened"),
            "/dev/nvidiactl, /dev/nvidia0, /dev/nvidia-uvm");
}

/* the version of a dpkg package whose name begins so */
static bool dpkg_version(st_machine *m, const char *head, char *name, size_t nn, char *out, size_t n)
{
    size_t size;
    char *text = st_root_read(m->root, "/var/lib/dpkg/status", 32 << 20, &size);
    char key[80];
    bool found = false;
    st_put(key, sizeof key, "Package: %s", head);
    for (const char *p = text; p && (p = strstr(p, key)) != NULL && !found; p++) {
        if (p > text && p[-1] != '\n') continue;
        const char *stop = strstr(p, "\n\n"), *v = strstr(p, "\nVersion: "),
                   *status = strstr(p, "\nStatus: ");
        const char *installed = status ? strstr(status, " installed") : NULL;
        if (!v || !installed || (stop && (v > stop || installed > stop))) continue;
        st_put(name, nn, "%.*s", (int)strcspn(p + 9, "\n"), p + 9);
        st_put(out, n, "%.*s", (int)strcspn(v + 10, "-\n"), v + 10);
        found = true;
    }
    free(text);
    return found;
}

static void report_fabric(st_doctor *d)
{
    st_machine *m = &d->m;
    char name[64], version[64];
    if (!m->nvswitch_count || *m->container) return;
    st_finding *f;
    if (dpkg_version(m, "nvidia-fabricmanager", name, sizeof name, version, sizeof version)) {
        if (m->driver[0] && st_version_cmp(version, m->driver) != 0) {
            f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "fabric_manager",
                          "fabric manager %s does not match driver %s: CUDA fails with error 802", version,
                          m->driver);
            st_evidence(f, "/var/lib/dpkg/status: %s %s; %s: %s", name, version, m->driver_from, m->driver);
            st_fix(f, "sudo apt install %s=%s-1 && sudo systemctl restart nvidia-fabricmanager", name,
                   m->driver);
        } else
            st_evidence(st_report(d, ST_DRIVER, ST_FINDING_OK, "fabric",
                                  "fabric manager %s matches the driver", version),
                        "/var/lib/dpkg/status: %s", name);
        return;
    }
    if (st_root_exists(m->root, "/usr/bin/nv-fabricmanager")) return;
    f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "fabric_manager",
                  "%d NVSwitch devices and no fabric manager: CUDA fails with error 802", m->nvswitch_count);
    st_evidence(f, "PCI class 0680 of vendor 10de; /usr/bin/nv-fabricmanager is missing");
    st_fix(
        f,
        "sudo apt install nvidia-fabricmanager-%d=%s-1 && sudo systemctl enable --now nvidia-fabricmanager",
        atoi(m->driver), m->driver);
}

void st_probe_driver(st_doctor *d)
{
    st_machine *m = &d->m;
    module_version(m);
    if (m->wsl) return; /* st_probe_wsl: the driver is Windows' */
    if (!m->gpu_count && !m->module_loaded) {
        st_report(d, ST_DRIVER, ST_FINDING_ABSENT, "no_driver",
                  "no NVIDIA driver loaded, and none needed without a GPU");
        return;
    }
    if (!m->gpu_count && *m->container == 0) {
        st_evidence(st_report(d, ST_DRIVER, ST_FINDING_NOTE, "driver_without_gpu",
                              "NVIDIA module %s is loaded though no GPU is on the bus", m->driver),
                    "%s", m->driver_from);
        return;
    }
    bool lost = m->gpu_count > 0;
    for (int i = 0; i < m->gpu_count; i++) lost &= m->gpus[i].lost;
    if (lost) return;
    if (!m->module_loaded) {
        if (*m->container) {
            st_finding *f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "host_driver",
                                      "the host of this container has a GPU but no loaded NVIDIA driver");
            st_evidence(f, "/proc/driver/nvidia/version is missing; GPU %s has driver %s", m->gpus[0].bus,
                        m->gpus[0].driver[0] ? m->gpus[0].driver : "(none)");
            st_fix(f, "run strata doctor on the host: the driver belongs there");
            st_avoid(f, "installing a driver inside the container");
        } else
            report_missing(d);
        return;
    }
    if (report_unserved(d)) return;
    bool exact = true;
    const char *cuda = m->driver[0] ? st_driver_cuda(m->facts, m->driver, &exact) : NULL;
    st_finding *f = st_report(d, ST_DRIVER, ST_FINDING_OK, "module",
                              "kernel module %s%s is loaded; programs up to CUDA %s%s (that is nvidia-smi's "
                              "\"CUDA Version\": a maximum, no toolkit)",
                              m->driver[0] ? m->driver : "of unknown version",
                              m->module_open ? " (open)" : "", cuda ? cuda : "?", exact ? "" : " or newer");
    st_evidence(f, "%s", m->driver_from);
    report_nodes(d);
    report_fabric(d);
}
