"""Whole jobs with train.precision: fp16: as accurate as fp32, with the same bits after kill -9, and readable in every
precision."""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from cluster_job import JOB_S, ClusterJob

SATRAP = os.environ["SATRAP_BIN"]
SOURCE = os.environ["SATRAP_SOURCE_DIR"]
DEADLINE_S = 600

# The weight of its second label makes the gradient overflow at the first scale.
JOB = """
data:
  schema:
    delimiter: \\t
    labels: [{column: click}, {name: purchase, column: buy, weight: 3000}]
    numeric: [{name: n}]
    features: [{name: f, type: int}, {name: g, type: int}]
  train: {path: TRAIN}
  eval: {path: TRAIN, max_rows: 1000}
  batch_size: 64
  shuffle_rows: 500
tables: {default: {dim: 8, optimizer: {type: adagrad, lr: 0.01}}}
model: {type: dlrm, bottom: [16, 8], top: [16], engine: graph}
train: {precision: fp16, mode: hybrid, deterministic: true, threads: 1, report_every: 20 steps}
checkpoint: {every: 10 steps, keep: 2}
"""
ROWS = 25600


def rows():
    """`click` depends on f, `buy` on g."""
    draw = random.Random(5)
    for _ in range(ROWS):
        f, g = draw.randrange(20), draw.randrange(300)
        yield f % 2, int(g % 3 == 0), draw.randrange(9), f, g


class Fp16(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="satrap-fp16-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.job = self.dir / "job.yaml"
        train = self.dir / "train.tsv"
        train.write_text("click\tbuy\tn\tf\tg\n" + "".join("\t".join(map(str, row)) + "\n" for row in rows()))
        self.job.write_text(JOB.replace("TRAIN", str(train)))

    def satrap(self, *words):
        done = subprocess.run([SATRAP, *map(str, words)], cwd=SOURCE, capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return done

    def train(self, job, name, *settings):
        """Its summary and its log."""
        done = self.satrap("train", job, f"run_dir={self.dir / name}", *settings)
        return json.loads((self.dir / name / "summary.json").read_text()), done.stderr

    def digest(self, name):
        out = self.satrap("checkpoint", "verify", self.dir / name).stdout
        return re.search(r"\b[0-9a-f]{16}\b", out).group()

    def test_adult_has_the_auc_of_fp32(self):
        auc = {}
        for precision in ("fp32", "fp16"):
            summary, _ = self.train("datasets/adult/quickstart.yaml", precision, "model.engine=graph",
                                    f"train.precision={precision}")
            auc[precision] = summary["eval"]["auc"]
            print(f"{precision}: AUC {auc[precision]:.5f}, {summary['seconds']:.1f} s, {summary.get('loss_scale')}",
                  file=sys.stderr)
            self.assertEqual("loss_scale" in summary, precision == "fp16")
            self.assertEqual(summary["nonfinite_steps"], 0)
        self.assertGreaterEqual(auc["fp32"], 0.92)
        self.assertAlmostEqual(auc["fp16"], auc["fp32"], delta=0.002)
        self.assertNotEqual(auc["fp16"], auc["fp32"])

    def test_steps_that_the_scale_skips_are_counted_apart(self):
        summary, log = self.train(self.job, "run", "train.max_nonfinite_steps=1")
        skipped = summary["loss_scale"]["skipped_steps"]
        self.assertEqual(summary["nonfinite_steps"], 0)
        self.assertEqual(summary["loss_scale"]["factor"], 65536 / 2**skipped)
        self.assertGreater(skipped, 1)
        self.assertEqual(summary["examples"], ROWS - 64 * skipped)
        lines = [line for line in log.splitlines() if "fp16: scale lowered to 2^" in line]
        self.assertGreater(len(lines), 0)
        self.assertLess(len(lines), skipped)
        self.assertIn(f"2^{16 - skipped}:", lines[-1])
        metrics = [json.loads(line) for line in (self.dir / "run" / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([line["loss_scale"] for line in metrics if "loss_scale" in line][-1], summary["loss_scale"])

    def test_bits_after_kill_and_resume(self):
        summary, _ = self.train(self.job, "whole")
        for kill_at in (10, 100):
            with self.subTest(kill_at=kill_at):
                name = f"killed-{kill_at}"
                process = subprocess.Popen([SATRAP, "train", self.job, f"run_dir={self.dir / name}"], cwd=SOURCE,
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                deadline = time.monotonic() + DEADLINE_S
                while not any(int(path.name.split("-")[1]) >= kill_at
                              for path in (self.dir / name / "checkpoints").glob("step-*")):
                    self.assertLess(time.monotonic(), deadline)
                    time.sleep(0.001)
                process.send_signal(signal.SIGKILL)
                process.wait()
                resumed, _ = self.train(self.job, name, "--resume")
                self.assertTrue(resumed["resumed"])
                self.assertEqual(self.digest(name), self.digest("whole"))
                self.assertEqual(resumed["loss_scale"], summary["loss_scale"])

    def test_ranks_have_one_scale(self):
        skipped = []
        for name in ("first", "again"):
            job = ClusterJob(self.dir / name, self.job, shards=1, ranks=2, settings=["embedding.store=ps"])
            self.addCleanup(job.kill_all)
            self.assertEqual(job.start().end(JOB_S), 0, job.output())
            summary = json.loads((job.run_dir / "summary.json").read_text())
            self.assertEqual((summary["ranks"], summary["nonfinite_steps"]), (2, 0))
            scale = summary["loss_scale"]
            self.assertEqual(scale["factor"], 65536 / 2**scale["skipped_steps"])
            self.assertEqual(summary["examples"], ROWS - 64 * scale["skipped_steps"])
            skipped.append((scale["skipped_steps"], self.digest(f"{name}/run")))
        self.assertGreater(skipped[0][0], 1)
        self.assertEqual(skipped[0], skipped[1])

    def test_a_run_may_change_its_precision(self):
        self.train(self.job, "run", "train.max_steps=40")
        summary, _ = self.train(self.job, "run", "--resume", "train.max_steps=60", "train.precision=fp32")
        self.assertNotIn("loss_scale", summary)
        summary, _ = self.train(self.job, "run", "--resume", "train.max_steps=80", "train.precision=fp16")
        self.assertGreater(summary["loss_scale"]["skipped_steps"], 0)  # it began anew
        summary, log = self.train(self.job, "warm", "train.max_steps=40",
                                  f"train.warm_start.from={self.dir / 'run'}")
        self.assertGreater(summary["loss_scale"]["skipped_steps"], 0)
        self.assertIn("the dense network", log)

    def test_what_was_trained_on_a_gpu_is_used_without_one(self):
        self.train(self.job, "run")
        aucs = set()
        for precision in ("fp16", "tf32", "fp32"):
            out = self.satrap("eval", self.job, "--checkpoint", self.dir / "run", "model.engine=auto", "device=cuda",
                              f"train.precision={precision}", "--accept-changed-config").stdout
            aucs.add(re.search(r"auc +(0\.\d+)", out).group(1))
        self.assertEqual(len(aucs), 1)
        self.satrap("export", self.job, "--checkpoint", self.dir / "run", "--out", self.dir / "export")


if __name__ == "__main__":
    unittest.main(verbosity=2)
