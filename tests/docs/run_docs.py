#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what README.md and docs/ tell people to type.

    run_docs.py --build BUILD [file.md ...]

Every fenced block of a document is taken in order, in one empty folder a document:

    ```c             a program when it has a main, else a fragment that is put into the frame below; compiled and run
    ```c file=x.c    the same, and written to x.c for the shell blocks that follow
    ```sh            run by sh -e with the build's command, library and headers in their usual environment variables
    no-run           (behind the language) leaves a block alone; its reason stands behind it, in words

A fragment may use `h` (a handle), and the arrays a, b, c, x, w, y, bias of 65536 floats; no call in it may fail unless `fails` stands
behind its language. Commands that set the machine up, or would run this test inside itself, are listed in SKIP with the reason."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 120

# Lines of shell blocks that are not run: (pattern, reason).
SKIP = [
    (r"^(sudo )?apt-get install ", "changes the machine; `make setup` does the same and CI runs that"),
    (r"^git clone ", "needs a network"),
    (r"^(cd strata)$", "follows git clone"),
    (r"^make( [a-z-]+)?( [A-Z_]+=\S+)*$", "builds the tree in which this test runs; CI runs make test, make test runs the demo"),
    (r"^cmake -S \. -B ", "builds the tree in which this test runs"),
    (r"^ninja -C ", "builds the tree in which this test runs"),
    (r"^ctest ", "this test is one of them"),
]

FRAME = """#include <strata.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static float a[65536], b[65536], c[65536], x[65536], w[65536], y[65536], bias[65536];

int main(void)
{
    strata_handle *h;
    (void)a, (void)b, (void)c, (void)x, (void)w, (void)y, (void)bias;
    if (strata_create(&h, "cpu")) return puts(strata_error(NULL)), 1;
    {
#line %d "%s"
%s
    }
    int failed = strcmp(strata_error(h), "no error") != 0;
    if (failed) puts(strata_error(h));
    strata_destroy(h);
    return failed != %d;
}
"""


class Block:
    def __init__(self, path, line, info, text):
        self.path, self.line, self.text = path, line, text
        self.language, _, rest = info.partition(" ")
        self.name = (re.search(r"file=(\S+)", rest) or [None, None])[1]
        self.skipped = "no-run" in rest
        self.fails = "fails" in rest.split()

    def where(self):
        return f"{os.path.relpath(self.path, ROOT)}:{self.line}"


def blocks_of(path):
    """The fenced blocks of a document."""
    result, start, info, lines = [], None, "", []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fence = re.match(r"^```(.*)$", line)
        if fence and start is None:
            start, info, lines = number + 1, fence[1].strip(), []
        elif fence:
            result.append(Block(path, start, info, "\n".join(lines) + "\n"))
            start = None
        elif start is not None:
            lines.append(line)
    if start is not None:
        sys.exit(f"{path}: the block of line {start} is not closed")
    return result


def environment(build):
    env = dict(os.environ)
    env.pop("STRATA_TRACE", None)

    def front(name, *folders):
        env[name] = os.pathsep.join([str(f) for f in folders] + ([env[name]] if env.get(name) else []))

    front("PATH", build / "src" / "cli", build / "examples")
    front("LIBRARY_PATH", build)
    front("LD_LIBRARY_PATH", build)
    front("C_INCLUDE_PATH", ROOT / "include")
    return env


def run(command, box, env, source=None):
    """None when all is well, else what went wrong."""
    try:
        r = subprocess.run(command, cwd=box, env=env, input=source, text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=SECONDS, errors="replace")
    except subprocess.TimeoutExpired:
        return f"ran for more than {SECONDS} s"
    return None if r.returncode == 0 else f"exit code {r.returncode}\n{r.stdout}"


def run_c(block, box, env):
    if re.search(r"\bmain\s*\(", block.text):
        source = f'#line {block.line} "{block.path}"\n{block.text}'
    else:
        source = FRAME % (block.line, block.path, block.text, 1 if block.fails else 0)
    if block.name:
        (box / block.name).write_text(block.text)
    program = box / "block"
    compiler = env.get("CC", "cc")
    wrong = run([compiler, "-std=gnu11", "-Wall", "-Werror", "-Wno-unused-variable", "-Wno-unused-but-set-variable", "-O1", "-x",
                 "c", "-", "-o", str(program), "-lstrata", "-lm"], box, env, source)
    return wrong or run([str(program)], box, env)


def run_sh(block, box, env):
    kept = []
    for line in block.text.splitlines():
        bare = line.split("#")[0].strip()
        if any(re.search(pattern, bare) for pattern, _ in SKIP):
            print(f"  skipped {block.where()}: {bare}")
        else:
            kept.append(line)
    if not any(line.split("#")[0].strip() for line in kept):
        return None
    return run(["sh", "-e", "-u", "-c", "\n".join(kept)], box, env)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    env = environment(options.build.resolve())
    files = options.files or [ROOT / "README.md"] + sorted((ROOT / "docs").rglob("*.md"))
    passed = failed = 0
    for path in files:
        path = path.resolve()
        with tempfile.TemporaryDirectory() as folder:
            box = pathlib.Path(folder)
            for block in blocks_of(path):
                runner = {"c": run_c, "sh": run_sh}.get(block.language)
                if not runner or block.skipped:
                    continue
                wrong = runner(block, box, env)
                if wrong:
                    print(f"FAILED  {block.where()}\n{block.text}\n{wrong}")
                    failed += 1
                else:
                    print(f"ok      {block.where()}")
                    passed += 1
        wrong = dead_links(path)
        for link in wrong:
            print(f"FAILED  {os.path.relpath(path, ROOT)}: {link} does not exist")
        failed += len(wrong)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def dead_links(path):
    """Relative links of a document that lead nowhere."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.S)
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    return [x for x in links if "://" not in x and not (path.parent / x).exists()]


if __name__ == "__main__":
    sys.exit(main())
