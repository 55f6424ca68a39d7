/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - `strata doctor --verify`: what an installation needs, in the order in which it is installed, each tried: driver, toolkit, cuDNN, a
 * kernel of our own compiled and run, the library's product, a framework. The framework runs in a child of its own, as the user's Python. */
#include "doctor/child.h"
#include "doctor/json.h"
#include "doctor/machine.h"
#include "facts/cause.h"
#include <string.h>
#include <unistd.h>

enum { STAGES = 6 };
static const struct {
    const char *name, *needless; /* said when nothing was found; NULL: no_kernel's words */
    const char *ids[5];          /* findings that show that it works, best first */
    unsigned layers;             /* bits of the layers whose faults are its own */
} stages[STAGES] = {
    {"driver",
     "there is no GPU, so there is no driver to try",
     {"cuinit", "cuda_device", "module", "wsl_libcuda", "memory"},
     1u << ST_HARDWARE | 1u << ST_DRIVER},
    {"toolkit", "no CUDA toolkit: needed only to compile with nvcc", {"toolkit", "nvrtc"}, 1u << ST_RUNTIME},
    {"cuDNN", "no cuDNN: needed by frameworks, whose wheels bring their own", {"cudnn_copy"}, 0},
    {"own kernel", NULL, {"nvrtc_compile", "kernel"}, 0},
    {"product", "no product was run on a GPU", {"gemm_gpu", "gemm_rate"}, 1u << ST_LIBRARIES},
    {"framework",
     "this Python has no torch",
     {"torch_run", "torch"},
     1u << ST_FRAMEWORKS | 1u << ST_APPLICATION},
};

static const char script[] =
    "import json,sys\n"
    "def say(state,text,seen=''):\n"
    " print(json.dumps({'step':'import "
    "torch','layer':'frameworks','state':state,'id':'torch_run','text':text[:340],'evidence':seen[:380]}),"
    "flush=True)\n"
    "say('begin','')\n"
    "try:\n"
    " import torch\n"
    "except ModuleNotFoundError as e:\n"
    " say('absent' if e.name=='torch' else 'fault','this Python has no '+str(e.name),sys.executable)\n"
    "except BaseException as e:\n"
    " say('fault','import torch fails: '+str(e),sys.executable)\n"
    "else:\n"
    " try:\n"
    "  name='torch '+torch.__version__\n"
    "  if torch.version.cuda is None: say('fault',name+' is a build without CUDA: Torch not compiled with "
    "CUDA enabled',torch.__file__)\n"
    "  else:\n"
    "   a=torch.ones(512,512,device='cuda')\n"
    "   ok=bool(((a@a)==512).all().item())\n"
    "   x=torch.ones(1,4,8,8,device='cuda');w=torch.ones(4,4,3,3,device='cuda')\n"
    "   ok2=bool((torch.nn.functional.conv2d(x,w)==36).all().item())\n"
    "   say('ok' if ok and ok2 else 'fault',name+(': a product and a convolution on the GPU are right' if ok "
    "and ok2 else ': wrong results on the GPU'),"
    "'cuDNN %s, %s'%(torch.backends.cudnn.version(),torch.__file__))\n"
    " except BaseException as e:\n"
    "  say('fault','torch on the GPU fails: '+str(e).split('\\n')[0],torch.__file__)\n";

static int run_python(const char *what, int fd)
{
    (void)what;
    if (dup2(fd, STDOUT_FILENO) < 0) return 2;
    execlp("python3", "python3", "-c", script, (char *)NULL);
    return 2; /* no Python */
}

static const st_finding *find(const st_doctor *d, const char *id)
{
    for (int i = 0; i < st_doctor_count(d); i++) {
        const st_finding *f = st_doctor_finding(d, i);
        if (strcmp(f->id, id) == 0 && (f->state == ST_FINDING_OK || f->state == ST_FINDING_NOTE)) return f;
    }
    return NULL;
}

static const char *no_kernel(const st_doctor *d)
{
    const st_machine *m = &d->m;
    if (!st_doctor_has_gpu(d)) return "no kernel was compiled: there is no GPU to run it";
    for (int i = 0; i < m->copy_count; i++)
        if (!strcmp(m->copies[i].stem, "libnvrtc") && !m->copies[i].broken && !m->copies[i].damaged)
            return "no kernel was compiled, although NVRTC is here";
    return "no kernel was compiled: no NVRTC";
}
static const char *needless(const st_doctor *d, int stage)
{
    return stages[stage].needless ? stages[stage].needless : no_kernel(d);
}

static bool cudnn_finding(const st_finding *f) { return strncmp(f->id, "cudnn", 5) == 0; }
static bool kernel_finding(const st_finding *f)
{
    return f->layer == ST_RUNTIME &&
           (!strncmp(f->id, "nvrtc", 5) || !strncmp(f->id, "kernel", 6) || strstr(f->evidence, "nvrtc"));
}

static bool belongs(const st_finding *f, int stage)
{
    if (stage == 2) return cudnn_finding(f);
    if (stage == 3) return kernel_finding(f);
    return (stages[stage].layers >> f->layer & 1) && !cudnn_finding(f) && !kernel_finding(f);
}

static const st_finding *fault_of(const st_doctor *d, int stage)
{
    for (int i = 0; i < st_doctor_count(d); i++) {
        const st_finding *f = st_doctor_finding(d, i);
        if (f->state == ST_FINDING_FAULT && belongs(f, stage)) return f;
    }
    return NULL;
}

/* the cuDNN that a program without RPATH, else the active Python, takes; as a finding of its own */
static void name_cudnn(st_doctor *d)
{
    const st_machine *m = &d->m;
    const st_copy *c = NULL;
    for (int i = 0; i < m->copy_count; i++) {
        const st_copy *o = &m->copies[i];
        if (strcmp(o->stem, "libcudnn") || o->broken || o->damaged || o->narrow || !strstr(o->name, ".so."))
            continue;
        bool wheel = o->route == ROUTE_WHEEL && m->sites[o->site].active;
        if (wheel || (!c && st_loader_choice(m, o->name) == o)) c = o;
    }
    if (!c) return;
    int parts = 0;
    const char *slash = strrchr(c->path, '/');
    for (int i = 0; i < m->copy_count; i++) {
        const st_copy *o = &m->copies[i];
        parts += !strncmp(o->stem, "libcudnn_", 9) && o->route == c->route &&
                 !strncmp(o->path, c->path, (size_t)(slash - c->path + 1));
    }
    st_evidence(st_report(d, ST_LIBRARIES, ST_FINDING_OK, "cudnn_copy", "cuDNN %s with %d sub-libraries (%s)",
                          c->version[0] ? c->version : "of unknown version", parts, st_route_names[c->route]),
                "%s", c->real);
}

static void try_framework(st_doctor *d, const st_live *live)
{
    st_child c;
    if (!st_root_is_host(d->m.root) || !st_child_start(&c, run_python, "torch")) return;
    int before = d->count;
    st_live_collect(d, live, &c, "python3 -c 'import torch'", live->patience > 0 ? live->patience : 90);
    for (int i = before; i < d->count; i++) {
        st_finding *f = &d->findings[i];
        st_cause cause;
        bool none = !d->m.gpu_count && !d->m.wsl;
        if (strcmp(f->id, "torch_run") == 0 && f->state == ST_FINDING_FAULT && !f->fix[0] &&
            st_facts_cause(f->text, &cause))
            st_fix(f, "%s", cause.fix);
        if (f->state == ST_FINDING_FAULT && !f->fix[0])
            st_fix(f, "strata explain with that message; strata doctor --for python3");
        if (f->state == ST_FINDING_FAULT && none)
            f->state = ST_FINDING_NOTE; /* without a GPU it cannot work, and need not */
    }
}

static enum st_state state_of(const st_doctor *d, int stage, const st_finding **why)
{
    *why = fault_of(d, stage);
    if (*why) return ST_FINDING_FAULT;
    for (int k = 0; k < ST_COUNT(stages[stage].ids) && stages[stage].ids[k]; k++)
        if ((*why = find(d, stages[stage].ids[k])) != NULL) return ST_FINDING_OK;
    return ST_FINDING_ABSENT;
}

static void print_stages(const st_doctor *d, FILE *out)
{
    static const char *const words[] = {"ok", "note", "warning", "FAULT", "-"};
    fprintf(out, "%s\n\n", st_doctor_summary(d));
    for (int i = 0; i < STAGES; i++) {
        const st_finding *f;
        enum st_state s = state_of(d, i, &f);
        fprintf(out, "%d %-11s %-6s ", i + 1, stages[i].name, words[s]);
        st_wrap(out, 21, 21, f ? f->text : needless(d, i));
        for (int k = 0; s == ST_FINDING_OK && k < ST_COUNT(stages[i].ids) && stages[i].ids[k]; k++) {
            const st_finding *more = find(d, stages[i].ids[k]);
            if (!more || more == f) continue;
            fprintf(out, "%21s", "");
            st_wrap(out, 21, 21, more->text);
        }
    }
    fputc('\n', out);
    if (!st_doctor_verdict(d))
        fprintf(out, "verdict: %s\n",
                st_doctor_has_gpu(d) ? "what is installed works"
                                     : "no GPU here; what work on the CPU needs is here");
    else
        st_print_fault(d, out);
}

int st_doctor_verify(const st_live *live, FILE *out, bool json)
{
    st_live deep = *live;
    int error;
    deep.deep = true;
    st_doctor *d = st_doctor_look("/", &deep, &error);
    if (!d) return ST_CANNOT_LOOK;
    name_cudnn(d);
    try_framework(d, &deep);
    st_doctor_sort(d);
    int code = st_doctor_verdict(d) ? ST_FAULT : ST_HEALTHY;
    if (json) {
        st_json j = {.f = out};
        st_json_open(&j, NULL, '{');
        st_json_integer(&j, "format", 1);
        st_json_open(&j, "stages", '[');
        for (int i = 0; i < STAGES; i++) {
            const st_finding *f;
            enum st_state s = state_of(d, i, &f);
            st_json_open(&j, NULL, '{');
            st_json_string(&j, "name", stages[i].name);
            st_json_string(&j, "state", st_state_names[s]);
            st_json_string(&j, "text", f ? f->text : needless(d, i));
            st_json_string(&j, "evidence", f && f->evidence[0] ? f->evidence : NULL);
            st_json_close(&j, '}');
        }
        st_json_close(&j, ']');
        st_json_findings(d, &j);
        st_json_close(&j, '}');
    } else
        print_stages(d, out);
    st_doctor_free(d);
    return code;
}
