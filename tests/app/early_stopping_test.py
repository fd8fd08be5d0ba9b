"""train.early_stopping from outside: what it refuses, what it shows, and kill -9 in the middle."""
import json
import signal
import subprocess
import time
import unittest

from cli import SATRAP, TIMEOUT_S, CliTest

OVERFITS = {"threads: 1": "threads: 1, epochs: 60, eval_every: 4 steps, "
                          "early_stopping: {metric: logloss, patience: 3}"}


class EarlyStopping(CliTest):
    def overfitting_job(self):
        """Overfits 400 rows; the other 400 show it."""
        job = self.job(rows=800, **OVERFITS)
        rows = (self.dir / "train.tsv").read_text().splitlines(keepends=True)
        self.write("train.tsv", "".join(rows[:400]))
        self.write("eval.tsv", "".join(rows[400:]))
        return job

    def early_stopping_of(self, run):
        return json.loads((self.dir / run / "summary.json").read_text())["early_stopping"]

    def test_a_run_that_overfits(self):
        job = self.overfitting_job()
        done = self.succeed("train", job)
        early = self.early_stopping_of("run")
        self.assertTrue(early["stopped"])
        self.assertRegex(done.stderr, rf"early stopping at step \d+: logloss .* step {early['best_step']}")
        self.assertIn(f"best eval   logloss {early['best_value']:.5f} at step {early['best_step']}; "
                      "stopped early", done.stdout)
        listed = self.succeed("checkpoint", "ls", self.dir / "run").stdout
        marked = [line for line in listed.splitlines() if line.endswith("  best logloss")]
        self.assertEqual([int(line.split()[0]) for line in marked], [early["best_step"]])
        again = self.succeed("train", job, "--resume")
        self.assertEqual(self.early_stopping_of("run"), early)
        self.assert_words(again.stdout, "stopped early")

    def test_a_run_that_is_killed_decides_as_one_that_is_not(self):
        job = self.overfitting_job()
        self.succeed("train", job, f"run_dir={self.dir / 'whole'}")
        evaluations = (self.dir / "run" / "metrics.jsonl")
        killed = 0
        for kills in range(1, 4):
            process = subprocess.Popen([SATRAP, "train", job, "--resume"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            deadline = time.monotonic() + TIMEOUT_S
            while process.poll() is None and time.monotonic() < deadline:
                if evaluations.exists() and evaluations.read_text().count('"eval"') >= 2 * kills:
                    process.send_signal(signal.SIGKILL)
                    break
                time.sleep(0.01)
            killed += process.wait(timeout=TIMEOUT_S) == -signal.SIGKILL
        self.assertGreater(killed, 0)
        self.succeed("train", job, "--resume")
        self.assertEqual(self.early_stopping_of("run"), self.early_stopping_of("whole"))

    def test_without_evaluation_nothing_needs_one(self):
        done = self.succeed("train", self.overfitting_job(), "data.eval=none", "train.early_stopping={metric: auc, patience: 2}",
                            "train.eval_every=2 steps", f"run_dir={self.dir / 'none'}")
        self.assertNotIn("\neval  ", done.stdout)
        self.assertRegex(done.stderr.replace("\r", "\n"), "100%")

    def test_what_it_needs(self):
        job = self.job(rows=100)
        for settings, words in [
                (["train.early_stopping.patience=2"], ["eval_every"]),
                (["train.early_stopping.patience=2", "data.eval.path=[]"], ["evaluation data"]),
                (["train.early_stopping.patience=-1"], ["patience"]),
                (["train.early_stopping.min_delta=0.1"], ["min_delta", "patience"]),
                (["train.early_stopping={metric: gauc, patience: 2}", "train.eval_every=2 steps"],
                 ["data.group_by"]),
                (["train.early_stopping.metric=loss"], ["auc", "logloss", "ne"]),
                (["train.early_stopping.patience=2", "train.mode=async", "embedding.store=ps",
                  "train.deterministic=false", "checkpoint.every=never"], ["patience", "async"])]:
            with self.subTest(settings=settings):
                error = self.fail_with(2, "config", "check", job, *settings)
                self.assert_words(error, "train.early_stopping", *words)


if __name__ == "__main__":
    unittest.main(verbosity=2)
