"""`satrap init && satrap train` with no edit on samples of data that may be next to the checkout in ../shared/data, but
cannot be part of it because of their terms. Missing ones are skipped by name. What is expected is the AUC of LightGBM's
defaults on the same rows, less 0.005: bench/own_data.py measures both."""
import json
import pathlib
import unittest

from cli import SANITIZED, CliTest

DATA = pathlib.Path(__file__).resolve().parents[2] / "../shared/data"


@unittest.skipIf(SANITIZED, "takes minutes, and runs the same code as init_test.py")
class Samples(CliTest):
    def check(self, path, auc_of_lightgbm, *options):
        if not (DATA / path).exists():
            self.skipTest(f"there is no ../shared/data/{path}")
        self.succeed("init", (DATA / path).resolve(), "--out", "job.yaml", *options, cwd=self.dir)
        self.succeed("train", "job.yaml", cwd=self.dir)
        summary = json.loads((self.dir / "runs/job/summary.json").read_text())
        self.assertEqual(summary["bad_rows"], 0)
        self.assertGreater(summary["early_stopping"]["eval"]["auc"], auc_of_lightgbm - 0.005)

    def test_avazu(self):
        self.check("avazu/first10k.csv", 0.7134)

    def test_criteo(self):
        self.check("criteo_kaggle/first10k.tsv.gz", 0.7198)

    def test_frappe(self):
        self.check("frappe/train.csv", 0.8035, "--label", "cnt")

    def test_ijcai(self):
        self.check("ijcai18/train.tiny.csv", 0.6493)

    def test_movielens(self):
        self.check("movielens_small/ratings.csv", 0.7232)

    def test_talkingdata(self):
        self.check("talkingdata/first50k.csv", 0.9380)


if __name__ == "__main__":
    unittest.main()
