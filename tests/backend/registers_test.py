"""No kernel spills, and none uses more registers than cuda/backend/registers.txt allows.

Reads what ptxas reported when the CUDA build compiled cuda/backend (cmake/keep_ptxas_report.sh); skipped in a build
without CUDA. After a change that is meant to use more, or fewer:
    tests/backend/registers_test.py --write BUILD_DIR
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
BUDGET = ROOT / "cuda" / "backend" / "registers.txt"
HEADER = """\
# Registers per thread of every kernel of cuda/backend, by architecture: sm_80, sm_90. None spills.
# 64 or fewer: half of the threads a multiprocessor can hold, enough for these kernels to saturate
# memory. kQuads, the last number of a row kernel, is 1 up to dim 128, 2 to 256, 4 to 512, 8 to 1024;
# the last two hold 16 and 32 numbers of a row per lane and take more, reduce_segments also with two
# (kBlocks in backward.h). pool_long has few warps, and 32 loads of 16 bytes under way in each lane.
# Written by tests/backend/registers_test.py --write, which is also what checks it.
"""
ARCHITECTURES = ["sm_80", "sm_90"]


def short_name(demangled):
    """satrap::backend::(anonymous namespace)::pool_rows<(FloatType)0, 2>(...) -> pool_rows<0, 2>"""
    name = demangled.replace("(anonymous namespace)::", "").replace("satrap::backend::", "")
    name = re.sub(r"\(satrap::\w+\)|\(\w+\)(?=-?\d)|satrap::", "", name)
    name = re.sub(r"^void ", "", name)
    depth = 0
    for i, c in enumerate(name):
        depth += (c == "<") - (c == ">")
        if c == "(" and depth == 0:
            return name[:i].replace(" ", "")
    return name.replace(" ", "")


def read_reports(build):
    """{kernel: {architecture: (registers, spilled bytes)}} of our own kernels, not of CUB's."""
    found = {}
    entry = re.compile(r"Compiling entry function '(\w+)' for '(sm_\d+)'")
    for report in sorted(pathlib.Path(build).glob("CMakeFiles/satrap_backend.dir/cuda/backend/*.ptxas")):
        kernel = None
        for line in report.read_text().splitlines():
            if match := entry.search(line):
                kernel, architecture, spills = match.group(1), match.group(2), 0
            elif match := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
                spills = int(match.group(1)) + int(match.group(2))
            elif kernel and (match := re.search(r"Used (\d+) registers", line)):
                found.setdefault(kernel, {})[architecture] = (int(match.group(1)), spills)
                kernel = None
    names = subprocess.run(["c++filt"], input="\n".join(found), capture_output=True, text=True,
                           check=True).stdout.splitlines()
    return {short_name(demangled): found[mangled]
            for mangled, demangled in zip(found, names) if "satrap" in demangled and "cub::" not in demangled}


def read_budget():
    budget = {}
    for line in BUDGET.read_text().splitlines():
        if line and not line.startswith("#"):
            name, *registers = line.split()
            budget[name] = dict(zip(ARCHITECTURES, map(int, registers)))
    return budget


def complaints(reports, budget):
    for name, by_architecture in sorted(reports.items()):
        for architecture in ARCHITECTURES:
            if architecture not in by_architecture:
                yield f"{name}: not compiled for {architecture}"
                continue
            registers, spills = by_architecture[architecture]
            allowed = budget.get(name, {}).get(architecture)
            if spills:
                yield f"{name} {architecture}: spills {spills} bytes"
            if allowed is None:
                yield f"{name} {architecture}: {registers} registers, and no budget"
            elif registers > allowed:
                yield f"{name} {architecture}: {registers} registers, {allowed} are allowed"
    for name in sorted(budget.keys() - reports.keys()):
        yield f"{name}: has a budget and is no more"


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--write":
        reports = read_reports(sys.argv[2])
        width = max(map(len, reports))
        BUDGET.write_text(HEADER + "".join(
            f"{name:{width}} " + " ".join(f"{by[a][0]:3}" for a in ARCHITECTURES) + "\n"
            for name, by in sorted(reports.items())))
        return report(reports)
    reports = read_reports(os.environ["SATRAP_BUILD_DIR"])
    if not reports:
        print("no reports of ptxas: a build without CUDA")
        return 77
    return report(reports)


def report(reports):
    found = list(complaints(reports, read_budget()))
    print("\n".join(found) or f"{len(reports)} kernels within their budgets, no spills")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
