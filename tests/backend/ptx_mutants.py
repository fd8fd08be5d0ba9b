"""Breaks what nvcc has emitted, one kind of line at a time, and checks that the tests on the interpreter notice.

Usage: ptx_mutants.py BUILD_DIR [PART_OF_NAME]    with a build that has backend_ptx_tests
       ptx_mutants.py --table                     the mutants as a table, for README.md in this folder

A mutant replaces text in all kernels of one file. One that its test does not catch is a failure, and so is one whose
text no longer occurs, or that README.md does not list.
"""

import os
import pathlib
import re
import shutil
import sys
import tempfile

from mutants import run, verdict

# Description, file, pattern, replacement, test that fails.
MUTANTS = [
    ("dropped bar.warp.sync", "backward_rowwise_adagrad.ptx", r"bar\.warp\.sync[^;]*;", "",
     "DeviceBackward.EveryOptimizerAndDim"),
    ("shfl.sync with the mask of half the warp", "pool_forward.ptx", r"(shfl\.sync\.[^;]*, )%r\d+;", r"\g<1>65535;",
     "DevicePoolForward.EveryDim"),
    ("fma.rn as mul", "pool_forward.ptx", r"fma\.rn\.f32 ([^,]*, [^,]*, [^,]*), [^;]*;", r"mul.f32 \1;",
     "DevicePoolForward.EveryDim"),
    ("mul.hi as mul.lo", "resolve.ptx", r"mul\.hi\.u64", "mul.lo.u64", "DeviceResolve.EqualsTheHostOverManyBatches"),
    ("redux.sync as the own value", "resolve.ptx",
     r"redux\.sync\.min\.u32 ([^,]*), ([^,]*), [^;]*;", r"mov.u32 \1, \2;",
     "DeviceResolve.EqualsTheHostOverManyBatches"),
    ("threads of all blocks are those of the first", "plan.ptx", r"mov\.u32\s+(%r\d+), %ctaid\.x;", r"mov.u32 \1, 0;",
     "DevicePlan.EqualsTheHostOnRandomBatches"),
    ("a shared array for quads at an address of a float", "backward_rowwise_adagrad.ptx", r"\.shared \.align 16",
     ".shared .align 4", "DeviceBackward.EveryOptimizerAndDim"),
    ("a read past the end", "pool_forward.ptx",
     r"ld\.global\.v4\.f32 ([^;]*)\[(%rd\d+)\];", r"ld.global.v4.f32 \1[\2+1048576];",
     "DevicePoolForward.EveryDim"),
    ("setp.lt as setp.le", "rows.ptx", r"setp\.lt\.s64", "setp.le.s64", "DeviceRows.*"),
]


def prepare(build):
    program, texts = build / "tests/backend_ptx_tests", build / "tests/support/ptx/backend"
    for test in sorted({mutant[4] for mutant in MUTANTS}):
        if how := verdict(program, test):
            sys.exit(f"{test} fails without any mutant: {how}")

    def seen(mutant):
        name, file, pattern, replacement, test = mutant
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(texts, folder, dirs_exist_ok=True)
            broken, count = re.subn(pattern, replacement, (texts / file).read_text())
            if count == 0:
                sys.exit(f"{name}: {file} has no {pattern}")
            pathlib.Path(folder, file).write_text(broken)
            os.environ["SATRAP_PTX_FOLDER"] = folder
            return verdict(program, test)

    return seen


if __name__ == "__main__":
    run(MUTANTS, prepare)
