#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# alternatives.sh SOURCE FOLDER: tools/blas-alternatives in a root of its own: installed, chosen, and taken back. 77 where there is no update-alternatives.
set -eu
command -v update-alternatives >/dev/null || exit 77
source=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
arch=$(gcc -print-multiarch)
mkdir -p "$root/usr/lib/$arch/blas" "$root/usr/local/lib/strata/blas" "$root/etc/alternatives" "$root/var/lib/dpkg/alternatives" "$root/var/log"
! "$source/tools/blas-alternatives" install /usr/local/lib/strata/blas "$root" 2>/dev/null || exit 1 # nothing is there yet
for n in libblas libblas64; do
    echo reference >"$root/usr/lib/$arch/blas/$n.so.3"
    cp "$2/$n.so.3" "$root/usr/local/lib/strata/blas/"
    update-alternatives --root "$root" --install "/usr/lib/$arch/$n.so.3" "$n.so.3-$arch" "/usr/lib/$arch/blas/$n.so.3" 10 >/dev/null
done
"$source/tools/blas-alternatives" install /usr/local/lib/strata/blas "$root" >/dev/null
for n in libblas libblas64; do
    [ "$(readlink "$root/etc/alternatives/$n.so.3-$arch")" = "/usr/local/lib/strata/blas/$n.so.3" ]
    [ "$(readlink "$root/usr/lib/$arch/$n.so.3")" = "/etc/alternatives/$n.so.3-$arch" ]
done
"$source/tools/blas-alternatives" remove /usr/local/lib/strata/blas "$root" >/dev/null
[ "$(readlink "$root/etc/alternatives/libblas.so.3-$arch")" = "/usr/lib/$arch/blas/libblas.so.3" ]
echo "alternatives.sh: installed, chosen, removed"
