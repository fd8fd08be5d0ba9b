"""Prints "passed failed skipped" of a JUnit file of ctest, and on stderr what failed and what was slow.

usage: junit_counts.py FILE CTEST_EXIT_STATUS

A file that is missing or that cannot be read, and an exit status that no failed test explains, count as
one failure.
"""

import sys
import xml.etree.ElementTree as ElementTree


def main(path, exit_status):
    outcomes = {"passed": [], "failed": [], "skipped": []}
    try:
        cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError) as error:
        print(f"no test results: {error}", file=sys.stderr)
        cases = []
    for case in cases:
        status = case.get("status")
        outcome = {"run": "passed", "disabled": "skipped", "notrun": "skipped"}.get(status, "failed")
        # A test that ctest could not start is "notrun" too; only a skip has <skipped> without a reason
        # that names the missing program.
        reason = case.find("skipped")
        if status == "notrun" and reason is not None and "SKIP" not in reason.get("message", ""):
            outcome = "failed"
        outcomes[outcome].append(case)

    for case in outcomes["failed"]:
        print(f"FAILED {case.get('name')}", file=sys.stderr)
    for case in sorted(cases, key=lambda case: -float(case.get("time", 0)))[:5]:
        if float(case.get("time", 0)) >= 1:
            print(f"slow: {float(case.get('time')):7.1f} s  {case.get('name')}", file=sys.stderr)

    counts = {name: len(cases) for name, cases in outcomes.items()}
    if not cases or (exit_status != 0 and counts["failed"] == 0):
        counts["failed"] += 1
    print(counts["passed"], counts["failed"], counts["skipped"])


main(sys.argv[1], int(sys.argv[2]))
