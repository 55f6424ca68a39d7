/* SPDX-License-Identifier: Apache-2.0 */
/* elf.c - a bounded reader of ELF shared libraries (System V ABI, "Object Files" and "Dynamic Linking").
 *
 * Every offset and size of the file is checked against the file's size and a fixed limit before it is used; a damaged file gives a
 * reason in words. The dynamic table is found through the program headers, the symbols through the dynamic table, as the loader does. */
#include "doctor/elf.h"
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAX_SEGMENTS = 128,
    MAX_DYNAMIC = 1 << 16,
    MAX_STRINGS = 8 << 20,
    MAX_SYMBOLS = 1 << 17,
    MAX_SCAN = 24 << 20,
    MAX_CODE = 512
};
typedef struct segment {
    uint64_t offset, address, size;
} segment;
typedef struct image {
    int fd;
    uint64_t size;
    bool wide; /* 64 bits */
    int segments;
    segment load[MAX_SEGMENTS];
    uint64_t strtab, strsize, symtab, hash, gnu_hash; /* addresses; 0: none */
    uint64_t dynamic_offset, dynamic_size;
} image;

static bool get(const image *m, uint64_t offset, void *to, uint64_t n)
{
    if (offset > m->size || n > m->size - offset) return false;
    for (uint64_t done = 0; done < n;) {
        ssize_t k = pread(m->fd, (char *)to + done, n - done, (off_t)(offset + done));
        if (k <= 0) return false;
        done += (uint64_t)k;
    }
    return true;
}

/* file offset of an address; false when no loaded segment holds `n` bytes there */
static bool place(const image *m, uint64_t address, uint64_t n, uint64_t *offset)
{
    for (int i = 0; i < m->segments; i++) {
        const segment *s = &m->load[i];
        if (address < s->address || address - s->address >= s->size || n > s->size - (address - s->address))
            continue;
        uint64_t at = s->offset + (address - s->address);
        if (at < s->offset || at > m->size || n > m->size - at) return false;
        *offset = at;
        return true;
    }
    return false;
}

static const char *open_image(int fd, image *m, st_elf *e)
{
    struct stat st;
    unsigned char id[64];
    memset(m, 0, sizeof *m);
    m->fd = fd;
    if (fstat(fd, &st) || st.st_size < 0) return "cannot be examined";
    m->size = (uint64_t)st.st_size;
    if (m->size == 0) return "is empty";
    if (!get(m, 0, id, SELFMAG) || memcmp(id, ELFMAG, SELFMAG)) return "is no ELF file";
    if (!get(m, 0, id, sizeof(Elf32_Ehdr))) return "is too short for a library";
    if (id[EI_DATA] != ELFDATA2LSB) return "is for a big-endian machine";
    if (id[EI_CLASS] != ELFCLASS32 && id[EI_CLASS] != ELFCLASS64) return "has a damaged ELF header";
    m->wide = id[EI_CLASS] == ELFCLASS64;
    uint64_t phoff;
    unsigned phnum, phsize;
    if (m->wide) {
        Elf64_Ehdr h;
        if (!get(m, 0, &h, sizeof h)) return "is too short for a library";
        phoff = h.e_phoff, phnum = h.e_phnum, phsize = h.e_phentsize;
        e->machine = h.e_machine;
    } else {
        Elf32_Ehdr h;
        if (!get(m, 0, &h, sizeof h)) return "is too short for a library";
        phoff = h.e_phoff, phnum = h.e_phnum, phsize = h.e_phentsize;
        e->machine = h.e_machine;
    }
    e->bits = m->wide ? 64 : 32;
    if (phsize != (m->wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)) || phnum > MAX_SEGMENTS)
        return "has a damaged program header";
    for (unsigned i = 0; i < phnum; i++) {
        uint32_t type;
        segment s;
        if (m->wide) {
            Elf64_Phdr p;
            if (!get(m, phoff + (uint64_t)i * phsize, &p, sizeof p)) return "is cut short";
            type = p.p_type;
            s = (segment){p.p_offset, p.p_vaddr, p.p_filesz};
        } else {
            Elf32_Phdr p;
            if (!get(m, phoff + (uint64_t)i * phsize, &p, sizeof p)) return "is cut short";
            type = p.p_type;
            s = (segment){p.p_offset, p.p_vaddr, p.p_filesz};
        }
        if (type == PT_LOAD && s.size) m->load[m->segments++] = s;
        if (type == PT_DYNAMIC) {
            m->dynamic_offset = s.offset;
            m->dynamic_size = s.size > MAX_DYNAMIC ? MAX_DYNAMIC : s.size;
        }
    }
    return m->dynamic_size ? NULL : "is not dynamically linked";
}

/* a string of the dynamic string table */
static void string_at(const image *m, uint64_t index, char *out, size_t n)
{
    uint64_t at, left = m->strsize > index ? m->strsize - index : 0;
    out[0] = 0;
    if (left > n - 1) left = n - 1;
    if (!left || !place(m, m->strtab + index, left, &at) || !get(m, at, out, left)) {
        out[0] = 0;
        return;
    }
    out[left] = 0;
    for (char *p = out; *p; p++)
        if ((unsigned char)*p < 32) *p = '?';
}

typedef struct entry {
    int64_t tag;
    uint64_t value;
} entry;

static int read_dynamic(image *m, entry *d, int max)
{
    uint64_t each = m->wide ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
    int n = 0;
    for (uint64_t o = 0; o + each <= m->dynamic_size && n < max; o += each) {
        if (m->wide) {
            Elf64_Dyn x;
            if (!get(m, m->dynamic_offset + o, &x, sizeof x)) break;
            d[n] = (entry){x.d_tag, x.d_un.d_val};
        } else {
            Elf32_Dyn x;
            if (!get(m, m->dynamic_offset + o, &x, sizeof x)) break;
            d[n] = (entry){x.d_tag, x.d_un.d_val};
        }
        if (d[n].tag == DT_NULL) break;
        n++;
    }
    for (int i = 0; i < n; i++) {
        if (d[i].tag == DT_STRTAB) m->strtab = d[i].value;
        if (d[i].tag == DT_STRSZ) m->strsize = d[i].value;
        if (d[i].tag == DT_SYMTAB) m->symtab = d[i].value;
        if (d[i].tag == DT_HASH) m->hash = d[i].value;
        if (d[i].tag == DT_GNU_HASH) m->gnu_hash = d[i].value;
    }
    if (m->strsize > MAX_STRINGS) m->strsize = MAX_STRINGS;
    return n;
}

bool st_elf_read(int fd, st_elf *e, const char **why)
{
    image m;
    entry d[512];
    const char *ignored;
    memset(e, 0, sizeof *e);
    if (!why) why = &ignored;
    if ((*why = open_image(fd, &m, e)) != NULL) return false;
    int n = read_dynamic(&m, d, ST_COUNT(d));
    for (int i = 0; i < n; i++) {
        if (d[i].tag == DT_SONAME) string_at(&m, d[i].value, e->soname, sizeof e->soname);
        if (d[i].tag == DT_RPATH) string_at(&m, d[i].value, e->rpath, sizeof e->rpath);
        if (d[i].tag == DT_RUNPATH) string_at(&m, d[i].value, e->runpath, sizeof e->runpath);
        if (d[i].tag == DT_NEEDED && e->needed_count < ST_ELF_NEEDED)
            string_at(&m, d[i].value, e->needed[e->needed_count++], 64);
    }
    return true;
}

bool st_elf_section(int fd, const char *name, uint64_t *offset, uint64_t *size)
{
    image m;
    st_elf e;
    Elf64_Ehdr h;
    Elf64_Shdr names, s;
    char text[32];
    memset(&e, 0, sizeof e);
    const char *why = open_image(fd, &m, &e);
    if ((why && !m.dynamic_size && !m.segments) || !m.wide || !get(&m, 0, &h, sizeof h)) return false;
    if (h.e_shentsize != sizeof s || h.e_shnum > 4096 || h.e_shstrndx >= h.e_shnum ||
        !get(&m, h.e_shoff + (uint64_t)h.e_shstrndx * sizeof s, &names, sizeof names))
        return false;
    size_t k = strlen(name) + 1;
    for (unsigned i = 0; i < h.e_shnum && k <= sizeof text; i++) {
        if (!get(&m, h.e_shoff + (uint64_t)i * sizeof s, &s, sizeof s)) return false;
        if (s.sh_type != SHT_PROGBITS || s.sh_name >= names.sh_size ||
            !get(&m, names.sh_offset + s.sh_name, text, k) || memcmp(text, name, k))
            continue;
        *offset = s.sh_offset;
        *size = s.sh_size;
        return s.sh_offset <= m.size && s.sh_size <= m.size - s.sh_offset;
    }
    return false;
}

/* ---- symbols ----------------------------------------------------------------------------------------------------------- */
typedef struct symbol {
    const char *name;
    uint64_t address, size;
    int type;
    bool defined;
} symbol;

/* The GNU hash table holds no count: the last symbol is the end of the chain that begins highest. */
static uint64_t count_by_gnu_hash(const image *m)
{
    uint32_t head[4], word, last = 0;
    uint64_t at;
    if (!place(m, m->gnu_hash, 16, &at) || !get(m, at, head, 16)) return 0;
    uint64_t buckets = head[0], first = head[1], bloom = (uint64_t)head[2] * (m->wide ? 8 : 4);
    if (buckets == 0 || buckets > MAX_SYMBOLS || bloom > MAX_STRINGS) return 0;
    uint64_t table = m->gnu_hash + 16 + bloom, chains = table + buckets * 4;
    if (!place(m, table, buckets * 4, &at)) return 0;
    uint32_t *b = malloc(buckets * 4);
    if (b && get(m, at, b, buckets * 4))
        for (uint64_t i = 0; i < buckets; i++)
            if (b[i] > last) last = b[i];
    free(b);
    if (last < first || last > MAX_SYMBOLS) return 0;
    for (;; last++) {
        if (last > MAX_SYMBOLS || !place(m, chains + 4 * (last - first), 4, &at) || !get(m, at, &word, 4))
            return 0;
        if (word & 1) return last + 1;
    }
}

static uint64_t count_symbols(const image *m)
{
    uint64_t each = m->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym), at, n = 0;
    uint32_t word[2];
    if (m->hash && place(m, m->hash, 8, &at) && get(m, at, word, 8))
        return word[1] > MAX_SYMBOLS ? MAX_SYMBOLS : word[1];
    if (m->gnu_hash) n = count_by_gnu_hash(m);
    /* else: the linkers lay the string table right behind the symbols */
    if (!n && m->strtab > m->symtab && (m->strtab - m->symtab) / each <= MAX_SYMBOLS)
        n = (m->strtab - m->symtab) / each;
    return n;
}

static bool each_symbol(const image *m, void (*see)(const image *, const symbol *, void *), void *arg)
{
    uint64_t each = m->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym), n = count_symbols(m), symbols_at,
             strings_at;
    if (!n || !m->strsize || !place(m, m->symtab, n * each, &symbols_at) ||
        !place(m, m->strtab, m->strsize, &strings_at))
        return false;
    char *table = malloc(n * each), *strings = malloc(m->strsize + 1);
    bool good =
        table && strings && get(m, symbols_at, table, n * each) && get(m, strings_at, strings, m->strsize);
    if (good) {
        strings[m->strsize] = 0;
        for (uint64_t i = 0; i < n; i++) {
            symbol s;
            uint64_t name;
            if (m->wide) {
                Elf64_Sym x;
                memcpy(&x, table + i * each, sizeof x);
                name = x.st_name;
                s = (symbol){NULL, x.st_value, x.st_size, ELF64_ST_TYPE(x.st_info), x.st_shndx != SHN_UNDEF};
            } else {
                Elf32_Sym x;
                memcpy(&x, table + i * each, sizeof x);
                name = x.st_name;
                s = (symbol){NULL, x.st_value, x.st_size, ELF32_ST_TYPE(x.st_info), x.st_shndx != SHN_UNDEF};
            }
            if (!name || name >= m->strsize) continue;
            s.name = strings + name;
            see(m, &s, arg);
        }
    }
    free(table);
    free(strings);
    return good;
}

typedef struct visitor {
    void (*see)(const char *, void *);
    void *arg;
} visitor;
static void visit(const image *m, const symbol *s, void *arg)
{
    (void)m;
    visitor *v = arg;
    if (s->defined) v->see(s->name, v->arg);
}

bool st_elf_symbols(int fd, void (*see)(const char *name, void *arg), void *arg)
{
    image m;
    st_elf e;
    entry d[512];
    visitor v = {see, arg};
    memset(&e, 0, sizeof e);
    if (open_image(fd, &m, &e)) return false;
    read_dynamic(&m, d, ST_COUNT(d));
    return each_symbol(&m, visit, &v);
}

/* ---- versions ---------------------------------------------------------------------------------------------------------- */
static uint32_t word_at(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

/* x86-64: `movl $imm, (%rdi)` and `movl $imm, (%rsi)`, the two results of nvrtcVersion(int *major, int *minor) */
static bool two_results(const unsigned char *code, size_t n, uint32_t *major, uint32_t *minor)
{
    bool a = false, b = false;
    for (size_t i = 0; i + 6 <= n && !(a && b); i++) {
        if (code[i] != 0xc7) continue;
        if (code[i + 1] == 0x07) *major = word_at(code + i + 2), a = true;
        if (code[i + 1] == 0x06) *minor = word_at(code + i + 2), b = true;
    }
    return a && b && *major >= 1 && *major < 100 && *minor < 100;
}

/* `mov $imm, %eax`: the result of cublasLtGetVersion, 130100 for 13.1.0 (11902 for 11.9.2) */
static uint32_t cublas_number(const unsigned char *code, size_t n)
{
    for (size_t i = 0; i + 5 <= n; i++) {
        uint32_t v = word_at(code + i + 1);
        if (code[i] == 0xb8 && ((v >= 120000 && v < 300000) || (v >= 10000 && v < 12000))) return v;
    }
    return 0;
}

static void see_version(const image *m, const symbol *s, void *arg)
{
    st_elf *e = arg;
    uint64_t at;
    unsigned char code[MAX_CODE];
    if (!s->defined || e->version[0]) return;
    if (s->type == STT_OBJECT && s->size == 4 && strncmp(s->name, "cudnn_", 6) == 0 &&
        strstr(s->name, "_version")) {
        uint32_t v;
        /* 0x091300 is 9.19.0 */
        if (!place(m, s->address, 4, &at) || !get(m, at, &v, 4) || v >> 16 < 7 || v >> 16 > 99) return;
        snprintf(e->version, sizeof e->version, "%u.%u.%u", v >> 16, v >> 8 & 255, v & 255);
        return;
    }
    bool pair = !strcmp(s->name, "nvrtcVersion") || !strcmp(s->name, "nvJitLinkVersion"),
         one = !strcmp(s->name, "cublasLtGetVersion");
    if ((!pair && !one) || s->type != STT_FUNC || s->size < 8 || e->machine != EM_X86_64) return;
    size_t n = s->size > MAX_CODE ? MAX_CODE : s->size;
    uint32_t major = 0, minor = 0;
    if (!place(m, s->address, n, &at) || !get(m, at, code, n)) return;
    if (pair && two_results(code, n, &major, &minor))
        snprintf(e->version, sizeof e->version, "%u.%u", major, minor);
    uint32_t v = one ? cublas_number(code, n) : 0;
    if (v >= 100000) snprintf(e->version, sizeof e->version, "%u.%u.%u", v / 10000, v / 100 % 100, v % 100);
    if (v && v < 100000) snprintf(e->version, sizeof e->version, "%u.%u.%u", v / 1000, v / 100 % 10, v % 100);
}

static size_t version_length(const char *p, const char *end)
{
    const char *q = p;
    int dots = 0;
    while (q < end && ((*q >= '0' && *q <= '9') || (*q == '.' && q > p && q[-1] != '.'))) dots += *q++ == '.';
    if (q > p && q[-1] == '.') q--;
    return dots ? (size_t)(q - p) : 0;
}

/* "NCCL version 2.27.5+cuda12.9"; for the driver's libraries a string that is nothing but "580.95.05" */
static void string_version(const image *m, st_elf *e)
{
    bool nccl = strncmp(e->soname, "libnccl", 7) == 0;
    bool driver = !strncmp(e->soname, "libcuda.", 8) || !strncmp(e->soname, "libnvidia-", 10);
    if (!nccl && !driver) return;
    size_t n = m->size < MAX_SCAN ? (size_t)m->size : MAX_SCAN;
    char *p = malloc(n + 1);
    if (!p || !get(m, 0, p, n)) {
        free(p);
        return;
    }
    const char *end = p + n;
    for (const char *q = p; nccl && (q = memmem(q, (size_t)(end - q), "NCCL version ", 13)) != NULL;
         q += 13) {
        size_t k = version_length(q + 13, end);
        if (!k || k >= sizeof e->version) continue;
        snprintf(e->version, sizeof e->version, "%.*s", (int)k, q + 13);
        break;
    }
    for (const char *q = p; driver && (q = memchr(q, 0, (size_t)(end - q))) != NULL;) {
        q++;
        if (end - q < 12 || q[0] < '3' || q[0] > '9' || q[3] != '.') continue;
        size_t k = version_length(q, end);
        if (k < 6 || k > 11 || q + k >= end || q[k] != 0) continue;
        snprintf(e->version, sizeof e->version, "%.*s", (int)k, q);
        break;
    }
    free(p);
}

void st_elf_version(int fd, st_elf *e)
{
    image m;
    st_elf other;
    entry d[512];
    memset(&other, 0, sizeof other);
    e->version[0] = 0;
    if (open_image(fd, &m, &other)) return;
    read_dynamic(&m, d, ST_COUNT(d));
    each_symbol(&m, see_version, e);
    if (!e->version[0]) string_version(&m, e);
}
