"""Holds the links of all pages: each leads to a file, and to a heading of it."""

import os
import pathlib
import unittest

from page_checks import link_complaints
from trees import TreeTest

FOLDERS = ("bench", "cuda", "datasets", "docs", "launch", "python", "src", "tests")


def violations(root):
    root = pathlib.Path(root).resolve()
    pages = [*sorted(root.glob("*.md")), *(path for folder in FOLDERS for path in sorted((root / folder).rglob("*.md")))]
    return [complaint for path in pages for complaint in link_complaints(root, path)]


class CheckerTest(TreeTest):
    """The checker itself."""

    violations = staticmethod(violations)

    def test_good_links_pass(self):
        self.assertEqual([], self.check({
            "README.md": "# satrap\nSee [data](docs/data.md#bad-rows-1), [web](https://example.org).\n",
            "docs/data.md": "# Data\n## Bad rows\n## Bad rows\n- [above](#bad-rows) [up](../README.md) `[code](gone.md)`\n",
            "src/net/README.md": "[layers](../../docs/data.md#data)\n",
        }))

    def test_a_dead_link_is_reported(self):
        self.assert_reported({"docs/data.md": "\n[x](gone.md)"}, "docs/data.md:2", "there is no gone.md")
        self.assert_reported({"bench/journal/old.md": "[x](gone.md)"}, "bench/journal/old.md:1", "there is no gone.md")
        self.assert_reported({"README.md": "# A\n[x](#b)"}, "README.md:2", "this page has no heading #b")
        self.assert_reported({"README.md": "[x](docs/data.md#b)", "docs/data.md": "```\n# b\n```"}, "README.md:1",
                             "docs/data.md has no heading #b")


class ProjectTest(unittest.TestCase):
    root = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR", pathlib.Path(__file__).parents[2]))

    def test_every_link_leads_somewhere(self):
        self.assertEqual([], violations(self.root))


if __name__ == "__main__":
    unittest.main()
