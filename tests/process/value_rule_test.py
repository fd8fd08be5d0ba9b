"""A run of an earlier satrap (fe20de0d), by rule 1 of data.schema.value_rule, whose ids are truth values and whose numbers
were rounded to 32 bits: it is scored, exported and continued by its own rule, with the bits of that satrap."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SATRAP = os.environ["SATRAP_BIN"]
SOURCE = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR") or ".").resolve()
OLD = pathlib.Path(__file__).with_name("rule_1")
OLD_DIGEST = "73faa3bca6bb16c1"  # of step 80, as its `checkpoint verify` printed it


class Rule1(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="satrap-rule-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.run_dir = self.dir / "run"
        shutil.copytree(OLD, self.run_dir)

    def satrap(self, *args, status=0):
        done = subprocess.run([SATRAP, *map(str, args)], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr if status else done.stdout

    def test_it_scores_as_before(self):
        expected = (OLD / "predicted.csv").read_text()
        self.assertEqual(self.satrap("predict", "--checkpoint", self.run_dir, "--data", OLD / "rows.csv"), expected)

    def test_it_goes_on_with_the_same_bits(self):
        self.satrap("train", self.run_dir / "config.yaml", f"data.train={OLD / 'rows.csv'}", f"run_dir={self.run_dir}",
                    "train.epochs=8", "--resume")
        self.assertIn(OLD_DIGEST, self.satrap("checkpoint", "verify", self.run_dir))

    def test_another_rule_is_refused(self):
        error = self.satrap("train", self.run_dir / "config.yaml", f"data.train={OLD / 'rows.csv'}",
                            f"run_dir={self.run_dir}", "data.schema.value_rule=2", "--resume", status=2)
        self.assertIn("data.schema.value_rule: 1 -> 2", error)

    def test_its_export_scores_as_before(self):
        sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "tests/support")]
        import python_onnx
        if python_onnx.WHY_NOT:
            self.skipTest(python_onnx.WHY_NOT)
        import csv

        import satrap
        self.satrap("export", "--checkpoint", self.run_dir, "--out", self.dir / "model")
        with open(OLD / "rows.csv") as file:
            scores = satrap.Scorer(self.dir / "model").score(list(csv.DictReader(file)))
        expected = (OLD / "predicted.csv").read_text().split()[1:]
        self.assertLess(max(abs(float(a) - b) for a, b in zip(expected, scores)), 1e-6)


if __name__ == "__main__":
    unittest.main(verbosity=2)
