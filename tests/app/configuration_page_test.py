"""docs/configuration.md is what `satrap config explain` prints, as tables. SATRAP_RECORD=1 writes the page."""
import os
import pathlib
import re
import unittest

from cli import CliTest

PAGE = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR") or ".") / "docs/configuration.md"

MANY = 15  # keys of a table of their own

HEAD = """\
# Configuration

This page lists every key of a configuration. `satrap config explain KEY` prints the same text in a terminal, and
`satrap config dump CONFIG` prints your configuration with every default. To change a value for one run:

```sh
satrap config check clicks.yaml train.mode=sync 'model.hidden=[64, 32]'
```

- An unknown key, a wrong type and an impossible combination are errors before anything starts.
- Any value can be set on the command line as `key.path=value`. `~key.path` resets the key to its default.
- A whole section can be replaced: `model=deepfm`.
- A plain value may stand for a section that has one main field: `optimizer: adam`, `train: day_1.gz`,
  `label: clicked`, `features: [user, item]`.
- Relative paths are relative to the configuration file (or to its key `folder`). On the command line they are relative
  to the working directory.
- In this page `*` stands for a name that you choose, or for each element of a list.

This page is generated: `SATRAP_RECORD=1 python3 tests/app/configuration_page_test.py` writes it anew.
"""


def entries(explained):
    """(key, facts, meaning) of each key, from the output of `satrap config explain`."""
    found = re.findall(r"^(\S+) \((.*)\)\n {4}(.*)$", explained, re.M)
    if len(found) * 2 != len(explained.splitlines()):
        raise ValueError("`satrap config explain` prints something else than two lines for each key")
    return found


def cell(text):
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "\\<")


def section_of(key, keys):
    """The first name of a key, or the first two where many keys share these."""
    names = key.split(".")
    two = ".".join(names[:2])
    return two if sum(other.startswith(two + ".") for other in keys) >= MANY else names[0]


def render(explained):
    """The page: a table for each section of the file, and one for the keys that are in none."""
    rows, tables = entries(explained), {}
    keys = [key for key, _, _ in rows]
    for row in rows:
        tables.setdefault(section_of(row[0], keys), []).append(row)
    single = [name for name in tables if len(tables[name]) == 1]
    parts = {"The job": [row for name in single for row in tables[name]]}
    parts.update({name: tables[name] for name in tables if name not in single})
    page = HEAD
    for title, found in parts.items():
        page += f"\n## {title}\n\n| key | type, default and rule | meaning |\n|---|---|---|\n"
        page += "".join(f"| `{key}` | {cell(facts)} | {cell(meaning)} |\n" for key, facts, meaning in found)
    return page


class ConfigurationPage(CliTest):
    def setUp(self):
        super().setUp()
        self.explained = self.succeed("config", "explain").stdout

    def test_the_page_is_what_the_program_explains(self):
        page = render(self.explained)
        if os.environ.get("SATRAP_RECORD"):
            PAGE.write_text(page)
        self.assertEqual(PAGE.read_text(), page, "the page is stale: SATRAP_RECORD=1 writes it anew")

    def test_another_text_and_a_key_that_is_gone_make_another_page(self):
        page = render(self.explained)
        self.assertNotEqual(page, render(self.explained.replace("Passes over", "Times through")))
        self.assertIn("| `train.epochs` |", page)
        less = re.sub(r"^train\.epochs .*\n.*\n", "", self.explained, flags=re.M)
        self.assertNotIn("| `train.epochs` |", render(less))

    def test_every_key_has_a_row(self):
        keys = re.findall(r"^(\S+) \(", self.explained, re.M)
        self.assertEqual(sorted(keys), sorted(re.findall(r"^\| `(\S+)` \|", render(self.explained), re.M)))

    def test_what_cannot_be_read_is_refused(self):
        with self.assertRaisesRegex(ValueError, "prints something else"):
            render(self.explained + "one more line\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
