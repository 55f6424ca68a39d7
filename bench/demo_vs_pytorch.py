#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One training step of the demo's network (examples/fashion/net.h), in Strata and in PyTorch, timed in turn.

    python3 bench/demo_vs_pytorch.py [--build build] [--batch 64 128] [--threads 2] [--rounds 15]

Both run in this process on the same number of threads: rounds of a few dozen steps each, Strata and PyTorch changing places, medians
over rounds. A step is what training does with a batch of bytes: scale the pixels, forward, loss, backward, update (SGD with Nesterov's
momentum and weight decay). PyTorch is tried with contiguous and channels_last images and with each kind of its SGD; the fastest of all
counts. Before anything is timed both start from the same weights, make a step on the same pictures, and must agree.
Exit code: 0 done, 1 they disagree, 2 PyTorch or the library is missing."""

import argparse
import ctypes
import os
import statistics
import sys
import time

PIXELS, CLASSES, RATE = 784, 10, 0.05


def die(code, text):
    print("demo_vs_pytorch: " + text, file=sys.stderr)
    sys.exit(code)


class Tensor(ctypes.Structure):
    """strata_tensor (include/strata/base.h)"""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("type", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("flags", ctypes.c_uint32),
        ("error", ctypes.c_uint32),
        ("dim", ctypes.c_int64 * 8),
        ("stride", ctypes.c_int64 * 8),
        ("error_arg", ctypes.c_int64),
        ("reserved", ctypes.c_uint64),
    ]


class Parameter(ctypes.Structure):
    """net_parameter (examples/fashion/net.h)"""

    _fields_ = [("name", ctypes.c_char_p), ("value", Tensor), ("gradient", Tensor)]


class Strata:
    def __init__(self, lib, batch, threads):
        self.lib, self.batch = lib, batch
        why = ctypes.create_string_buffer(1024)
        lib.net_create.restype = ctypes.c_void_p
        lib.net_create.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t]
        lib.net_load.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        lib.net_step.argtypes = [ctypes.c_void_p, ctypes.c_double, ctypes.POINTER(ctypes.c_double)]
        lib.net_error.argtypes = [ctypes.c_void_p]
        lib.net_error.restype = ctypes.c_char_p
        lib.net_destroy.argtypes = [ctypes.c_void_p]
        lib.net_parameter_at.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(Parameter)]
        self.net = lib.net_create(b"cpu", threads, batch, 1, why, len(why))
        if not self.net:
            die(1, "Strata's network: " + why.value.decode())
        self.loss = ctypes.c_double()

    def step(self, pixels, labels):
        """pixels, labels: addresses of batch x 784 and batch bytes"""
        if self.lib.net_load(self.net, pixels, labels) or self.lib.net_step(self.net, RATE, ctypes.byref(self.loss)):
            die(1, "Strata: " + self.lib.net_error(self.net).decode())
        return self.loss.value

    def parameters(self):
        """name -> (flat numpy view of the memory, dims, strides)"""
        import numpy

        found, p, i = {}, Parameter(), 0
        while self.lib.net_parameter_at(self.net, i, ctypes.byref(p)):
            t, i = p.value, i + 1
            dims, strides = list(t.dim[: t.rank]), [4 * s for s in t.stride[: t.rank]]
            count = 1 + sum((d - 1) * s // 4 for d, s in zip(dims, strides))
            flat = numpy.ctypeslib.as_array(ctypes.cast(t.data, ctypes.POINTER(ctypes.c_float)), (count,))
            found[p.name.decode()] = numpy.lib.stride_tricks.as_strided(flat, dims, strides)
        return found

    def close(self):
        self.lib.net_destroy(self.net)


def torch_network(torch, channels_last, sgd):
    """The same layers; returns (modules by the demo's names, step function)."""
    nn, F = torch.nn, torch.nn.functional
    m = {
        "conv1": nn.Conv2d(1, 16, 5, padding=2, bias=False),
        "bn1": nn.BatchNorm2d(16),
        "conv2": nn.Conv2d(16, 32, 5, padding=2, bias=False),
        "bn2": nn.BatchNorm2d(32),
        "fc1": nn.Linear(1568, 128, bias=False),
        "bn3": nn.BatchNorm1d(128),
        "fc2": nn.Linear(128, 10),
    }
    net = nn.ModuleDict(m).train()
    if channels_last:
        net = net.to(memory_format=torch.channels_last)
    weights = [m[k].weight for k in ("conv1", "conv2", "fc1", "fc2")]
    others = [p for p in net.parameters() if not any(p is w for w in weights)]
    options = {} if sgd == "plain" else {sgd: True}
    optimiser = torch.optim.SGD(
        [{"params": weights, "weight_decay": 5e-4}, {"params": others, "weight_decay": 0.0}], lr=RATE, momentum=0.9, nesterov=True, **options
    )

    def step(pixels, labels):
        x = (pixels.float() - 72.9) * (1 / 90)
        if channels_last:
            x = x.contiguous(memory_format=torch.channels_last)
        x = F.relu(F.max_pool2d(m["bn1"](m["conv1"](x)), 2))
        x = F.relu(F.max_pool2d(m["bn2"](m["conv2"](x)), 2))
        # the order that costs no copy; fc1's rows follow it
        x = x.permute(0, 2, 3, 1).flatten(1) if channels_last else x.flatten(1)
        x = F.relu(m["bn3"](m["fc1"](x)))
        loss = F.cross_entropy(m["fc2"](x), labels)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        return loss.item()

    return m, step


def copy_weights(torch, m, ours, channels_last):
    """From Strata's parameters to PyTorch's. The demo's pictures are NHWC, so that fc1's rows are in the order h, w, c."""
    with torch.no_grad():
        for name in ("conv1", "conv2"):
            m[name].weight.copy_(torch.tensor(ours[name + ".weight"].copy()))
        fc1 = torch.tensor(ours["fc1.weight"].copy())
        if not channels_last:
            fc1 = fc1.reshape(7, 7, 32, 128).permute(2, 0, 1, 3).reshape(1568, 128)
        m["fc1"].weight.copy_(fc1.t())
        m["fc2"].weight.copy_(torch.tensor(ours["fc2.weight"].copy()).t())
        m["fc2"].bias.copy_(torch.tensor(ours["fc2.bias"].copy()))


def agree(torch, strata, pixels, labels, channels_last):
    """Three steps from the same weights: losses and weights must stay together."""
    m, step = torch_network(torch, channels_last, "plain")
    copy_weights(torch, m, strata.parameters(), channels_last)
    for i in range(3):
        a, b = strata.step(pixels[i].data_ptr(), labels[i].data_ptr()), step(pixels[i], labels[i].long())
        if not abs(a - b) <= 2e-4 * (1 + abs(b)):
            die(1, "after %d steps Strata's loss is %.6f and PyTorch's %.6f: not the same network" % (i, a, b))
    ours = torch.tensor(strata.parameters()["fc2.weight"].copy()).t()
    gap = float((ours - m["fc2"].weight.detach()).abs().max())
    if not gap <= 1e-3:
        die(1, "after three steps weights of the last layer differ by %.2g" % gap)
    print("agreement: three steps from the same weights, last loss %.5f and %.5f, weights within %.1e" % (a, b, gap))


def timed(step, pixels, labels, steps):
    """Seconds of one step; the first few are not counted."""
    n = len(pixels)
    for i in range(3):
        step(pixels[i % n], labels[i % n])
    begin = time.perf_counter()
    for i in range(steps):
        step(pixels[i % n], labels[i % n])
    return (time.perf_counter() - begin) / steps


def fastest_variant(torch, pixels, labels, steps, compile_too):
    """PyTorch's own best way to run this network here."""
    found = {}
    for layout in ("contiguous", "channels_last"):
        for sgd in ("plain", "foreach", "fused"):
            for compiled in (False, True) if compile_too else (False,):
                try:
                    step = torch_network(torch, layout == "channels_last", sgd)[1]
                    if compiled:
                        step = torch.compile(step)
                    seconds = min(timed(step, pixels, labels, steps) for _ in range(3))
                except (RuntimeError, TypeError, ValueError) as why:
                    print("  %s, %s SGD: not possible (%s)" % (layout, sgd, str(why).splitlines()[0]))
                    continue
                name = "%s, %s SGD%s" % (layout, sgd, ", compiled" if compiled else "")
                print("  PyTorch %-36s %8.3f ms a step" % (name, 1e3 * seconds))
                found[name] = (seconds, step)
    name = min(found, key=lambda k: found[k][0])
    return name, found[name][1]


def compare(torch, lib, batch, o):
    generator = torch.Generator().manual_seed(1)
    pixels = [torch.randint(0, 256, (batch, 1, 28, 28), dtype=torch.uint8, generator=generator) for _ in range(8)]
    labels = [torch.randint(0, CLASSES, (batch,), dtype=torch.uint8, generator=generator) for _ in range(8)]
    wide = [l.long() for l in labels]
    for layout in (False, True):
        first = Strata(lib, batch, o.threads)
        agree(torch, first, pixels, labels, layout)
        first.close()
    name, theirs = fastest_variant(torch, pixels, wide, o.steps, o.compile)
    strata = Strata(lib, batch, o.threads)
    addresses = [(p.data_ptr(), l.data_ptr()) for p, l in zip(pixels, labels)]

    def ours(at, _):
        return strata.step(*addresses[at])

    mine, other, ratios = [], [], []
    for r in range(o.rounds):
        pair = [0.0, 0.0]
        for which in (0, 1) if r % 2 == 0 else (1, 0):
            time.sleep(0.01)  # the other's threads go to sleep
            if which == 0:
                pair[0] = timed(ours, list(range(len(pixels))), wide, o.steps)
            else:
                pair[1] = timed(theirs, pixels, wide, o.steps)
        mine.append(pair[0])
        other.append(pair[1])
        ratios.append(pair[1] / pair[0])
        if sys.stderr.isatty():
            print("\r%d of %d rounds" % (r + 1, o.rounds), end="\033[K", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    strata.close()
    result = (1e3 * statistics.median(mine), 1e3 * statistics.median(other), statistics.median(ratios))
    print("batch %d, %d threads: Strata %.3f ms, PyTorch %.3f ms (%s), ratio %.2f (rounds %.2f to %.2f)"
          % (batch, o.threads, result[0], result[1], name, result[2], min(ratios), max(ratios)))
    return result[2]


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--build", default=os.path.join(os.path.dirname(__file__), "..", "build"), help="build folder that holds examples/libdemo_net.so")
    a.add_argument("--batch", type=int, nargs="+", default=[64, 128])
    a.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    a.add_argument("--rounds", type=int, default=15)
    a.add_argument("--steps", type=int, default=20, help="steps a round")
    a.add_argument("--compile", action="store_true", help="also try torch.compile (needs a C++ compiler and patience)")
    o = a.parse_args()
    if min(o.batch) < 2 or o.threads < 1 or o.rounds < 1 or o.steps < 1:
        die(2, "--batch takes 2 or more, the others 1 or more")
    path = os.path.abspath(os.path.join(o.build, "examples", "libdemo_net.so"))
    try:
        lib = ctypes.CDLL(path)
    except OSError as why:
        die(2, "%s (build it: ninja -C %s demo_net_shared)" % (why, o.build))
    try:
        import torch
    except ImportError as why:
        die(2, "%s (python3 -m venv v && v/bin/pip install torch numpy --index-url https://download.pytorch.org/whl/cpu, then v/bin/python %s)" % (why, sys.argv[0]))
    torch.set_num_threads(o.threads)
    torch.manual_seed(1)
    print("PyTorch %s, %s threads of %s" % (torch.__version__, torch.get_num_threads(), os.cpu_count()))
    ratios = [compare(torch, lib, batch, o) for batch in o.batch]
    print("Strata's step is %s times as fast as PyTorch's" % ", ".join("%.2f" % r for r in ratios))


if __name__ == "__main__":
    main()
