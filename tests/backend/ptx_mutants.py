"""Breaks what nvcc has emitted, one kind of line at a time, and checks that the tests on the interpreter notice.

Usage: ptx_mutants.py BUILD_DIR [PART_OF_NAME]    with a build that has backend_ptx_tests
       ptx_mutants.py --table                     the mutants as a table, for README.md in this folder

A mutant replaces text in all kernels of one file. One that its test does not catch is a failure, and so is one whose
text no longer occurs, or that README.md does not list.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

from mutants import verdict

# Description, file, pattern, replacement, test that fails.
MUTANTS = [
    ("dropped bar.warp.sync", "backward_rowwise_adagrad", r"bar\.warp\.sync[^;]*;", "",
     "DeviceBackward.EveryOptimizerAndDim"),
    ("shfl.sync with the mask of the whole warp", "pool_forward", r"(shfl\.sync\.[^;]*, )%r\d+;", r"\1-1;",
     "DevicePoolForward.EveryDim"),
    ("fma.rn as mul", "pool_forward", r"fma\.rn\.f32 ([^,]*, [^,]*, [^,]*), [^;]*;", r"mul.f32 \1;",
     "DevicePoolForward.EveryDim"),
    ("mul.hi as mul.lo", "resolve", r"mul\.hi\.u64", "mul.lo.u64", "DeviceResolve.EqualsTheHostOverManyBatches"),
    ("redux.sync as the own value", "resolve", r"redux\.sync\.min\.u32 ([^,]*), ([^,]*), [^;]*;", r"mov.u32 \1, \2;",
     "DeviceResolve.EqualsTheHostOverManyBatches"),
    ("threads of all blocks are those of the first", "plan", r"mov\.u32\s+(%r\d+), %ctaid\.x;", r"mov.u32 \1, 0;",
     "DevicePlan.EqualsTheHostOnRandomBatches"),
    ("a shared array for quads at an address of a float", "backward_rowwise_adagrad", r"\.shared \.align 16",
     ".shared .align 4", "DeviceBackward.EveryOptimizerAndDim"),
    ("a read past the end", "pool_forward", r"ld\.global\.v4\.f32 ([^;]*)\[(%rd\d+)\];", r"ld.global.v4.f32 \1[\2+1048576];",
     "DevicePoolForward.EveryDim"),
    ("setp.lt as setp.le", "rows", r"setp\.lt\.s64", "setp.le.s64", "DeviceRows.*"),
]


def table():
    return "| broken | in | caught by |\n|---|---|---|\n" + "".join(
        f"| {name} | `{file}.ptx` | `{test}` |\n" for name, file, _, _, test in MUTANTS)


def seen(build, mutant):
    """How the test of a mutant failed; None if it passed."""
    name, file, pattern, replacement, test = mutant
    source = build / "tests/support/ptx/backend"
    with tempfile.TemporaryDirectory() as folder:
        for text in source.glob("*.ptx"):
            content = text.read_text()
            if text.stem == file:
                content, count = re.subn(pattern, replacement, content)
                if count == 0:
                    sys.exit(f"{name}: {file}.ptx has no {pattern}")
            (pathlib.Path(folder) / text.name).write_text(content)
        os.environ["SATRAP_PTX_FOLDER"] = folder
        return verdict(build / "tests/backend_ptx_tests", test)


def main():
    if sys.argv[1:] == ["--table"]:
        print(table(), end="")
        return
    if table() not in (pathlib.Path(__file__).parent / "README.md").read_text():
        sys.exit("tests/backend/README.md does not hold the table that --table prints")
    build = pathlib.Path(sys.argv[1]).resolve()
    part = sys.argv[2] if len(sys.argv) > 2 else ""
    mutants = [mutant for mutant in MUTANTS if part in mutant[0]]
    survivors = 0
    for test in sorted({mutant[4] for mutant in mutants}):
        if how := verdict(build / "tests/backend_ptx_tests", test):
            sys.exit(f"{test} fails without any mutant: {how}")
    for mutant in mutants:
        how = seen(build, mutant)
        survivors += how is None
        print(f"{'SURVIVES' if how is None else 'caught  '} {mutant[0]} | {mutant[4]} | {how}", flush=True)
    print(f"{len(mutants) - survivors} of {len(mutants)} mutants caught")
    sys.exit(survivors != 0 or not mutants)


if __name__ == "__main__":
    main()
