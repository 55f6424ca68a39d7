/* SPDX-License-Identifier: Apache-2.0 */
/* versions.c - which versions and GPUs go together, read from the tables. */
#include "facts/facts.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int st_version_cmp(const char *a, const char *b)
{
    for (;;) {
        while (*a && !isdigit((unsigned char)*a)) a++;
        while (*b && !isdigit((unsigned char)*b)) b++;
        if (!*a && !*b) return 0;
        unsigned long long x = 0, y = 0;
        for (; isdigit((unsigned char)*a); a++)
            if (x < 1000000000000ull) x = x * 10 + (unsigned)(*a - '0');
        for (; isdigit((unsigned char)*b); b++)
            if (y < 1000000000000ull) y = y * 10 + (unsigned)(*b - '0');
        if (x != y) return x < y ? -1 : 1;
    }
}

const char *st_driver_cuda(const st_facts *f, const char *driver, bool *exact)
{
    const st_table *t = st_facts_table(f, "driver_branch");
    int branch = atoi(driver), best = -1, best_branch = 0;
    for (int i = 0; i < t->rows; i++) {
        int b = atoi(st_table_get(t, i, "branch"));
        if (b <= branch && b > best_branch) {
            best = i;
            best_branch = b;
        }
    }
    if (exact) *exact = best_branch == branch;
    return best < 0 ? NULL : st_table_get(t, best, "cuda_version_in_nvidia_smi");
}

const char *st_cuda_min_driver(const st_facts *f, const char *cuda, bool windows)
{
    const st_table *t = st_facts_table(f, "driver_min");
    int major, minor = 0;
    if (sscanf(cuda, "%d.%d", &major, &minor) < 1) return NULL;
    const char *any = NULL;
    for (int i = 0; i < t->rows; i++) {
        if (atoi(st_table_get(t, i, "major")) != major) continue;
        bool minor_compat = strcmp(st_table_get(t, i, "minor_compat"), "yes") == 0;
        const char *floor =
            st_table_get(t, i, windows ? "min_windows_minor_compat" : "min_linux_minor_compat");
        const char *own = st_table_get(t, i, windows ? "driver_windows" : "driver_linux");
        if (minor_compat && isdigit((unsigned char)*floor)) any = floor;
        /* the rows of one release run from its last update to its first, which has the lowest driver */
        if (!minor_compat && atoi(st_table_get(t, i, "minor")) == minor && isdigit((unsigned char)*own))
            any = own;
    }
    return any;
}

int st_cc_of(const char *s)
{
    int major, minor, used = 0;
    char tail;
    if (strncmp(s, "sm_", 3) == 0 || strncmp(s, "sm ", 3) == 0) s += 3;
    if (strncmp(s, "cc ", 3) == 0) s += 3;
    if (sscanf(s, "%2d.%1d%n", &major, &minor, &used) == 2 && !s[used]) return major * 10 + minor;
    if (sscanf(s, "%3d%c", &major, &tail) == 1 && major >= 10 && major < 200) return major;
    return 0;
}

bool st_gpu_by_cc(const st_facts *f, int cc, st_gpu *g)
{
    const st_table *t = st_facts_table(f, "compute_capability");
    char key[16];
    snprintf(key, sizeof key, "%d.%d", cc / 10, cc % 10);
    int row = st_table_find(t, "cc", key);
    *g = (st_gpu){"", "", "", "", cc, "", "", "", ""};
    if (row < 0) return false;
    g->arch = st_table_get(t, row, "arch");
    g->last_branch = st_table_get(t, row, "last_driver_branch");
    g->first_toolkit = st_table_get(t, row, "first_toolkit");
    g->last_toolkit = st_table_get(t, row, "last_toolkit");
    g->open_module = st_table_get(t, row, "open_kernel_module");
    return true;
}

static void from_row(const st_facts *f, const st_table *t, int row, st_gpu *g)
{
    int cc = st_cc_of(st_table_get(t, row, "cc"));
    st_gpu_by_cc(f, cc, g);
    const char *full = st_table_get(t, row, "driver_name");
    g->name = *full ? full : st_table_get(t, row, "name");
    g->chip = st_table_get(t, row, "chip");
    g->segment = st_table_get(t, row, "segment");
    if (*st_table_get(t, row, "arch")) g->arch = st_table_get(t, row, "arch");
    if (*st_table_get(t, row, "last_driver_branch"))
        g->last_branch = st_table_get(t, row, "last_driver_branch");
}

bool st_gpu_by_id(const st_facts *f, unsigned device, st_gpu *g)
{
    const st_table *t = st_facts_table(f, "pci_ids");
    char key[16];
    snprintf(key, sizeof key, "%04x", device & 0xffff);
    int row = st_table_find(t, "device", key);
    *g = (st_gpu){"", "", "", "", 0, "", "", "", ""};
    if (row < 0) return false;
    from_row(f, t, row, g);
    return true;
}

/* lower-case words of letters and digits, split where letters meet digits: "RTX 2080Ti" -> rtx 2080 ti */
typedef struct words {
    int n;
    char w[16][24];
} words;
static void split(const char *s, words *o)
{
    o->n = 0;
    int k = 0;
    for (;; s++) {
        bool is = isalnum((unsigned char)*s);
        bool turn = k > 0 && is && isdigit((unsigned char)o->w[o->n][k - 1]) && !isdigit((unsigned char)*s);
        if (k && (!is || turn)) {
            o->w[o->n++][k] = 0;
            k = 0;
        }
        if (!*s || o->n == 16) return;
        if (is && k < 23) o->w[o->n][k++] = (char)tolower((unsigned char)*s);
    }
}

bool st_gpu_by_name(const st_facts *f, const char *name, st_gpu *g)
{
    const st_table *t = st_facts_table(f, "pci_ids");
    int column = st_table_column(t, "name"), best = -1, least = 100;
    words want, have;
    *g = (st_gpu){"", "", "", "", 0, "", "", "", ""};
    split(name, &want);
    int need = 0;
    bool has_digit = false;
    for (int i = 0; i < want.n; i++) {
        bool noise = !strcmp(want.w[i], "nvidia") || !strcmp(want.w[i], "geforce") ||
                     !strcmp(want.w[i], "tesla") || !strcmp(want.w[i], "quadro");
        if (noise) {
            want.w[i][0] = 0;
            continue;
        }
        need++;
        for (const char *p = want.w[i]; *p; p++) has_digit |= isdigit((unsigned char)*p) != 0;
    }
    if (need == 0 || (!has_digit && need < 2)) return false;
    for (int i = 0; i < t->rows; i++) {
        split(st_table_at(t, i, column), &have);
        int found = 0;
        bool noise = false;
        for (int a = 0; a < want.n; a++)
            for (int b = 0; b < have.n && want.w[a][0]; b++)
                if (strcmp(want.w[a], have.w[b]) == 0) {
                    found++;
                    break;
                }
        for (int b = 0; b < have.n; b++)
            noise |= !strcmp(have.w[b], "nvswitch") || !strcmp(have.w[b], "engineering");
        if (found < need || noise) continue;
        int rest = have.n - found;
        if (rest < least && st_cc_of(st_table_get(t, i, "cc"))) {
            least = rest;
            best = i;
        }
    }
    if (best < 0) return false;
    from_row(f, t, best, g);
    return true;
}

int st_cc_in_list(const char *list, int cc)
{
    int best = -1, newest = 0;
    for (const char *p = list; *p;) {
        while (*p && !isdigit((unsigned char)*p) && *p != '+' && *p != '(') p++;
        if (*p == '(' || !*p) break; /* a remark */
        if (*p == '+') {
            if (strncmp(p, "+PTX", 4) == 0 && best < 1 && newest && cc >= newest) best = 2;
            p++;
            continue;
        }
        int v = (int)strtol(p, (char **)&p, 10);
        if (best < 0) best = 0;
        if (v / 10 == cc / 10 && v <= cc) best = 1;
        if (v > newest) newest = v;
    }
    return best;
}
