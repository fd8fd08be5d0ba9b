"""Skips, by name, the tests of a program that this machine cannot build.

usage: skipped_suite.py REASON [FILE SOURCE PROGRAM]

Prints the reason and exits with 77. FILE becomes the results of googletest in which every test of PROGRAM, which has
the same tests, and of SOURCE, a file of tests that it has not, is skipped.
"""

import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree


def tests_of_program(program):
    suite = ""
    for line in subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True,
                               check=True).stdout.splitlines():
        name = line.split("#")[0].strip()
        if line.startswith(" "):
            yield suite, name
        elif name.endswith("."):
            suite = name[:-1]


def tests_of_source(source):
    return re.findall(r"^TEST(?:_F)?\((\w+), (\w+)\)", pathlib.Path(source).read_text(), re.M)


def write(file, tests):
    root = ElementTree.Element("testsuites")
    for suite, name in tests:
        ElementTree.SubElement(root, "testcase", name=name, classname=suite, status="notrun", result="skipped")
    pathlib.Path(file).parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(root).write(file)


def main(reason, file=None, source=None, program=None):
    print(f"skipped: {reason}")
    if file:
        write(file, [*tests_of_program(program), *tests_of_source(source)])
    return 77


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
