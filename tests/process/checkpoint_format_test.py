"""A checkpoint of format 2, written by an earlier satrap (rows without padding, of every type of weights, dim 6), is
verified, resumed from and resharded; the new checkpoints have format 3 and the same content."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SATRAP = os.environ["SATRAP_BIN"]
OLD = pathlib.Path(__file__).with_name("format_2")
STEP = "step-000000000006"
OLD_DIGEST = "0b684a92351811a9"  # as printed by the earlier satrap's `checkpoint verify`


class Format2(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="satrap-format-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def satrap(self, *args):
        done = subprocess.run([SATRAP, *args], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def digest(self, checkpoint):
        return re.search(r"\b[0-9a-f]{16}\b", self.satrap("checkpoint", "verify", checkpoint)).group()

    def manifest(self, checkpoint):
        return json.loads((checkpoint / "manifest.json").read_text())

    def resume(self, name, checkpoint):
        """The digest after 14 more steps."""
        run = self.dir / name
        shutil.copytree(checkpoint, run / "checkpoints" / STEP)
        self.satrap("train", OLD / "job.yaml", f"run_dir={run}", "--resume", "train.max_steps=20")
        newest = run / "checkpoints" / "step-000000000020"
        self.assertEqual(self.manifest(newest)["format"], 3)
        return self.digest(newest)

    def test_it_is_what_it_was(self):
        self.assertEqual(self.manifest(OLD / STEP)["format"], 2)
        self.assertEqual(self.digest(OLD / STEP), OLD_DIGEST)

    def test_resharded_it_is_of_format_3_and_trains_on_to_the_same_bits(self):
        self.satrap("checkpoint", "reshard", OLD / STEP, "--shards", "3", "--out", self.dir / "resharded")
        new = self.dir / "resharded" / STEP
        self.assertEqual(self.manifest(new)["format"], 3)
        self.assertEqual(self.digest(new), OLD_DIGEST)
        self.assertEqual(self.resume("old", OLD / STEP), self.resume("new", new))

    def test_weights_alone_start_another_job(self):
        self.satrap("train", OLD / "job.yaml", f"run_dir={self.dir / 'warm'}", "train.max_steps=1",
                    f"train.warm_start.from={OLD / STEP}", "train.warm_start.optimizer_state=reset")

    def test_a_later_format_is_refused_by_its_number(self):
        later = self.dir / STEP
        shutil.copytree(OLD / STEP, later)
        manifest = self.manifest(later)
        (later / "manifest.json").write_text(json.dumps(manifest | {"format": 4}))
        done = subprocess.run([SATRAP, "checkpoint", "verify", later], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("format 4, this program reads formats 2 and 3", done.stderr)

    def test_the_changelog_names_the_formats_of_this_version(self):
        version = self.satrap("--version").split()[1]
        changelog = (OLD.parents[2] / "CHANGELOG.md").read_text()
        self.assertIn(f"| {version} | format 3 | formats 2 and 3 |", changelog)


if __name__ == "__main__":
    unittest.main(verbosity=2)
