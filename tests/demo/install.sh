#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install.sh BUILD - what `make install` and `make bundle` leave behind: commands that start from where they lie, headers, licences.
set -eu
build=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
    echo "install.sh: $*"
    exit 1
}
cmake --install "$build" --prefix "$folder/usr" >/dev/null
for f in bin/strata bin/strata-demo include/strata.h; do [ -f "$folder/usr/$f" ] || fail "make install left no $f"; done
lib=$(dirname "$(find "$folder/usr" -name 'libstrata.so.0' | head -1)")
[ "$lib" != . ] || fail "make install left no libstrata.so.0"
[ -f "$lib/pkgconfig/strata.pc" ] || fail "make install left no strata.pc"
for f in strata strata-demo; do
    LD_LIBRARY_PATH=$lib "$folder/usr/bin/$f" --help >"$folder/said" 2>&1 || fail "installed $f --help: $(cat "$folder/said")"
    grep -q "$f" "$folder/said" || fail "installed $f --help says: $(cat "$folder/said")"
done

tools/bundle "$build" "$folder/bundle" >"$folder/said" || fail "tools/bundle: $(cat "$folder/said")"
for f in LICENSE README.md bin/strata bin/strata-demo lib/libstrata.so.0 include/strata.h; do
    [ -e "$folder/bundle/$f" ] || fail "the bundle has no $f"
done
cmp -s LICENSE "$folder/bundle/LICENSE" || fail "the bundle's LICENSE is another"
if command -v dpkg >/dev/null; then # libraries from packages come with their licences
    for f in "$folder"/bundle/lib/libsleef*; do
        [ ! -e "$f" ] || ls "$folder"/bundle/licenses/libsleef*.txt >/dev/null || fail "the bundle has SLEEF without its licence"
    done
fi
mv "$folder/bundle" "$folder/elsewhere"
path=
command -v patchelf >/dev/null || path=$folder/elsewhere/lib
for f in strata strata-demo; do
    LD_LIBRARY_PATH=$path "$folder/elsewhere/bin/$f" --help >"$folder/said" 2>&1 || fail "bundled $f --help: $(cat "$folder/said")"
done
