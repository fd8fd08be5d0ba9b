"""What the checkers of this folder are tested with: trees small enough to see what must be reported."""
import pathlib
import tempfile
import unittest


class TreeTest(unittest.TestCase):
    """A subclass says which `violations(root)` it tests, and which files every tree has."""

    violations = None
    ALWAYS = {}

    def check(self, files):
        """What is reported about a tree of these files: a text by name."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**self.ALWAYS, **files}.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return type(self).violations(folder)

    def assert_reported(self, files, place, reason):
        """One complaint, about this place."""
        found = self.check(files)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(f"{place}: "), found)
        self.assertIn(reason, found[0])
