/* SPDX-License-Identifier: Apache-2.0 */
/* net.c - parameters, gradients and momenta are three flat arrays of the same order, so that one expression updates them all; every
 * named tensor is a view into them. Buffers are made once, in the memory of the device; a step allocates nothing. What crosses between
 * the program and the device goes through strata_copy, which on the CPU is a plain copy: so one source serves both. */
#include "net.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call)                       \
    do {                                \
        strata_status status_ = (call); \
        if (status_) return status_;    \
    } while (0)

enum { C1 = 16, C2 = 32, HIDDEN = 128, FLAT = C2 * 7 * 7, CLASSES = NET_CLASSES };

/* Weights come first (they decay), then the other trained numbers, then the running averages. */
enum {
    CONV1_W,
    CONV2_W,
    FC1_W,
    FC2_W,
    BN1_SCALE,
    BN1_SHIFT,
    BN2_SCALE,
    BN2_SHIFT,
    BN3_SCALE,
    BN3_SHIFT,
    FC2_BIAS,
    BN1_MEAN,
    BN1_VAR,
    BN2_MEAN,
    BN2_VAR,
    BN3_MEAN,
    BN3_VAR,
    PARAMETERS,
    DECAYED = BN1_SCALE,
    TRAINED = BN1_MEAN
};

static const struct parameter {
    const char *name;
    int rank;
    int64_t dim[4];
} parameter[PARAMETERS] = {
    [CONV1_W] = {"conv1.weight", 4, {C1, 1, 5, 5}}, [CONV2_W] = {"conv2.weight", 4, {C2, C1, 5, 5}},
    [FC1_W] = {"fc1.weight", 2, {FLAT, HIDDEN}},    [FC2_W] = {"fc2.weight", 2, {HIDDEN, CLASSES}},
    [BN1_SCALE] = {"bn1.scale", 1, {C1}},           [BN1_SHIFT] = {"bn1.shift", 1, {C1}},
    [BN2_SCALE] = {"bn2.scale", 1, {C2}},           [BN2_SHIFT] = {"bn2.shift", 1, {C2}},
    [BN3_SCALE] = {"bn3.scale", 1, {HIDDEN}},       [BN3_SHIFT] = {"bn3.shift", 1, {HIDDEN}},
    [FC2_BIAS] = {"fc2.bias", 1, {CLASSES}},        [BN1_MEAN] = {"bn1.running_mean", 1, {C1}},
    [BN1_VAR] = {"bn1.running_var", 1, {C1}},       [BN2_MEAN] = {"bn2.running_mean", 1, {C2}},
    [BN2_VAR] = {"bn2.running_var", 1, {C2}},       [BN3_MEAN] = {"bn3.running_mean", 1, {HIDDEN}},
    [BN3_VAR] = {"bn3.running_var", 1, {HIDDEN}},
};

static const strata_conv same5 = {.pad = {2, 2}};
static const strata_pool halve = {.kind = STRATA_POOL_MAX, .window = {2, 2}};
static const float weight_decay = 5e-4f;
enum { LOSS, DLOSS, RATE, DECAY, NO_DECAY, NUMBERS }; /* single numbers that operators read and write */
#define EPSILON "1e-5"                                /* of batch norm, in the folded expression */

/* What one batch-norm layer keeps from forward to backward. */
typedef struct norm {
    strata_tensor save_mean, save_inv_std;
    strata_tensor scale, shift; /* inference: y = x * scale + shift */
    int first;                  /* number of its scale among the parameters; the shift follows */
    int running;                /* of its running mean; the variance follows */
} norm;

struct net {
    strata_handle *h;
    int64_t batch;
    int64_t at[PARAMETERS + 1]; /* where a parameter begins in the flat arrays */
    float *value, *gradient, *velocity;
    uint8_t *pixels;
    int32_t *labels;
    float *number;         /* of the device: LOSS, DLOSS, ... */
    int32_t *given_labels; /* of the program, as the labels of a batch are put together */
    float *logits_here;    /* of the program: what net_classify looks at */
    /* activations of a batch, in the order of the forward pass; d_ is the loss's derivative by it */
    strata_tensor x, conv1, norm1, argmax1, pool1, conv2, norm2, argmax2, pool2, fc1, norm3, logits, losses;
    strata_tensor d_conv1, d_norm1, d_pool1, d_conv2, d_norm2, d_pool2, d_fc1, d_norm3, d_logits;
    norm bn1, bn2, bn3;
    void *block[48]; /* all that was allocated */
    int blocks;
};

/* ---- making ------------------------------------------------------------------------------------------------------------- */

static void *memory(net *n, int64_t bytes)
{
    void *p = NULL;
    if (n->blocks == (int)(sizeof n->block / sizeof *n->block) || strata_alloc(n->h, (size_t)bytes, &p))
        return NULL;
    n->block[n->blocks++] = p;
    return strata_fill(n->h, strata_vector(p, STRATA_U8, bytes, 1), STRATA_ZERO) ? NULL : p;
}

/* `count` numbers of the program to the device, or back. */
static strata_status put(net *n, const void *from, void *to, strata_type type, int64_t count)
{
    return strata_copy(n->h, strata_vector(from, type, count, 1), strata_vector(to, type, count, 1));
}
static strata_status put_number(net *n, int which, float value)
{
    return put(n, &value, n->number + which, STRATA_F32, 1);
}
static strata_tensor number(const net *n, int which) { return strata_point(n->number + which, STRATA_F32); }

static strata_tensor images(net *n, strata_type type, int64_t c, int64_t side)
{
    return strata_nhwc(memory(n, n->batch * c * side * side * 4), type, n->batch, c, side, side);
}

static strata_tensor rows(net *n, int64_t cols)
{
    return strata_matrix(memory(n, n->batch * cols * 4), STRATA_F32, n->batch, cols, STRATA_ROW_MAJOR, 0);
}

static strata_tensor vector(net *n, int64_t count)
{
    return strata_vector(memory(n, count * 4), STRATA_F32, count, 1);
}

/* A parameter, or its slot in the gradients: filters lie in memory as the pictures do, channels innermost. */
static strata_tensor view(const net *n, const float *flat, int i)
{
    const struct parameter *p = &parameter[i];
    const int64_t *d = p->dim;
    if (p->rank == 4) return strata_nhwc(flat + n->at[i], STRATA_F32, d[0], d[1], d[2], d[3]);
    return strata_array(flat + n->at[i], STRATA_F32, p->rank, d, NULL);
}

static strata_tensor value(const net *n, int i) { return view(n, n->value, i); }
static strata_tensor gradient(const net *n, int i) { return view(n, n->gradient, i); }

static void make_norm(net *n, norm *b, int first, int running)
{
    int64_t c = parameter[first].dim[0];
    *b = (norm){vector(n, c), vector(n, c), vector(n, c), vector(n, c), first, running};
}

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014 */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Uniform in +-sqrt(3 / fan in) (variance 1 / fan in; batch norm makes up for what ReLU takes away). */
static strata_status fresh_weights(net *n, uint64_t seed)
{
    float *w = malloc((size_t)n->at[PARAMETERS] * sizeof *w);
    if (!w) return STRATA_ERROR_MEMORY;
    static const double limit[DECAYED] = {0.34641016, 0.08660254, 0.04374089, 0.15309311};
    for (int i = 0; i < DECAYED; i++)
        for (int64_t k = n->at[i]; k < n->at[i + 1]; k++)
            w[k] = (float)(((double)(draw(&seed) >> 11) * 0x1p-52 - 1.0) * limit[i]);
    for (int i = DECAYED; i < PARAMETERS; i++) {
        bool one = i == BN1_SCALE || i == BN2_SCALE || i == BN3_SCALE || i == BN1_VAR || i == BN2_VAR ||
                   i == BN3_VAR;
        for (int64_t k = n->at[i]; k < n->at[i + 1]; k++) w[k] = one ? 1.0f : 0.0f;
    }
    strata_status s = put(n, w, n->value, STRATA_F32, n->at[PARAMETERS]);
    free(w);
    return s;
}

static void make_buffers(net *n)
{
    for (int i = 0; i < PARAMETERS; i++) {
        int64_t count = 1;
        for (int d = 0; d < parameter[i].rank; d++) count *= parameter[i].dim[d];
        n->at[i + 1] = n->at[i] + count;
    }
    n->value = memory(n, n->at[PARAMETERS] * 4);
    n->gradient = memory(n, n->at[TRAINED] * 4);
    n->velocity = memory(n, n->at[TRAINED] * 4);
    n->pixels = memory(n, n->batch * NET_PIXELS);
    n->labels = memory(n, n->batch * 4);
    n->number = memory(n, NUMBERS * 4);
    n->given_labels = malloc((size_t)n->batch * sizeof *n->given_labels);
    n->logits_here = malloc((size_t)n->batch * CLASSES * sizeof *n->logits_here);
    n->x = images(n, STRATA_F32, 1, 28);
    n->conv1 = images(n, STRATA_F32, C1, 28), n->d_conv1 = images(n, STRATA_F32, C1, 28);
    n->norm1 = images(n, STRATA_F32, C1, 28), n->d_norm1 = images(n, STRATA_F32, C1, 28);
    n->pool1 = images(n, STRATA_F32, C1, 14), n->d_pool1 = images(n, STRATA_F32, C1, 14);
    n->conv2 = images(n, STRATA_F32, C2, 14), n->d_conv2 = images(n, STRATA_F32, C2, 14);
    n->norm2 = images(n, STRATA_F32, C2, 14), n->d_norm2 = images(n, STRATA_F32, C2, 14);
    n->pool2 = images(n, STRATA_F32, C2, 7), n->d_pool2 = images(n, STRATA_F32, C2, 7);
    n->argmax1 = images(n, STRATA_I32, C1, 14), n->argmax2 = images(n, STRATA_I32, C2, 7);
    n->fc1 = rows(n, HIDDEN), n->d_fc1 = rows(n, HIDDEN);
    n->norm3 = rows(n, HIDDEN), n->d_norm3 = rows(n, HIDDEN);
    n->logits = rows(n, CLASSES), n->d_logits = rows(n, CLASSES);
    n->losses = vector(n, n->batch);
    make_norm(n, &n->bn1, BN1_SCALE, BN1_MEAN);
    make_norm(n, &n->bn2, BN2_SCALE, BN2_MEAN);
    make_norm(n, &n->bn3, BN3_SCALE, BN3_MEAN);
}

net *net_create(const char *device, int threads, int batch, uint64_t seed, char *why, size_t n)
{
    net *self = calloc(1, sizeof *self);
    snprintf(why, n, "no memory for a network");
    if (!self) return NULL;
    if (batch < 2) {
        snprintf(why, n, "batch is %d; batch norm needs at least 2 pictures", batch);
    } else if (strata_create(&self->h, device)) {
        snprintf(why, n, "%s", strata_error(NULL));
    } else if (threads && strata_set_threads(self->h, threads)) {
        snprintf(why, n, "%s", strata_error(self->h));
    } else {
        self->batch = batch;
        make_buffers(self);
        if (self->bn3.shift.data && self->given_labels && self->logits_here && !fresh_weights(self, seed) &&
            !put_number(self, DLOSS, 1.0f / (float)batch) && !put_number(self, DECAY, weight_decay))
            return self;
        snprintf(why, n, "%s", strata_error(self->h));
    }
    net_destroy(self);
    return NULL;
}

void net_destroy(net *n)
{
    if (!n) return;
    for (int i = 0; i < n->blocks; i++) strata_free(n->h, n->block[i]);
    strata_destroy(n->h);
    free(n->given_labels);
    free(n->logits_here);
    free(n);
}

strata_handle *net_handle(net *n) { return n->h; }
const char *net_error(net *n) { return strata_error(n->h); }

/* ---- layers ------------------------------------------------------------------------------------------------------------- */

/* One view of the first `count` pictures (rows) of a buffer. */
static strata_tensor first(strata_tensor t, int64_t count)
{
    t.dim[0] = count;
    return t;
}

/* The matrix of a batch of images: one picture a row, in the order in which its numbers lie in memory. */
static strata_tensor flat(strata_tensor t)
{
    return strata_matrix(t.data, STRATA_F32, t.dim[0], t.dim[1] * t.dim[2] * t.dim[3], STRATA_ROW_MAJOR, 0);
}

static strata_status relu(net *n, strata_tensor x)
{
    strata_operand o[] = {{"x", x}, {NULL, {0}}};
    return strata_fused(n->h, "x = relu(x)", o, NULL);
}

/* The derivative before a ReLU from the one behind it: y is what the ReLU gave. */
static strata_status relu_backward(net *n, strata_tensor y, strata_tensor d)
{
    strata_operand o[] = {{"y", y}, {"d", d}, {NULL, {0}}};
    return strata_fused(n->h, "d = select(y > 0, d, 0)", o, NULL);
}

static strata_batch_norm_tensors norm_tensors(net *n, const norm *b, strata_tensor x)
{
    return (strata_batch_norm_tensors){.x = x,
                                       .scale = value(n, b->first),
                                       .shift = value(n, b->first + 1),
                                       .running_mean = value(n, b->running),
                                       .running_var = value(n, b->running + 1),
                                       .save_mean = b->save_mean,
                                       .save_inv_std = b->save_inv_std};
}

static strata_status norm_forward(net *n, const norm *b, strata_tensor x, strata_tensor y)
{
    strata_batch_norm_tensors t = norm_tensors(n, b, x);
    t.y = y;
    return strata_batch_norm_training(n->h, NULL, &t);
}

static strata_status norm_backward(net *n, const norm *b, strata_tensor x, strata_tensor dy, strata_tensor dx)
{
    strata_batch_norm_tensors t = norm_tensors(n, b, x);
    t.dy = dy;
    t.dx = dx;
    t.dscale = gradient(n, b->first);
    t.dshift = gradient(n, b->first + 1);
    return strata_batch_norm_backward(n->h, NULL, &t);
}

/* ---- training ----------------------------------------------------------------------------------------------------------- */

/* Bytes to numbers of about mean 0 and variance 1; 72.9 and 90 are those of the training pictures. */
static strata_status scale_pixels(net *n, int64_t count)
{
    strata_tensor p = strata_nhwc(n->pixels, STRATA_U8, count, 1, NET_SIDE, NET_SIDE);
    strata_operand o[] = {{"p", p}, {"x", first(n->x, count)}, {NULL, {0}}};
    return strata_fused(n->h, "x = (p - 72.9) * (1 / 90)", o, NULL);
}

strata_status net_load(net *n, const uint8_t *pixels, const uint8_t *labels)
{
    for (int64_t i = 0; i < n->batch; i++) n->given_labels[i] = labels[i];
    TRY(put(n, n->given_labels, n->labels, STRATA_I32, n->batch));
    TRY(put(n, pixels, n->pixels, STRATA_U8, n->batch * NET_PIXELS));
    return scale_pixels(n, n->batch);
}

strata_status net_forward(net *n, double *loss)
{
    strata_handle *h = n->h;
    TRY(strata_conv_forward(h, &same5, n->x, value(n, CONV1_W), n->conv1));
    TRY(norm_forward(n, &n->bn1, n->conv1, n->norm1));
    TRY(strata_pool_forward(h, &halve, n->norm1, n->pool1, n->argmax1));
    TRY(relu(n, n->pool1));

    TRY(strata_conv_forward(h, &same5, n->pool1, value(n, CONV2_W), n->conv2));
    TRY(norm_forward(n, &n->bn2, n->conv2, n->norm2));
    TRY(strata_pool_forward(h, &halve, n->norm2, n->pool2, n->argmax2));
    TRY(relu(n, n->pool2));

    TRY(strata_gemm(h, STRATA_ONE, flat(n->pool2), value(n, FC1_W), STRATA_ZERO, n->fc1, NULL));
    TRY(norm_forward(n, &n->bn3, n->fc1, n->norm3));
    TRY(relu(n, n->norm3));

    strata_operand bias[] = {{"bias", value(n, FC2_BIAS)}, {NULL, {0}}};
    strata_gemm_options add_bias = {.epilogue = "acc + bias[n]", .operands = bias};
    TRY(strata_gemm(h, STRATA_ONE, n->norm3, value(n, FC2_W), STRATA_ZERO, n->logits, &add_bias));

    strata_tensor labels = strata_vector(n->labels, STRATA_I32, n->batch, 1);
    TRY(strata_cross_entropy_forward(h, NULL, n->logits, labels, n->losses));
    strata_operand mean[] = {{"each", n->losses}, {"all", number(n, LOSS)}, {NULL, {0}}};
    TRY(strata_fused(h, "all = mean(each)", mean, NULL));
    float all = 0;
    if (loss) TRY(put(n, n->number + LOSS, &all, STRATA_F32, 1));
    if (loss) *loss = all;
    return STRATA_OK;
}

/* dx := d W' where the layer's input x (behind a ReLU) was positive, in one pass. */
static strata_status linear_backward_data(net *n, strata_tensor d, strata_tensor w, strata_tensor x,
                                          strata_tensor dx)
{
    strata_operand y[] = {{"y", x}, {NULL, {0}}};
    strata_gemm_options through_relu = {.epilogue = "select(y > 0, acc, 0)", .operands = y};
    return strata_gemm(n->h, STRATA_ONE, d, strata_transpose(w), STRATA_ZERO, dx, &through_relu);
}

static strata_status linear_backward_weights(net *n, strata_tensor x, strata_tensor d, strata_tensor dw)
{
    return strata_gemm(n->h, STRATA_ONE, strata_transpose(x), d, STRATA_ZERO, dw, NULL);
}

strata_status net_backward(net *n)
{
    strata_handle *h = n->h;
    strata_tensor labels = strata_vector(n->labels, STRATA_I32, n->batch, 1);
    TRY(strata_cross_entropy_backward(h, NULL, n->logits, labels, number(n, DLOSS), n->d_logits));

    strata_operand sum[] = {{"d", n->d_logits}, {"db", gradient(n, FC2_BIAS)}, {NULL, {0}}};
    TRY(strata_fused(h, "db = sum(d)", sum, &(strata_fused_options){.axes = 1u << 0}));
    TRY(linear_backward_weights(n, n->norm3, n->d_logits, gradient(n, FC2_W)));
    TRY(linear_backward_data(n, n->d_logits, value(n, FC2_W), n->norm3, n->d_norm3));

    TRY(norm_backward(n, &n->bn3, n->fc1, n->d_norm3, n->d_fc1));
    TRY(linear_backward_weights(n, flat(n->pool2), n->d_fc1, gradient(n, FC1_W)));
    TRY(linear_backward_data(n, n->d_fc1, value(n, FC1_W), flat(n->pool2), flat(n->d_pool2)));

    TRY(strata_pool_backward(h, &halve, n->norm2, n->d_pool2, n->argmax2, n->d_norm2));
    TRY(norm_backward(n, &n->bn2, n->conv2, n->d_norm2, n->d_conv2));
    TRY(strata_conv_backward_weights(h, &same5, n->pool1, n->d_conv2, gradient(n, CONV2_W)));
    TRY(strata_conv_backward_data(h, &same5, n->d_conv2, value(n, CONV2_W), n->d_pool1));

    TRY(relu_backward(n, n->pool1, n->d_pool1));
    TRY(strata_pool_backward(h, &halve, n->norm1, n->d_pool1, n->argmax1, n->d_norm1));
    TRY(norm_backward(n, &n->bn1, n->conv1, n->d_norm1, n->d_conv1));
    return strata_conv_backward_weights(h, &same5, n->x, n->d_conv1, gradient(n, CONV1_W));
}

/* Stochastic gradient descent with Nesterov's momentum on the parameters [begin, end). */
static strata_status descend(net *n, int begin, int end, int decay)
{
    int64_t at = n->at[begin], count = n->at[end] - at;
    strata_operand o[] = {{"w", strata_vector(n->value + at, STRATA_F32, count, 1)},
                          {"g", strata_vector(n->gradient + at, STRATA_F32, count, 1)},
                          {"v", strata_vector(n->velocity + at, STRATA_F32, count, 1)},
                          {"rate", number(n, RATE)},
                          {"decay", number(n, decay)},
                          {NULL, {0}}};
    return strata_fused(n->h, "e = g + decay * w; u = 0.9 * v + e; v = u; w = w - rate * (e + 0.9 * u)", o,
                        NULL);
}

strata_status net_update(net *n, double learning_rate)
{
    TRY(put_number(n, RATE, (float)learning_rate));
    TRY(descend(n, 0, DECAYED, DECAY));
    return descend(n, DECAYED, TRAINED, NO_DECAY);
}

strata_status net_step(net *n, double learning_rate, double *loss)
{
    TRY(net_forward(n, loss));
    TRY(net_backward(n));
    return net_update(n, learning_rate);
}

/* ---- using what was learnt ----------------------------------------------------------------------------------------------- */

/* Batch norm with fixed statistics is one multiplication and one addition a channel. */
static strata_status fold(net *n, const norm *b)
{
    strata_operand o[] = {{"mean", value(n, b->running)},
                          {"var", value(n, b->running + 1)},
                          {"scale", value(n, b->first)},
                          {"shift", value(n, b->first + 1)},
                          {"a", b->scale},
                          {"b", b->shift},
                          {NULL, {0}}};
    return strata_fused(n->h, "k = scale * rsqrt(var + " EPSILON "); a = k; b = shift - mean * k", o, NULL);
}

/* Batch norm and ReLU then need no pass of their own: they ride on the product. */
#define NORM_RELU "relu(acc * a[n] + b[n])"

static strata_status classify_batch(net *n, int64_t count)
{
    strata_handle *h = n->h;
    strata_tensor none = {0}, x = first(n->x, count), n1 = first(n->norm1, count),
                  p1 = first(n->pool1, count);
    strata_tensor n2 = first(n->norm2, count), p2 = first(n->pool2, count), f1 = first(n->norm3, count);
    strata_operand ab1[] = {{"a", n->bn1.scale}, {"b", n->bn1.shift}, {NULL, {0}}};
    strata_operand ab2[] = {{"a", n->bn2.scale}, {"b", n->bn2.shift}, {NULL, {0}}};
    strata_operand ab3[] = {{"a", n->bn3.scale}, {"b", n->bn3.shift}, {NULL, {0}}};
    strata_operand bias[] = {{"bias", value(n, FC2_BIAS)}, {NULL, {0}}};
    strata_conv conv1 = {.pad = {2, 2}, .epilogue = NORM_RELU, .operands = ab1};
    strata_conv conv2 = {.pad = {2, 2}, .epilogue = NORM_RELU, .operands = ab2};
    strata_gemm_options norm_relu = {.epilogue = NORM_RELU, .operands = ab3};
    strata_gemm_options add_bias = {.epilogue = "acc + bias[n]", .operands = bias};

    TRY(scale_pixels(n, count));
    TRY(strata_conv_forward(h, &conv1, x, value(n, CONV1_W), n1));
    TRY(strata_pool_forward(h, &halve, n1, p1, none));
    TRY(strata_conv_forward(h, &conv2, p1, value(n, CONV2_W), n2));
    TRY(strata_pool_forward(h, &halve, n2, p2, none));
    TRY(strata_gemm(h, STRATA_ONE, flat(p2), value(n, FC1_W), STRATA_ZERO, f1, &norm_relu));
    return strata_gemm(h, STRATA_ONE, f1, value(n, FC2_W), STRATA_ZERO, first(n->logits, count), &add_bias);
}

strata_status net_classify(net *n, const uint8_t *pixels, int64_t count, uint8_t *classes, float *probability)
{
    TRY(fold(n, &n->bn1));
    TRY(fold(n, &n->bn2));
    TRY(fold(n, &n->bn3));
    for (int64_t at = 0; at < count; at += n->batch) {
        int64_t now = count - at < n->batch ? count - at : n->batch;
        TRY(put(n, pixels + at * NET_PIXELS, n->pixels, STRATA_U8, now * NET_PIXELS));
        TRY(classify_batch(n, now));
        const float *z = n->logits_here;
        TRY(put(n, n->logits.data, n->logits_here, STRATA_F32, now * CLASSES));
        for (int64_t i = 0; i < now; i++) {
            int best = 0;
            for (int c = 1; c < CLASSES; c++)
                if (z[i * CLASSES + c] > z[i * CLASSES + best]) best = c;
            classes[at + i] = (uint8_t)best;
        }
        if (!probability) continue;
        strata_tensor p = first(n->d_logits, now);
        TRY(strata_softmax_forward(n->h, NULL, first(n->logits, now), p));
        TRY(put(n, p.data, probability + at * CLASSES, STRATA_F32, now * CLASSES));
    }
    return STRATA_OK;
}

/* ---- looking inside ------------------------------------------------------------------------------------------------------ */

int net_parameter_at(net *n, int i, net_parameter *p)
{
    if (i < 0 || i >= PARAMETERS) return 0;
    *p = (net_parameter){parameter[i].name, value(n, i), {0}};
    if (i < TRAINED) p->gradient = gradient(n, i);
    return 1;
}

int64_t net_parameter_count(net *n) { return n->at[TRAINED]; }

strata_status net_one_call(net *n, char **plan)
{
    strata_tensor w = value(n, CONV2_W);
    if (plan) {
        strata_plan *p = NULL;
        TRY(strata_conv_forward_plan(n->h, &same5, n->pool1, w, n->conv2, NULL, &p));
        *plan = strdup(strata_plan_describe(p));
        strata_plan_destroy(p);
    }
    return strata_conv_forward(n->h, &same5, n->pool1, w, n->conv2);
}
