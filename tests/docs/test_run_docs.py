#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The test of run_docs.py: a document with a fault must fail, and one without must pass."""
import pathlib
import subprocess
import sys
import tempfile

RUN = pathlib.Path(__file__).resolve().parent / "run_docs.py"

# (document, passes, what the output must hold)
CASES = [
    ("```sh\ntrue\n```\n", True, "1 passed, 0 failed"),
    ("```sh\nfalse\ntrue\n```\n", False, "exit code 1"),
    ("```sh no-run (why)\nfalse\n```\n", True, "0 passed, 0 failed"),
    ("```sh\necho $no_such_variable\n```\n", False, "no_such_variable"),
    ("```sh\nmake test\nfalse\n```\n", False, "skipped"),
    ("```sh\nmake bench # needs a quiet machine\n```\n", True, "skipped"),
    ("```c\nstrata_tensor t = strata_vector(a, STRATA_F32, 10, 1);\n```\n", True, "1 passed"),
    ("```c\nno_such_function();\n```\n", False, "no_such_function"),
    ("```c\nstrata_set_threads(h, -5);\n```\n", False, "threads"),
    ("```c fails\nstrata_set_threads(h, -5);\n```\n", True, "1 passed"),
    ("```c fails\nstrata_set_threads(h, 1);\n```\n", False, "1 failed"),
    ("```c\nint main(void) { return 3; }\n```\n", False, "exit code 3"),
    ("```c file=three.c\nint main(void) { return 0; }\n```\n\n```sh\ncc three.c -o three && ./three\n```\n", True, "2 passed"),
    ("see [this](no-such-file.md)\n", False, "no-such-file.md does not exist"),
    ("```sh\nfalse\n", False, "is not closed"),
]


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "case.md"
        for text, passes, words in CASES:
            path.write_text(text)
            r = subprocess.run([sys.executable, str(RUN)] + sys.argv[1:] + [str(path)], text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
            if (r.returncode == 0) != passes or words not in r.stdout:
                print(f"FAILED  exit code {r.returncode} for\n{text}\n{r.stdout}")
                failed += 1
    print(f"{len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
