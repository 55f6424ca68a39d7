#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `strata doctor` and `strata explain` as commands: exit codes, messages, streams, files. Usage: doctor.sh STRATA FAKE_NVML FAKE_CUDA
strata=$1 nvml=$2 cuda=$3
box=$(mktemp -d) || exit 1
trap 'rm -rf "$box"' EXIT
checks=0
failed=0
complain() {
    failed=$((failed + 1))
    echo "FAILED: $*"
    sed 's/^/    out: /' "$box/out" | head -5
    sed 's/^/    err: /' "$box/err" | head -5
}
# expect CODE ARGUMENT...: runs the command with what stands in $box/in as its input
expect() {
    want=$1
    shift
    "$strata" "$@" <"$box/in" >"$box/out" 2>"$box/err"
    code=$?
    checks=$((checks + 1))
    [ "$code" = "$want" ] || complain "strata $*: exit code $code, expected $want"
    said="strata $*"
}
holds() {
    checks=$((checks + 1))
    grep -q -e "$2" "$box/$1" || complain "$said: no '$2' in $1"
}
lacks() {
    checks=$((checks + 1))
    if grep -q -e "$2" "$box/$1"; then complain "$said: '$2' in $1"; fi
}
json() {
    checks=$((checks + 1))
    python3 -c 'import json,sys; json.load(open(sys.argv[1], encoding="utf-8"))' "$box/out" 2>>"$box/err" || complain "$said: not JSON"
}
: >"$box/in"

# a root with nothing in it is a machine without a GPU
mkdir -p "$box/root/etc"
expect 0 doctor --root "$box/root"
holds out "healthy for work on the CPU"
expect 0 doctor --root "$box/root" --json
json
holds out '"healthy": true'
expect 0 doctor --root "$box/root" --html "$box/page.html"
checks=$((checks + 1))
grep -q '</html>' "$box/page.html" || complain "the page is not whole"
expect 0 doctor --root "$box/root" --html -
holds out '<!doctype html>'

expect 2 doctor --plan ""
holds err "strata doctor: --plan"

# what could not be looked at is no fault; what is no library is named
mkdir -p "$box/few/usr/lib/a" "$box/few/etc"
ln -s a/1 "$box/few/usr/lib/libblas.so.3"
ln -s 2 "$box/few/usr/lib/a/1"
cp "$strata" "$box/few/usr/lib/a/2"
# whoever runs this test may have left descriptors open, which would count
sh -c 'exec 3<&- 4<&- 5<&-; ulimit -n 6; exec "$0" "$@"' "$strata" doctor --files --root "$box/few" >"$box/out" 2>"$box/err"
code=$? said="doctor with few descriptors"
checks=$((checks + 1))
[ $code = 0 ] || complain "$said: exit code $code, expected 0"
holds out "be looked at: Too many open files"
lacks out "leads nowhere"
echo "this is a text file and not a library at all" >"$box/few/usr/lib/a/2"
expect 0 doctor --files --root "$box/few"
holds out "is no ELF file"
rm "$box/few/usr/lib/a/2"
expect 1 doctor --files --root "$box/few"
holds out "leads nowhere"

# a GPU without a driver
mkdir -p "$box/root/sys/bus/pci/devices/0000:01:00.0"
echo 0x10de >"$box/root/sys/bus/pci/devices/0000:01:00.0/vendor"
echo 0x2684 >"$box/root/sys/bus/pci/devices/0000:01:00.0/device"
echo 0x030000 >"$box/root/sys/bus/pci/devices/0000:01:00.0/class"
expect 1 doctor --root "$box/root"
holds out "verdict: the fault is in layer 2, driver"
holds out "RTX 4090"
lacks out "$box"
expect 1 doctor --root "$box/root" --json
json
holds out '"id": "module_missing"'
expect 1 doctor --root "$box/root" --html "$box/page.html" --json
json

# the machine's fault stands beside the message that it explains
expect 1 explain --root "$box/root" "RuntimeError: Found no NVIDIA driver on your system"
holds out "here .*no NVIDIA driver is installed"
expect 1 explain --root "$box/root" --json "CUBLAS_STATUS_NOT_INITIALIZED"
json
holds out '"on_this_machine": null'
expect 3 explain --root "$box/none" "CUBLAS_STATUS_NOT_INITIALIZED"

# what cannot be looked at, and what cannot be understood
expect 3 doctor --root "$box/none"
holds err "$box/none: No such file"
expect 3 doctor --root "$box/page.html"
holds err "Not a directory"
expect 3 doctor --root "$box/root" --html "$box/none/page.html"
expect 2 doctor --rot /
holds err "did you mean '--root'"
expect 2 doctor now
expect 2 doctor --root
expect 0 doctor --help
holds out "six layers"

expect 0 doctor --plan "rtx 2080 ti, pytorch 2.8"
holds out "fits"
expect 0 doctor --plan "rtx 2080 ti, pytorch 2.8" --json
json
expect 1 doctor --plan "rtx 5090, pytorch 2.6"
expect 2 doctor --plan "frobnicator 7"
holds out "not understood"

# explain: a message, a log, a file
expect 1 explain --no-machine CUBLAS_STATUS_NOT_INITIALIZED
holds out "GPU memory full"
expect 1 explain "CUDA error 35"
holds out "driver older than"
expect 1 explain --no-machine "Xid 31"
holds out "program's own fault"
expect 1 explain --no-machine "Xid 79"
holds out "hardware, not the program"
expect 1 explain --no-machine --json "Xid 94"
json
holds out '"class": "hardware"'
expect 0 explain --no-machine "/sbin/ldconfig.real: /usr/lib/wsl/lib/libcuda.so.1 is not a symbolic link"
holds out "harmless"
expect 3 explain --no-machine "the cat sat on the mat"
holds out "not known"
expect 3 explain --no-machine --json "the cat sat on the mat"
json
printf 'a\nb\nNVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.\nc\nCUDA out of memory\nCUDA out of memory\n' >"$box/log"
cp "$box/log" "$box/in"
expect 1 explain --no-machine
holds out "line 3"
holds out "2 times, first in line 5, last in line 6"
holds out "Xid 79 on GPU 0000:41:00"
expect 1 explain --no-machine --json
json
expect 1 explain --no-machine -
holds out "Xid 79"
: >"$box/in"
expect 1 explain --no-machine "$box/log"
holds out "line 3"
printf 'all is well\n' >"$box/in"
expect 0 explain --no-machine
holds out "no known error in 1 lines"
head -c 300000 /dev/urandom >"$box/in"
expect 0 explain --no-machine --json
json
printf '\377\376 CUDA out of memory \001\033[31m\n' >"$box/in"
expect 1 explain --no-machine --json
json
lacks out "$(printf '\033')"
expect 2 explain --jsn
holds err "did you mean '--json'"

# a file that is meant and is not there
expect 3 explain /missing.log
holds err "/missing.log: No such file"
expect 3 explain missing.log
expect 3 explain "$box"
holds err "Is a directory"
expect 1 explain --no-machine "libcudnn.so.8: cannot open shared object file"

# --for: a program, a process, what is neither
expect 0 doctor --for "$strata"
holds out "nothing is missing and nothing is mixed"
expect 0 doctor --for "$strata" --json
json
expect 0 doctor --for $$
holds out "mapped by process $$"
expect 3 doctor --for 999999999
holds err "there is no process"
expect 3 doctor --for no-such-program
holds err "along PATH"
expect 3 doctor --for python3 --root "$box/root"

# what excludes what
expect 2 doctor --deep --files
expect 2 doctor --deep --for "$strata"
expect 2 doctor --verify --root "$box/root"
holds err "does not go with --root"
expect 2 doctor --count 3
expect 2 doctor --watch --count 0
expect 2 doctor --watch --interval never
expect 2 doctor --watch --html "$box/page.html"
expect 2 doctor --deep --patience -1
expect 2 selftest --only everything
expect 0 selftest --json
lacks out "FAILED"

# doubles of NVML and libcuda; state and answers come from the environment
ask() {
    FAKE_STATE=$1 FAKE_ANSWERS=$2
    export FAKE_STATE FAKE_ANSWERS
}
STRATA_NVML_LIB=$nvml STRATA_CUDA_LIB=$cuda
export STRATA_NVML_LIB STRATA_CUDA_LIB
ask "" ""
expect 0 doctor
holds out "NVML, GPU 0: NVIDIA Fake 0, 0.6 of 80.0 GiB in use"
holds out "libcuda initialises in"
expect 0 doctor --files
lacks out "NVIDIA Fake"
expect 0 doctor --json
json
holds out '"id": "cuda_works"'
finds() { # STATE ANSWERS CODE ID: the doctor finds ID
    ask "$1" "$2"
    expect "$3" doctor --json
    json
    holds out "\"id\": \"$4\""
}
finds "persistence=0" "" 0 persistence
finds "compute_mode=2" "" 1 compute_mode
finds "mig=1" "" 1 mig
finds "mig=1 mig_parts=2" "" 0 mig
finds "ecc_bad=3" "" 0 ecc_uncorrected
finds "ecc_mended=100000" "" 0 ecc_corrected
finds "remap_failed=1" "" 1 remap_failed
finds "remap_pending=1" "" 0 remap_pending
finds "remapped=2" "" 0 remapped
finds "retired=61" "" 0 retired_pages
finds "lanes=4" "" 0 pcie_width
finds "replays=50000" "" 0 pcie_replays
finds "throttle=64" "" 0 throttled
finds "celsius=93" "" 0 hot
finds "used_mib=81000" "" 0 gpu_memory_full
finds "used_mib=9000" "" 0 gpu_memory_unowned
finds "pid=$$" "" 0 gpu_process
finds "pid=999999999" "" 0 gpu_foreign_process
finds "gpus=2 lost_gpu=1" "" 1 call_failed
holds out '"layer": "hardware"'
finds "gpus=0" "cuDeviceGetCount=0" 1 cuda_no_device
finds "" "nvmlInit_v2=18" 1 call_failed
holds out "NVML_ERROR_LIB_RM_VERSION_MISMATCH"
finds "" "nvmlDeviceGetMemoryInfo=999" 0 call_failed
finds "" "nvmlDeviceGetTemperature=3" 0 nvml_device
lacks out "call_failed"
finds "" "cuInit=999" 1 call_failed
holds out "CUDA_ERROR_UNKNOWN"
finds "" "cuInit=crash" 1 call_crashes
holds out "signal 11"
finds "" "nvmlDeviceGetCount_v2=crash" 1 call_crashes
begin=$(date +%s)
finds "" "cuInit=hang nvmlInit_v2=hang" 0 call_slow
checks=$((checks + 1))
[ $(($(date +%s) - begin)) -le 4 ] || complain "hanging calls held the doctor up"
# a zombie that NVML lists
sh -c 'sleep 0.05 & exec sleep 20' &
parent=$!
zombie=
i=0
while [ $i -lt 60 ] && [ -z "$zombie" ]; do
    i=$((i + 1))
    sleep 0.05
    zombie=$(ps -o pid= -o stat= --ppid $parent 2>/dev/null | awk '$2 ~ /^Z/ { print $1; exit }')
done
[ -n "$zombie" ] && finds "pid=$zombie" "" 0 gpu_zombie
kill $parent

# the deep steps, one by one
ask "" ""
expect 0 selftest --json --only nvml
expect 0 selftest --json --only driver
expect 0 selftest --json --only deep
holds out '"id": "kernel_ptx"'
holds out '"id": "arithmetic_rate"'
ask "flip=1" ""
expect 1 selftest --json --only deep
holds out '"id": "memory_wrong"'
for call in cuInit=100 cuDriverGetVersion=1 cuDeviceGetCount=3 cuDevicePrimaryCtxRetain=2 cuCtxSetCurrent=201 cuMemAlloc_v2=2 cuMemcpyHtoD_v2=719 \
    cuMemcpyDtoD_v2=700 cuMemcpyDtoH_v2=719 cuModuleLoadDataEx=218 cuModuleGetFunction=500 cuLaunchKernel=701 cuCtxSynchronize=702 cuEventCreate=2; do
    ask "" $call
    expect 1 selftest --json --only deep
    holds out "returned ${call#*=}"
done
# a failing driver explains itself in the library's own error (the double lacks functions that the library wants)
ask "" ""
expect 1 selftest --json --only gpu
holds out '"fix": ".*driver'
ask "" cuLaunchKernel=hang
expect 1 doctor --deep --patience 1
holds out "does not return"
holds out "was not tried"
ask "" cuCtxSynchronize=crash
expect 1 doctor --deep --json
json
holds out call_crashes
expect 1 doctor --verify --json
json
holds out '"name": "driver"'

# the live view
ask "xid=79 throttle=4" ""
expect 0 doctor --watch --count 2 --interval 0.05
holds out "NVIDIA Fake 0"
holds out "Xid 79"
holds out "power limit"
expect 0 doctor --watch --count 3 --interval 0.05 --json
checks=$((checks + 1))
[ "$(wc -l <"$box/out")" = 3 ] || complain "three lines of JSON were asked for"
checks=$((checks + 1))
python3 -c 'import json,sys
for l in open(sys.argv[1]): json.loads(l)' "$box/out" 2>>"$box/err" || complain "--watch --json: not JSON"
ask "" nvmlDeviceGetMemoryInfo=hang
expect 1 doctor --watch --count 2 --patience 0.5
holds err "stopped answering"
ask "" nvmlInit_v2=9
expect 3 doctor --watch --count 1
holds err "NVML_ERROR_DRIVER_NOT_LOADED"
STRATA_NVML_LIB=/no/such/lib.so
expect 3 doctor --watch --count 1
STRATA_NVML_LIB=$nvml
ask "used_mib=81000" ""
expect 1 explain CUBLAS_STATUS_NOT_INITIALIZED
holds out "here .*in use"
ask "" ""

echo "$checks checks, $failed failed"
[ "$failed" = 0 ]
