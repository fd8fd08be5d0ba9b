"""Deterministic runs give the same bits again, with any number of threads and after kill -9.

Runs the real program on generated data: sync and hybrid(4), 1 and 2 threads; then kills it at ten random moments per
mode, resumes each time, and compares the content of the last checkpoint."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SATRAP = os.environ["SATRAP_BIN"]
SANITIZED = bool(os.environ.get("SATRAP_SANITIZE"))
KILLS = 3 if SANITIZED else 10
DEADLINE_S = 600

CONFIG = """
seed: 7
device: cpu
data:
  format: synthetic
  batch_size: 256
  shuffle_rows: 2000
  synthetic: {{rows: {rows}, eval_rows: 2000, cardinalities: [100, 1000, 20000, 50], min_ids: [1, 0, 1, 1],
              max_ids: [1, 4, 2, 1], num_numeric: 4}}
tables: {{default: {{dim: 8, optimizer: {{type: adam, lr: 0.01}}}}}}
model: {{type: dlrm, bottom: [32], top: [64]}}
train: {{deterministic: true, report_every: 20 steps}}
checkpoint: {{every: 5 steps, keep: 2}}
"""


class Crash(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="satrap-crash-")
        cls.config = os.path.join(cls.scratch.name, "job.yaml")
        with open(cls.config, "w") as f:
            f.write(CONFIG.format(rows=20_000 if SANITIZED else 100_000))
        cls.seed = int(os.environ.get("SATRAP_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
        print(f"SATRAP_TEST_SEED={cls.seed}", file=sys.stderr)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def command(self, run_dir, *settings):
        return [SATRAP, "train", self.config, f"run_dir={run_dir}", *settings]

    def digest(self, run_dir):
        """Content of the newest checkpoint, as `checkpoint verify` prints it."""
        checkpoints = sorted(os.listdir(os.path.join(run_dir, "checkpoints")))
        out = subprocess.run(
            [SATRAP, "checkpoint", "verify", os.path.join(run_dir, "checkpoints", checkpoints[-1])],
            check=True, capture_output=True, text=True, timeout=DEADLINE_S).stdout
        self.assertRegex(out, r"[0-9a-f]{16}")
        import re
        return re.search(r"\b[0-9a-f]{16}\b", out).group()

    def train(self, name, *settings):
        run_dir = os.path.join(self.scratch.name, name)
        done = subprocess.run(self.command(run_dir, *settings), capture_output=True, text=True,
                              timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return self.digest(run_dir)

    def train_with_kills(self, name, *settings):
        """Kills the run KILLS times at random moments, resuming each time."""
        rng = random.Random(f"{self.seed}/{name}")
        run_dir = os.path.join(self.scratch.name, name)
        began = time.monotonic()
        subprocess.run(self.command(run_dir + "-timing", *settings), check=True,
                       capture_output=True, timeout=DEADLINE_S)
        whole = time.monotonic() - began
        kills = 0
        while kills < KILLS:
            process = subprocess.Popen(self.command(run_dir, "--resume", *settings),
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                # Anywhere in a run's life, even before the first step; later resumes are shorter.
                process.wait(timeout=rng.uniform(0.0, whole * 0.4))
                break  # it ended before the kill: nothing is left to kill
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait(timeout=DEADLINE_S)
                kills += 1
        done = subprocess.run(self.command(run_dir, "--resume", *settings), capture_output=True,
                              text=True, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return self.digest(run_dir), kills

    def check_mode(self, *mode):
        label = "-".join(setting.replace("=", "_") for setting in mode)
        expected = self.train(f"{label}-first", *mode, "train.threads=1")
        self.assertEqual(self.train(f"{label}-again", *mode, "train.threads=1"), expected)
        self.assertEqual(self.train(f"{label}-two-threads", *mode, "train.threads=2"), expected)
        total = 0
        for attempt in range(20):
            digest, kills = self.train_with_kills(f"{label}-killed-{attempt}", *mode)
            self.assertEqual(digest, expected, f"after {kills} kills, seed {self.seed}")
            total += kills
            if total >= KILLS:
                break
        self.assertGreaterEqual(total, KILLS)
        print(f"{label}: {expected}, the same after {total} kills", file=sys.stderr)

    def test_sync_gives_the_same_bits_again_on_two_threads_and_after_kills(self):
        self.check_mode("train.mode=sync")

    def test_hybrid_gives_the_same_bits_again_on_two_threads_and_after_kills(self):
        self.check_mode("train.mode=hybrid", "train.staleness=4", "train.staleness_factor=0.5")

    def test_another_seed_gives_other_bits(self):
        first = self.train("seed-7", "train.max_steps=10")
        self.assertNotEqual(self.train("seed-8", "train.max_steps=10", "seed=8"), first)


if __name__ == "__main__":
    unittest.main(verbosity=2)
