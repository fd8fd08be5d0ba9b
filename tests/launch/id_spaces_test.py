"""bench/id_spaces.py from end to end, with a program that stands in for satrap; and its report."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "bench" / "id_spaces.py"
SATRAP = """#!/usr/bin/env python3
import json, pathlib, sys
settings = dict(word.split("=", 1) for word in sys.argv[4:])
cardinalities = json.loads(settings["data.synthetic.cardinalities"])
ids = sum(cardinalities)
run = pathlib.Path(settings["run_dir"])
run.mkdir(parents=True)
full = 1000 + (200 if ids > 1e12 and "leak=1" in sys.argv else 0)
(run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\\n" for line in [
    {"examples": 10, "rows": 50, "resident_bytes": 500}, {"examples": 20, "rows": 100, "resident_bytes": 1000},
    {"examples": 20, "eval": {}}, {"examples": 30, "rows": 99, "resident_bytes": full}]))
(run / "summary.json").write_text(json.dumps({"examples_per_second": 1e4 - 100 * len(str(ids)), "rows": 99,
                                              "table_bytes": 5, "resident_bytes": full}))
"""


class IdSpaces(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        program = self.dir / "build" / "bin" / "satrap"
        program.parent.mkdir(parents=True)
        program.write_text(SATRAP)
        program.chmod(0o755)

    def run_script(self, *args, status=0):
        done = subprocess.run([sys.executable, SCRIPT, "--out", self.dir / "out", "--build", self.dir / "build", *args],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def test_every_space_is_trained_on_in_turn_and_drawn(self):
        self.run_script("--rounds", "2", "--spaces", "1e9,1e13", "--check")
        lines = (self.dir / "out" / "results.jsonl").read_text().splitlines()
        self.assertEqual([json.loads(line)["space"] for line in lines], ["1e9", "1e13", "1e13", "1e9"])
        table = (self.dir / "out" / "table.md").read_text()
        self.assertIn("| 1e13 | 1.6e+14 | 2 | 8,600 (8,600 - 8,600) | 0.956 | 99 |", table)
        xml.etree.ElementTree.parse(self.dir / "out" / "plot.svg")

    def test_memory_that_grows_when_tables_are_full_is_a_complaint(self):
        done = self.run_script("--rounds", "1", "--spaces", "1e9,1e13", "--check", "leak=1", status=1)
        self.assertIn("error: 1e13 ids: resident memory grows", done.stderr)
        self.assertNotIn("1e9 ids: resident", done.stderr)

    def test_throughput_that_depends_on_the_space_is_a_complaint(self):
        self.run_script("--rounds", "1", "--spaces", "1e9")
        with open(self.dir / "out" / "results.jsonl", "a") as file:
            slow = json.loads((self.dir / "out" / "results.jsonl").read_text()) | {"space": "1e11", "examples_per_second": 8000}
            file.write(json.dumps(slow) + "\n")
        self.assertIn("error: 1e11 ids: -11.1%", self.run_script("--plot-only", "--check", status=1).stderr)


if __name__ == "__main__":
    unittest.main()
