#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh STRATA RIGHT_PEER WRONG_PEER - the command as its user meets it: exit codes, messages, formats, a peer that is wrong.
strata=$1 right=$2 wrong=$3
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0 checks=0
unset STRATA_TRACE

fail() {
    failed=$((failed + 1))
    echo "FAILED: $1"
    sed 's/^/    out: /' "$work/out" | head -5
    sed 's/^/    err: /' "$work/err" | head -5
}

# expect CODE arguments...: runs, keeps output in $work/out and $work/err
expect() {
    code=$1
    shift
    checks=$((checks + 1))
    "$strata" "$@" >"$work/out" 2>"$work/err" </dev/null
    got=$?
    [ $got = "$code" ] || fail "strata $*: exit code $got, expected $code"
}
# the last command's output (out) or errors (err) hold this text
holds() {
    checks=$((checks + 1))
    grep -qF -- "$2" "$work/$1" || fail "no '$2' in $1"
}
json() {
    checks=$((checks + 1))
    command -v python3 >/dev/null || return
    python3 -c 'import json,sys; json.load(open(sys.argv[1]))' "$work/out" || fail "not JSON"
}

# no arguments, help, version
expect 2; holds out "verbs:"
expect 0 help; holds out selftest
for v in info kernels plan tune bench selftest version; do
    expect 0 help $v; holds out "usage: strata $v"
    expect 0 $v --help; holds out "usage: strata $v"
done
expect 0 version; holds out "strata 0."
expect 0 --version
expect 0 --help

# what is wrong is named, with what is known and what is near
expect 2 bnech; holds err "did you mean 'bench'"; holds err "known: info"
expect 2 help inof; holds err "did you mean 'info'"
expect 2 info --jsno; holds err "did you mean '--json'"
expect 2 info more; holds err "takes no argument"
expect 2 info --json=yes; holds err "takes no value"
expect 2 plan; holds err "known: gemm conv"
expect 2 plan gem 1 2 3; holds err "did you mean 'gemm'"
expect 2 plan gemm 1 2; holds err "needs M N K"
expect 2 plan gemm 1 2 x; holds err "'x'"
expect 2 plan gemm 1 -- -2 3; holds err "'-2'"
expect 2 plan gemm 99999999999999999999999 1 1
expect 2 plan gemm 4 4 4 f33; holds err "f64 f32"
expect 2 plan gemm 4 4 4 --threads 0; holds err "'0'"
expect 2 plan gemm 4 4 4 --kernel; holds err "needs a value"
expect 1 plan gemm 4 4 4 --kernel no_such_kernel
expect 2 plan conv 1x3x8; holds err "image"
expect 2 plan conv 1x3x8x8 4x3x3 --groups 2; holds err "divide"
expect 1 plan conv 1x3x8x8 4x9x9
expect 1 plan gemm 4 4 4 f32 'relu(acc + '; holds err strata_gemm
expect 2 bench; holds err "gemm conv pointwise"
expect 2 bench gem; holds err "did you mean 'gemm'"
expect 2 bench gemm sqare; holds err "did you mean 'square'"
expect 2 bench gemm 0; holds err "'0'"
expect 2 bench gemm 1x2; holds err "MxNxK"
expect 2 bench gemm 99999999; holds err "more than this machine"
expect 2 bench gemm 8 --type f33; holds err "f32 or f64"
expect 2 bench conv 1x3x8x8:4x3x3 --type f16; holds err "f32 or f64"
expect 2 bench gemm 8 --seconds 0; holds err "seconds"
expect 2 bench gemm 8 --tsv --json; holds err "exclude"
expect 2 bench gemm 8 --peer nothing; holds err "NAME=PATH"
expect 2 bench gemm 8 --peer mine=/no/such/library.so; holds err "/no/such/library.so"
expect 2 bench gemm 8 --peers none --peer "mine=/lib/x86_64-linux-gnu/libc.so.6"
expect 2 bench conv 1x3x8x8:4x9x9; holds err "neither"
expect 2 bench pointwise tnah; holds err "did you mean 'tanh'"
expect 2 kernels gem; holds err "did you mean 'gemm'"
expect 2 plan gemm 4 4 4 --threads 257; holds err "1 to 256"
expect 2 selftest --threads no
expect 2 selftest --threads 257; holds err "1 to 256"
expect 1 plan gemm 4 4 4 f32 'acc + index(-9)'; holds err "column 13"; holds err "^~"

expect 2 tune; holds err "known: gemm conv"
expect 2 tune gem 1 2 3; holds err "did you mean 'gemm'"
expect 2 tune gemm 8 8 8 --seconds 0; holds err "'0'"
expect 1 tune --file /no/such/file; holds err "/no/such/file"
expect 1 tune --import /no/such/file; holds err "/no/such/file"
expect 1 plan gemm 8 8 8 --code s1.nonsense; holds err "plan code"

# an index that is not whole is a fault of syntax, with its place
expect 1 plan gemm 8 6 4 f32 'acc + b[n'; holds err "column 10: expected ']'"
expect 1 plan gemm 8 6 4 f32 'acc + b['; holds err "column 9"
expect 1 plan gemm 8 6 4 f32 'acc + b[q]'; holds err "column 9"
expect 0 plan gemm 8 6 4 f32 'acc + b[ n ]'

# a peer that nobody knows, two formats at once
expect 2 bench gemm 8 --peers bogus; holds err "no peer 'bogus'"; holds err "known: none openblas"
expect 2 bench gemm 8 --peers openblas,openblsi; holds err "did you mean 'openblas'"
expect 2 kernels --tsv --json; holds err "exclude"

# no message repeats more than 80 bytes of what was given
long=$(printf '%03000d' 0)
for line in "explain --no-machine $long" "plan $long" "plan gemm 4 4 4 --kernel $long" "plan gemm 4 4 4 --code $long" "help $long" \
    "plan gemm 4 4 4 $long" "bench gemm 8 --peers $long" "bench $long" "doctor --root $long" "tune --file $long" "tune --import $long" \
    "selftest $long" "plan gemm 4 4 4 --device $long" "plan gemm 4 4 4 --html $long" "info --json=$long" "version $long" "$long" \
    "tune --tsv $long gemm 4 4 4" "kernels $long" "tune gemm $long" "plan conv $long" "plan gemm 4 4 4 --$long" "tune --from-trace $long"; do
    checks=$((checks + 1))
    "$strata" $line >"$work/out" 2>"$work/err" </dev/null && fail "strata $line: exit code 0"
    cat "$work/out" "$work/err" | grep -q "0\{90\}" && fail "more than 80 bytes of what was given stand in the message: ${line%% *}"
done

# the good ones
expect 0 info; holds out "instructions"; holds out "caches"
expect 0 info --json; json
STRATA_DEVICE=foo expect 1 info; holds out "instructions"; holds err '"foo"'
STRATA_DEVICE=cpu expect 0 info; holds out "STRATA_DEVICE=cpu"
expect 0 kernels; holds out gemm
expect 0 kernels gemm --usable
expect 0 kernels --json; json
expect 0 kernels --tsv; holds out "why_not"
expect 0 plan gemm 512 512 512 f32; holds out gemm
expect 0 plan gemm 300x200x100 f64 --trans TN
expect 0 plan gemm 64 48 32 f32 'relu(acc + bias[n]) * s[m] + rest'
expect 0 plan gemm 1000000 1000000 1000000 f32
expect 0 plan conv 1x64x56x56 64x3x3 --pad 1; holds out conv
expect 0 plan conv 1x64x56x56 64x3x3 --pad 1 --pass data
expect 0 plan conv 1x64x56x56 64x3x3 --pad 1 --pass weights --layout nchw
expect 0 plan gemm 48 40 32 f32 --measure --seconds 0.1 --html "$work/plan.html"; holds out "is the choice"; holds out "roofline"
checks=$((checks + 1)); grep -q '</html>' "$work/plan.html" && grep -q '<svg' "$work/plan.html" || fail "the plan's page is not whole"
expect 1 plan gemm 8 8 8 --html /no/such/folder/page.html; holds err "cannot be written"
expect 0 plan gemm 48 40 32 f32 --batch-invariant
code=$("$strata" plan gemm 64 64 64 f64 | awk '$1 == "code" { print $2 }')
expect 0 plan gemm 64 64 64 f64 --code "$code"; holds out "the plan's code says so"
printf '# two problems\ngemm 40 40 40 f32\ngemm 30 40 20 f64 --trans NT\n' >"$work/problems"
export XDG_CACHE_HOME=$work/cache
expect 0 tune --file "$work/problems" --seconds 0.05 --tsv "$work/tuned.tsv"; holds out "measured, best"
expect 0 tune --info --export "$work/text"; holds out "2 problems"
XDG_CACHE_HOME=$work/other expect 0 tune --import "$work/text" --info; holds out "2 problems"
expect 0 plan gemm 40 40 40 f32; holds out "measured"
printf 'rubbish\n' >>"$work/text"
expect 1 tune --import "$work/text"; holds err "line"; holds err "nothing was imported"
printf 'blas strata_gemm 1 us  A f32 20x30 (stride 30,1), B f32 30x40 (stride 1,30), C f32 20x40 (stride 40,1), alpha 1, beta 0, epilogue relu(acc + bias[n])\n' >"$work/trace"
expect 0 tune --from-trace "$work/trace" --seconds 0.02; holds out "gemm f32 20x40x30, A row, B col"
expect 1 tune --from-trace /no/such/trace; holds err "/no/such/trace"
printf 'hello\nstrata_gemm\n' >"$work/trace"
expect 1 tune --from-trace "$work/trace"; holds err "no trace: no event"
expect 1 tune --from-trace "$work"; holds err "cannot be read to its end"
printf 'blas strata_conv_forward 1 us  x\nblas strata_gemm 1 us  A f32 20x30 (stride 30,1), B f32 31x40\nblas strata_gemm 1 us  A f32 20x30 (stride 60,2), B f32 30x40 (stride 1,30), C f32 20x40 (stride 40,1)\n' >"$work/trace"
expect 1 tune --from-trace "$work/trace"; holds err "3 events and none is a product"; holds err "1 convolutions"; holds err "1 events of products are not whole"; holds err "oddly strided"
STRATA_CACHE=off expect 0 tune gemm 16 16 16 --seconds 0.02; holds err "warning: measurements stay in memory"
unset XDG_CACHE_HOME
expect 0 tune --model gemm 32 32 32 --seconds 0.02; holds out "geometric mean"
expect 0 selftest; holds out ", 0 failed"
expect 0 selftest --verbose --threads 1; holds out "ok "

expect 0 bench first-use --times 3; holds out "targets"
expect 0 bench first-use --times 3 --tsv; holds out "what	process	us	us_most	us_target	times"; holds out "fused product	fresh"
checks=$((checks + 1)); awk -F'\t' 'NR > 1 && (NF != 6 || !($3 > 0) || !($4 >= $3)) { bad = 1 } END { exit bad || NR != 9 }' "$work/out" || fail "rows of first-use"
expect 0 bench first-use --times 2 --json; json
expect 2 bench first-use --times 0; holds err "'0'"
expect 2 bench first-use --tsv --json; holds err "exclude"
expect 2 bench first-use more; holds err "takes no argument"
expect 1 bench first-use --device cuda:77

for t in f16 bf16 f8 f8e5m2 i8 c64 c128; do
    expect 0 bench gemm 24 17x9x33 --type $t --trans NT --seconds 0.02 --peers none --threads 1; holds out "$t NT 17x9x33"
done
expect 0 bench gemm 24 --type c64 --seconds 0.02 --peers none --tsv
checks=$((checks + 1)); awk -F'\t' '!/^#/ && NF != 13 { bad = 1 } END { exit bad }' "$work/out" || fail "a TSV row has not 13 fields"

# a bench in every format; a peer that is right, one that is wrong
quick="--seconds 0.02 --peers none"
expect 0 bench gemm 8 33x17x9 $quick --peer right="$right" --plan; holds out "geometric mean"; holds out right
expect 0 bench gemm 8 33x17x9 $quick --peer wrong="$wrong"; holds out WRONG; holds out "wrong gives wrong results here"
checks=$((checks + 1)); grep -q "best peer" "$work/out" && fail "a wrong peer was counted"
STRATA_PEER_OPENBLAS=$right expect 0 bench gemm 8 --seconds 0.02 --peers openblas; holds out openblas
expect 0 bench gemm 12 $quick --type f64 --trans TT --threads 1 --peer right="$right" --tsv; holds out "case	contender"
checks=$((checks + 1)); awk -F'\t' '!/^#/ && NF != 13 { bad = 1 } END { exit bad }' "$work/out" || fail "a TSV row has not 13 fields"
expect 0 bench gemm 12 $quick --peer right="$right" --json --html "$work/page.html"; json
checks=$((checks + 1)); grep -q '</html>' "$work/page.html" && grep -q '<svg' "$work/page.html" || fail "the page is not whole"
checks=$((checks + 1)); grep -qE '(src|href)="http' "$work/page.html" && fail "the page asks for the network"
expect 1 bench gemm 8 $quick --html /no/such/folder/page.html; holds err "cannot be written"
expect 0 bench conv 1x5x9x8:6x3x3:p1 2x4x8x8:8x3x3:s2:p1:g4 $quick --plan; holds out strata
expect 0 bench conv 1x5x9x8:6x3x3:p1 $quick --layout nchw --pass data
expect 0 bench conv 1x5x9x8:6x3x3:p1 $quick --filters hwio --pass weights
expect 0 bench pointwise relu,softmax $quick; holds out copy

# no line of garbage may bring it down
i=0
while [ $i -lt 60 ]; do
    i=$((i + 1))
    a=$(awk -v s=$i 'BEGIN { srand(s); split("info plan bench gemm conv 1x2x3 -- --json --threads= --peer=a=b --seconds nan 1e999 -1 f32 NN %s%n :::: ,,, 0x0x0 =", w, " ");
        for (k = 0; k < 5; k++) printf "%s ", w[int(rand() * 20) + 1] }')
    checks=$((checks + 1))
    # shellcheck disable=SC2086
    timeout 20 "$strata" $a >"$work/out" 2>"$work/err" </dev/null
    got=$?
    [ $got -le 2 ] || fail "strata $a: exit code $got"
done
expect 2 bench gemm "$(printf '%02000d' 1)"
expect 2 "$(printf '%02000d' 1)"

echo "$checks checks, $failed failed"
[ $failed = 0 ]
