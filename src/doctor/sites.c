/* SPDX-License-Identifier: Apache-2.0 */
/* sites.c - the Python package folders of a machine, and the packages in them that belong to the GPU stack. */
#include "doctor/machine.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool interesting(const char *name)
{
    static const char *const heads[] = {"nvidia_", "torch", "tensorflow", "jax", "cupy", "onnxruntime"};
    for (int i = 0; i < ST_COUNT(heads); i++)
        if (strncmp(name, heads[i], strlen(heads[i])) == 0) return true;
    return false;
}

/* "nvidia_cudnn_cu12-9.10.2.21.dist-info" */
static void read_dist(st_site *s, const char *file)
{
    const char *end = strstr(file, ".dist-info"), *dash = strchr(file, '-');
    if (!end || end[10] || !dash || dash > end || s->dist_count == MAX_DISTS || !interesting(file)) return;
    if (!s->dists && !(s->dists = calloc(MAX_DISTS, sizeof *s->dists))) return;
    st_dist *x = &s->dists[s->dist_count++];
    st_put(x->name, sizeof x->name, "%.*s", (int)(dash - file), file);
    for (char *p = x->name; *p; p++) *p = *p == '_' ? '-' : (char)tolower((unsigned char)*p);
    st_put(x->version, sizeof x->version, "%.*s", (int)(end - dash - 1), dash + 1);
}

const char *st_dist_version(const st_site *s, const char *name)
{
    size_t n = strlen(name);
    for (int i = 0; i < s->dist_count; i++) {
        const char *have = s->dists[i].name;
        /* nvidia-cudnn matches nvidia-cudnn-cu12 and -cu13 as well */
        bool suffixed =
            strncmp(have, name, n) == 0 && strncmp(have + n, "-cu", 3) == 0 && strlen(have + n) == 5;
        if ((strcmp(have, name) == 0 || suffixed) && strncmp(s->dists[i].version, "0.0.", 4) != 0)
            return s->dists[i].version;
    }
    return NULL;
}

static void add_site(st_machine *m, const char *path, bool active)
{
    char real[ST_PATH];
    st_list l;
    if (!st_root_resolve(m->root, path, real) || strlen(real) >= sizeof m->sites[0].path) return;
    for (int i = 0; i < m->site_count; i++)
        if (strcmp(m->sites[i].path, real) == 0) {
            m->sites[i].active |= active;
            return;
        }
    if (m->site_count == MAX_SITES || !st_root_list(m->root, real, &l)) return;
    st_site *s = &m->sites[m->site_count];
    memset(s, 0, sizeof *s);
    for (int i = 0; i < l.n; i++) read_dist(s, l.name[i]);
    st_list_free(&l);
    if (!s->dist_count) return;
    strcpy(s->path, real);
    s->active = active;
    m->site_count++;
}

/* lib/python3.x/{site,dist}-packages below a prefix */
static bool add_prefix(st_machine *m, const char *prefix, bool active)
{
    static const char *const libs[] = {"lib", "lib64"};
    int before = m->site_count;
    bool any = false;
    for (int k = 0; k < 2; k++) {
        char path[700];
        st_list l;
        st_put(path, sizeof path, "%s/%s", prefix, libs[k]);
        if (strlen(prefix) > 200 || !st_root_list(m->root, path, &l)) continue;
        for (int i = 0; i < l.n; i++) {
            if (strncmp(l.name[i], "python3", 7) != 0) continue;
            any = true;
            st_put(path, sizeof path, "%s/%s/%s/site-packages", prefix, libs[k], l.name[i]);
            add_site(m, path, active);
            st_put(path, sizeof path, "%s/%s/%s/dist-packages", prefix, libs[k], l.name[i]);
            add_site(m, path, active);
        }
        st_list_free(&l);
    }
    return any || m->site_count > before;
}

static void add_children(st_machine *m, const char *dir, const char *suffix)
{
    st_list l;
    if (!st_root_list(m->root, dir, &l)) return;
    for (int i = 0; i < l.n && i < 256; i++) {
        char path[600];
        st_put(path, sizeof path, "%s/%s%s", dir, l.name[i], suffix);
        add_prefix(m, path, false);
    }
    st_list_free(&l);
}

void st_find_sites(st_machine *m)
{
    const char *venv = st_environ(m, "VIRTUAL_ENV"), *conda = st_environ(m, "CONDA_PREFIX"),
               *home = st_environ(m, "HOME");
    char path[600];
    bool own = false;
    if (venv && *venv == '/') own |= add_prefix(m, venv, true);
    if (conda && *conda == '/' && !own) own |= add_prefix(m, conda, true);
    const char *p = st_environ(m, "PATH");
    while (p && *p) { /* the first bin directory that belongs to a Python of its own */
        size_t k = strcspn(p, ":");
        if (k > 4 && k < 200 && strncmp(p + k - 4, "/bin", 4) == 0) {
            st_put(path, sizeof path, "%.*s/pyvenv.cfg", (int)(k - 4), p);
            bool is = st_root_exists(m->root, path);
            st_put(path, sizeof path, "%.*s/conda-meta", (int)(k - 4), p);
            is = is || st_root_exists(m->root, path);
            st_put(path, sizeof path, "%.*s", (int)(k - 4), p);
            if (is && add_prefix(m, path, !own)) own = true;
        }
        p += k;
        if (*p) p++;
    }
    if (home && *home == '/' && strlen(home) < 200) {
        st_put(path, sizeof path, "%s/.local", home);
        add_prefix(m, path, !own);
    }
    add_prefix(m, "/usr/local", !own);
    add_prefix(m, "/usr", !own);
    add_prefix(m, "/opt/conda", false);
    add_prefix(m, "/root/.local", false);
    add_children(m, "/opt", "");
    add_children(m, "/opt", "/.venv");
    add_children(m, "/opt/conda/envs", "");
    add_children(m, "/home", "/.local");
    add_children(m, "/home", "/venv");
    add_children(m, "/home", "/.venv");
    add_children(m, "/home", "/miniconda3");
    add_children(m, "/home", "/anaconda3");
    add_children(m, "/home", "/miniforge3");
    const char *work = st_environ(m, "PWD");
    if (work && *work == '/' && strlen(work) < 200) {
        st_put(path, sizeof path, "%s/.venv", work);
        add_prefix(m, path, false);
        st_put(path, sizeof path, "%s/venv", work);
        add_prefix(m, path, false);
    }
    bool any = false;
    for (int i = 0; i < m->site_count; i++) any |= m->sites[i].active;
    for (int i = 0; i < m->site_count && !any && m->site_count == 1; i++) m->sites[i].active = true;
}
