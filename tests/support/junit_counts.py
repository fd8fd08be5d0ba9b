"""Prints "passed failed skipped" for a JUnit file of ctest, and on stderr what failed, was skipped or was slow.

usage: junit_counts.py FILE FOLDER CTEST_EXIT_STATUS [FAILURES]

FAILURES is a file to which the names of the tests that failed are appended, with the ends of what they printed.

A test of ctest that is a whole suite of googletest has its results in FOLDER/<name>.xml ("/" in names becomes "-"), and
its tests count one by one. A file that is missing or that cannot be read, and an exit status that no failed test
explains, count as one failure.
"""

import os
import sys
import xml.etree.ElementTree as ElementTree


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
        return "failed"
    return {"run": "passed", "disabled": "skipped", "notrun": "skipped"}.get(status, "failed")


def outcomes_of_suite(name, outcome, path):
    """Pairs of name and outcome of the tests in a suite that ctest has run."""
    results = []
    for case in cases_of(path):
        failed = case.find("failure") is not None
        skipped = case.get("result") == "skipped" or case.get("status") == "notrun"
        results.append((f"{name}.{case.get('name')}", "failed" if failed else "skipped" if skipped else "passed"))
    if not any(result == "failed" for _, result in results) and (outcome == "failed" or not results):
        results.append((name, "failed"))  # it died, or a sanitizer reported something
    return results


def report(outcomes):
    """Prints the names of tests by outcome: the counts on stdout, failed and skipped ones on stderr."""
    for outcome in ("failed", "skipped"):
        for name in outcomes[outcome]:
            print(f"{outcome.upper()} {name}", file=sys.stderr)
    print(*(len(outcomes[outcome]) for outcome in ("passed", "failed", "skipped")))


LINES_OF_FAILURE = 30


def write_failures(path, cases, names):
    with open(path, "a") as file:
        for case in cases:
            name = case.get("name")
            tests = [test for test in names if test == name or test.startswith(f"{name}.")]
            if not tests:
                continue
            lines = (case.findtext("system-out") or "").rstrip().splitlines()
            print(*(f"FAILED {test}" for test in tests), sep="\n", file=file)
            print(*(f"    {line[:300]}" for line in lines[-LINES_OF_FAILURE:]), sep="\n", file=file)
        known = {case.get("name") for case in cases}
        for name in names:
            if not any(name == test or name.startswith(f"{test}.") for test in known):
                print(f"FAILED {name}", file=file)


def main(path, folder, exit_status, failures=None):
    outcomes = {"passed": [], "failed": [], "skipped": []}
    cases = cases_of(path)
    for case in cases:
        name, outcome = case.get("name"), outcome_of_test(case)
        suite = os.path.join(folder, name.replace("/", "-") + ".xml")
        results = outcomes_of_suite(name, outcome, suite) if os.path.exists(suite) else [(name, outcome)]
        for test, result in results:
            outcomes[result].append(test)

    for case in sorted(cases, key=lambda case: -float(case.get("time", 0)))[:5]:
        if float(case.get("time", 0)) >= 1:
            print(f"slow: {float(case.get('time')):7.1f} s  {case.get('name')}", file=sys.stderr)

    if not cases or (exit_status != 0 and not outcomes["failed"]):
        outcomes["failed"].append("the tests as a whole")
    if failures:
        write_failures(failures, cases, outcomes["failed"])
    report(outcomes)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
