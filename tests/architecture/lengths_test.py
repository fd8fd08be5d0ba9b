"""Refuses sources and headers of more than 400 lines: such a file has a part that deserves a name of its own."""

import os
import pathlib
import unittest

from trees import TreeTest

from layers_test import SUFFIXES

MOST_LINES = 400
FOLDERS = ["include/satrap", "src", "cuda"]


def lengths(root):
    """Every source and header, and how many lines it has."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES:
                yield path.relative_to(root).as_posix(), len(path.read_text(encoding="utf-8").splitlines())


def violations(root):
    return [f"{name}: {num_lines} lines, more than {MOST_LINES}; move a part that has a name into a file of that name"
            for name, num_lines in lengths(pathlib.Path(root)) if num_lines > MOST_LINES]


class CheckerTest(TreeTest):
    """The checker itself."""

    violations = staticmethod(violations)

    def test_files_of_the_most_lines_pass_and_so_do_tests_of_more(self):
        self.assertEqual([], self.check({"src/net/link.cpp": "\n" * MOST_LINES, "tests/net/link_test.cpp": "\n" * 1000,
                                         "src/net/README.md": "\n" * 1000}))

    def test_one_line_more_is_refused(self):
        for name in ("src/data/text/lines.cpp", "include/satrap/net/link.h", "cuda/backend/pool.cu"):
            self.assert_reported({name: "\n" * (MOST_LINES + 1)}, name, f"{MOST_LINES + 1} lines")


class ProjectTest(unittest.TestCase):
    root = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR", pathlib.Path(__file__).parents[2]))

    def test_no_file_is_longer(self):
        self.assertEqual([], violations(self.root))

    def test_the_check_sees_the_sources(self):
        self.assertGreater(dict(lengths(self.root))["src/core/log.cpp"], 10)


if __name__ == "__main__":
    unittest.main()
