"""Holds the pages for users, docs/*.md, the README, SECURITY.md and datasets/README.md, to what makes them readable.

- A page has at most as many lines as LINES says; a page without a number there is refused.
- Sentences and lines have at most the lengths of page_checks.py. page_text.py says where a sentence ends, and what is
  no prose. Tables and links may be longer.
- No rate, time or size is given that was measured: those are in bench/, in docs/benchmarks.md, and in the section
  "Results" of README.md.
- Each question of questions.md has its answer within a screen of the heading that it names.
docs/configuration.md is generated, and not checked here. links_test.py has the links of all pages.
"""

import os
import pathlib
import unittest

import page_text
from page_checks import RATE, TIME_OR_SIZE, measure_complaints, question_complaints, questions, shape_complaints
from trees import TreeTest

LINES = {
    "README.md": 140,
    "SECURITY.md": 80,
    "datasets/README.md": 60,
    "docs/README.md": 60,
    "docs/benchmarks.md": 120,
    "docs/caches.md": 60,
    "docs/checkpoints.md": 120,
    "docs/cluster.md": 150,
    "docs/data.md": 200,
    "docs/fit.md": 60,
    "docs/gpus.md": 80,
    "docs/install.md": 80,
    "docs/kafka.md": 80,
    "docs/labels.md": 100,
    "docs/models.md": 120,
    "docs/output.md": 100,
    "docs/python.md": 150,
    "docs/serving.md": 100,
    "docs/stores.md": 80,
    "docs/times.md": 80,
    "docs/training.md": 120,
    "docs/troubleshooting.md": 80,
}
GENERATED = "configuration.md"
QUESTIONS = "tests/architecture/questions.md"


def pages(root):
    others = [root / name for name in ("README.md", "SECURITY.md", "datasets/README.md")]
    found = [*others, *sorted((root / "docs").glob("*.md"))]
    return [path for path in found if path.is_file() and path.name != GENERATED]


def violations(root):
    root = pathlib.Path(root).resolve()
    found = []
    for path in pages(root):
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        found += shape_complaints(name, text, LINES.get(name))
        if name != "docs/benchmarks.md":
            results = ["Results"] if name == "README.md" else []
            found += measure_complaints(name, text, "docs/benchmarks.md", [RATE, TIME_OR_SIZE], results)
    return [*found, *question_complaints(root, QUESTIONS)]


class CheckerTest(TreeTest):
    """The checker itself."""

    violations = staticmethod(violations)

    def test_a_good_page_passes(self):
        self.assertEqual([], self.check({
            "README.md": "# satrap\nSee [data](docs/data.md), e.g. `a.b`.\n\n```sh\nx 100 ms\n```\n",
            "docs/data.md": "# Data\n- " + "word. " * 10 + "\n", "docs/configuration.md": "\n" * 900 + "x" * 121,
        }))

    def test_a_long_sentence_is_reported(self):
        for text in ["w " * 36, "- item\n- " + "w " * 30 + "\n  " + "w " * 6, "\nShort. " + "w, " * 36,
                     "`a b` " + "w " * 35]:
            with self.subTest(text):
                place = "README.md:2" if text[0] in "-\n" else "README.md:1"
                self.assert_reported({"README.md": text}, place, "a sentence has 36 words, at most 35")

    def test_tables_code_and_targets_of_links_are_not_counted(self):
        self.assertEqual([], self.check({
            "README.md": f"| {'w ' * 90}|\n\n`{'w ' * 20}` [{'w ' * 30}](LICENSE)\n\n```\n{'w ' * 40}\n```\n",
            "LICENSE": ""}))

    def test_an_abbreviation_ends_no_sentence(self):
        self.assertEqual(["Some, e.g. this."], page_text.sentences("Some, e.g. this."))
        self.assertEqual(["It is 0.5.", "(So?)", "Yes"], page_text.sentences("It is 0.5. (So?) Yes"))
        self.assertEqual(["Ends with 143.", "The log"], page_text.sentences("Ends with 143. The log"))

    def test_a_long_page_or_line_is_reported(self):
        self.assert_reported({"docs/caches.md": "\n" * 61}, "docs/caches.md", "has 61 lines")
        self.assert_reported({"docs/caches.md": "x" * 121}, "docs/caches.md:1", "has 121 columns")
        self.assert_reported({"docs/new.md": ""}, "docs/new.md", "no length")

    def test_a_measured_number_is_reported(self):
        for text in ["50,000 examples/s", "in 18 ms", "3.1 times as fast", "4 GB/s", "| 2.0 times the |", "25 % faster",
                     "in 17.8 s", "it takes 20 minutes", "needs about 71 MB"]:
            with self.subTest(text):
                self.assert_reported({"docs/gpus.md": text}, "docs/gpus.md:1", "was measured")
                self.assertEqual([], self.check({"README.md": f"## Results\n{text}\n"}))
        self.assertEqual([], self.check({"docs/gpus.md": "within 15 s, 64 KiB, 10 times, every 100 steps"}))

    def test_an_answer_that_is_not_there_is_reported(self):
        table = "| question | page | heading | words |\n|---|---|---|---|\n| ? | docs/data.md | Dates | `a b`, `c` |\n"
        place, page = QUESTIONS, "# Data\n## Dates\na\nb c\n"
        self.assertEqual([], self.check({place: table, "docs/data.md": page}))
        self.assert_reported({place: table}, f"{place}:3", "there is no docs/data.md")
        self.assert_reported({place: table, "docs/data.md": page.replace("Dates", "Times")}, f"{place}:3", "no heading")
        self.assert_reported({place: table, "docs/data.md": page.replace("b", "\n" * 38 + "b")}, f"{place}:3", "a b, c")


class ProjectTest(unittest.TestCase):
    root = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR", pathlib.Path(__file__).parents[2]))

    def test_every_page_is_readable(self):
        self.assertEqual([], violations(self.root))

    def test_there_are_twenty_questions(self):
        self.assertGreaterEqual(len(questions(self.root, QUESTIONS)), 20)


if __name__ == "__main__":
    unittest.main()
