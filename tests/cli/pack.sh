#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pack.sh STRATA-PACK STRATA: a small kernel pack is built, listed, built again from itself, and found by the command; a damaged one is refused.
# Exit status 77 without NVRTC.
set -u
pack=$1
strata=$2
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() {
    echo "FAILED: $1"
    cat "$dir/out"
    exit 1
}
build="build $dir/a.pack --only copy_b --arch sm_80"
"$pack" $build >"$dir/out" 2>&1
code=$?
[ $code -ne 77 ] || { cat "$dir/out"; exit 77; }
[ $code = 0 ] || fail "a pack is built"
grep -q ' 0 at fault' "$dir/out" || fail "its kernels compile without faults"
n=$("$pack" list --only copy_b --arch sm_80 2>/dev/null | wc -l)
[ "$n" -gt 0 ] || fail "kernels are registered"
"$pack" list "$dir/a.pack" >"$dir/out" 2>&1 || fail "the pack is listed"
[ "$(grep -c ' sm_80 ' "$dir/out")" = "$n" ] || fail "it holds the $n kernels"
"$pack" $build --from "$dir/a.pack" >"$dir/out" 2>&1 || fail "it is built from itself"
grep -q "($n taken from the pack before)" "$dir/out" || fail "nothing is compiled again"
STRATA_PACK_FILE=$dir/a.pack "$strata" info >"$dir/out" 2>&1 || fail "strata info"
grep -q "kernel pack *$n kernels.*sm_80 $n" "$dir/out" || fail "the command finds it"
STRATA_PACK_FILE=off "$strata" info >"$dir/out" 2>&1
grep -q 'kernel pack *none: STRATA_PACK_FILE=off' "$dir/out" || fail "off is off"
# damage: a byte of the index, a cut, another file, none
cp "$dir/a.pack" "$dir/b.pack"
printf 'X' | dd of="$dir/b.pack" bs=1 seek=100 conv=notrunc 2>/dev/null
"$pack" list "$dir/b.pack" >"$dir/out" 2>&1 && fail "a damaged index is refused"
grep -q 'index is damaged' "$dir/out" || fail "and named"
head -c 300 "$dir/a.pack" >"$dir/c.pack"
"$pack" list "$dir/c.pack" >"$dir/out" 2>&1 && fail "a cut pack is refused"
"$pack" list "$0" >"$dir/out" 2>&1 && fail "another file is refused"
grep -q 'not a kernel pack' "$dir/out" || fail "and named"
STRATA_PACK_FILE=$dir/absent "$strata" info >"$dir/out" 2>&1
grep -q "kernel pack *none: $dir/absent: No such file" "$dir/out" || fail "a missing pack is named"
"$pack" build "$dir/none/x.pack" --only copy_b4 --arch sm_80 >"$dir/out" 2>&1 && fail "a folder that is not there is an error"
"$pack" frobnicate >"$dir/out" 2>&1
[ $? = 2 ] || fail "an unknown word is a usage error"
echo "pack: $n kernels, all well"
