/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h - what the probes have learnt of a machine, and how they report findings. */
#ifndef ST_DOCTOR_MACHINE_H
#define ST_DOCTOR_MACHINE_H
#include "doctor/doctor.h"
#include "doctor/root.h"
#include "facts/facts.h"

enum {
    MAX_GPUS = 64,
    MAX_COPIES = 1024,
    MAX_TOOLKITS = 32,
    MAX_SITES = 96,
    MAX_DISTS = 96,
    MAX_FINDINGS = 256
};

typedef struct st_pci_gpu {
    char bus[32], driver[32]; /* driver "" when unbound */
    unsigned device;
    bool known, lost;
    st_gpu gpu;
} st_pci_gpu;

/* How the loader, or a Python wheel, comes to a library. */
enum st_route {
    ROUTE_CACHE,
    ROUTE_ENV,
    ROUTE_DEFAULT,
    ROUTE_WSL,
    ROUTE_TOOLKIT,
    ROUTE_STUB,
    ROUTE_COMPAT,
    ROUTE_WHEEL,
    ROUTE_CONDA
};
extern const char *const st_route_names[];
typedef struct st_copy {
    enum st_route route;
    int order, site; /* the loader's order within the route; index of the site-packages, -1 outside */
    char name[80];   /* as the loader asks for it: libcudnn.so.9 */
    char stem[48];   /* libcudnn */
    char path[256], real[256];
    char version[48];
    const char *version_from; /* "name", "file", "metadata", "neighbour" or "" */
    bool narrow;              /* a 32-bit library: not for our programs */
    bool flattened;           /* a file beside one of its own full name, where a link belongs */
    bool broken;              /* a link without a target */
    const char *damaged;      /* why it is no library, or NULL */
} st_copy;

typedef struct st_toolkit {
    char path[128], version[32];
    bool is_default, has_nvcc;
} st_toolkit;

typedef struct st_dist {
    char name[64], version[48];
} st_dist;
typedef struct st_site {
    char path[256];
    bool active; /* what `python3` of the recorded environment uses, as far as the files tell */
    int dist_count;
    st_dist *dists; /* nvidia-*, torch*, tensorflow, jax, cupy, onnxruntime-gpu */
} st_site;

typedef struct st_machine {
    st_root *root;
    st_facts *facts;
    char *environ_text; /* NUL-separated, from proc/self/environ; NULL: not known */
    size_t environ_size;
    long uid; /* -1: not known */
    int group_count;
    long groups[64];
    char kernel[96], os[96], os_id[32], container[32];
    bool wsl;

    int gpu_count, nvswitch_count;
    st_pci_gpu gpus[MAX_GPUS];
    int oldest_cc; /* of the GPUs bound to the driver, 0: none known */

    bool module_loaded, module_open, nouveau_loaded;
    char driver[48]; /* version of the loaded module, "" */
    char driver_from[64];

    int copy_count, looked_inside;
    st_copy *copies;
    const st_copy *libcuda; /* the copy that a program would load */
    int toolkit_count;
    st_toolkit toolkits[MAX_TOOLKITS];
    int site_count;
    st_site *sites;
} st_machine;

struct st_doctor {
    st_machine m;
    int count, order[MAX_FINDINGS];
    st_finding findings[MAX_FINDINGS];
    st_finding spare; /* taken when the list is full */
    char summary[320];
};

st_finding *st_report(st_doctor *d, enum st_layer layer, enum st_state state, const char *id, const char *fmt,
                      ...) ST_PRINTF(5, 6);
void st_evidence(st_finding *f, const char *fmt, ...) ST_PRINTF(2, 3);
void st_fix(st_finding *f, const char *fmt, ...) ST_PRINTF(2, 3);
void st_avoid(st_finding *f, const char *fmt, ...) ST_PRINTF(2, 3);

void st_doctor_forget(st_doctor *d); /* drops the findings, keeps the machine */
void st_doctor_sort(st_doctor *d);   /* findings by layer, lowest first */
/* report.c */
struct st_json;
int st_print_fault(const st_doctor *d, FILE *out); /* the verdict's lines; ST_FAULT */
int st_json_findings(const st_doctor *d,
                     struct st_json *j); /* "healthy", "verdict", "findings"; the exit code */

/* "" when the variable is empty, NULL when it is not set or the environment is not known */
const char *st_environ(const st_machine *m, const char *name);
bool st_debian_like(const st_machine *m);

/* The probes, lowest layer first; each reports and fills the machine for those after it. */
void st_probe_context(st_doctor *d);
void st_probe_hardware(st_doctor *d);
void st_probe_driver(st_doctor *d);
void st_probe_libcuda(st_doctor *d);
void st_probe_wsl(st_doctor *d);
void st_probe_log(st_doctor *d);
void st_probe_runtime(st_doctor *d);
void st_probe_libraries(st_doctor *d);
void st_probe_blas(st_doctor *d);
void st_probe_frameworks(st_doctor *d);
void st_probe_application(st_doctor *d);
void st_probe_sharing(st_doctor *d);

/* live.c: children that ask NVML and libcuda while the files are read */
typedef struct st_asked st_asked;
st_asked *st_live_begin(st_doctor *d, const st_live *live); /* NULL: nothing to ask here */
struct st_child;
/* Takes the lines of a child in as findings; false when it hung, crashed or reported a fault. what: "deep", or a whole command */
bool st_live_collect(st_doctor *d, const st_live *live, struct st_child *c, const char *what,
                     double patience);
void st_live_end(st_doctor *d, const st_live *live, st_asked *a);

/* inventory.c */
void st_find_sites(st_machine *m);
void st_find_copies(st_machine *m);
void st_find_toolkits(st_machine *m);
const char *st_dist_version(const st_site *s,
                            const char *name); /* NULL: not installed; '-' and '_' are equal */
/* The copy that a program without RPATH would load under that name: LD_LIBRARY_PATH, cache, default directories. NULL: none. */
const st_copy *st_loader_choice(const st_machine *m, const char *name);

/* "libcudnn_ops.so.9.10.2" -> "libcudnn_ops"; false for files that are none of the GPU stack's */
bool st_stem_of(const char *file, char stem[48]);
/* What the inventory knows, or finds out now, of the library at that path; stem "" when it is none of the GPU stack's. */
void st_copy_at(st_machine *m, const char *path, st_copy *c);

/* ldcache.c: sonames and paths of /etc/ld.so.cache in its order; false when it is missing or damaged */
bool st_ldcache_each(const char *bytes, size_t n, void (*see)(const char *name, const char *path, void *arg),
                     void *arg);

#endif
