"""What the tests of one run of ctest did: read from its JUnit file and, for suites of googletest, from theirs.

A test of ctest that is a whole suite of googletest has its results in <folder>/<name>.xml ("/" in names becomes "-"),
and its tests count one by one. A file that is missing or that cannot be read counts as one failure.
"""

import dataclasses
import os
import sys
import xml.etree.ElementTree as ElementTree

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclasses.dataclass
class Test:
    """One test of ctest: its tests by name with their outcomes, how it ended, and what it printed."""
    name: str
    outcome: str
    results: list  # of (name, outcome)
    end: str       # how ctest says that it failed: "Timeout", "SEGFAULT", "Failed", ...; empty if it passed
    output: str
    seconds: float


def cases_of(path):
    try:
        return list(ElementTree.parse(path).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError) as error:
        print(f"no test results: {error}", file=sys.stderr)
        return []


def outcome_of_test(case):
    """The outcome of a test as ctest reports it."""
    status = case.get("status")
    # A test that ctest could not start is "notrun" too; only a skip has <skipped> without a reason that names the
    # missing program.
    reason = case.find("skipped")
    if status == "notrun" and reason is not None and "SKIP" not in reason.get("message", ""):
        return FAILED
    return {"run": PASSED, "disabled": SKIPPED, "notrun": SKIPPED}.get(status, FAILED)


def outcomes_of_suite(name, outcome, path):
    """Pairs of name and outcome of the tests in a suite that ctest has run."""
    results = []
    for case in cases_of(path):
        failed = case.find("failure") is not None
        skipped = case.get("result") == "skipped" or case.get("status") == "notrun"
        results.append((f"{name}.{case.get('name')}", FAILED if failed else SKIPPED if skipped else PASSED))
    if not any(result == FAILED for _, result in results) and (outcome == FAILED or not results):
        results.append((name, FAILED))  # it died, or a sanitizer reported something
    return results


def read_test(case, folder):
    name, outcome = case.get("name"), outcome_of_test(case)
    suite = os.path.join(folder, name.replace("/", "-") + ".xml")
    results = outcomes_of_suite(name, outcome, suite) if os.path.exists(suite) else [(name, outcome)]
    if any(result == FAILED for _, result in results):
        outcome = FAILED
    problem = case.find("failure")
    if problem is None:
        problem = case.find("skipped")
    end = problem.get("message", "") if problem is not None and outcome == FAILED else ""
    return Test(name, outcome, results, end, case.findtext("system-out") or "", float(case.get("time", 0)))


def read(junit, folder):
    """The tests of a JUnit file that ctest has written."""
    return [read_test(case, folder) for case in cases_of(junit)]
