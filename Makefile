# SPDX-License-Identifier: Apache-2.0
# A short front door; CMake and Ninja do the work. `make help` lists the targets.
BUILD ?= build
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
CMAKE_FLAGS ?=
configure = cmake -S . -B $(1) -G Ninja -DCMAKE_INSTALL_PREFIX=$(PREFIX) $(CMAKE_FLAGS) $(2) >$(1).log 2>&1 || { cat $(1).log; exit 1; }

.PHONY: help setup build demo test test-asan test-tsan test-clang bench conformance soak install bundle bundle-gpu pack check-kernels test-gpu format check clean

help:
	@echo "make demo        set up, build, train a network on Fashion-MNIST and show one call's path"
	@echo "make test        set up, build, run every test and check that this machine can"
	@echo "make test-asan   the tests under AddressSanitizer and UBSan;  make test-tsan: under ThreadSanitizer"
	@echo "make test-clang  the tests built with clang"
	@echo "make test-gpu    the tests on this machine's GPU, with a report under bench/results;  make bundle-gpu: the same to carry to another machine"
	@echo "make pack        all GPU kernels compiled ahead of time (minutes);  make check-kernels: that each compiles without warnings and spills"
	@echo "make bench       Strata beside the peers it finds;  make soak: random problems with free seeds for SOAK_SECONDS"
	@echo "make conformance other people's suites (netlib, LAPACK, NumPy, SciPy, Octave) on the drop-in BLAS"
	@echo "make install     library, headers, command to PREFIX ($(PREFIX));  make bundle: a relocatable folder dist/strata"

setup:
	@tools/setup

build: setup
	@$(call configure,$(BUILD),)
	@ninja -C $(BUILD) -j$(JOBS)

demo: build
	@$(BUILD)/examples/strata-demo --weights $(BUILD)/fashion.weights

test: build check
	@cd $(BUILD) && ctest --output-on-failure

check:
	@tools/check_layers
	@tools/check_format
	@tools/check_kernels $(BUILD)/libst_tile.a

# GPU kernels: NVRTC is needed, a GPU is not
pack: build
	@ninja -C $(BUILD) pack

check-kernels: build
	@$(BUILD)/strata-pack check --jobs $(JOBS) || [ $$? -eq 77 ]
	@tools/check_cuda $(BUILD) 90 || [ $$? -eq 77 ]

GPU_OUT ?= $(BUILD)/gpu-tests
test-gpu: build
	@tools/test_gpu $(BUILD) $(GPU_OUT); code=$$?; tools/test_gpu_file $(GPU_OUT) bench/results; exit $$code

bundle-gpu: build
	@ninja -C $(BUILD) pack
	@tools/bundle $(BUILD) dist/strata-gpu gpu

test-asan: setup
	@$(call configure,$(BUILD)-asan,-DSTRATA_SANITIZE=address)
	@ninja -C $(BUILD)-asan -j$(JOBS)
	@cd $(BUILD)-asan && ctest --output-on-failure

test-tsan: setup
	@$(call configure,$(BUILD)-tsan,-DSTRATA_SANITIZE=thread)
	@ninja -C $(BUILD)-tsan -j$(JOBS)
	@cd $(BUILD)-tsan && ctest --output-on-failure

test-clang: setup
	@$(call configure,$(BUILD)-clang,-DCMAKE_C_COMPILER=clang -DSTRATA_PACK=OFF)
	@ninja -C $(BUILD)-clang -j$(JOBS)
	@tools/check_kernels $(BUILD)-clang/libst_tile.a
	@cd $(BUILD)-clang && ctest --output-on-failure

bench: build
	@$(BUILD)/src/cli/strata bench gemm
	@$(BUILD)/src/cli/strata bench conv
	@$(BUILD)/src/cli/strata bench pointwise

SOAK_SECONDS ?= 600
soak: build
	@tools/soak $(BUILD) $(SOAK_SECONDS)

# NumPy's, SciPy's, Octave's, LAPACK's and netlib's own tests on the drop-in BLAS, in full (ctest runs a sample of each)
conformance: build
	@tools/setup conformance
	@/usr/bin/python3 tests/conformance/run.py --lib $(BUILD)/blas --out $(BUILD)/conformance

install: build
	@cmake --install $(BUILD) --prefix $(PREFIX)
	@[ "$$(id -u)" -ne 0 ] || ldconfig 2>/dev/null || true
	@echo "installed to $(PREFIX); if a program does not find libstrata.so.0, name $(PREFIX)/lib* in LD_LIBRARY_PATH or /etc/ld.so.conf.d"

bundle: build
	@tools/bundle $(BUILD) dist/strata

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-clang $(BUILD)*.log dist
