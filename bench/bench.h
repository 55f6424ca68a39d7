/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h - Strata and its peers timed on the same work in one run.
 *
 * A case is one problem; its contenders are closures over the same operands. They are checked against a slow reference, then
 * timed in rounds: every round calls each contender in turn, and each batch of calls stands between two probes of the FMA peak
 * on the same number of threads. A round in which a probe fell behind does not count, medians are over rounds, a ratio is the
 * median of the ratios inside rounds, and the percentage is against the probes beside the batch: so neither another tenant of
 * the machine nor a change of clock decides. Sees public headers only, as the verbs of the command do. */
#ifndef ST_BENCH_BENCH_H
#define ST_BENCH_BENCH_H
#include "cli/cli.h"
#include <strata.h>

enum { BENCH_CONTENDERS = 16, BENCH_PEERS = 12, BENCH_ROUNDS = 128, BENCH_COLUMNS = 24 };

/* ---- probes ---------------------------------------------------------------------------------------------------------- */
/* The widest fused multiply-add (else multiply and add) that this processor has, in f32; f64 does half as much. */
typedef struct bench_fma {
    const char *name;
    void (*run)(long n); /* n steps */
    double flops;        /* a step */
} bench_fma;
void bench_fma_avx512(long n);
void bench_fma_avx2(long n);
void bench_fma_portable(long n);
extern const double bench_fma_flops_avx512, bench_fma_flops_avx2, bench_fma_flops_portable;
const bench_fma *bench_fma_best(void);

bool bench_probe_begin(int threads); /* starts threads - 1 helpers */
void bench_probe_end(void);
double bench_probe(void); /* GFLOP/s of all threads together, now; about 0.3 ms */
/* memcpy of `bytes` (a few hundred at least) on all threads for about `seconds`: GB/s of bytes read and written. */
double bench_probe_copy(void *dst, const void *src, size_t bytes, double seconds);

/* ---- peers ----------------------------------------------------------------------------------------------------------- */
typedef void (*sgemm_fn)(int, int, int, int, int, int, float, const float *, int, const float *, int, float,
                         float *, int);
typedef void (*dgemm_fn)(int, int, int, int, int, int, double, const double *, int, const double *, int,
                         double, double *, int);
typedef void (*sgemv_fn)(int, int, int, int, float, const float *, int, const float *, int, float, float *,
                         int);
typedef void (*dgemv_fn)(int, int, int, int, double, const double *, int, const double *, int, double,
                         double *, int);
enum { CBLAS_ROW = 101, CBLAS_COL = 102, CBLAS_N = 111, CBLAS_T = 112 };

typedef enum peer_kind { PEER_CBLAS, PEER_XSMM, PEER_DNNL } peer_kind;
typedef struct peer {
    char name[24];
    peer_kind kind;
    char path[512], version[200];
    void *lib;
    sgemm_fn sgemm;
    dgemm_fn dgemm;
    sgemv_fn sgemv;
    dgemv_fn dgemv;
    struct dnnl *dnnl;
} peer;
typedef struct peers {
    peer p[BENCH_PEERS];
    int n;
    char notes[2048]; /* what could not be opened, what the environment does to a peer; lines */
} peers;
/* `given`: NAME=PATH or NAME=off; `only`: NULL or a list of names. Environment STRATA_PEER_<NAME>=PATH. False with a message
 * on stderr when a given path cannot be opened or a name is unknown. */
bool peers_open(peers *ps, const char *const *given, int given_count, const char *only);
void peers_threads(const peers *ps, int threads);
void peers_note(peers *ps, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* libxsmm: C = A B, row-major and packed; NULL when it has no kernel for it. Call run(kernel, a, b, c). */
void *xsmm_gemm(const peer *p, int64_t m, int64_t n, int64_t k, bool f64, bool ta, bool tb);
void xsmm_run(void *kernel, const void *a, const void *b, void *c);

/* oneDNN, API 2 and 3, by dlsym. Layouts of a primitive's data: plain ones, or what the primitive likes best. */
typedef enum dnnl_layout { DNNL_NCHW, DNNL_NHWC, DNNL_BEST } dnnl_layout;
struct dnnl *dnnl_open(void *lib, char *version, size_t n); /* NULL when symbols are missing */
typedef struct dnnl_op dnnl_op;                             /* a primitive with its arguments */
void dnnl_run(void *op);
void dnnl_drop(void *op);
const char *dnnl_impl(const dnnl_op *op);
/* All take plain f32 data and keep what they need; `packed`: weights in the primitive's own layout, reordered now. */
dnnl_op *dnnl_matmul(struct dnnl *d, int64_t m, int64_t n, int64_t k, bool ta, bool tb, bool packed,
                     const float *a, const float *b, float *c);
/* C = post(A B + bias): post a dnnl_row of one element's function, -1 for none. */
dnnl_op *dnnl_matmul_fused(struct dnnl *d, int64_t m, int64_t n, int64_t k, bool packed, const float *a,
                           const float *b, const float *bias, float *c, int post);
typedef struct conv_shape {
    const char *name;
    int64_t n, c, h, w, o, r, s, stride, pad, groups, p, q;
} conv_shape;
typedef enum conv_pass { PASS_FORWARD, PASS_DATA, PASS_WEIGHTS } conv_pass;
/* x (nchw or nhwc), w (oihw), y as x: the plain operands; dnnl_fetch copies the result (y, dx or dw) to plain memory: images in
 * nchw, weights in oihw. */
dnnl_op *dnnl_conv(struct dnnl *d, const conv_shape *s, conv_pass pass, dnnl_layout layout,
                   const float *x_nchw, const float *w_oihw, const float *y_nchw);
bool dnnl_fetch(dnnl_op *op, float *out);
typedef enum dnnl_row {
    DNNL_RELU,
    DNNL_EXP,
    DNNL_TANH,
    DNNL_SIGMOID,
    DNNL_GELU_ERF,
    DNNL_SOFTMAX,
    DNNL_LAYER_NORM
} dnnl_row;
dnnl_op *dnnl_rowwise(struct dnnl *d, dnnl_row kind, int64_t rows, int64_t cols, const float *x, float *y,
                      const float *scale, const float *shift);
dnnl_op *dnnl_batch_norm(struct dnnl *d, const int64_t dim[4], bool nhwc, const float *x, float *y,
                         const float *scale, const float *shift, const float *mean, const float *var);

/* ---- cases and contenders -------------------------------------------------------------------------------------------- */
typedef enum contender_class {
    CLASS_OURS,     /* Strata, as the table's name says */
    CLASS_PEER,     /* counts for the best peer */
    CLASS_PREPARED, /* a peer that was given more than Strata (operands repacked before): shown, not counted */
    CLASS_REFERENCE /* a bound of the machine (copy, bare microkernel): shown, not counted */
} contender_class;

typedef struct contender {
    char name[24]; /* the column */
    contender_class kind;
    bool
        pointer; /* called through a ready object (plan, JIT pointer, primitive): no call overhead to speak of */
    void (*run)(void *arg);
    double (*sample)(void *arg); /* instead of run: gives the rate itself */
    void *arg;
    void (*drop)(void *arg);  /* may be NULL */
    bool (*fetch)(void *arg); /* brings the result to where `check` looks; may be NULL */
    char note[128];           /* kernel or implementation */
    /* results */
    bool wrong;
    double error;   /* largest |got - want| over its bound */
    double rate;    /* median, units a second (GFLOP/s or GB/s) */
    double percent; /* median percent of the probes beside it (of the copy beside it for GB/s) */
    double ratio;   /* median of (its seconds / Strata's seconds) */
    double us;      /* median microseconds a call */
    int rounds;
} contender;

typedef struct bench_case {
    char name[96];
    const char *group; /* cases of one group have a mean of their own; NULL: none */
    const char *unit;  /* "GFLOP/s" or "GB/s" */
    double work;       /* units of 1e9 a call */
    double peak_scale; /* peak of this type relative to f32 FMA; 0: percent of the contender named "copy" */
    double flops, bytes;
    double copy_work; /* of the contender named "copy", units of 1e9 a call; 0: `work` */
    contender c[BENCH_CONTENDERS];
    int n;
    bool noisy;                 /* too few quiet rounds: all counted */
    int best;                   /* index of the best counted peer, or -1 */
    int best_pointer;           /* for the plan's column: pointers count too; or -1 */
    double (*check)(void *arg); /* largest error over bound of what lies in the output now */
    void *check_arg;
    void (*poison)(void *arg); /* fills the output with NaN */
} bench_case;

typedef struct bench_options {
    const char *what; /* gemm, conv, pointwise */
    int threads;
    double seconds; /* a case */
    bool f64, plan;
    int level; /* blas: 1, 2, 3 */
    bool ta, tb;
    int pass;
    bool nchw;
    const char *filters; /* oihw, ohwi, hwio */
    int64_t batch;
    bool tsv, json;
    const char *html;
    const char *device; /* "cpu", "cuda:0" */
    const char *type;   /* --type as given */
    bool sustained, no_peers;
    const char *epilogue; /* --epilogue */
    int candidates;       /* --candidates */
} bench_options;

typedef struct bench {
    bench_options o;
    strata_handle *h, *cpu; /* cpu: for references on a GPU's bench, and for one thread beside several */
    strata_device_info device;
    peers peers;
    bench_case *rows;
    int count, room;
    double peak;     /* best FMA probe seen, GFLOP/s f32, all threads */
    double copy_gbs; /* copy bandwidth of memory, for the roofline */
    cli_progress progress;
    double done, total; /* cases */
    int wrong;          /* contenders of ours with a wrong result */
    char command[512];
    char columns[BENCH_COLUMNS][24]; /* of the table, in order; those of a run are known before it begins */
    int column_count;
    bool head_shown;
} bench;

contender *case_add(bench_case *c, const char *name, contender_class kind, void (*run)(void *), void *arg,
                    void (*drop)(void *));
/* Room for one more case in b->rows; false when there is no memory. */
bool bench_room(bench *b);
/* Checks, times, appends to b->rows; the contenders are dropped. False when our own result is wrong. */
bool bench_measure(bench *b, bench_case *c);
/* Memory on huge pages where possible, filled with random numbers in [-1, 1). */
void *bench_alloc(size_t bytes);
void bench_free(void *p, size_t bytes);
void bench_random(void *p, int64_t n, bool f64, uint64_t seed);
double bench_median(double *v, int n);

typedef struct gemm_shape {
    int64_t m, n, k;
} gemm_shape;
enum { GEMM_SHAPES = 256 };
/* Sizes, MxNxK and sets, as words; `usual` when there are none. Returns how many, -1 after a message. */
int gemm_shapes(const char **words, int n, const char *usual, gemm_shape *out);

bool bench_gemm_type(const char *name); /* is it one that gemm_types.c measures? NULL: no */
int bench_gemm_types(bench *b, const gemm_shape *s, int count);
int bench_first_use(int argc, char **argv); /* a verb of its own: `strata bench first-use` */
int bench_gemm(bench *b, const char **words, int n);
int bench_fused(bench *b, const char **words, int n); /* gemm --epilogue on a CPU */
int bench_blas(bench *b, const char **words, int n);  /* levels 1 and 2; hands 3 on */
int bench_blas3(bench *b, const char **words, int n); /* blas3.c: level 3 of the BLAS */
int bench_conv(bench *b, const char **words, int n);
int bench_pointwise(bench *b, const char **words, int n);

/* Adds a column to the table unless it is there; `name` is a contender's, "%s-%s" of name and suffix when one is given. */
void report_column(bench *b, const char *name, const char *suffix);
/* Machine, peers and notes, as lines that begin with `mark`. */
void report_head(const bench *b, FILE *f, const char *mark);
void report_case(bench *b, const bench_case *c); /* one row, when it is finished */
void report_end(const bench *b);                 /* means, or the JSON */
bool report_html(const bench *b, const char *file);
/* Geometric mean of Strata's ratio to column `name` (NULL: to the best peer) over the cases that have it; 0 when none has.
 * `plan`: of strata-plan. */
double report_mean(const bench *b, const char *name, bool plan, int *cases);
/* Geometric mean of the ratio to the best peer over the cases of a group, and the least; *percent: the median percentage of Strata's. */
double report_group(const bench *b, const char *group, int *cases, double *least, double *percent);
/* The contender of this column in a case, or NULL. */
const contender *report_find(const bench_case *c, const char *name);
/* Strata's ratio (its plan's with `plan`) to the best peer; 0 when there is none. `best` gets the peer's name. */
double report_ratio(const bench_case *c, bool plan, const char **best);
#endif
