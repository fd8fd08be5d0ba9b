"""The ranks of a node share a cache, each for a part of the keys: whole jobs end with the bits of the same ranks without
one, also killed and resumed, and any number of ranks uses their checkpoints."""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import unittest

from cache_test import BUSY, BYTES_PER_ROW, CONFIG, mode_of, one_if_sanitized, satrap
from cluster_job import JOB_S, SANITIZED, SATRAP, SLOWER, ClusterJob

ROWS = 8000  # of the job, about
LOOKAHEAD = ["embedding.cache.eviction=lookahead"]
FILES = """
device: cpu
data:
  format: csv
  train: {path: TRAIN}
  schema: {label: y, features: [a, b]}
  batch_size: 64
  on_bad_row: stop
tables: {default: {dim: 8}}
model: {type: ffnn, top: [8]}
train: {mode: sync, deterministic: true, threads: 1, report_every: 10 steps}
checkpoint: {every: never}
cluster: {timeout: 60s, heartbeat: 2s}
"""


def cache(percent):
    return f"embedding.cache.memory={percent * ROWS * BYTES_PER_ROW // 100}B"


class PartitionedCache(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="satrap-partitioned-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)
        cls.config = cls.scratch / "job.yaml"
        cls.config.write_text(CONFIG)
        cls.seed = int(os.environ.get("SATRAP_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
        print(f"SATRAP_TEST_SEED={cls.seed}", file=sys.stderr)
        cls.count = 0

    @classmethod
    def job(cls, *settings, ranks, shards=2, **kwargs):
        cls.count += 1
        return ClusterJob(cls.scratch / f"job-{cls.count}", cls.config, shards=shards, ranks=ranks,
                          settings=["embedding.store=ps", *settings], **kwargs)

    def finish(self, job, *flags):
        """Digest of the job, started now."""
        self.assertEqual(job.start(*flags).end(JOB_S), 0, job.describe())
        return job.digest(JOB_S)

    def digest_without(self, *settings, ranks, flags=()):
        with self.job(*settings, ranks=ranks, shards=1) as job:
            return self.finish(job, *flags)

    @staticmethod
    def evaluations(job):
        lines = map(json.loads, (job.run_dir / "metrics.jsonl").read_text().splitlines())
        return [line["eval"] for line in lines if "eval" in line]

    def test_the_bits_are_those_of_the_ranks_without_a_cache(self):
        for ranks, staleness, percent, more in one_if_sanitized(
                [(4, 4, 3, ["train.threads=3"]), (2, "sync", 5, []), (3, 4, 10, LOOKAHEAD), (2, "sync", 20, LOOKAHEAD),
                 (3, 1, 100, ["embedding.cache.eviction=lru"])]):
            with self.subTest(ranks=ranks, staleness=staleness, percent=percent):
                mode = mode_of(staleness)
                with self.job(*mode, *more, cache(percent), ranks=ranks) as job:
                    self.assertEqual(self.finish(job), self.digest_without(*mode, ranks=ranks))
                    counts = json.loads((job.run_dir / "summary.json").read_text())["cache"]
                    self.assertGreater(counts["hits"], 0)

    @unittest.skipIf(SANITIZED, "the same code as with the ranks of one node")
    def test_ranks_of_several_nodes_share_a_cache_that_they_are_told_to_have(self):
        """A node for each rank, as its environment says."""
        programs = self.scratch / "nodes"
        programs.mkdir()
        for name in ("satrap", "satrap-ps"):
            alone = "LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 GROUP_RANK=$RANK" if name == "satrap" else ""
            (programs / name).write_text(f'#!/bin/sh\n{alone} exec "{SATRAP.parent / name}" "$@"\n')
            (programs / name).chmod(0o755)
        mode = mode_of("sync")
        expected = self.digest_without(*mode, ranks=2)
        for memory, has_cache in ((cache(5), True), ("embedding.cache.memory=auto", False)):
            with self.subTest(memory=memory), self.job(*mode, memory, ranks=2, bin_dir=programs) as job:
                self.assertEqual(self.finish(job), expected)
                self.assertEqual("cache" in json.loads((job.run_dir / "summary.json").read_text()), has_cache)

    def test_the_bits_are_those_of_every_run_without_deterministic(self):
        mode = ["train.deterministic=false", "train.mode=hybrid", "train.staleness=4",
                "train.staleness_schedule=constant"]
        with self.job(*mode, cache(5), ranks=2) as one, self.job(*mode, cache(50), "train.threads=2", ranks=2) as other:
            self.assertEqual(self.finish(one), self.finish(other))
            staleness = json.loads((one.run_dir / "summary.json").read_text())["staleness"]
            self.assertEqual(staleness["max"], 1)
            self.assertIn("train.staleness: 4 counts as 1", one.output())

    def test_killed_shards_ranks_and_launchers(self):
        mode = [*mode_of(4), BUSY, "checkpoint.every=3 steps"]
        expected = self.digest_without(*mode, ranks=2)
        for kind in ("rank", "shard", "launcher"):
            rng = random.Random(f"{self.seed}/{kind}")
            with self.subTest(kind=kind), self.job(*mode, cache(5), ranks=2) as job:
                job.start("--resume")
                job.wait_until(lambda: job.output().count("examples/s") > 2 or not job.is_running(), JOB_S, "steps")
                job.wait_end(rng.uniform(0.0, 0.4) * SLOWER)
                if kind == "launcher":
                    job.kill_launcher()
                    job.expect_nothing_runs()
                    job.start("--resume")
                elif victims := job.members(kind):
                    victims[-1].send(signal.SIGKILL)
                self.assertEqual(job.end(JOB_S), 0, job.describe())
                self.assertEqual(job.digest(JOB_S), expected, f"seed {self.seed}\n{job.output()[-3000:]}")

    def test_data_that_one_rank_cannot_read_end_the_job_with_its_error(self):
        rng = random.Random(self.seed)
        rows = [f"{i % 2},{rng.randrange(300)},{rng.randrange(3000)}" for i in range(6000)]
        rows[4000] = "neither,1,2"
        train = self.scratch / "train.csv"
        train.write_text("\n".join(["y,a,b", *rows]) + "\n")
        config = self.scratch / "files.yaml"
        config.write_text(FILES.replace("TRAIN", str(train)))
        for more in (LOOKAHEAD, []):
            self.count += 1
            with self.subTest(more=more), \
                    ClusterJob(self.scratch / f"files-{self.count}", config, shards=1, ranks=3,
                               settings=["embedding.store=ps", "embedding.cache.memory=100KiB", *more]) as job:
                begin = time.monotonic()
                self.assertNotEqual(job.start().end(JOB_S), 0, job.describe())
                self.assertLess(time.monotonic() - begin, 30 * SLOWER, job.describe())  # long before the timeout
                self.assertIn("train.csv:4002", job.output())
                self.assertNotIn("timed out", job.output())

    def test_sigterm_ends_it_with_a_checkpoint_from_which_any_number_of_ranks_goes_on(self):
        mode = [*mode_of(4), "train.epochs=1000000"]
        with self.job(*mode, cache(5), ranks=2) as job:
            job.start()
            job.wait_until(lambda: job.output().count("examples/s") > 1, JOB_S, "steps")
            os.kill(job.pid, signal.SIGTERM)
            self.assertEqual(job.end(JOB_S), 143, job.describe())
            step = int(re.search(r"step-0*(\d+)", job.digest(JOB_S)).group(1))
            until = [*mode, f"train.max_steps={step + 12}"]
            from_it = ["--resume-from", str(job.run_dir)]
            expected = self.digest_without(*until, ranks=2)
            with self.job(*until, cache(10), ranks=2) as again:
                self.assertEqual(self.finish(again, *from_it), expected)
            without = self.digest_without(*until, ranks=3, flags=from_it)
            with self.job(*until, cache(5), ranks=3) as three:
                self.assertEqual(self.finish(three, *from_it), without)
            alone = self.scratch / "alone"
            satrap("train", *from_it, self.config, f"run_dir={alone}", *until)
            one = self.digest_without(*until, ranks=1, flags=from_it)
            text = satrap("checkpoint", "verify", sorted((alone / "checkpoints").glob("step-*"))[-1]).stdout
            self.assertIn(one.split()[1], text)

    def test_evaluations_are_those_of_the_checkpoint_and_of_no_cache(self):
        # Three rows: some ranks have none to evaluate.
        for rows in one_if_sanitized((3, 500)):
            settings = ["train.eval_every=10 steps", f"data.synthetic.eval_rows={rows}", *mode_of(4)]
            with self.subTest(rows=rows), self.job(*settings, cache(5), ranks=3) as job, \
                    self.job(*settings, ranks=3, shards=1) as without:
                self.finish(job)
                self.finish(without)
                self.assertGreater(len(self.evaluations(job)), 3)
                self.assertEqual(self.evaluations(job), self.evaluations(without))
                text = satrap("eval", self.config, "--checkpoint", job.run_dir, f"run_dir={job.run_dir}",
                              *settings).stdout
                auc = self.evaluations(job)[-1]["auc"]
                self.assertIn(f"auc          {auc:.6f}".rstrip("0") if auc is not None else "auc", text)

    def test_early_stopping_and_steps_that_are_not_finite_are_as_without(self):
        early = ["train.epochs=30", "train.eval_every=3 steps", "train.early_stopping.metric=logloss",
                 "train.early_stopping.patience=1", "dense_optimizer.lr=0.1"]
        wild = ["dense_optimizer.lr=1e18", "train.max_nonfinite_steps=1000", "dense_optimizer.clip_norm=0",
                "checkpoint.every=3 steps", "train.max_steps=12"]
        for settings in one_if_sanitized((early, wild)):
            with self.subTest(settings=settings), self.job(*mode_of(4), *settings, cache(3), ranks=2) as job:
                self.assertEqual(self.finish(job), self.digest_without(*mode_of(4), *settings, ranks=2))
                summary = json.loads((job.run_dir / "summary.json").read_text())
                if settings is early:
                    self.assertTrue(summary["early_stopping"]["stopped"])
                else:
                    self.assertGreater(summary["nonfinite_steps"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
