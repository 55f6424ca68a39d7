/* SPDX-License-Identifier: Apache-2.0 */
/* dnn.h - neural-network operators. Images are (n, c, h, w) by dims, NCHW or NHWC (or anything else) by strides.
 * All take f32 (and f64, the type in which gradients are tested). `beta`-like accumulation: gradients are stored, or added
 * to what is there when options.accumulate is set; without it the output is never read. */
#ifndef STRATA_DNN_H
#define STRATA_DNN_H
#include <strata/base.h>
#include <strata/plan.h>
#include <strata/pointwise.h>
#ifdef __cplusplus
extern "C" {
#endif

/* Convolution. The zero value: stride 1, dilation 1, no padding, one group, cross-correlation.
 * Padding is zeros. A tap that meets it is left out or multiplied by zero, as suits the kernel: where a weight is infinite or NaN, an output whose
 * window overhangs the image may therefore be NaN. Outputs whose windows lie inside, and all outputs of finite weights, are the same either way. */
typedef struct strata_conv {
    int64_t pad[2];     /* rows and columns of zeros before (top, left) and, unless pad_end is used, after */
    int64_t pad_end[2]; /* after (bottom, right); used when asymmetric is set */
    bool asymmetric;
    int64_t stride[2];   /* 0 means 1 */
    int64_t dilation[2]; /* 0 means 1 */
    int64_t groups;      /* 0 means 1 */
    bool
        flip; /* false: cross-correlation (what networks call convolution); true: kernel flipped in h and w */
    bool accumulate; /* add to the output instead of overwriting it */
    const char *
        epilogue; /* forward only: expression over acc (broadcast operands (n, c, h, w); bias[n] runs along the channels) */
    const strata_operand *operands;
    uint64_t reserved[4]; /* zero */
} strata_conv;

/* y[n,o,p,q] = sum over c, r, s of x[n, g*C/G + c, p*stride - pad + r*dilation, q*... + s*...] * w[o, c, r, s], outside = 0.
 * x (N, C, H, W), w (O, C/groups, R, S), y (N, O, P, Q) with P = (H + pads - (R-1)*dilation - 1) / stride + 1. */
STRATA_API strata_status strata_conv_forward(strata_handle *h, const strata_conv *o, strata_tensor x,
                                             strata_tensor w, strata_tensor y);
STRATA_API strata_status strata_conv_backward_data(strata_handle *h, const strata_conv *o, strata_tensor dy,
                                                   strata_tensor w, strata_tensor dx);
STRATA_API strata_status strata_conv_backward_weights(strata_handle *h, const strata_conv *o, strata_tensor x,
                                                      strata_tensor dy, strata_tensor dw);
/* Plans take operands in the same order (then those of the epilogue). */
STRATA_API strata_status strata_conv_forward_plan(strata_handle *h, const strata_conv *o, strata_tensor x,
                                                  strata_tensor w, strata_tensor y,
                                                  const strata_choice *choice, strata_plan **plan);
STRATA_API strata_status strata_conv_backward_data_plan(strata_handle *h, const strata_conv *o,
                                                        strata_tensor dy, strata_tensor w, strata_tensor dx,
                                                        const strata_choice *choice, strata_plan **plan);
STRATA_API strata_status strata_conv_backward_weights_plan(strata_handle *h, const strata_conv *o,
                                                           strata_tensor x, strata_tensor dy,
                                                           strata_tensor dw, const strata_choice *choice,
                                                           strata_plan **plan);
/* Dims (n, o, p, q) of y for x and w; fails as the convolution itself would. */
STRATA_API strata_status strata_conv_output(strata_handle *h, const strata_conv *o, strata_tensor x,
                                            strata_tensor w, int64_t dim[4]);

typedef enum strata_pool_kind { STRATA_POOL_MAX = 0, STRATA_POOL_AVERAGE = 1 } strata_pool_kind;
/* Pooling. Max ignores padding and returns NaN for a window that holds one; its gradient goes to the first maximum in row order
 * (the first NaN where there is one). Average divides by the window's elements inside the image, or, with count_padding, inside
 * the padded image (an overhang of ceil mode never counts). */
typedef struct strata_pool {
    strata_pool_kind kind;
    int64_t window[2];
    int64_t stride[2]; /* 0 means the window */
    int64_t pad[2];    /* before; after too unless asymmetric */
    int64_t pad_end[2];
    bool asymmetric;
    int64_t dilation[2]; /* 0 means 1 */
    bool ceil_mode; /* output size rounds up; a last window that would start in the end padding is dropped */
    bool count_padding;
    bool accumulate;
    uint64_t reserved[4]; /* zero */
} strata_pool;
STRATA_API strata_status strata_pool_output(strata_handle *h, const strata_pool *o, strata_tensor x,
                                            int64_t dim[4]);
/* argmax: optional (data NULL when absent) i32 tensor of y's dims that receives, for max, the position h*W + w of the maximum in x. */
STRATA_API strata_status strata_pool_forward(strata_handle *h, const strata_pool *o, strata_tensor x,
                                             strata_tensor y, strata_tensor argmax);
/* x is needed for max without argmax; ignored otherwise (may then have NULL data). argmax holds what the forward call wrote; an entry that is
 * no position in its output's window gives that output's gradient to nobody, and nothing but dx is written whatever it holds. */
STRATA_API strata_status strata_pool_backward(strata_handle *h, const strata_pool *o, strata_tensor x,
                                              strata_tensor dy, strata_tensor argmax, strata_tensor dx);

typedef enum strata_activation_kind {
    STRATA_RELU = 0,
    STRATA_LEAKY_RELU,
    STRATA_RELU6,
    STRATA_ELU,
    STRATA_SIGMOID,
    STRATA_TANH,
    STRATA_GELU,
    STRATA_GELU_TANH,
    STRATA_SILU,
    STRATA_SOFTPLUS,
    STRATA_HARD_SWISH,
    STRATA_IDENTITY,
    STRATA_ACTIVATION_COUNT
} strata_activation_kind;
typedef struct strata_activation {
    strata_activation_kind kind;
    double slope;         /* LEAKY_RELU: slope below 0; ELU: alpha. 0 means the usual (0.01 and 1) */
    bool accumulate;      /* backward: add to dx */
    uint64_t reserved[4]; /* zero */
} strata_activation;
/* y = f(x), elementwise, any rank; y may be x. A NaN stays a NaN in every kind. */
STRATA_API strata_status strata_activation_forward(strata_handle *h, const strata_activation *o,
                                                   strata_tensor x, strata_tensor y);
/* dx = dy * f'(x); f'(0) of the ReLU kinds is 0. dx may be dy. */
STRATA_API strata_status strata_activation_backward(strata_handle *h, const strata_activation *o,
                                                    strata_tensor x, strata_tensor dy, strata_tensor dx);

/* Softmax over one dim. A row of -Inf alone gives NaN, as IEEE arithmetic has it. */
typedef struct strata_softmax {
    int axis; /* counted from the end when negative; 0 value means the last dim unless axis_is_set */
    bool axis_is_set;
    bool log;             /* log-softmax */
    bool accumulate;      /* backward: add to dx */
    uint64_t reserved[4]; /* zero */
} strata_softmax;
STRATA_API strata_status strata_softmax_forward(strata_handle *h, const strata_softmax *o, strata_tensor x,
                                                strata_tensor y);
/* y is the forward result; softmax: dx = y (dy - sum(dy y)); log-softmax: dx = dy - exp(y) sum(dy). dx may be dy. */
STRATA_API strata_status strata_softmax_backward(strata_handle *h, const strata_softmax *o, strata_tensor y,
                                                 strata_tensor dy, strata_tensor dx);

/* Cross-entropy of logits (rows, classes) against labels (rows, i32 or i64, or probabilities of x's dims and type):
 * loss[r] = logsumexp(x[r]) - x[r, label]; a label equal to ignore_label (when use_ignore) gives 0.
 * A label outside [0, classes) is refused before anything is written, with its row; labels in the memory of a GPU are not waited for:
 * there the loss and the gradient of such a row are NaN. */
typedef struct strata_cross_entropy {
    bool use_ignore;
    int64_t ignore_label;
    double smoothing;     /* label smoothing in [0, 1) */
    uint64_t reserved[4]; /* zero */
} strata_cross_entropy;
STRATA_API strata_status strata_cross_entropy_forward(strata_handle *h, const strata_cross_entropy *o,
                                                      strata_tensor logits, strata_tensor labels,
                                                      strata_tensor loss);
/* dlogits = dloss[r] * (softmax(x) - target); dloss has rank 1 (rows) or 0 (the same for all rows). */
STRATA_API strata_status strata_cross_entropy_backward(strata_handle *h, const strata_cross_entropy *o,
                                                       strata_tensor logits, strata_tensor labels,
                                                       strata_tensor dloss, strata_tensor dlogits);

/* Batch normalisation over every dim but the channel dim (1). y = (x - mean) / sqrt(var + epsilon) * scale + shift; mean and
 * var are the batch's (var biased) in training. scale and shift may be absent (data NULL): 1 and 0. */
typedef struct strata_batch_norm {
    double epsilon;  /* 0 means 1e-5 */
    double momentum; /* running = (1 - momentum) * running + momentum * batch; 0 means 0.1 */
    bool
        running_biased; /* false: the running variance takes the unbiased estimate (PyTorch, cuDNN); true: the biased one */
    bool accumulate;      /* backward: add to dscale, dshift and dx */
    uint64_t reserved[4]; /* zero */
} strata_batch_norm;
/* The tensors of one batch-norm call; a tensor whose data is NULL is absent. Vectors have c elements. */
typedef struct strata_batch_norm_tensors {
    strata_tensor x, y;                      /* dims (n, c, ...) */
    strata_tensor scale, shift;              /* optional */
    strata_tensor running_mean, running_var; /* inference: read; training: updated when present */
    strata_tensor save_mean, save_inv_std;   /* training forward writes, backward reads */
    strata_tensor dy, dx, dscale, dshift;    /* backward; dx, dscale, dshift each optional */
} strata_batch_norm_tensors;
STRATA_API strata_status strata_batch_norm_training(strata_handle *h, const strata_batch_norm *o,
                                                    const strata_batch_norm_tensors *t);
STRATA_API strata_status strata_batch_norm_inference(strata_handle *h, const strata_batch_norm *o,
                                                     const strata_batch_norm_tensors *t);
STRATA_API strata_status strata_batch_norm_backward(strata_handle *h, const strata_batch_norm *o,
                                                    const strata_batch_norm_tensors *t);

#ifdef __cplusplus
}
#endif
#endif
