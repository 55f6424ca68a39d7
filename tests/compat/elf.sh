#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# elf.sh FOLDER: what the drop-in libraries say to the dynamic linker: their names, that they need nothing but libc, libm and pthread, that only BLAS
# names are exported, all that the reference library has, and that xerbla can be replaced.
set -eu
export LC_ALL=C
folder=$1
fail() { echo "elf.sh: $*"; exit 1; }
for name in libblas libcblas libblas64 libcblas64; do
    f=$folder/$name.so.3
    [ -e "$f" ] || fail "$f is missing"
    readelf -dW "$f" >"$folder/elf.dynamic"
    grep -q "Library soname: \[$name.so.3\]" "$folder/elf.dynamic" || fail "$f: SONAME is not $name.so.3"
    # the loader itself is named by thread-local variables
    needs=$(sed -n 's/.*Shared library: \[\(.*\)\]/\1/p' "$folder/elf.dynamic" | grep -Ev '^(libc\.so\.6|libm\.so\.6|libpthread\.so\.0|libdl\.so\.2|ld-linux[^ ]*)$' || true)
    [ -z "$needs" ] || fail "$f needs $needs"
    ! grep -qE 'RPATH|RUNPATH|TEXTREL' "$folder/elf.dynamic" || fail "$f has a path or text relocations"
    nm -D --defined-only "$f" | awk '{print $3}' | sort >"$folder/elf.names"
    other=$(grep -Ev '^(cblas_[a-z0-9_]+|[a-z0-9_]+_|RowMajorStrg|CBLAS_CallFromC)$' "$folder/elf.names" || true)
    [ -z "$other" ] || fail "$f exports $(echo $other | cut -c1-200)"
    foreign=$(grep -E '^(strata|st_|Sleef|ZSTD)' "$folder/elf.names" || true)
    [ -z "$foreign" ] || fail "$f exports $foreign"
    for x in xerbla_ cblas_xerbla; do
        nm -D "$f" | grep -qE " [WV] $x$" || fail "$f: $x is not weak"
        case $name in *64) [ $x = xerbla_ ] && x=xerbla_64_ ;; esac
        readelf -rW "$f" | grep -qE "(JUMP_SLO|GLOB_DAT|JUMP26|ABS).* $x" || fail "$f calls its own $x and not the program's"
    done
done
# every name of Debian's reference library, but for the glue between its C and Fortran parts
for reference in /usr/lib/*/blas/libblas.so.3; do
    [ -e "$reference" ] || continue
    nm -D --defined-only "$reference" | awk '{print $3}' | grep -v 'sub_$' | sort >"$folder/elf.reference"
    for name in libblas libblas64; do
        nm -D --defined-only "$folder/$name.so.3" | awk '{print $3}' | sort >"$folder/elf.names"
        missing=$(comm -23 "$folder/elf.reference" "$folder/elf.names")
        [ -z "$missing" ] || fail "$name.so.3 lacks $missing"
        echo "elf.sh: $name.so.3 has the $(wc -l <"$folder/elf.reference") names of $reference, and $(comm -13 "$folder/elf.reference" "$folder/elf.names" | wc -l) more"
    done
done
rm -f "$folder"/elf.*
