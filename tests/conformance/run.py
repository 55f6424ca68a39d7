#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that nobody of this project wrote, run on the drop-in libblas.so.3.

    run.py --lib build/blas [--sample] [--out folder] [suite ...]

Suites: blas (netlib's Fortran testers), cblas (netlib's C testers), lapack (netlib's LAPACK test programs), numpy, scipy, octave: each from
Debian's packages, unmodified, with the library put before the system's by LD_LIBRARY_PATH and seen in the process's maps. Reference
LAPACK is used, so that all BLAS calls reach the library. --sample: a fixed part of each, for CI. --lib may name the system's reference
BLAS, to see what fails there as well.

Failures that are understood and are not the library's are rows of known.tsv, each with its reason and the upstream report. Anything else
fails. A suite whose packages are missing is named and skipped; when none can run the exit status is 77. Closes with one line of counts a suite.
"""
import argparse
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ARCH = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True).stdout.strip() or "x86_64-linux-gnu"
SYSTEM = Path("/usr/lib") / ARCH
PYTHON = "/usr/bin/python3"  # Debian's, which has Debian's NumPy


class Suite:
    """What one suite found: ids that passed (a count) and those that did not, with words."""

    def __init__(self, name):
        self.name, self.passed, self.failed, self.known, self.note = name, 0, [], [], ""

    def good(self, count=1):
        self.passed += count

    def bad(self, ident, words=""):
        for suite, pattern, reason in KNOWN:
            if suite == self.name and fnmatch.fnmatchcase(ident, pattern):
                self.known.append((ident, reason))
                return
        self.failed.append((ident, words))


def read_known():
    rows = []
    for line in (HERE / "known.tsv").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            suite, pattern, reason = line.split("\t")
            rows.append((suite, pattern, reason))
    return rows


KNOWN = read_known()


def environment(lib):
    env = {k: v for k, v in os.environ.items() if not k.startswith("LD_")}
    env["LD_LIBRARY_PATH"] = f"{lib}:{SYSTEM}/lapack"
    env["LC_ALL"] = "C.UTF-8"
    return env


def run(args, cwd, env, stdin=None, limit=3600):
    """Output and exit status; a program that takes too long or is killed by a signal says so in its output."""
    source = open(stdin, "rb") if stdin else subprocess.DEVNULL
    try:
        p = subprocess.run([str(a) for a in args], cwd=cwd, env=env, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit)
        text, status = p.stdout.decode(errors="replace"), p.returncode
    except subprocess.TimeoutExpired as e:
        text, status = (e.stdout or b"").decode(errors="replace") + f"\n(stopped after {limit} s)\n", 124
    finally:
        if stdin:
            source.close()
    return text, status


def loads(program, lib, env):
    """Does the loader take libblas.so.3 from `lib` for this program?"""
    text, _ = run([program], "/", {**env, "LD_TRACE_LOADED_OBJECTS": "1"})
    found = re.search(r"libblas\.so\.3 => (\S+)", text)
    return bool(found) and Path(found.group(1)).resolve() == (lib / "libblas.so.3").resolve()


def in_maps(text, lib):
    """Is the library of `lib`, and no other BLAS, among the lines that a suite printed from its /proc/self/maps?"""
    files = {Path(p).resolve() for p in re.findall(r"^MAPS (\S+)$", text, re.M)}
    others = {p for p in files if re.search(r"lib(open|c)?blas", p.name)} - {(lib / "libblas.so.3").resolve()}
    return (lib / "libblas.so.3").resolve() in files and not others


# ---- netlib -----------------------------------------------------------------------------------------------------------------
def netlib(s, programs, lib, out, env):
    """programs: (executable, input file or None, report file or None)"""
    for program, source, report in programs:
        ident = program.name
        if not program.exists():
            s.note = f"{program} is missing (apt-get install libblas-test liblapack-test)"
            return
        if not loads(program, lib, env):
            s.bad(ident, "the loader takes another libblas.so.3")
            continue
        text, status = run([program], out, env, source)
        if report and (out / report).exists():
            text += (out / report).read_text(errors="replace")
        (out / f"{ident}.log").write_text(text)
        passes = len(re.findall(r"PASSED THE|-----\s*PASS\s*-----", text))
        wrong = [line.strip() for line in text.splitlines() if re.search(r"FAIL|\*{5}|SUSPECT|stopped after", line)]
        s.good(passes)
        if status or wrong or not passes:
            s.bad(ident, f"exit status {status}; " + "; ".join(wrong[:6]))


def blas(s, lib, out, env, sample):
    d = SYSTEM / "blas"
    programs = []
    for p in "dc" if sample else "sdcz":
        programs.append((d / f"xblat1{p}", None, None))
        programs += [(d / f"xblat{level}{p}", d / f"{p}blat{level}.in", f"{p}blat{level}.out") for level in (2, 3)]
    netlib(s, programs, lib, out, env)


def cblas(s, lib, out, env, sample):
    d = SYSTEM / "blas"
    programs = []
    for p in "sz" if sample else "sdcz":
        programs.append((d / f"x{p}cblat1", None, None))
        programs += [(d / f"x{p}cblat{level}", d / f"{p}in{level}", None) for level in (2, 3)]
    netlib(s, programs, lib, out, env)


def lapack(s, lib, out, env, sample):
    d = SYSTEM / "lapack"
    jobs = []
    for p in "sdcz":
        jobs += [(f"xlintst{p}", f"{p}test.in"), (f"xlintstrf{p}", f"{p}test_rfp.in")]
        jobs += [(f"xeigtst{p}", f"{t}.in") for t in ("nep", "sep", "se2", "svd", "glm", "gqr", "gsv", "csd", "lse")]
        jobs += [(f"xeigtst{p}", f"{p}{t}.in") for t in ("ec", "ed", "gg", "gd", "sb", "sg", "bal", "bak", "gbal", "gbak", "bb")]
    jobs += [("xlintstds", "dstest.in"), ("xlintstzc", "zctest.in")]
    if sample:
        jobs = [("xlintstd", "dtest.in"), ("xlintstrfd", "dtest_rfp.in"), ("xeigtstz", "nep.in"), ("xeigtsts", "sep.in"), ("xeigtstc", "glm.in")]
    for program, source in jobs:
        if not (d / program).exists() or not (d / source).exists():
            if not (d / "xlintstd").exists():
                s.note = f"{d}/xlintstd is missing (apt-get install liblapack-test)"
                return
            continue  # a test that this version does not have
        if not loads(d / program, lib, env):
            s.bad(program, "the loader takes another libblas.so.3")
            continue
        text, status = run([d / program], out, env, d / source)
        (out / f"{program}_{source}.log").write_text(text)
        count = sum(int(n) for n in re.findall(r"\(\s*(\d+) tests? run\)", text))
        count += sum(int(b) - int(a) for a, b in re.findall(r"(\d+) out of\s+(\d+) tests failed", text))
        s.good(count)
        ident = f"{program} {source}"
        for line in text.splitlines():
            if re.search(r"out of\s+\d+ tests failed|failed the tests of the error|[Ii]llegal|\bINFO\s*=|stopped after|SIGSEGV", line):
                s.bad(f"{ident}: {line.split(':')[0].strip()}", line.strip())
        if status or not (count or "End of tests" in text):
            s.bad(ident, f"exit status {status}: {text[-300:]}")


# ---- Python ------------------------------------------------------------------------------------------------------------------
def pytest(s, package, places, lib, out, env, extra, workers=""):
    text, status = run([PYTHON, "-c", f"import pytest, {package}; print({package}.__path__[0])"], out, env)
    if status:
        s.note = f"Debian's {package} or pytest is missing (apt-get install python3-{package} python3-pytest python3-hypothesis): {text[-200:]}"
        return
    root = Path(text.strip().splitlines()[-1])
    env = {**env, "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"}
    args = [PYTHON, "-m", "pytest", "-p", "maps_plugin", "-p", "no:cacheprovider", "-q", "-rfE", "--tb=short", "--no-header", "-W", "ignore"]
    text, status = run(args + extra + [root / p for p in places], out, env, limit=7200)
    (out / f"{package}.log").write_text(text)
    if not in_maps(text, lib):
        s.bad("maps", "the process has another BLAS than the one under test")
    for ident in re.findall(r"^(?:FAILED|ERROR) (\S+)", text, re.M):
        s.bad(re.sub(r"^.*?/" + package + "/", "", ident))
    counts = {w: int(n) for n, w in re.findall(r"(\d+) (passed|failed|error|errors)\b", text.splitlines()[-1] if text else "")}
    s.good(counts.get("passed", 0))
    wrong = counts.get("failed", 0) + counts.get("error", 0) + counts.get("errors", 0)
    if not counts or wrong != len([1 for _ in re.findall(r"^(?:FAILED|ERROR) (\S+)", text, re.M)]):
        s.bad("run", f"exit status {status}: {text[-400:]}")


def numpy(s, lib, out, env, sample):
    places = ["linalg/tests/test_linalg.py"] if sample else ["linalg/tests", "core/tests/test_multiarray.py", "core/tests/test_einsum.py", "matrixlib/tests"]
    pytest(s, "numpy", places, lib, out, env, ["-k", "not slow"] if sample else [])


def scipy(s, lib, out, env, sample):
    places = ["linalg/tests/test_blas.py", "linalg/tests/test_basic.py"] if sample else ["linalg/tests", "sparse/linalg"]
    pytest(s, "scipy", places, lib, out, env, [])


# ---- Octave ------------------------------------------------------------------------------------------------------------------
def octave(s, lib, out, env, sample):
    program = shutil.which("octave-cli")
    if not program:
        s.note = "octave-cli is missing (apt-get install octave)"
        return
    env = {**env, "HOME": str(out)}
    text, status = run([program, "--no-gui", "--norc", "--no-history", HERE / "octave.m", "sample" if sample else "full"], out, env, limit=7200)
    (out / "octave.log").write_text(text)
    if not in_maps(text, lib):
        s.bad("maps", "the process has another BLAS than the one under test")
    for ident, passed, total in re.findall(r"^FILE (\S+) (\d+) (\d+)$", text, re.M):
        s.good(int(passed))
        if passed != total:
            s.bad(f"{ident}: {int(total) - int(passed)} of {total} failed", "(octave-tests.log)")
    if status or "OCTAVE DONE" not in text:
        s.bad("run", f"exit status {status}: {text[-400:]}")


SUITES = {f.__name__: f for f in (blas, cblas, lapack, numpy, scipy, octave)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--lib", required=True, type=Path)
    p.add_argument("--sample", action="store_true")
    p.add_argument("--out", type=Path, default=Path("conformance-out"))
    p.add_argument("suites", nargs="*", metavar="suite")
    a = p.parse_args()
    if set(a.suites) - set(SUITES):
        p.error(f"suites are {' '.join(SUITES)}")
    lib = a.lib.resolve()
    if not (lib / "libblas.so.3").exists():
        p.error(f"{lib} has no libblas.so.3")
    ran, faults = 0, 0
    for name in a.suites or SUITES:
        s, begin = Suite(name), time.time()
        out = (a.out / name).resolve()
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        SUITES[name](s, lib, out, environment(lib), a.sample)
        if s.note:
            print(f"{name}: not run: {s.note}")
            continue
        ran += 1
        faults += len(s.failed)
        for ident, reason in s.known:
            print(f"{name}: known: {ident}: {reason}")
        for ident, words in s.failed:
            print(f"{name}: FAILED: {ident} {words}")
        print(f"{name}: {s.passed} passed, {len(s.failed)} failed, {len(s.known)} known ({time.time() - begin:.0f} s; logs in {out})", flush=True)
    sys.exit(77 if not ran else 1 if faults else 0)


main()
