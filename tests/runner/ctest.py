"""Runs the tests of a preset by ctest, shows how far they are, and runs again those whose failure is not final."""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess

import outcomes
import verdict

REPEATS = 2     # runs that a test that has failed once must all pass
REPEATED = 10   # of one stage: where more tests fail, something is broken, and nobody waits for all of them again
OF_TEST = re.compile(r"^ *(\d+)/(\d+) Test +#\d+: (.+?) \.{2,} *(.*)$")


@dataclasses.dataclass
class Results:
    """What all tests of a stage did."""
    passed: int = 0
    skipped: list = dataclasses.field(default_factory=list)  # names
    failures: list = dataclasses.field(default_factory=list)  # of (names, why they count, output)
    flaky: list = dataclasses.field(default_factory=list)     # of (name, output of its failure)
    slow: list = dataclasses.field(default_factory=list)      # of (seconds, name)


def watch(process, show):
    """Reads what ctest prints: shows progress, and returns how tests ended by name, where they did not pass."""
    ends = {}
    for line in process.stdout:
        match = OF_TEST.match(line)
        if not match:
            continue
        done, total, name, end = match.groups()
        failed = "***" in end and "Skipped" not in end
        if failed:
            ends[name] = re.sub(r" *[\d.]+ sec$", "", end)
        show(int(done), int(total), name, failed)
    return ends


class Ctest:
    """wrap: a command that runs another, as a list; shows: called with what is done, all, a name and whether it failed.
    clock: starts a command, which it ends where the run must end (clock.Clock)."""

    def __init__(self, preset, wrap, clock, show):
        self.preset = preset
        self.wrap = wrap
        self.clock = clock
        self.show = show
        self.folder = f"build/{preset}/gtest"

    def _once(self, select, jobs, show, file="junit.xml"):
        junit = os.path.abspath(f"build/{self.preset}/{file}")
        shutil.rmtree(self.folder, ignore_errors=True)
        pathlib.Path(junit).unlink(missing_ok=True)
        command = [*self.wrap, "ctest", "--preset", self.preset, *select, "-j", str(jobs), "--output-junit", junit]
        with self.clock.start(command, must_end=self.preset != "release", stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace") as process:
            ends = watch(process, show)
        tests = outcomes.read(junit, self.folder)
        for test in tests:
            test.end = ends.get(test.name, test.end)
        return tests, process.returncode

    def _passes_again(self, test):
        quiet = lambda *_: None
        for _ in range(REPEATS):
            tests, _ = self._once(["-R", f"^{re.escape(test.name)}$"], 1, quiet, "junit-again.xml")
            if [again.outcome for again in tests] != [outcomes.PASSED]:
                return tests[0] if tests else test
        return None

    def run(self, select, jobs):
        results = Results()
        tests, status = self._once(select, jobs, self.show)
        failed = [test for test in tests if test.outcome == outcomes.FAILED]
        for test in tests:
            results.passed += sum(outcome == outcomes.PASSED for _, outcome in test.results)
            results.skipped += [name for name, outcome in test.results if outcome == outcomes.SKIPPED]
            results.slow.append((test.seconds, test.name))
        for test in failed:
            names = [name for name, outcome in test.results if outcome == outcomes.FAILED]
            why = verdict.final_reason(test.end, test.output)
            if why is None and len(failed) > REPEATED:
                why = f"not run again: {len(failed)} tests failed"
            again = None if why else self._passes_again(test)
            if why is None and again is None:
                results.flaky += [(name, test.output) for name in names]
                results.passed += len(names)
            else:
                results.failures.append((names, why or "failed again", test.output))
        if not tests or (status != 0 and not failed):
            results.failures.append(([f"{self.preset}: the tests as a whole"], f"ctest's exit status is {status}", ""))
        return results
