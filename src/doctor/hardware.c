/* SPDX-License-Identifier: Apache-2.0 */
/* hardware.c - the GPUs on the PCI bus, from sysfs. */
#include "doctor/machine.h"
#include <stdlib.h>
#include <string.h>

static unsigned hex_file(st_machine *m, const char *dir, const char *file)
{
    char path[ST_PATH], line[32];
    st_put(path, sizeof path, "%s/%s", dir, file);
    return st_root_line(m->root, path, line, sizeof line) ? (unsigned)strtoul(line, NULL, 16) : 0;
}

static void read_gpu(st_machine *m, const char *dir, const char *bus, unsigned device)
{
    if (m->gpu_count == MAX_GPUS) return;
    st_pci_gpu *g = &m->gpus[m->gpu_count++];
    char path[ST_PATH], link[ST_PATH];
    st_put(g->bus, sizeof g->bus, "%s", bus);
    g->device = device;
    g->known = st_gpu_by_id(m->facts, device, &g->gpu);
    st_put(path, sizeof path, "%s/driver", dir);
    if (st_root_readlink(m->root, path, link)) {
        const char *name = strrchr(link, '/');
        st_put(g->driver, sizeof g->driver, "%s", name ? name + 1 : link);
    }
    size_t n = 0;
    st_put(path, sizeof path, "%s/config", dir);
    char *config = st_root_read(m->root, path, 64, &n);
    g->lost = n >= 4 && memcmp(config, "\377\377\377\377", 4) == 0;
    free(config);
}

static void report_gpu(st_doctor *d, const st_pci_gpu *g)
{
    st_finding *f;
    char cc[64] = "compute capability not in the tables";
    if (g->known && g->gpu.cc)
        st_put(cc, sizeof cc, "compute capability %d.%d", g->gpu.cc / 10, g->gpu.cc % 10);
    if (g->lost) {
        f = st_report(d, ST_HARDWARE, ST_FINDING_FAULT, "gpu_lost", "GPU %s no longer answers on the bus",
                      g->bus);
        st_evidence(f, "/sys/bus/pci/devices/%s/config reads ff ff ff ff", g->bus);
        st_fix(f, "power the machine off and on (a warm reboot may not do); if it comes back: check power "
                  "cable, seating, riser and cooling");
        st_avoid(f, "reinstalling driver, CUDA or cuDNN: the card itself does not answer");
        return;
    }
    f = st_report(d, ST_HARDWARE, ST_FINDING_OK, "gpu", "%s: %s (10de:%04x), %s", g->bus,
                  g->known ? g->gpu.name : "an NVIDIA GPU that the tables do not know", g->device, cc);
    st_evidence(f, "/sys/bus/pci/devices/%s/device", g->bus);
}

void st_probe_hardware(st_doctor *d)
{
    st_machine *m = &d->m;
    st_list l;
    bool seen = st_root_list(m->root, "/sys/bus/pci/devices", &l);
    for (int i = 0; i < l.n && seen; i++) {
        char dir[ST_PATH];
        st_put(dir, sizeof dir, "/sys/bus/pci/devices/%s", l.name[i]);
        if (hex_file(m, dir, "vendor") != 0x10de) continue;
        unsigned kind = hex_file(m, dir, "class") >> 8, device = hex_file(m, dir, "device");
        if (kind == 0x0300 || kind == 0x0302) read_gpu(m, dir, l.name[i], device);
        if (kind == 0x0680) m->nvswitch_count++;
    }
    st_list_free(&l);
    for (int i = 0; i < m->gpu_count; i++) {
        report_gpu(d, &m->gpus[i]);
        int cc = m->gpus[i].gpu.cc;
        if (cc && (!m->oldest_cc || cc < m->oldest_cc)) m->oldest_cc = cc;
    }
    if (m->gpu_count) return;
    st_finding *f;
    if (m->wsl && st_root_exists(m->root, "/dev/dxg")) {
        f = st_report(d, ST_HARDWARE, ST_FINDING_OK, "gpu_dxg",
                      "the GPU is reached through Windows (/dev/dxg); WSL shows no PCI device for it");
        st_evidence(f, "/dev/dxg exists");
    } else if (m->wsl) {
        f = st_report(d, ST_HARDWARE, ST_FINDING_ABSENT, "no_gpu", "no GPU: WSL offers no /dev/dxg");
        st_evidence(f, "/dev/dxg is missing");
        st_fix(f, "if Windows has an NVIDIA GPU: wsl --update, a current Windows driver, wsl --shutdown; "
                  "WSL1 has no GPU support");
    } else if (st_root_exists(m->root, "/etc/nv_tegra_release")) {
        f = st_report(d, ST_HARDWARE, ST_FINDING_OK, "tegra",
                      "a Jetson: the GPU is part of the chip and is not on the PCI bus");
        st_evidence(f, "/etc/nv_tegra_release");
    } else {
        f = st_report(d, ST_HARDWARE, ST_FINDING_ABSENT, "no_gpu",
                      "no NVIDIA GPU on the PCI bus: fine for work on the CPU");
        st_evidence(f, seen ? "/sys/bus/pci/devices has no device of vendor 10de with a display class"
                            : "/sys/bus/pci/devices cannot be read");
    }
}
