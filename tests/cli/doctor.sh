#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `strata doctor` and `strata explain` as commands: exit codes, messages, streams, files. Usage: doctor.sh STRATA
strata=$1
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

echo "$checks checks, $failed failed"
[ "$failed" = 0 ]
