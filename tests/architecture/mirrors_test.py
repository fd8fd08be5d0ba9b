"""Holds every public header to its test, and every private one to a user.

The test of include/satrap/<m>/x.h is its mirror tests/<m>/x_test.cpp. A header without one has a line in mirrors.txt,
which names the tests that exercise it, or says `declarations` where there is nothing to exercise: the header holds only
data, constants or an interface. A private header, in src, needs neither: the tests of its module exercise it by what
includes it, and something must.
"""

import os
import pathlib
import re
import unittest

from trees import TreeTest

LIST = "tests/architecture/mirrors.txt"
DECLARATIONS = "declarations"
INCLUDED = re.compile(r'^\s*#\s*include\s*"(src/[^"]+)"', re.MULTILINE)

# Comments, directives and assertions, which may look like functions.
NO_FUNCTION = re.compile(r"//[^\n]*|/\*.*?\*/|^[ \t]*#[^\n]*|\bstatic_assert\s*\([^;]*;", re.DOTALL | re.MULTILINE)
PURE_VIRTUAL = re.compile(r"\bvirtual\b[^;{}]*=\s*0\s*;")
# A parameter list with a body after it, maybe behind qualifiers, a result or a constructor's initializers.
BODY = re.compile(r"\)\s*(?:const\b|noexcept\b|override\b|final\b|\s)*(?:->[^;{}()]*|:[^:;][^;]*?)?\{")
# A function that is declared here: `name(...)` up to the `;`, and no initializer before the name.
DECLARED = re.compile(r"(?:^|[;{}:])([^;{}=]*\b[A-Za-z_]\w*\s*\([^;{}]*\)\s*(?:const\b|noexcept\b|\s)*);")


def headers(root, folder="include/satrap"):
    for path in sorted((root / folder).rglob("*.h")):
        yield path.relative_to(root).as_posix()


def module_of(header):
    return pathlib.PurePosixPath(header).parts[2]


def unused(root):
    """Private headers that no file of the product includes."""
    included = set()
    for folder in ("include/satrap", "src", "cuda", "launch"):
        for path in (root / folder).rglob("*"):
            if path.suffix in (".h", ".cpp", ".cu", ".cuh", ".in"):
                included.update(INCLUDED.findall(path.read_text(encoding="utf-8")))
    # Those of src/<m>/compat stand for headers of others, by their names.
    return [header for header in headers(root, "src") if header not in included and "/compat/" not in header]


def mirror_of(header):
    return f"tests/{module_of(header)}/{pathlib.PurePosixPath(header).stem}_test.cpp"


def logic_of(root, header):
    """Why this header is more than declarations, or None."""
    stem = pathlib.PurePosixPath(header).stem
    for folder, suffix in (("src", ".cpp"), ("cuda", ".cu")):
        for source in (root / folder / module_of(header)).rglob(f"{stem}{suffix}"):
            return f"its functions are defined in {source.relative_to(root).as_posix()}"
    text = NO_FUNCTION.sub("", (root / header).read_text(encoding="utf-8"))
    text = PURE_VIRTUAL.sub(";", text)
    for pattern, what in ((BODY, "has a function body"), (DECLARED, "declares a function")):
        match = pattern.search(text)
        if match:
            end = match.end()  # of a line that shows what was found
            return f"it {what}: {text[:end].splitlines()[-1].strip()}"
    return None


def read_list(root):
    """The lines of the list: (number, header, what), without blank lines and comments."""
    for number, line in enumerate((root / LIST).read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            header, _, what = line.partition(":")
            yield number, header.strip(), what.split()


def complaint(root, header, what):
    """Why this line must not be, or None."""
    if not (root / header).is_file():
        return "there is no such header; remove the line"
    if not header.startswith("include/"):
        return "a private header needs no line"
    mirror = mirror_of(header)
    if (root / mirror).exists():
        return f"has a test of its own, {mirror}; remove the line"
    if not what:
        return f"the line names no test; name one, or say '{DECLARATIONS}'"
    if what == [DECLARATIONS]:
        reason = logic_of(root, header)
        return reason and f"is not only declarations, {reason}; name the test that exercises it"
    for test in what:
        if not test.startswith("tests/") or not (root / test).is_file():
            return f"there is no test {test}; name one that exercises the header"
    return None


def violations(root):
    root = pathlib.Path(root)
    found, listed = [], set()
    for number, header, what in read_list(root):
        if header in listed:
            found.append(f"{LIST}:{number}: {header}: has two lines; keep one")
        listed.add(header)
        reason = complaint(root, header, what)
        if reason:
            found.append(f"{LIST}:{number}: {header}: {reason}")
    for header in headers(root):
        if header not in listed and not (root / mirror_of(header)).exists():
            found.append(f"{header}: a header has a test; write {mirror_of(header)}, or name in {LIST} the test "
                         "that exercises it")
    return found + [f"{header}: nothing includes it; remove it" for header in unused(root)]


class CheckerTest(TreeTest):
    """The checker itself."""

    violations = staticmethod(violations)
    ALWAYS = {LIST: ""}

    HEADER = "include/satrap/core/row.h"

    def assert_no_declarations(self, text, reason):
        self.assert_reported({LIST: f"{self.HEADER}: declarations\n", self.HEADER: text},
                            f"{LIST}:1: {self.HEADER}", reason)

    def test_mirrors_lines_and_declarations_pass(self):
        self.assertEqual([], self.check({
            LIST: "# why\n\n"
                  "include/satrap/core/row.h: declarations\n"
                  "include/satrap/net/wire.h: tests/net/link_test.cpp tests/app/wire_test.py\n",
            "include/satrap/core/row.h": "struct Row { int size = most(2); };\n",
            "include/satrap/core/hash.h": "int hash(int x) { return x; }\n",
            "include/satrap/net/wire.h": "int wire();\n",
            "include/satrap/net/bytes.h": "int bytes();\n",
            "tests/core/hash_test.cpp": "",
            "tests/net/bytes_test.cpp": "",
            "tests/net/link_test.cpp": "",
            "tests/app/wire_test.py": "",
        }))

    def test_a_private_header_needs_a_user_and_no_line(self):
        header, source = "src/net/wire.h", {"src/net/link.cpp": '#include "src/net/wire.h"\n'}
        self.assertEqual([], self.check({header: "int wire();\n", **source}))
        self.assert_reported({header: "int wire();\n"}, header, "nothing includes it")
        self.assert_reported({header: "", LIST: f"{header}: declarations\n", **source}, f"{LIST}:1: {header}", "needs no line")

    def test_a_header_with_neither_mirror_nor_line_is_refused(self):
        self.assert_reported({"include/satrap/net/wire.h": ""}, "include/satrap/net/wire.h", "write tests/net/wire_test.cpp, or name in")

    def test_a_mirror_in_the_folder_of_another_module_is_none(self):
        self.assert_reported({"include/satrap/net/wire.h": "", "tests/core/wire_test.cpp": ""}, "include/satrap/net/wire.h", "has a test;")

    def test_a_line_of_a_header_that_is_not_there_is_refused(self):
        self.assert_reported({LIST: "\ninclude/satrap/net/wire.h: declarations\n"}, f"{LIST}:2: include/satrap/net/wire.h", "no such header")

    def test_a_line_of_a_test_that_is_not_there_is_refused(self):
        self.assert_reported({LIST: "include/satrap/net/wire.h: tests/net/link_test.cpp tests/net/gone_test.cpp\n",
                             "include/satrap/net/wire.h": "", "tests/net/link_test.cpp": ""},
                            f"{LIST}:1: include/satrap/net/wire.h", "no test tests/net/gone_test.cpp")

    def test_a_line_that_names_a_source_is_refused(self):
        self.assert_reported({LIST: "include/satrap/net/wire.h: src/net/wire.cpp\n", "include/satrap/net/wire.h": "", "src/net/wire.cpp": ""},
                            f"{LIST}:1: include/satrap/net/wire.h", "no test src/net/wire.cpp")

    def test_a_line_without_a_test_is_refused(self):
        self.assert_reported({LIST: "include/satrap/net/wire.h\n", "include/satrap/net/wire.h": ""}, f"{LIST}:1: include/satrap/net/wire.h",
                            "names no test")

    def test_a_line_of_a_header_with_a_mirror_is_refused(self):
        self.assert_reported({LIST: "include/satrap/net/wire.h: tests/net/wire_test.cpp\n", "include/satrap/net/wire.h": "",
                             "tests/net/wire_test.cpp": ""},
                            f"{LIST}:1: include/satrap/net/wire.h", "a test of its own, tests/net/wire_test.cpp; remove")

    def test_a_second_line_is_refused(self):
        self.assert_reported({LIST: "include/satrap/net/wire.h: declarations\n" * 2, "include/satrap/net/wire.h": ""},
                            f"{LIST}:2: include/satrap/net/wire.h", "two lines")

    def test_a_function_with_a_body_is_no_declaration(self):
        self.assert_no_declarations("struct Row { int size() const { return 1; } };\n", "has a function body")
        self.assert_no_declarations("inline auto size(int x) -> int { return x; }\n", "has a function body")
        self.assert_no_declarations("struct Row { Row(int x) : size(x) {} int size; };\n", "has a function body")

    def test_a_function_defined_elsewhere_is_no_declaration(self):
        self.assert_no_declarations("namespace satrap {\nint size(const int* rows,\n         int n);\n}\n",
                                    "declares a function")
        self.assert_no_declarations("class Row {\n public:\n  int size() const;\n};\n", "declares a function")

    def test_a_source_of_the_same_name_makes_it_no_declaration(self):
        for source in ("src/core/row.cpp", "cuda/core/row.cu", "src/core/rows/row.cpp"):
            self.assert_reported({LIST: f"{self.HEADER}: declarations\n", self.HEADER: "", source: ""},
                                f"{LIST}:1: {self.HEADER}", f"defined in {source}")

    def test_an_interface_and_functions_in_comments_are_declarations(self):
        self.assertEqual([], self.check({
            LIST: f"{self.HEADER}: declarations\n",
            self.HEADER: "/// Calls next() {once};\nclass Rows {\n public:\n  virtual ~Rows() = default;\n"
                         "  virtual bool next(int& row) = 0;\n  std::function<int(int)> of;  // of(1);\n};\n",
        }))


class ProjectTest(unittest.TestCase):
    root = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR", pathlib.Path(__file__).parents[2]))

    def test_every_header_has_its_test(self):
        self.assertEqual([], violations(self.root))

    def test_the_check_sees_the_headers(self):
        found = list(headers(self.root))
        self.assertIn("include/satrap/core/error.h", found)
        self.assertIn("src/ps/shard.h", headers(self.root, "src"))


if __name__ == "__main__":
    unittest.main()
