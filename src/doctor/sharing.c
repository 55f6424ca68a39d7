/* SPDX-License-Identifier: Apache-2.0 */
/* sharing.c - who else uses the GPU and who may: processes that hold its device files, the cgroup's device rules, Docker's way to it. */
#include "doctor/machine.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PROCESSES = 4096, MAX_FDS = 1024, NVIDIA_MAJOR = 195 };

/* ---- processes with a device file open ----------------------------------------------------------------------------------- */
static bool holds_node(st_machine *m, const char *dir, bool *refused)
{
    st_list l;
    bool found = false;
    if (!st_root_list(m->root, dir, &l)) {
        *refused |= errno == EACCES || errno == EPERM;
        return false;
    }
    for (int i = 0; i < l.n && i < MAX_FDS && !found; i++) {
        char path[128], to[ST_PATH];
        st_put(path, sizeof path, "%.64s/%.24s", dir, l.name[i]);
        if (!st_root_readlink(m->root, path, to) || strncmp(to, "/dev/nvidia", 11)) continue;
        found = isdigit((unsigned char)to[11]) || strncmp(to + 11, "-uvm", 4) == 0;
    }
    st_list_free(&l);
    return found;
}

/* A zombie's threads may live on: their files are seen through the threads only. */
static bool threads_hold(st_machine *m, const char *pid, bool *refused)
{
    char path[96];
    st_list l;
    bool found = false;
    st_put(path, sizeof path, "/proc/%.16s/task", pid);
    if (!st_root_list(m->root, path, &l)) return false;
    for (int i = 0; i < l.n && i < 256 && !found; i++) {
        st_put(path, sizeof path, "/proc/%.16s/task/%.16s/fd", pid, l.name[i]);
        found = holds_node(m, path, refused);
    }
    st_list_free(&l);
    return found;
}

static char read_state(st_machine *m, const char *pid, char *name, size_t n, long *parent)
{
    *parent = 0;
    char path[64], line[512];
    st_put(path, sizeof path, "/proc/%.16s/stat", pid);
    name[0] = 0;
    if (!st_root_line(m->root, path, line, sizeof line)) return 0;
    const char *open = strchr(line, '('), *close = strrchr(line, ')');
    if (!open || !close || close < open) return 0;
    st_put(name, n, "%.*s", (int)(close - open - 1), open + 1);
    if (close[1] != ' ' || !close[2]) return 0;
    *parent = strtol(close + 3, NULL, 10);
    return close[2];
}

static void report_holders(st_doctor *d)
{
    st_machine *m = &d->m;
    st_list l;
    char list[220] = "", name[64];
    int n = 0;
    bool refused = false;
    if (!st_root_list(m->root, "/proc", &l)) return;
    for (int i = 0, seen = 0; i < l.n && seen < MAX_PROCESSES; i++) {
        char path[64];
        if (!isdigit((unsigned char)l.name[i][0])) continue;
        seen++;
        st_put(path, sizeof path, "/proc/%.16s/fd", l.name[i]);
        long parent = 0;
        bool zombie = false, holds = holds_node(m, path, &refused);
        if (!holds) {
            zombie = read_state(m, l.name[i], name, sizeof name, &parent) == 'Z';
            holds = zombie && threads_hold(m, l.name[i], &refused);
        }
        if (!holds) continue;
        read_state(m, l.name[i], name, sizeof name, &parent);
        if (st_root_is_host(m->root) && parent == (long)getpid())
            continue; /* our own questions to the driver */
        if (zombie) {
            st_finding *f = st_report(
                d, ST_APPLICATION, ST_FINDING_WARNING, "zombie_holds_gpu",
                "process %.16s (%s) has ended, but a thread of it still holds the GPU and its memory",
                l.name[i], name);
            st_evidence(f,
                        "/proc/%.16s/stat says Z, /proc/%.16s/task has threads with /dev/nvidia files open",
                        l.name[i], l.name[i]);
            st_fix(f,
                   "end its parent (ps -o ppid= -p %.16s); a thread in state D hangs in the driver: dmesg | "
                   "strata explain, then reboot",
                   l.name[i]);
        }
        if (strcmp(name, "nvidia-persiste") == 0) continue; /* the daemon that keeps the driver up */
        size_t used = strlen(list);
        if (n++ < 8)
            st_put(list + used, sizeof list - used, "%s%.16s (%s)", used ? ", " : "", l.name[i], name);
    }
    st_list_free(&l);
    if (!n) return;
    st_finding *f =
        st_report(d, ST_APPLICATION, ST_FINDING_NOTE, "gpu_in_use", "%d process%s the GPU open: %s%s", n,
                  n == 1 ? " has" : "es have", list, n > 8 ? " ..." : "");
    st_evidence(f, "/proc/PID/fd links to /dev/nvidia*%s",
                refused ? "; those of other users are seen as root only" : "");
}

/* ---- cgroup v1 device rules ------------------------------------------------------------------------------------------------ */
/* "c 195:* rwm": are reading and writing of this character device allowed? */
static bool allows(const char *rules, int major)
{
    for (const char *p = rules; *p;) {
        char kind = 0, numbers[32] = "", access[8] = "";
        if (sscanf(p, " %c %31s %7s", &kind, numbers, access) == 3 && (kind == 'a' || kind == 'c') &&
            strchr(access, 'r') && strchr(access, 'w') && (numbers[0] == '*' || atoi(numbers) == major))
            return true;
        p = strchr(p, '\n');
        if (!p) break;
        p++;
    }
    return false;
}

static int uvm_major(st_machine *m)
{
    char *text = st_root_read(m->root, "/proc/devices", 65536, NULL),
         *at = text ? strstr(text, " nvidia-uvm\n") : NULL;
    int major = 0;
    if (at) {
        while (at > text && at[-1] != '\n') at--;
        major = atoi(at);
    }
    free(text);
    return major;
}

static void report_cgroup(st_doctor *d)
{
    st_machine *m = &d->m;
    char path[ST_PATH], *groups = st_root_read(m->root, "/proc/self/cgroup", 65536, NULL), *rules = NULL;
    const char *own = groups ? strstr(groups, ":devices:") : NULL;
    if (own) {
        st_put(path, sizeof path, "/sys/fs/cgroup/devices%.*s/devices.list", (int)strcspn(own + 9, "\n"),
               own + 9);
        rules = st_root_read(m->root, path, 65536, NULL);
        if (!rules) { /* a container sees its own group as the root */
            st_put(path, sizeof path, "/sys/fs/cgroup/devices/devices.list");
            rules = st_root_read(m->root, path, 65536, NULL);
        }
    }
    free(groups);
    if (!rules) return;
    int uvm = uvm_major(m), missing = !allows(rules, NVIDIA_MAJOR) ? NVIDIA_MAJOR
                                      : uvm && !allows(rules, uvm) ? uvm
                                                                   : 0;
    free(rules);
    if (!missing) return;
    st_finding *f = st_report(d, ST_DRIVER, ST_FINDING_FAULT, "cgroup_devices",
                              "the cgroup of this %s does not allow the device files of the GPU (character "
                              "devices %d:*), whatever their modes say",
                              *m->container ? "container" : "session", missing);
    st_evidence(f, "%s has no line for c %d:* rw", path, missing);
    st_fix(f,
           *m->container ? "start the container through the NVIDIA runtime (docker run --gpus all), or add "
                           "--device-cgroup-rule='c %d:* rmw'; after a "
                           "'systemctl daemon-reload' on the host: restart the container"
                         : "ask for the GPU in the batch system's request (Slurm: --gres=gpu:1); c %d:* is "
                           "what it must allow",
           missing);
    st_avoid(f, "chmod on the device files");
}

/* ---- containers on this host ------------------------------------------------------------------------------------------------ */
static void report_docker(st_doctor *d)
{
    st_machine *m = &d->m;
    if (*m->container || m->wsl || !m->module_loaded) return;
    bool docker = st_root_exists(m->root, "/usr/bin/dockerd") || st_root_exists(m->root, "/etc/docker");
    if (!docker) return;
    st_finding *f;
    if (!st_root_exists(m->root, "/usr/bin/nvidia-ctk") &&
        !st_root_exists(m->root, "/usr/bin/nvidia-container-runtime")) {
        f = st_report(d, ST_DRIVER, ST_FINDING_NOTE, "no_container_toolkit",
                      "Docker is here without NVIDIA's container toolkit: containers get no GPU");
        st_evidence(f, "/usr/bin/nvidia-ctk is missing");
        st_fix(f, "install nvidia-container-toolkit (NVIDIA's repository), then: sudo nvidia-ctk runtime "
                  "configure --runtime=docker && sudo systemctl restart docker");
        return;
    }
    char *config = st_root_read(m->root, "/etc/docker/daemon.json", 1 << 20, NULL);
    bool known = (config && strstr(config, "nvidia")) || st_root_exists(m->root, "/etc/cdi/nvidia.yaml") ||
                 st_root_exists(m->root, "/var/run/cdi/nvidia.yaml");
    free(config);
    if (known) return;
    f = st_report(d, ST_DRIVER, ST_FINDING_NOTE, "docker_unconfigured",
                  "NVIDIA's container toolkit is installed, but Docker does not know it");
    st_evidence(f, "/etc/docker/daemon.json does not name nvidia, /etc/cdi/nvidia.yaml is missing");
    st_fix(f, "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker");
}

void st_probe_sharing(st_doctor *d)
{
    st_machine *m = &d->m;
    if (!m->module_loaded) return;
    report_cgroup(d);
    report_docker(d);
    report_holders(d);
}
