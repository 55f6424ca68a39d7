/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h - machines for the doctor's tests, built at test time from descriptions in tests/fixtures/doctor/NAME.tree.
 *
 * One line is one thing; what begins with a word of the first table is a short form for several files:
 *     use NAME                          the lines of another description first
 *     ubuntu|debian|fedora VERSION KERNEL     os-release and kernel release
 *     wsl KERNEL                        an Ubuntu in WSL2 with its /dev/dxg and Windows libcuda (nodxg after it: without both)
 *     container KIND                    marks of docker, podman, kubernetes
 *     gpu BUS DEVICE [DRIVER|-] [lost]  a PCI function of vendor 10de; class 0302 (NVSwitch: nvswitch BUS)
 *     driver VERSION [open]             a loaded kernel module;   nodes [MODE]: its device files
 *     userspace VERSION [DIR]           libcuda, libnvidia-ml with links and cache lines (nocache after it: without those)
 *     toolkit VERSION [default]         /usr/local/cuda-X.Y with nvcc, cudart, cublas, nvJitLink
 *     cudnn DIR RELEASE [cache] [-LIB]  all files of a cuDNN 9 release (wheel layout, or with version names and links if cache)
 *     dist SITE NAME VERSION            a package's .dist-info;   torch SITE VERSION CUDA|None
 *     env NAME=VALUE                    /proc/self/environ; a later one of the same name replaces it
 *     uid N                             /proc/self/status
 * the rest is literal:
 *     dir PATH      link PATH TARGET      fifo PATH      file PATH [MODE] then lines "| text"      bytes PATH HEX...
 *     elf PATH SONAME [key=value ...]     keys: needed, rpath, runpath, cudnn=9.10.2, nvrtc=13.0, cublas=130100, string=..., blas=all|fortran
 *     cache SONAME PATH                   a line of /etc/ld.so.cache */
#ifndef TREE_H
#define TREE_H
#include "doctor/root.h"
#include "facts/facts.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct tree {
    char root[64];
    char env[4096];
    size_t env_size;
    int cached;
    char names[128][80], paths[128][200];
    const char *fixtures;
    st_facts *facts; /* for the list of BLAS symbols */
} tree;

static inline void tree_fail(const char *what, const char *which)
{
    fprintf(stderr, "tree: %s: %s (%s)\n", what, which, strerror(errno));
    abort();
}

static inline void tree_path(const tree *t, const char *path, char out[512])
{
    st_put(out, 512, "%s%s", t->root, path);
    for (char *p = out + strlen(t->root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = 0;
        if (mkdir(out, 0755) && errno != EEXIST) tree_fail("mkdir", out);
        *p = '/';
    }
}

static inline void tree_write(const tree *t, const char *path, const void *data, size_t n)
{
    char full[512];
    tree_path(t, path, full);
    unlink(full);
    int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, data, n) != (ssize_t)n) tree_fail("write", full);
    close(fd);
}

static inline void tree_text(const tree *t, const char *path, const char *text)
{
    tree_write(t, path, text, strlen(text));
}

static inline void tree_link(const tree *t, const char *path, const char *target)
{
    char full[512];
    tree_path(t, path, full);
    unlink(full);
    if (symlink(target, full)) tree_fail("symlink", full);
}

static inline void tree_cache(tree *t, const char *name, const char *path)
{
    if (t->cached == 128) tree_fail("too many cache lines", name);
    st_put(t->names[t->cached], sizeof t->names[0], "%s", name);
    st_put(t->paths[t->cached++], sizeof t->paths[0], "%s", path);
}

/* ---- a small shared library ---------------------------------------------------------------------------------------------- */
typedef struct elf_maker {
    char strings[65536], data[4096];
    size_t string_size, data_size;
    Elf64_Sym symbols[512];
    int symbol_count;
    Elf64_Dyn dynamic[32];
    int dynamic_count;
} elf_maker;

static inline size_t elf_string(elf_maker *m, const char *s)
{
    size_t at = m->string_size, n = strlen(s) + 1;
    if (at + n > sizeof m->strings) tree_fail("too many strings", s);
    memcpy(m->strings + at, s, n);
    m->string_size += n;
    return at;
}

static inline void elf_dynamic(elf_maker *m, int64_t tag, uint64_t value)
{
    m->dynamic[m->dynamic_count++] = (Elf64_Dyn){.d_tag = tag, .d_un.d_val = value};
}

static inline void elf_symbol(elf_maker *m, const char *name, int type, const void *data, size_t n)
{
    Elf64_Sym *s = &m->symbols[m->symbol_count++];
    *s = (Elf64_Sym){.st_name = (Elf64_Word)elf_string(m, name),
                     .st_info = (unsigned char)ELF64_ST_INFO(STB_GLOBAL, type),
                     .st_shndx = 1,
                     .st_value = m->data_size,
                     .st_size = n};
    memcpy(m->data + m->data_size, data, n);
    m->data_size += n;
}

static inline void elf_start(elf_maker *m, const char *soname)
{
    memset(m, 0, sizeof *m);
    elf_string(m, "");
    m->symbol_count = 1;
    if (*soname) elf_dynamic(m, DT_SONAME, elf_string(m, soname));
}

/* writes the file image into out; returns its size */
static inline size_t elf_finish(elf_maker *m, unsigned char *out, size_t room)
{
    uint64_t hash = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr), symbols = hash + 16,
             strings = symbols + (uint64_t)m->symbol_count * sizeof(Elf64_Sym);
    uint64_t data = (strings + m->string_size + 15) & ~15ull, dynamic = (data + m->data_size + 15) & ~15ull;
    for (int i = 1; i < m->symbol_count; i++) m->symbols[i].st_value += data;
    elf_dynamic(m, DT_HASH, hash);
    elf_dynamic(m, DT_SYMTAB, symbols);
    elf_dynamic(m, DT_STRTAB, strings);
    elf_dynamic(m, DT_STRSZ, m->string_size);
    elf_dynamic(m, DT_NULL, 0);
    uint64_t size = dynamic + (uint64_t)m->dynamic_count * sizeof(Elf64_Dyn);
    if (size > room) tree_fail("library too large", "");
    memset(out, 0, size);
    Elf64_Ehdr h = {.e_type = ET_DYN,
                    .e_machine = EM_X86_64,
                    .e_version = 1,
                    .e_phoff = sizeof h,
                    .e_ehsize = sizeof h,
                    .e_phentsize = sizeof(Elf64_Phdr),
                    .e_phnum = 2};
    memcpy(h.e_ident, "\177ELF\2\1\1", 7);
    Elf64_Phdr p[2] = {{.p_type = PT_LOAD, .p_flags = 5, .p_filesz = size, .p_memsz = size, .p_align = 4096},
                       {.p_type = PT_DYNAMIC,
                        .p_flags = 4,
                        .p_offset = dynamic,
                        .p_vaddr = dynamic,
                        .p_filesz = size - dynamic,
                        .p_memsz = size - dynamic,
                        .p_align = 8}};
    uint32_t head[4] = {1, (uint32_t)m->symbol_count, 0, 0};
    memcpy(out, &h, sizeof h);
    memcpy(out + sizeof h, p, sizeof p);
    memcpy(out + hash, head, sizeof head);
    memcpy(out + symbols, m->symbols, (size_t)m->symbol_count * sizeof(Elf64_Sym));
    memcpy(out + strings, m->strings, m->string_size);
    memcpy(out + data, m->data, m->data_size);
    memcpy(out + dynamic, m->dynamic, (size_t)m->dynamic_count * sizeof(Elf64_Dyn));
    return size;
}

static inline void elf_option(tree *t, elf_maker *m, const char *soname, const char *key, const char *value)
{
    unsigned a = 0, b = 0, c = 0;
    sscanf(value, "%u.%u.%u", &a, &b, &c);
    if (!strcmp(key, "needed")) elf_dynamic(m, DT_NEEDED, elf_string(m, value));
    if (!strcmp(key, "runpath")) elf_dynamic(m, DT_RUNPATH, elf_string(m, value));
    if (!strcmp(key, "rpath")) elf_dynamic(m, DT_RPATH, elf_string(m, value));
    if (!strcmp(key, "string")) { /* between NULs, as in .rodata */
        m->data[m->data_size++] = 0;
        memcpy(m->data + m->data_size, value, strlen(value) + 1);
        for (char *p = m->data + m->data_size; *p; p++)
            if (*p == '_') *p = ' ';
        m->data_size += strlen(value) + 1;
    }
    if (!strcmp(key, "cudnn")) {
        uint32_t v = a << 16 | b << 8 | c;
        if (strstr(soname, "graph")) elf_symbol(m, "cudnn_graph_version", STT_OBJECT, &v, 4);
        if (strstr(soname, "_ops")) elf_symbol(m, "cudnn_ops_infer_version", STT_OBJECT, &v, 4);
    }
    if (!strcmp(key, "nvrtc")) { /* movl $a,(%rdi); xor %eax,%eax; movl $b,(%rsi); ret */
        unsigned char code[16] = {0xc7, 0x07, (unsigned char)a, 0, 0, 0, 0x31, 0xc0,
                                  0xc7, 0x06, (unsigned char)b, 0, 0, 0, 0xc3};
        elf_symbol(m, strstr(soname, "nvJitLink") ? "nvJitLinkVersion" : "nvrtcVersion", STT_FUNC, code, 15);
    }
    if (!strcmp(key, "cublas")) {
        unsigned char code[8] = {0xb8, (unsigned char)a, (unsigned char)(a >> 8), (unsigned char)(a >> 16), 0,
                                 0xc3};
        elf_symbol(m, "cublasLtGetVersion", STT_FUNC, code, 8);
    }
    const st_table *blas = !strcmp(key, "blas") ? st_facts_table(t->facts, "blas_symbols") : NULL;
    for (int i = 0; blas && i < blas->rows; i++) {
        const char *name = st_table_at(blas, i, 0);
        if (!strcmp(value, "fortran") && !strcmp(st_table_at(blas, i, 1), "cblas")) continue;
        if (!strcmp(value, "nodcabs1") && !strcmp(name, "dcabs1_")) continue;
        if (!strcmp(value, "noxerbla") && strstr(name, "xerbla_array")) continue;
        elf_symbol(m, name, STT_FUNC, "\303", 1);
    }
}

/* options: "key=value key=value" */
static inline void tree_elf(tree *t, const char *path, const char *soname, const char *options)
{
    static unsigned char image[1 << 18];
    elf_maker *m = malloc(sizeof *m);
    char copy[512], *save = NULL;
    if (!m) abort();
    elf_start(m, soname);
    st_put(copy, sizeof copy, "%s", options ? options : "");
    for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        char *eq = strchr(w, '=');
        if (!eq) tree_fail("option without =", w);
        *eq = 0;
        elf_option(t, m, soname, w, eq + 1);
    }
    tree_write(t, path, image, elf_finish(m, image, sizeof image));
    free(m);
}

/* ---- /etc/ld.so.cache ------------------------------------------------------------------------------------------------------ */
static inline size_t cache_image(const tree *t, unsigned char *out, size_t room)
{
    size_t at = 48 + (size_t)t->cached * 24;
    memset(out, 0, room);
    memcpy(out, "glibc-ld.so.cache1.1", 20);
    for (int i = 0; i < t->cached; i++) {
        uint32_t entry[3] = {0x0303, (uint32_t)at, (uint32_t)(at + strlen(t->names[i]) + 1)};
        strcpy((char *)out + at, t->names[i]);
        strcpy((char *)out + entry[2], t->paths[i]);
        at = entry[2] + strlen(t->paths[i]) + 1;
        memcpy(out + 48 + (size_t)i * 24, entry, sizeof entry);
    }
    uint32_t count = (uint32_t)t->cached, strings = (uint32_t)(at - 48 - (size_t)t->cached * 24);
    memcpy(out + 20, &count, 4);
    memcpy(out + 24, &strings, 4);
    return at;
}

/* ---- short forms ------------------------------------------------------------------------------------------------------------ */
static inline void tree_gpu(const tree *t, const char *bus, const char *device, const char *class,
                            const char *driver, bool lost)
{
    char path[256], text[64];
    st_put(path, sizeof path, "/sys/bus/pci/devices/%s/vendor", bus);
    tree_text(t, path, "0x10de\n");
    st_put(path, sizeof path, "/sys/bus/pci/devices/%s/device", bus);
    st_put(text, sizeof text, "0x%s\n", device);
    tree_text(t, path, text);
    st_put(path, sizeof path, "/sys/bus/pci/devices/%s/class", bus);
    st_put(text, sizeof text, "0x%s00\n", class);
    tree_text(t, path, text);
    st_put(path, sizeof path, "/sys/bus/pci/devices/%s/config", bus);
    unsigned char config[64];
    memset(config, lost ? 0xff : 0x10, sizeof config);
    tree_write(t, path, config, sizeof config);
    if (!driver || !strcmp(driver, "-")) return;
    st_put(path, sizeof path, "/sys/bus/pci/devices/%s/driver", bus);
    st_put(text, sizeof text, "../../../bus/pci/drivers/%s", driver);
    tree_link(t, path, text);
}

static inline void tree_driver(const tree *t, const char *version, bool open)
{
    char text[400];
    st_put(text, sizeof text,
           open ? "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  Release Build  (user@host) "
                  " Fri Mar  6 12:00:00 UTC 2026\nGCC version:  gcc version 13.3.0\n"
                : "NVRM version: NVIDIA UNIX x86_64 Kernel Module  %s  Fri May 31 09:35:42 UTC 2024\nGCC "
                  "version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)\n",
           version);
    tree_text(t, "/proc/driver/nvidia/version", text);
    st_put(text, sizeof text, "%s\n", version);
    tree_text(t, "/sys/module/nvidia/version", text);
    tree_text(t, "/sys/module/nvidia_uvm/initstate", "live\n");
    tree_text(t, "/proc/modules",
              "nvidia_uvm 4000000 0 - Live 0x0000000000000000 (POE)\nnvidia 60000000 1 nvidia_uvm, Live "
              "0x0000000000000000 (POE)\next4 800000 1 - Live 0x0\n");
}

static inline void tree_userspace(tree *t, const char *version, const char *dir, bool cache)
{
    static const char *const names[] = {"libcuda", "libnvidia-ml", "libnvidia-ptxjitcompiler"};
    char path[256], target[128], soname[64];
    for (int i = 0; i < 3; i++) {
        st_put(soname, sizeof soname, "%s.so.1", names[i]);
        st_put(target, sizeof target, "%s.so.%s", names[i], version);
        st_put(path, sizeof path, "%s/%s", dir, target);
        tree_elf(t, path, soname, "");
        st_put(path, sizeof path, "%s/%s", dir, soname);
        tree_link(t, path, target);
        if (cache) tree_cache(t, soname, path);
    }
    st_put(path, sizeof path, "%s/libcuda.so", dir);
    tree_link(t, path, "libcuda.so.1");
    if (cache) tree_cache(t, "libcuda.so", path);
}

static inline void tree_toolkit(tree *t, const char *version, bool is_default)
{
    char dir[128], path[256], text[256], two[16];
    const char *dot = strchr(version, '.');
    st_put(two, sizeof two, "%.*s", (int)(dot - version + 1 + (int)strcspn(dot + 1, ".")), version);
    int major = atoi(version);
    st_put(dir, sizeof dir, "/usr/local/cuda-%s", two);
    st_put(path, sizeof path, "%s/version.json", dir);
    st_put(text, sizeof text,
           "{\n   \"cuda\" : {\n      \"name\" : \"CUDA SDK\",\n      \"version\" : \"%s\"\n   },\n   "
           "\"cuda_nvcc\" : {\n      \"version\" : \"%s\"\n   }\n}\n",
           version, version);
    tree_text(t, path, text);
    st_put(path, sizeof path, "%s/bin/nvcc", dir);
    tree_text(t, path, "#!/bin/sh\n");
    static const char *const names[] = {"libcudart", "libcublas", "libcublasLt", "libnvJitLink"};
    for (int i = 0; i < 4; i++) {
        char soname[64], real[96];
        st_put(soname, sizeof soname, "%s.so.%d", names[i], major);
        st_put(real, sizeof real, "%s.so.%s.105", names[i], version);
        st_put(path, sizeof path, "%s/lib64/%s", dir, real);
        tree_elf(t, path, soname, "");
        st_put(path, sizeof path, "%s/lib64/%s", dir, soname);
        tree_link(t, path, real);
    }
    st_put(path, sizeof path, "%s/lib64/stubs/libcuda.so", dir);
    tree_elf(t, path, "libcuda.so.1", "");
    if (is_default) {
        tree_link(t, "/usr/local/cuda", "/etc/alternatives/cuda");
        tree_link(t, "/etc/alternatives/cuda", dir);
    }
}

static inline void tree_cudnn(tree *t, const char *dir, const char *version, bool system, const char *without)
{
    static const char *const names[] = {"libcudnn",
                                        "libcudnn_graph",
                                        "libcudnn_ops",
                                        "libcudnn_cnn",
                                        "libcudnn_adv",
                                        "libcudnn_heuristic",
                                        "libcudnn_engines_precompiled",
                                        "libcudnn_engines_runtime_compiled",
                                        "libcudnn_engines_tensor_ir"};
    int n = st_version_cmp(version, "9.20") >= 0 ? 9 : 8;
    char path[256], soname[96], real[128], options[64];
    for (int i = 0; i < n; i++) {
        st_put(soname, sizeof soname, "%s.so.9", names[i]);
        if (without && !strcmp(without + 1, names[i])) continue;
        st_put(options, sizeof options, "runpath=$ORIGIN cudnn=%s", version);
        st_put(real, sizeof real, system ? "%s.so.%s" : "%s.so.9", names[i], version);
        st_put(path, sizeof path, "%s/%s", dir, real);
        tree_elf(t, path, soname, options);
        if (!system) continue;
        st_put(path, sizeof path, "%s/%s", dir, soname);
        tree_link(t, path, real);
        tree_cache(t, soname, path);
    }
}

static inline void tree_os(const tree *t, const char *id, const char *version, const char *kernel)
{
    char text[256];
    st_put(text, sizeof text, "PRETTY_NAME=\"%s %s\"\nID=%s\nVERSION_ID=\"%s\"\n", id, version, id, version);
    tree_text(t, "/etc/os-release", text);
    st_put(text, sizeof text, "%s\n", kernel);
    tree_text(t, "/proc/sys/kernel/osrelease", text);
    tree_text(t, "/proc/1/cgroup", "0::/init.scope\n");
}

static inline void tree_wsl(tree *t, const char *kernel, bool device)
{
    static const char *const names[] = {"libcuda.so", "libcuda.so.1", "libcuda.so.1.1", "libnvidia-ml.so.1"};
    tree_os(t, "ubuntu", "24.04", kernel);
    if (!device) return;
    tree_text(t, "/dev/dxg", "");
    char path[128];
    for (int i = 0; i < 4; i++) {
        st_put(path, sizeof path, "/usr/lib/wsl/lib/%s", names[i]);
        tree_elf(t, path, i < 3 ? "libcuda.so.1" : names[i], "");
    }
}

static inline void tree_container(tree *t, const char *kind)
{
    if (!strcmp(kind, "docker")) tree_text(t, "/.dockerenv", "");
    if (!strcmp(kind, "podman")) tree_text(t, "/run/.containerenv", "engine=\"podman\"\n");
    if (!strcmp(kind, "kubernetes"))
        tree_text(t, "/var/run/secrets/kubernetes.io/serviceaccount/namespace", "default");
}

/* ---- descriptions ----------------------------------------------------------------------------------------------------------- */
static inline void tree_read(tree *t, const char *name);

static inline void tree_words(tree *t, char *w[], int n)
{
    char path[512], text[256];
    bool flag =
        n > 1 && (!strcmp(w[n - 1], "open") || !strcmp(w[n - 1], "default") || !strcmp(w[n - 1], "lost"));
    if (!strcmp(w[0], "use"))
        tree_read(t, w[1]);
    else if (!strcmp(w[0], "ubuntu") || !strcmp(w[0], "debian") || !strcmp(w[0], "fedora"))
        tree_os(t, w[0], w[1], w[2]);
    else if (!strcmp(w[0], "wsl"))
        tree_wsl(t, w[1], n < 3);
    else if (!strcmp(w[0], "container"))
        tree_container(t, w[1]);
    else if (!strcmp(w[0], "gpu"))
        tree_gpu(t, w[1], w[2], "0302", n > 3 ? w[3] : NULL, flag);
    else if (!strcmp(w[0], "nvswitch"))
        tree_gpu(t, w[1], "22a3", "0680", NULL, false);
    else if (!strcmp(w[0], "driver"))
        tree_driver(t, w[1], flag);
    else if (!strcmp(w[0], "userspace"))
        tree_userspace(t, w[1], n > 2 && w[2][0] == '/' ? w[2] : "/usr/lib/x86_64-linux-gnu",
                       strcmp(w[n - 1], "nocache") != 0);
    else if (!strcmp(w[0], "toolkit"))
        tree_toolkit(t, w[1], flag);
    else if (!strcmp(w[0], "cudnn"))
        tree_cudnn(t, w[1], w[2], n > 3 && !strcmp(w[3], "cache"), w[n - 1][0] == '-' ? w[n - 1] : NULL);
    else if (!strcmp(w[0], "dist")) {
        st_put(path, sizeof path, "%s/%s-%s.dist-info/METADATA", w[1], w[2], w[3]);
        st_put(text, sizeof text, "Metadata-Version: 2.1\nName: %s\nVersion: %s\n", w[2], w[3]);
        tree_text(t, path, text);
    } else if (!strcmp(w[0], "torch")) {
        st_put(path, sizeof path, "%s/torch-%s.dist-info/METADATA", w[1], w[2]);
        tree_text(t, path, "Name: torch\n");
        st_put(path, sizeof path, "%s/torch/version.py", w[1]);
        st_put(text, sizeof text,
               strcmp(w[3], "None") ? "from typing import Optional\n__version__ = '%s'\ndebug = "
                                      "False\ncuda: Optional[str] = '%s'\nhip = None\n"
                                    : "__version__ = '%s'\ndebug = False\ncuda = %s\nhip = None\n",
               w[2], w[3]);
        tree_text(t, path, text);
    } else if (!strcmp(w[0], "uid")) {
        st_put(text, sizeof text, "Name:\tstrata\nUid:\t%s\t%s\t%s\t%s\nGid:\t%s\t%s\t%s\t%s\n", w[1], w[1],
               w[1], w[1], w[1], w[1], w[1], w[1]);
        tree_text(t, "/proc/self/status", text);
    } else if (!strcmp(w[0], "nodes")) {
        static const char *const nodes[] = {"/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm",
                                            "/dev/nvidia-uvm-tools"};
        for (int i = 0; i < 4; i++) {
            tree_text(t, nodes[i], "");
            tree_path(t, nodes[i], path);
            chmod(path, n > 1 ? (mode_t)strtol(w[1], NULL, 8) : 0666);
        }
    } else if (!strcmp(w[0], "dir")) {
        st_put(text, sizeof text, "%s/", w[1]);
        tree_path(t, text, path);
    } else if (!strcmp(w[0], "link"))
        tree_link(t, w[1], w[2]);
    else if (!strcmp(w[0], "fifo")) {
        tree_path(t, w[1], path);
        if (mkfifo(path, 0644)) tree_fail("mkfifo", path);
    } else if (!strcmp(w[0], "cache"))
        tree_cache(t, w[1], w[2]);
    else if (!strcmp(w[0], "remove")) {
        tree_path(t, w[1], path);
        if (unlink(path)) tree_fail("remove", path);
    } else if (!strcmp(w[0], "bytes")) {
        unsigned char data[256];
        for (int i = 2; i < n; i++) data[i - 2] = (unsigned char)strtol(w[i], NULL, 16);
        tree_write(t, w[1], data, (size_t)n - 2);
    } else if (!strcmp(w[0], "elf")) {
        char options[400] = "";
        for (int i = 3; i < n; i++)
            st_put(options + strlen(options), sizeof options - strlen(options), "%s ", w[i]);
        tree_elf(t, w[1], w[2], options);
    } else
        tree_fail("unknown line", w[0]);
}

static inline void tree_read(tree *t, const char *name)
{
    char path[512], line[1024], file[256] = "", text[16384];
    size_t size = 0;
    mode_t mode = 0644;
    st_put(path, sizeof path, "%s/%s.tree", t->fixtures, name);
    FILE *f = fopen(path, "r");
    if (!f) tree_fail("open", path);
    for (;;) {
        bool more = fgets(line, sizeof line, f) != NULL;
        if (more && line[0] == '|' && *file) {
            size_t n = strlen(line) - 2;
            if (size + n >= sizeof text) tree_fail("file too long", file);
            memcpy(text + size, line + 2, n);
            size += n;
            continue;
        }
        if (*file) {
            tree_write(t, file, text, size);
            tree_path(t, file, path);
            chmod(path, mode);
            *file = 0;
        }
        if (!more) break;
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "env ", 4) == 0) {
            size_t n = strlen(line + 4) + 1, head = strcspn(line + 4, "=") + 1;
            for (char *e = t->env; e < t->env + t->env_size; e += strlen(e) + 1) /* a later one replaces it */
                if (strncmp(e, line + 4, head) == 0) {
                    size_t k = strlen(e) + 1;
                    memmove(e, e + k, t->env_size - (size_t)(e - t->env) - k);
                    t->env_size -= k;
                    break;
                }
            if (t->env_size + n > sizeof t->env) tree_fail("environment too long", line);
            memcpy(t->env + t->env_size, line + 4, n);
            t->env_size += n;
            continue;
        }
        char *w[64], *save = NULL;
        int n = 0;
        for (char *p = strtok_r(line, " ", &save); p && n < 64; p = strtok_r(NULL, " ", &save)) w[n++] = p;
        if (n == 0 || w[0][0] == '#') continue;
        if (strcmp(w[0], "file") == 0) {
            st_put(file, sizeof file, "%s", w[1]);
            mode = n > 2 ? (mode_t)strtol(w[2], NULL, 8) : 0644;
            size = 0;
        } else
            tree_words(t, w, n);
    }
    fclose(f);
}

static inline void tree_open(tree *t, const char *fixtures, st_facts *facts)
{
    memset(t, 0, sizeof *t);
    /* memory, where there is such a place: the trees are many small files */
    strcpy(t->root, access("/dev/shm", W_OK) ? "/tmp/strata-tree-XXXXXX" : "/dev/shm/strata-tree-XXXXXX");
    if (!mkdtemp(t->root)) tree_fail("mkdtemp", t->root);
    t->fixtures = fixtures;
    t->facts = facts;
}

/* what was gathered becomes files */
static inline void tree_close(tree *t)
{
    static unsigned char image[1 << 16];
    if (t->cached) tree_write(t, "/etc/ld.so.cache", image, cache_image(t, image, sizeof image));
    if (t->env_size) tree_write(t, "/proc/self/environ", t->env, t->env_size);
}

static inline int tree_unlink(const char *path, const struct stat *s, int type, struct FTW *w)
{
    (void)s, (void)type, (void)w;
    return remove(path);
}

static inline void tree_remove(tree *t) { nftw(t->root, tree_unlink, 16, FTW_DEPTH | FTW_PHYS); }

#endif
