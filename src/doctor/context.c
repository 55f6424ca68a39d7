/* SPDX-License-Identifier: Apache-2.0 */
/* context.c - what kind of machine this is: distribution, kernel, WSL, container, whose environment. */
#include "doctor/machine.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *st_environ(const st_machine *m, const char *name)
{
    size_t k = strlen(name);
    for (const char *p = m->environ_text, *end = p + m->environ_size; p && p < end; p += strlen(p) + 1)
        if (strncmp(p, name, k) == 0 && p[k] == '=') return p + k + 1;
    return NULL;
}

bool st_debian_like(const st_machine *m)
{
    return !strcmp(m->os_id, "debian") || !strcmp(m->os_id, "ubuntu") || !strcmp(m->os_id, "linuxmint");
}

static void os_field(const char *text, const char *key, char *out, size_t n)
{
    size_t k = strlen(key);
    for (const char *p = text; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
        if (strncmp(p, key, k) || p[k] != '=') continue;
        p += k + 1;
        if (*p == '"' || *p == '\'') p++;
        st_put(out, n, "%.*s", (int)strcspn(p, "\"'\n"), p);
        return;
    }
}

static void read_os(st_machine *m)
{
    char *text = st_root_read(m->root, "/etc/os-release", 16384, NULL);
    if (!text) text = st_root_read(m->root, "/usr/lib/os-release", 16384, NULL);
    if (text) {
        os_field(text, "PRETTY_NAME", m->os, sizeof m->os);
        os_field(text, "ID", m->os_id, sizeof m->os_id);
    }
    free(text);
    st_root_line(m->root, "/proc/sys/kernel/osrelease", m->kernel, sizeof m->kernel);
    if (!m->kernel[0]) {
        char line[256] = "";
        st_root_line(m->root, "/proc/version", line, sizeof line);
        if (strncmp(line, "Linux version ", 14) == 0)
            st_put(m->kernel, sizeof m->kernel, "%.*s", (int)strcspn(line + 14, " "), line + 14);
    }
}

static void read_container(st_machine *m)
{
    const char *kind = NULL, *named = st_environ(m, "container");
    char *groups = st_root_read(m->root, "/proc/1/cgroup", 65536, NULL);
    if (st_root_exists(m->root, "/run/.containerenv"))
        kind = "podman";
    else if (st_root_exists(m->root, "/var/run/secrets/kubernetes.io") ||
             st_environ(m, "KUBERNETES_SERVICE_HOST") || (groups && strstr(groups, "kubepods")))
        kind = "kubernetes";
    else if (st_root_exists(m->root, "/.dockerenv") || (groups && strstr(groups, "docker")))
        kind = "docker";
    else if (groups && (strstr(groups, "containerd") || strstr(groups, "/lxc/")))
        kind = strstr(groups, "containerd") ? "containerd" : "lxc";
    else if (st_root_exists(m->root, "/.singularity.d"))
        kind = "apptainer";
    else if (named && *named)
        kind = named;
    if (kind) st_put(m->container, sizeof m->container, "%s", kind);
    free(groups);
}

void st_probe_context(st_doctor *d)
{
    st_machine *m = &d->m;
    m->environ_text = st_root_read(m->root, "/proc/self/environ", 1 << 20, &m->environ_size);
    m->uid = -1;
    char *status = st_root_read(m->root, "/proc/self/status", 16384, NULL),
         *uid = status ? strstr(status, "\nUid:") : NULL;
    if (uid) { /* real, then effective */
        strtol(uid + 5, &uid, 10);
        m->uid = strtol(uid, NULL, 10);
    }
    static const char *const lines[] = {"\nGid:", "\nGroups:"};
    for (int i = 0; i < 2; i++) {
        char *p = status ? strstr(status, lines[i]) : NULL, *end = p ? p + strlen(lines[i]) : NULL;
        while (end && m->group_count < ST_COUNT(m->groups)) {
            end += strspn(end, " \t");
            if (!isdigit((unsigned char)*end)) break;
            m->groups[m->group_count++] = strtol(end, &end, 10);
        }
    }
    free(status);
    read_os(m);
    char lower[sizeof m->kernel];
    for (size_t i = 0; i < sizeof lower; i++) lower[i] = (char)tolower((unsigned char)m->kernel[i]);
    m->wsl =
        strstr(lower, "microsoft") != NULL || st_root_exists(m->root, "/proc/sys/fs/binfmt_misc/WSLInterop");
    read_container(m);
    st_put(d->summary, sizeof d->summary, "%s%s%s%s%s%s%s", *m->os ? m->os : "unknown system",
           *m->kernel ? ", kernel " : "", m->kernel, m->wsl ? ", WSL2" : "",
           *m->container ? ", container (" : "", m->container, *m->container ? ")" : "");
}
