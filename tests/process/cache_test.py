"""A cache of rows changes nothing but speed: whole jobs, over tables and over shards, killed, stopped and resumed, end
with the bits of a job without one."""
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

from cluster_job import JOB_S, SANITIZED, SATRAP, SLOWER, ClusterJob

KILLS = 2 if SANITIZED else 4
BUSY = "data.synthetic.rows=32000"  # for those that are killed

# Three row groups: those of C2 and C3 have another optimizer or type of weights.
CONFIG = """
seed: 7
device: cpu
data:
  format: synthetic
  batch_size: 128
  shuffle_rows: 2000
  synthetic: {rows: 6400, eval_rows: 500, cardinalities: [100, 1000, 20000, 50], min_ids: [1, 0, 1, 1],
              max_ids: [1, 4, 2, 1], num_numeric: 4}
tables:
  default: {dim: 8, optimizer: {type: adam, lr: 0.01}}
  C2: {dim: 8, optimizer: {type: adagrad, lr: 0.02}}
  C3: {dim: 8, weights: bf16, optimizer: {type: adagrad, lr: 0.02}}
model: {type: dlrm, bottom: [16], top: [16]}
train: {mode: sync, deterministic: true, threads: 1, report_every: 10 steps}
checkpoint: {every: 9 steps, keep: 2}
cluster: {timeout: TIMEOUT, heartbeat: 2s}
""".replace("TIMEOUT", f"{10 * SLOWER}s")
TOO_LARGE = "can be numbered"  # rows of a cache
ASYNC_NAMES = ["embedding.cache.memory"]  # what a refusal of async is about
BYTES_PER_ROW = 200  # about, with what a cache keeps beside it and its window


def mode_of(staleness):
    """`sync`, or the τ of deterministic hybrid."""
    if staleness == "sync":
        return ["train.mode=sync"]
    return ["train.mode=hybrid", f"train.staleness={staleness}", "train.staleness_schedule=constant"]


def one_if_sanitized(cases):
    """With sanitizers the first case alone: their C++ tests (embedding, pipeline) run the code of all."""
    return cases[:1] if SANITIZED else cases


def satrap(*args, status=0, timeout=JOB_S, program=SATRAP):
    done = subprocess.run([program, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=timeout)
    if done.returncode != status:
        raise AssertionError(f"{args} ended with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}")
    return done


class Cache(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="satrap-cache-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)
        cls.config = cls.scratch / "job.yaml"
        cls.config.write_text(CONFIG)
        cls.seed = int(os.environ.get("SATRAP_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
        print(f"SATRAP_TEST_SEED={cls.seed}", file=sys.stderr)
        cls.references = {}
        cls.count = 0

    # Runs

    @classmethod
    def folder(cls, name):
        cls.count += 1
        return cls.scratch / f"{name}-{cls.count}"

    def newest(self, run):
        return sorted((pathlib.Path(run) / "checkpoints").glob("step-*"))[-1]

    def digest(self, run):
        newest = self.newest(run)
        text = satrap("checkpoint", "verify", newest).stdout
        return f"{newest.name} {re.search(r'digest ([0-9a-f]{16})', text).group(1)}"

    def train(self, *settings, flags=(), run=None, status=0):
        run = run or self.folder("run")
        self.log = satrap("train", *flags, self.config, f"run_dir={run}", *settings, status=status).stderr
        return run

    def reference(self, *settings):
        """Digest of the job without a cache, over tables."""
        if settings not in self.references:
            self.references[settings] = self.digest(self.train(*settings))
        return self.references[settings]

    def rows(self):
        if "rows" not in self.references:
            summary = json.loads((self.train() / "summary.json").read_text())
            type(self).references["rows"] = summary["rows"]
        return self.references["rows"]

    def cache(self, percent):
        return f"embedding.cache.memory={percent * self.rows() * BYTES_PER_ROW // 100}B"

    def job(self, *settings, shards, ranks=1, **kwargs):
        return ClusterJob(self.folder("job"), self.config, shards=shards, ranks=ranks,
                          settings=["embedding.store=ps", *settings], **kwargs)

    def counts(self, run):
        return json.loads((pathlib.Path(run) / "summary.json").read_text())["cache"]

    # Equal bits

    def test_over_tables_the_bits_are_those_without_a_cache(self):
        for staleness, percent, more in one_if_sanitized(
                [(4, 3, ["train.threads=3", "embedding.cache.eviction=lru"]), ("sync", 3, ["train.threads=3"]),
                 ("sync", 20, []), (0, 5, ["embedding.cache.eviction=lru"]), (1, 20, ["train.threads=3"]),
                 (4, 100, []), (16, 5, []), (16, 20, ["train.threads=3"])]):
            with self.subTest(staleness=staleness, percent=percent):
                mode = mode_of(staleness)
                run = self.train(*mode, self.cache(percent), *more)
                self.assertEqual(self.digest(run), self.reference(*mode))
                counts = self.counts(run)
                self.assertGreater(counts["misses"], 0)
                if percent <= 5:  # rows go to their tables and come back
                    self.assertGreater(counts["misses"], 1.1 * self.rows())
                    self.assertGreater(counts["rows_written"], 1.1 * self.rows())
                if percent == 100:
                    self.assertLess(counts["misses"], 1.1 * self.rows())

    def test_a_window_of_several_epochs(self):
        """What is looked ahead at is of later epochs, and beyond the last step."""
        short = [*mode_of(1), "data.synthetic.rows=640", "train.epochs=4"]  # 5 steps each
        for more in one_if_sanitized([["train.eval_every=3 steps"], [], ["train.max_steps=8"]]):
            with self.subTest(more=more):
                run = self.train(*short, *more, self.cache(20))
                self.assertEqual(self.digest(run), self.reference(*short, *more))

    def test_over_shards_the_bits_are_those_without_a_cache(self):
        for shards, staleness, percent, more in one_if_sanitized(
                [(2, 4, 20, ["train.threads=3"]), (1, "sync", 5, []), (3, 16, 3, []),
                 (2, 1, 100, ["embedding.cache.eviction=lru"])]):
            with self.subTest(shards=shards, staleness=staleness, percent=percent):
                mode = mode_of(staleness)
                with self.job(*mode, self.cache(percent), *more, shards=shards) as job:
                    self.assertEqual(job.start().end(JOB_S), 0, job.describe())
                    self.assertEqual(job.digest(JOB_S), self.reference(*mode))
                    self.assertGreater(self.counts(job.run_dir)["hits"], 0)

    # Killed, stopped

    def test_a_rank_that_is_killed_goes_on_from_its_checkpoint(self):
        mode = [*mode_of(4), BUSY, "checkpoint.every=3 steps"]
        expected = self.reference(*mode)
        rng = random.Random(f"{self.seed}/rank")
        run = self.folder("killed")
        command = [SATRAP, "train", self.config, f"run_dir={run}", *mode, self.cache(5), "--resume"]
        kills = 0
        while kills < KILLS:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            try:
                process.wait(rng.uniform(0.02, 0.3) * SLOWER)
                break  # it had ended
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(JOB_S)
                kills += 1
        satrap(*command[1:])
        self.assertGreater(kills, 0)
        self.assertEqual(self.digest(run), expected, f"after {kills} kills, seed {self.seed}")

    def test_a_killed_shard_or_rank_under_the_launcher(self):
        mode = [*mode_of(4), BUSY, "checkpoint.every=3 steps"]
        expected = self.reference(*mode)
        for kind in ("shard", "rank"):
            rng = random.Random(f"{self.seed}/{kind}")
            with self.subTest(kind=kind), self.job(*mode, self.cache(5), shards=2) as job:
                job.start()
                pause = rng.uniform(0.0, 0.4) * SLOWER
                job.wait_until(lambda: job.output().count("examples/s") > 2 or not job.is_running(), JOB_S, "steps")
                job.wait_end(pause)
                victims = job.members(kind)
                if victims:
                    victims[-1].send(signal.SIGKILL)
                self.assertEqual(job.end(JOB_S), 0, job.describe())
                self.assertEqual(job.digest(JOB_S), expected, f"seed {self.seed}\n{job.output()[-3000:]}")

    def test_sigterm_ends_it_within_seconds_with_a_checkpoint(self):
        mode = [*mode_of(4), self.cache(5)]
        run = self.folder("stopped")
        process = subprocess.Popen([SATRAP, "train", self.config, f"run_dir={run}", *mode, "train.epochs=1000000"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   text=True)
        with process.stderr:
            for line in process.stderr:
                if "examples/s" in line:
                    break
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
            self.assertEqual(process.wait(JOB_S), 143)
        self.assertLess(time.monotonic() - began, 5 * SLOWER)
        step = int(self.newest(run).name.removeprefix("step-"))
        until = ["train.epochs=1000000", f"train.max_steps={step + 12}"]
        self.train(*mode, *until, flags=["--resume"], run=run)
        self.assertEqual(self.digest(run), self.digest(self.train(*mode_of(4), *until)))

    def test_sigterm_ends_a_job_of_shards_within_seconds_with_a_checkpoint(self):
        with self.job(*mode_of(4), self.cache(5), "train.epochs=1000000", shards=2) as job:
            job.start()
            job.wait_until(lambda: job.output().count("examples/s") > 1, JOB_S, "steps")
            began = time.monotonic()
            os.kill(job.pid, signal.SIGTERM)
            self.assertEqual(job.end(JOB_S), 143, job.describe())
            self.assertLess(time.monotonic() - began, 8 * SLOWER)
            step = int(self.newest(job.run_dir).name.removeprefix("step-"))
            until = ["train.epochs=1000000", f"train.max_steps={step + 12}"]
            run = self.train(*mode_of(4), *until, flags=["--resume-from", job.run_dir])
            self.assertEqual(self.digest(run), self.digest(self.train(*mode_of(4), *until)))

    # What is learned does not depend on it

    def test_a_run_goes_on_with_another_cache_or_none(self):
        mode = mode_of(4)
        whole = self.train(*mode, "train.max_steps=20")  # its end has no lookups ahead
        self.train(*mode, flags=["--resume"], run=whole)
        expected = self.digest(whole)
        for first, second in [(self.cache(5), self.cache(20)), (self.cache(5), "embedding.cache.memory=0"),
                              ("embedding.cache.memory=0", self.cache(3))]:
            with self.subTest(first=first, second=second):
                run = self.train(*mode, first, "train.max_steps=20")
                self.train(*mode, second, "embedding.cache.eviction=lru", flags=["--resume"], run=run)
                self.assertEqual(self.digest(run), expected)
                for key in ("memory", "eviction"):
                    self.assertRegex(self.log, r"changed \(does not affect what is learned\): embedding\.cache\."
                                     + key)

    def test_a_run_over_shards_goes_on_over_tables(self):
        mode = mode_of("sync")
        with self.job(*mode, self.cache(5), "train.max_steps=20", shards=2) as job:
            self.assertEqual(job.start().end(JOB_S), 0, job.describe())
            run = self.train(*mode, self.cache(20), flags=["--resume-from", job.run_dir])
        self.assertEqual(self.digest(run), self.reference(*mode))

    def test_evaluations_warm_start_reshard_and_early_stopping_are_as_without(self):
        cache = self.cache(5)
        mode = [*mode_of(4), "train.eval_every=10 steps"]
        runs = [self.train(*mode), self.train(*mode, cache)]

        def evaluations(run):
            lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
            return [line["eval"] for line in lines if "eval" in line]

        self.assertGreater(len(evaluations(runs[0])), 3)
        self.assertEqual(*map(evaluations, runs))

        ends = []
        for run, memory in zip(runs, ("embedding.cache.memory=0", cache)):
            warm = self.train(f"train.warm_start.from={run}", "train.max_steps=10", memory)
            satrap("checkpoint", "reshard", run, "--shards", "3", "--out", run / "resharded")
            resharded = self.train(*mode, memory, "train.epochs=2", "train.max_steps=60",
                                   flags=["--resume-from", run / "resharded" / self.newest(run).name])
            early = self.train(*mode, memory, "train.epochs=30", "train.eval_every=3 steps",
                               "train.early_stopping.metric=logloss", "train.early_stopping.patience=1",
                               "dense_optimizer.lr=0.1")
            stopped = json.loads((early / "summary.json").read_text())["early_stopping"]
            self.assertTrue(stopped["stopped"])
            ends.append((*map(self.digest, (warm, resharded, early)), stopped))
        self.assertEqual(*ends)

    def test_a_checkpoint_is_used_alike_with_a_cache_in_the_configuration(self):
        run = self.train(self.cache(5))
        outputs = []
        for memory in ("embedding.cache.memory=0", self.cache(5)):
            out = self.folder("export")
            satrap("export", self.config, "--checkpoint", run, "--out", out, memory, f"run_dir={run}")
            files = {path.relative_to(out): path.read_bytes() for path in out.rglob("*.npy")}
            self.assertTrue(files)
            commands = [satrap(command, self.config, "--checkpoint", run, memory, f"run_dir={run}").stdout
                        for command in ("eval", "predict")]
            outputs.append((files, *commands))
        self.assertEqual(*outputs)

    def test_steps_that_are_not_finite_change_nothing(self):
        wild = ["dense_optimizer.lr=1e18", "train.max_nonfinite_steps=1000", "dense_optimizer.clip_norm=0",
                "checkpoint.every=3 steps", "train.max_steps=12"]
        for mode in one_if_sanitized((mode_of(4), mode_of("sync"))):
            runs = [self.train(*mode, *wild), self.train(*mode, *wild, self.cache(3))]
            steps = [json.loads((run / "summary.json").read_text())["nonfinite_steps"] for run in runs]
            self.assertGreater(steps[0], 0)
            self.assertEqual(*steps)
            self.assertEqual(*map(self.digest, runs))

    # Refused

    @unittest.skipIf(SANITIZED, "messages, for which no sanitizer is needed")
    def test_what_cannot_have_a_cache_is_refused_by_name(self):
        small = "embedding.cache.memory=1MiB"
        for settings, words in [
                (["embedding.cache.memory=64B"], ["embedding.cache.memory", "is too small", "bytes"]),
                (["embedding.cache.memory=5QB"], ["embedding.cache.memory", "expected a size", "5QB"]),
                (["embedding.cache.memory=-1"], ["embedding.cache.memory"]),
                (["embedding.cache.memory=9000GiB"], ["embedding.cache.memory", "8.79TiB", TOO_LARGE]),
                (["embedding.cache.eviction=fifo"], ["embedding.cache.eviction", "fifo", "lfu"]),
                ([small, "tables.C2.capacity_rows=1000"], ["embedding.cache.memory", "'C2'", "capacity_rows"]),
                ([small, "tables.C2.ttl_steps=10"], ["embedding.cache.memory", "'C2'", "ttl_steps"]),
                ([small, "tables.C2.admit_after=2"], ["embedding.cache.memory", "'C2'", "admit_after"]),
                ([small, "embedding.store=ps", "embedding.wire=bf16"], ["embedding.cache.memory", "bf16"]),
                ([small, "embedding.cache.policy=shared"], ["embedding.cache.policy", "leave it out", "memory: 0"]),
                ([small, "embedding.store=ps", "train.mode=async", "train.deterministic=false",
                  "checkpoint.every=never"], [*ASYNC_NAMES, "async"])]:
            with self.subTest(settings=settings):
                self.train(*settings, status=2)
                errors = [line for line in self.log.splitlines() if line.startswith("error: ")]
                self.assertEqual(len(errors), 1, self.log)
                for word in words:
                    self.assertIn(word, errors[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
