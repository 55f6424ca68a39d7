# SPDX-License-Identifier: Apache-2.0
"""A plugin for pytest: which BLAS and LAPACK files does this process have mapped?"""


def pytest_terminal_summary(terminalreporter):
    with open("/proc/self/maps") as maps:
        files = {line.split()[-1] for line in maps if "blas" in line or "lapack" in line}
    for name in sorted(f for f in files if ".so" in f):
        terminalreporter.write_line(f"MAPS {name}")
