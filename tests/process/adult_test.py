"""Both Adult configurations reach the accuracy that they promise, with the real program and data."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

SATRAP = os.environ["SATRAP_BIN"]
SOURCE = os.environ["SATRAP_SOURCE_DIR"]


class Adult(unittest.TestCase):
    def train(self, config):
        with tempfile.TemporaryDirectory() as scratch:
            done = subprocess.run(
                [SATRAP, "train", f"datasets/adult/{config}", f"run_dir={scratch}/run"],
                cwd=SOURCE, capture_output=True, text=True, timeout=600)
            self.assertEqual(done.returncode, 0, done.stderr[-3000:])
            with open(f"{scratch}/run/summary.json") as f:
                summary = json.load(f)
        self.assertEqual(summary["eval"]["examples"], 16281)
        self.assertEqual(summary["bad_rows"], 0)
        print(f"{config}: test AUC {summary['eval']['auc']:.5f} after {summary['seconds']:.1f} s of "
              f"training, {summary['examples']} examples", file=sys.stderr)
        return summary["eval"]

    def test_quickstart_reaches_the_auc_of_a_small_deepfm(self):
        metrics = self.train("quickstart.yaml")
        self.assertGreaterEqual(metrics["auc"], 0.922)
        self.assertAlmostEqual(metrics["calibration"], 1.0, delta=0.05)

    def test_persia_configuration_reaches_persias_auc(self):
        self.assertGreaterEqual(self.train("persia.yaml")["auc"], 0.8915)


if __name__ == "__main__":
    unittest.main(verbosity=2)
