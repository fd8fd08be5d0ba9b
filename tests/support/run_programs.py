"""Runs programs of googletest, each as a whole, and prints "passed failed skipped" for all of them.

usage: run_programs.py SECONDS PROGRAM...

For machines that are too slow to start a program for every test. SECONDS limits each program. Failed and skipped tests
are named on stderr; libraries get one thread, as under ctest."""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))
from outcomes import FAILED, PASSED, SKIPPED, outcomes_of_suite  # noqa: E402


def run(program, seconds):
    name = os.path.basename(program)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "results.xml")
        command = [os.path.abspath(program), "--gtest_brief=1", f"--gtest_output=xml:{path}"]
        try:
            status = subprocess.run(command, cwd=os.path.dirname(program), timeout=seconds,
                                    env=os.environ | {"OMP_NUM_THREADS": "1"},
                                    stdout=sys.stderr, stdin=subprocess.DEVNULL).returncode
        except (subprocess.TimeoutExpired, OSError) as error:
            print(error, file=sys.stderr)
            status = 1
        return outcomes_of_suite(name, "passed" if status == 0 else "failed", path)


def main(seconds, programs):
    outcomes = {PASSED: [], FAILED: [], SKIPPED: []}
    for program in programs:
        for test, result in run(program, seconds):
            outcomes[result].append(test)
    for outcome in (FAILED, SKIPPED):
        for name in outcomes[outcome]:
            print(f"{outcome.upper()} {name}", file=sys.stderr)
    print(*(len(names) for names in outcomes.values()))


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
