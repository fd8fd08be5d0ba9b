"""Holds the pages for engineers to what makes them readable and true.

- A page has at most as many lines as LINES says, a page of a module or of a room in it at most MODULE_LINES.
- Sentences and lines have at most the lengths of page_checks.py. page_text.py says what prose is, and where a sentence
  ends. links_test.py has the links of all pages.
- A path, a test and a class in `code` exist, also in docs/benchmarks.md.
- ARCHITECTURE.md and the READMEs of modules have no rates that were measured: those are in bench/journal.
- The layers of ARCHITECTURE.md are those of layers_test.py, and the threads of its table have those names in the code.
- Each of engineer_questions.md has its answer in ARCHITECTURE.md, within a screen of the heading.
"""

import fnmatch
import functools
import os
import pathlib
import re
import unittest

import page_text
from layers_test import LAYERS
from page_checks import RATE, measure_complaints, question_complaints, questions, shape_complaints
from trees import TreeTest

LINES = {
    "ARCHITECTURE.md": 250,
    "CONTRIBUTING.md": 120,
    "bench/README.md": 100,
    "bench/journal/README.md": 60,
    "cuda/README.md": 60,
    "docs/dev/testing.md": 150,
    "launch/README.md": 60,
    "tests/README.md": 80,
}
MODULE_LINES = 60
QUESTIONS = "tests/architecture/engineer_questions.md"
SOURCES = {".h", ".cpp", ".cu", ".cuh", ".py", ".cmake", ".in", ".txt", ".yaml", ".sh", ".js"}
CODE = re.compile(r"`([^`]+)`")
PATH = re.compile(r"(?:include|src|cuda|tests|bench|docs|launch|cmake|python|datasets)/[\w./-]*\w/?")
TEST = re.compile(r"\w+_test(?:\.py|\.cpp)?")
SUITE = re.compile(r"([A-Z]\w+)\.(\*|\*?[A-Z][\w*]*)")
CLASS = re.compile(r"(?:\w+::)*([A-Z][a-z]+(?:[A-Z0-9][a-z0-9]*)+)")


def module_pages(root):
    return sorted((root / "src").rglob("*.md"))


def pages(root):
    return [path for path in [*map(root.joinpath, LINES), *module_pages(root)] if path.is_file()]


def files(root, *folders):
    for folder in folders:
        yield from (path for path in sorted((root / folder).rglob("*")) if path.is_file())


@functools.cache
def known(root):
    """What pages may name: words of the sources, stems of tests, and suites with their cases."""
    words, tests, cases = set(), set(), set()
    for path in files(root, "include", "src", "cuda", "launch", "tests", "cmake", "bench"):
        if path.suffix not in SOURCES:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        words.update(re.findall(r"\w+", text))
        if path.parts[len(root.parts)] == "tests":
            tests.add(path.stem)
            cases.update(re.findall(r"\bTEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", text))
    return words, tests, cases


def name_complaint(root, code):
    """Why this piece of code names what does not exist, or None."""
    words, tests, cases = known(root)
    if PATH.fullmatch(code):
        return None if (root / code).exists() else f"there is no {code}"
    if TEST.fullmatch(code):
        return None if code.partition(".")[0] in tests else f"there is no test {code}"
    if match := SUITE.fullmatch(code):
        found = any(suite == match[1] and fnmatch.fnmatchcase(case, match[2]) for suite, case in cases)
        return None if found or {match[1], match[2]} <= words else f"there is no test {code}"
    if match := CLASS.fullmatch(code):
        return None if match[1] in words else f"no source names {match[1]}"
    return None


def name_complaints(root, name, text):
    for number, line in enumerate(page_text.without_code(text), 1):
        for code in CODE.findall(line):
            if why := name_complaint(root, code):
                yield f"{name}:{number}: {why}"


def section(text, title):
    """The lines of a page from a heading to the next one of its level, or []."""
    lines = text.splitlines()
    found = [number for number, heading in page_text.headings(text) if heading == title]
    if not found:
        return []
    level = lines[found[0] - 1].split()[0]
    rest = lines[found[0]:]
    end = next((number for number, line in enumerate(rest) if line.startswith(level + " ")), len(rest))
    return rest[:end]


def layers_of(text):
    """The layers of the diagram, lowest first: each of its lines has the modules of one layer, the highest comes first."""
    block = next((block for block in page_text.blocks(text) if block.language == "layers"), None)
    if block is None:
        return None
    return [set(re.findall(r"\w+", line.partition("  ")[0])) for line in reversed(block.text.splitlines()) if line.strip()]


def thread_complaints(root, text):
    rows = [line for line in section(text, "5. Processes and threads") if page_text.is_table(line)]
    sources = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files(root, "src", "cuda", "include")
                        if path.suffix in SOURCES)
    for line in rows:
        for name in CODE.findall(line.split("|")[1]):
            if f'"{name.removesuffix("N")}' not in sources:
                yield f"ARCHITECTURE.md: no thread is named {name}"


def architecture_complaints(root, text):
    layers = layers_of(text)
    if layers is not None and layers != LAYERS:
        wrong = next((found for found, wanted in zip(layers, LAYERS) if found != wanted), layers[len(LAYERS):])
        yield f"ARCHITECTURE.md: layers_test.py has no layer of {', '.join(sorted(map(str, wrong)))} there"
    yield from thread_complaints(root, text)


def violations(root):
    root = pathlib.Path(root).resolve()
    found = []
    for path in pages(root):
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        found += [*shape_complaints(name, text, LINES.get(name, MODULE_LINES)), *name_complaints(root, name, text)]
        if name == "ARCHITECTURE.md":
            found += architecture_complaints(root, text)
        if name == "ARCHITECTURE.md" or name.startswith(("src/", "cuda/")):
            found += measure_complaints(name, text, "bench/journal", [RATE])
    if (results := root / "docs/benchmarks.md").is_file():
        found += name_complaints(root, "docs/benchmarks.md", results.read_text(encoding="utf-8"))
    return [*found, *question_complaints(root, QUESTIONS)]


class CheckerTest(TreeTest):
    """The checker itself."""

    violations = staticmethod(violations)

    def test_a_good_page_passes(self):
        self.assertEqual([], self.check({
            "src/net/README.md": "# net\n`src/net/door.h`, `DoorTest.Silent*`, `door_test`, `NetDoor` in layers."
                                 "\n\n```\n" + "a " * 40 + "\n```\n",
            "src/net/door.h": "class NetDoor;\n", "tests/net/door_test.cpp": "TEST(DoorTest, SilentOnes) {}\n"}))

    def test_a_long_page_line_or_sentence_is_reported(self):
        self.assert_reported({"src/net/README.md": "\n" * 61}, "src/net/README.md", "has 61 lines")
        self.assert_reported({"src/data/text/README.md": "\n" * 61}, "src/data/text/README.md", "has 61 lines")
        self.assert_reported({"ARCHITECTURE.md": "x" * 121}, "ARCHITECTURE.md:1", "has 121 columns")
        self.assert_reported({"CONTRIBUTING.md": "\n- a\n" + "b " * 36}, "CONTRIBUTING.md:2", "a sentence has 37 words")

    def test_a_name_that_does_not_exist_is_reported(self):
        for code, why in [("src/net/gone.h", "there is no src/net/gone.h"), ("gone_test", "there is no test gone_test"),
                          ("DoorTest.Gone", "there is no test DoorTest.Gone"), ("net::GoneDoor", "no source names GoneDoor")]:
            self.assert_reported({"CONTRIBUTING.md": f"\n| `{code}` |", "tests/door_test.cpp": "TEST(DoorTest, Silent) {}"},
                                 "CONTRIBUTING.md:2", why)

    def test_a_measured_rate_is_reported(self):
        self.assert_reported({"src/net/README.md": "4.0 GB/s"}, "src/net/README.md:1", "its place is bench/journal")
        self.assertEqual([], self.check({"bench/README.md": "4.0 GB/s"}))

    def test_other_layers_are_reported(self):
        lines = "\n".join(f"{' | '.join(layer)}   what" for layer in reversed(LAYERS))
        self.assertEqual([], self.check({"ARCHITECTURE.md": f"```layers\n{lines}\n```\n"}))
        self.assert_reported({"ARCHITECTURE.md": f"```layers\n{lines.replace('trainer', 'coach')}\n```\n"},
                             "ARCHITECTURE.md", "no layer of coach")

    def test_a_thread_that_nobody_starts_is_reported(self):
        page = "## 5. Processes and threads\n| thread | x |\n|---|---|\n| `fetch-N` | `x` |\n## 6\n| `gone` |\n"
        self.assertEqual([], self.check({"ARCHITECTURE.md": page, "src/a.cpp": 'start(concat("fetch-", i))'}))
        self.assert_reported({"ARCHITECTURE.md": page}, "ARCHITECTURE.md", "no thread is named fetch-N")

    def test_an_answer_that_is_not_there_is_reported(self):
        table = "| question | page | heading | words |\n|---|---|---|---|\n| who? | ARCHITECTURE.md | Threads | `planner` |\n"
        self.assert_reported({QUESTIONS: table, "ARCHITECTURE.md": "## Threads\nnobody\n"}, f"{QUESTIONS}:3", "planner")


class ProjectTest(unittest.TestCase):
    root = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR", pathlib.Path(__file__).parents[2]))

    def test_every_page_is_readable_and_true(self):
        self.assertEqual([], violations(self.root))

    def test_every_page_exists(self):
        self.assertEqual([], [name for name in LINES if not (self.root / name).is_file()])

    def test_every_module_has_a_page(self):
        for layer in LAYERS[:-1]:
            for module in layer:
                self.assertTrue((self.root / "src" / module / "README.md").is_file(), module)

    def test_there_are_ten_questions(self):
        self.assertGreaterEqual(len(questions(self.root, QUESTIONS)), 10)

    def test_the_layers_are_drawn(self):
        self.assertIsNotNone(layers_of((self.root / "ARCHITECTURE.md").read_text(encoding="utf-8")))


if __name__ == "__main__":
    unittest.main()
