"""Holds comments to sentences: one that begins with "Of" or "Those" leaves its reader to complete it."""

import os
import pathlib
import re
import unittest

FRAGMENT = re.compile(r"^\s*///? (?:Of|That|Those|Such|Which|Whose)\b")
SUFFIXES = {".h", ".cpp", ".cu", ".cuh", ".js"}


def violations(lines):
    """The numbers of lines on which a comment begins so."""
    starts = [number for number, line in enumerate(lines, 1) if FRAGMENT.match(line)]
    return [number for number in starts if number == 1 or not lines[number - 2].lstrip().startswith("//")
            or lines[number - 2].rstrip().endswith((".", ":"))]


class Comments(unittest.TestCase):
    root = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR", pathlib.Path(__file__).parents[2]))

    def test_the_check(self):
        self.assertEqual([1, 4, 5], violations(["/// Of a file.", "int a;", "", "  // Of the thread.", "/// Those of a file."]))
        self.assertEqual([], violations(["/// The size", "/// Of a file it is all that is known.", "// Often.", "x(); // Of"]))

    def test_none_begins_as_a_fragment(self):
        found = []
        for folder in ("include", "src", "cuda"):
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix in SUFFIXES:
                    lines = path.read_text(encoding="utf-8").splitlines()
                    found += [f"{path.relative_to(self.root)}:{number}" for number in violations(lines)]
        self.assertEqual([], found)


if __name__ == "__main__":
    unittest.main()
