/* SPDX-License-Identifier: Apache-2.0 */
/* net.h - a convolutional network about the size of LeNet-5, with batch norm, on Strata's operators.
 *
 *     28x28 picture, scaled       x    (n, 1, 28, 28)
 *     convolution 5x5, 1 -> 16    batch norm, max pool 2, ReLU -> (n, 16, 14, 14)
 *     convolution 5x5, 16 -> 32   batch norm, max pool 2, ReLU -> (n, 32, 7, 7)
 *     linear 1568 -> 128          batch norm, ReLU
 *     linear 128 -> 10            softmax, cross-entropy
 *
 * Activations are NHWC. ReLU follows the pooling: the two commute, and it then works on a quarter of the numbers. */
#ifndef FASHION_NET_H
#define FASHION_NET_H
#include <strata.h>

#ifdef __cplusplus
extern "C" {
#endif
#define NET_API __attribute__((visibility("default")))

enum { NET_SIDE = 28, NET_PIXELS = NET_SIDE * NET_SIDE, NET_CLASSES = 10 };

typedef struct net net;

/* A network with fresh weights (drawn from `seed`) on a handle of its own. threads = 0: all that the team has. `batch` pictures
 * go through one training step, at least 2. NULL on failure: why (n bytes) then says it. */
NET_API net *net_create(const char *device, int threads, int batch, uint64_t seed, char *why, size_t n);
NET_API void net_destroy(net *n);
NET_API strata_handle *net_handle(net *n);
NET_API const char *net_error(net *n); /* in words, of the last call that failed */

/* Puts a batch of pictures (batch x 784 bytes) and their labels (batch) in place. */
NET_API strata_status net_load(net *n, const uint8_t *pixels, const uint8_t *labels);
/* One training step on the batch that was loaded: forward, loss, backward, update. `loss` may be NULL. */
NET_API strata_status net_step(net *n, double learning_rate, double *loss);
/* The parts of net_step, in this order. */
NET_API strata_status net_forward(net *n, double *loss);
NET_API strata_status net_backward(net *n);
NET_API strata_status net_update(net *n, double learning_rate);

/* Classifies `count` pictures with the running averages of batch norm: classes[i] in 0..9 and, unless NULL, the ten
 * probabilities of each. */
NET_API strata_status net_classify(net *n, const uint8_t *pixels, int64_t count, uint8_t *classes,
                                   float *probability);

/* The parameters by number, for saving and for tests: 0 past the end. `gradient` has data NULL where a parameter is not trained
 * (the running averages). */
typedef struct net_parameter {
    const char *name;
    strata_tensor value, gradient;
} net_parameter;
NET_API int net_parameter_at(net *n, int i, net_parameter *p);
NET_API int64_t net_parameter_count(net *n); /* trained numbers */

/* Runs the second convolution once, the heaviest call of all (net_load first), and, unless plan is NULL, gives its plan in words
 * (free it). */
NET_API strata_status net_one_call(net *n, char **plan);

#ifdef __cplusplus
}
#endif
#endif
