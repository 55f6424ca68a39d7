#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the demo as a person would, with good and with damaged data: exit codes and messages. Argument: the program.
set -u
demo=$1
box=$(mktemp -d) || exit 1
trap 'rm -rf "$box"' EXIT
data=/usr/share/datasets/fashion-mnist
failed=0

# expect NAME CODE TEXT arguments...: the program must end with CODE and print TEXT
expect() {
    name=$1 code=$2 text=$3
    shift 3
    "$demo" "$@" >"$box/out" 2>&1
    got=$?
    if [ "$got" = "$code" ] && grep -qF -- "$text" "$box/out"; then
        echo "ok      $name"
    else
        echo "FAILED  $name: exit code $got (expected $code), expected text: $text"
        sed 's/^/        /' "$box/out"
        failed=1
    fi
}

# a folder with the four files, links to the real ones, to be spoilt
fresh() {
    rm -rf "$box/d"
    mkdir "$box/d"
    for f in "$data"/*.gz; do ln -s "$f" "$box/d/"; done
}

expect "help" 0 "exit codes" --help
expect "unknown option" 2 "exit codes" --no-such-option
expect "a word too many" 2 "is not an option" word
expect "epochs that are no number" 2 "a number from 1 to 1000" --epochs many
expect "no data" 3 "apt-get install dataset-fashion-mnist" --data "$box"

if [ ! -d "$data" ]; then
    echo "skipped: the rest needs the package dataset-fashion-mnist"
    exit $failed
fi

expect "quick run" 0 "the same as before" --quick --weights "$box/w"
grep -q "us  " "$box/out" || { echo "FAILED  quick run shows no path of a call"; failed=1; }
grep accuracy "$box/out" >"$box/first"
expect "quick run, one thread" 0 "the same as before" --quick --weights "$box/w1" --threads 1
grep accuracy "$box/out" >"$box/second"
cmp -s "$box/first" "$box/second" || { echo "FAILED  one thread learns something else"; failed=1; }
cmp -s "$box/w" "$box/w1" || { echo "FAILED  one thread gives other weights"; failed=1; }
expect "weights that cannot be written" 1 "cannot be written" --weights "$box/none/w"
expect "weights in place of a folder" 1 "is not a regular file" --weights "$box"
expect "weights in place of a device" 1 "is not a regular file" --weights /dev/full
grep -q Training "$box/out" && { echo "FAILED  trained although the weights cannot be written"; failed=1; }

fresh; rm "$box/d/train-labels-idx1-ubyte.gz"
expect "one file missing" 3 "apt-get install" --data "$box/d"
fresh; f="$box/d/train-images-idx3-ubyte.gz"; rm "$f"; head -c 100000 "$data/train-images-idx3-ubyte.gz" >"$f"
expect "cut off" 4 "train-images-idx3-ubyte.gz: is cut off" --data "$box/d"
fresh; f="$box/d/t10k-labels-idx1-ubyte.gz"; rm "$f"; cp "$data/t10k-images-idx3-ubyte.gz" "$f"
expect "pictures for labels" 4 "t10k-labels-idx1-ubyte.gz: is not an IDX file of labels" --data "$box/d"
fresh; f="$box/d/train-labels-idx1-ubyte.gz"; rm "$f"; cp "$data/t10k-labels-idx1-ubyte.gz" "$f"
expect "other counts" 4 "holds 10000 labels, but there are 60000 pictures" --data "$box/d"
fresh; f="$box/d/t10k-images-idx3-ubyte.gz"; rm "$f"; echo "hello, this is no picture" >"$f"
expect "not a gzip file" 4 "t10k-images-idx3-ubyte.gz: is not a gzip file" --data "$box/d"
exit $failed
