"""The tests of caches again, with `device: cuda`: the whole program, whose GPU is the executor (tests/support/simt), ends
with the bits of the CPU, whatever its streams do. Every job that has a cache gets the device, and libtorch computes the
dense network of all (model.engine: graph): on the executor with its kernels for CPUs, in the order of the streams.
SIMT_SEED repeats the schedules of a run."""
import atexit
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

BUILD = pathlib.Path(os.environ["SATRAP_BUILD_DIR"])
WRAPPER = """#!/bin/sh
if [ "$1" = train ]; then
  engine=model.engine=graph
  device=device=cpu
  for word; do
    case $word in
      embedding.cache.memory=0) ;;
      embedding.cache.memory=*) device=device=cuda ;;
      model.engine=*) engine= ;;
    esac
  done
fi
[ "$device" != device=cuda ] || echo "$$" >> "${{0%/*}}/started"
exec "{program}" "$@" $device $engine
"""


def make_programs():
    """A folder of programs in which `satrap` is that on the executor."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="satrap-gpu-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "satrap").write_text(WRAPPER.format(program=BUILD / "simt" / "satrap"))
    (folder / "satrap").chmod(0o755)
    (folder / "satrap-ps").symlink_to(BUILD / "bin" / "satrap-ps")
    return folder


if not (BUILD / "simt" / "satrap").exists():
    print("skipped: this build has no program on the executor")
    sys.exit(77)
BUILD_BIN = make_programs()
os.environ["SATRAP_BIN"] = str(BUILD_BIN / "satrap")
os.environ.setdefault("ASAN_OPTIONS", "detect_stack_use_after_return=0")  # of fibers: tests/support/simt/CMakeLists.txt
os.environ.setdefault("SIMT_SEED", os.environ.get("SATRAP_TEST_SEED") or str(random.SystemRandom().randrange(1, 1 << 32)))

import cache_test  # noqa: E402

cache_test.TOO_LARGE = "do not fit in the GPU's memory"
cache_test.ASYNC_NAMES = ["device: cuda does not go with mode async"]
# A step takes ten times as long: half the examples in each of as many steps, and fewer steps for those that are killed.
cache_test.CONFIG = cache_test.CONFIG.replace("batch_size: 128", "batch_size: 64").replace("rows: 6400", "rows: 3200")
cache_test.BUSY = "data.synthetic.rows=8000"
import partitioned_cache_test  # noqa: E402

partitioned_cache_test.ROWS = 5000
from cluster_job import JOB_S  # noqa: E402



SOURCE = pathlib.Path(os.environ["SATRAP_SOURCE_DIR"])
CRITEO = SOURCE.parent / "shared/data/criteo_kaggle/first10k.tsv"
CRITEO_JOB = f"""
data: {{schema: criteo, train: {{path: {CRITEO}}}, eval: {{path: {CRITEO}, max_rows: 500}}, batch_size: 256}}
tables: {{default: {{dim: 6, optimizer: {{type: adagrad, lr: 0.02}}}}}}
model: {{type: dlrm, bottom: [16, 6], top: [16]}}
train: {{max_steps: 12, deterministic: true, threads: 1, precision: fp32}}
"""
COUNTED_JOB = """
data: {format: synthetic, batch_size: 64,
       synthetic: {rows: 20000, eval_rows: 0, cardinalities: [50, 60], min_ids: [1], max_ids: [1], num_numeric: 2}}
tables: {default: {dim: 8, optimizer: {type: adagrad, lr: 0.02}}}
model: {type: ffnn, top: [8]}
train: {mode: sync, threads: 1, precision: fp32, report_every: 1000 steps}
checkpoint: {every: never}
"""
NATIVE = "model.engine=native"  # on the CPU, to which pooled rows and gradients go
MODES = (["sync", "staleness=0", NATIVE], ["sync", "staleness=0"], ["hybrid", "staleness=0"],
         ["hybrid", "staleness=4", "staleness_schedule=constant"])
# Of the rows, in the cache: each with every mode, of one sample or the other.
PERCENT = (5, 100)
SANITIZED = bool(os.environ.get("SATRAP_SANITIZE"))  # where the executor takes ten times as long
if SANITIZED:
    MODES = MODES[::3]


class Samples(unittest.TestCase):
    """Real data, and rows whose width is not a multiple of 4, which are wider on a device."""

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="satrap-gpu-samples-"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)
        self.count = 0

    def end_of(self, *settings):
        """Digest and metrics of a job, its device and its cache."""
        self.count += 1
        run = self.scratch / f"run-{self.count}"
        done = subprocess.run([os.environ["SATRAP_BIN"], "train", *map(str, settings), f"run_dir={run}"], cwd=SOURCE,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=JOB_S)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        self.stderr = done.stderr
        summary = json.loads((run / "summary.json").read_text())
        newest = sorted((run / "checkpoints").glob("step-*"))[-1]
        digest = cache_test.satrap("checkpoint", "verify", newest).stdout.split("digest ")[1]
        return (digest, summary["train"], summary["eval"]), summary["device"], summary.get("cache")

    def check(self, job, rows, percentages, host_rows="staged"):
        for (mode, *more), percent in zip(MODES, itertools.cycle(percentages)):
            settings = [*job, f"train.mode={mode}", "train.precision=fp32",
                        *(setting if setting == NATIVE else f"train.{setting}" for setting in more)]
            expected, device, cache = self.end_of(*settings)
            self.assertEqual((device, cache), ("cpu", None))
            with self.subTest(mode=[mode, *more], percent=percent):
                found, device, cache = self.end_of(
                    *settings, f"embedding.cache.memory={percent * rows * cache_test.BYTES_PER_ROW // 100}B",
                    f"embedding.cache.host_rows={host_rows}")
                self.assertEqual(device, "cuda")
                self.assertEqual(found, expected)
                self.assertGreater(cache["hits"], 0)

    def test_adult(self):
        self.check(["datasets/adult/quickstart.yaml", "train.max_steps=25", "train.epochs=1", "train.threads=1"], 2500,
                   PERCENT, "registered")
        self.assertNotIn("rows are staged", self.stderr)

    def test_adult_in_fp16(self):
        settings = ["datasets/adult/quickstart.yaml", "train.max_steps=25", "train.epochs=1", "train.threads=1",
                    "train.precision=fp16"]
        expected, device, _ = self.end_of(*settings)
        self.assertEqual(device, "cpu")
        with mock.patch.dict(os.environ, SIMT_REGISTERED_MIB="1"):  # less than the rows
            found, device, _ = self.end_of(*settings, f"embedding.cache.memory={125 * cache_test.BYTES_PER_ROW}B",
                                           "embedding.cache.host_rows=registered")
        self.assertEqual(device, "cuda")
        self.assertEqual(found, expected)
        self.assertRegex(self.stderr, "rows are staged: [0-9.]+[KM]iB of a table .*cudaErrorMemoryAllocation")
        self.assertEqual(self.stderr.count("rows are staged"), 1)

    def test_criteo(self):
        if not CRITEO.exists():
            self.skipTest(f"no sample {CRITEO}")
        job = self.scratch / "criteo.yaml"
        job.write_text(CRITEO_JOB)
        self.check([job], 20_000, PERCENT[::-1])


class Counts(unittest.TestCase):
    """What a step asks of the device once all memory is there."""

    def per_step(self, *settings, ranks=1, first=30):
        """By name, of one rank, after the `first` steps; waits_by_thread as "waits NAME"."""
        program = [os.environ["SATRAP_BIN"], "train"]
        if ranks > 1:
            program = [SOURCE / "launch/satrap-run", "--bin-dir", BUILD_BIN, "--ps", 1, "--nproc-per-node", ranks]
            settings += ("embedding.store=ps",)
        counts = []
        for steps in (first, first + 20):
            with tempfile.TemporaryDirectory(prefix="satrap-gpu-counts-") as scratch:
                config, file = pathlib.Path(scratch, "job.yaml"), pathlib.Path(scratch, "counts.json")
                config.write_text(COUNTED_JOB)
                subprocess.run([*map(str, program), config, f"run_dir={scratch}/run", "embedding.cache.memory=1MiB",
                                f"train.max_steps={steps}", *settings], check=True, capture_output=True, timeout=JOB_S,
                               env=os.environ | {"SIMT_COUNTS": str(file)})
                found = json.loads(file.read_text())
                waits = {f"waits {name}": count for name, count in found.pop("waits_by_thread").items()}
                cache = json.loads(pathlib.Path(scratch, "run", "summary.json").read_text())["cache"]
                counts.append(found | waits | {"misses": cache["misses"], "rows_written": cache["rows_written"]})
        return {name: (count - counts[0].get(name, 0)) / 20 for name, count in counts[1].items()}

    def test_a_step_allocates_nothing(self):
        for settings in ([], ["train.mode=hybrid", "train.deterministic=true"], ["embedding.cache.eviction=lfu"],
                         ["train.precision=fp16"]):
            with self.subTest(settings=settings):
                self.assertEqual(self.per_step(*settings)["allocations"], 0)

    def test_launches_do_not_depend_on_the_size_of_a_batch_or_on_the_number_of_features(self):
        one = self.per_step()
        many = self.per_step("data.batch_size=256", "data.synthetic.cardinalities=[50,60,70,80,90,100]")
        self.assertGreater(many["copied_bytes"], 4 * one["copied_bytes"])
        for counts in (one, many):
            # The plan, resolve, two ways of rows, pooling, the update.
            self.assertLessEqual(counts["launches"], 40)
        self.assertAlmostEqual(one["launches"], many["launches"], delta=1)

    def test_who_queues_a_step_does_not_wait_for_it(self):
        for settings in ([], ["train.mode=hybrid", "train.deterministic=true"], ["embedding.cache.memory=20KiB"],
                         ["train.precision=fp16"]):
            with self.subTest(settings=settings):
                counts = self.per_step(*settings)
                self.assertNotIn("waits embedding", counts)
                # To retire a step, once the next one is queued; and the save at the end.
                self.assertAlmostEqual(counts["waits satrap"], 1, delta=0.2)

    def test_of_two_gpus_neither_waits_for_the_other_in_a_step(self):
        for settings in (["train.deterministic=true"], ["train.mode=hybrid"]):
            with self.subTest(settings=settings):
                # In batches of this size the number of keys that a rank owns hardly varies.
                counts = self.per_step(*settings, "data.batch_size=256", "data.synthetic.cardinalities=[50,2000]", ranks=2)
                self.assertEqual(counts["allocations"], 0)
                self.assertNotIn("waits embedding", counts)
                self.assertAlmostEqual(counts["waits satrap"], 1, delta=0.2)
                self.assertLessEqual(counts["launches"], 40)
                # Weights, their gradients, and the sum of the dense ones, which in order takes two.
                self.assertEqual(counts["collectives"], 4 if "deterministic" in settings[0] else 3)

    def test_copies_have_the_bytes_of_ids_numbers_and_lists(self):
        n, features, numbers = 512, 2, 2
        ids = 8 * n * features + 8 * (n * features + 1) + 24 * features
        many = "data.synthetic.cardinalities=[50,30000]"  # of them, before step 200 many take others' place, and the window is full
        missing = ["embedding.cache.eviction=lfu", "embedding.cache.memory=500KiB", many]
        registered = "embedding.cache.host_rows=registered"
        for looks, first, settings in ((1, 30, []), (2, 200, [many]), (1, 30, ["embedding.cache.eviction=lfu"]),
                                       (1, 30, missing), (1, 30, [*missing, registered])):
            with self.subTest(settings=settings):
                counts = self.per_step(f"data.batch_size={n}", "data.synthetic.rows=200000", *settings, first=first)
                # Numbers, labels and probabilities; of each missing row its key and its slot, to and fro; of each victim
                # its key. Rows themselves are read and written in the host's memory by kernels, which must know the place of
                # each that is read in its table.
                per_miss = 24 if registered in settings else 16
                expected = looks * ids + 4 * n * (numbers + 2) + counts["misses"] * per_miss + counts["rows_written"] * 8
                self.assertAlmostEqual(counts["copied_bytes"] / expected, 1, delta=0.02)
                self.assertEqual(counts["misses"] > 10, "30000" in str(settings))
                if looks == 2:  # a plan of the batch ahead, and touch
                    self.assertLessEqual(counts["launches"], 40)
                    self.assertLess(counts["allocations"], 0.5)  # more rows than before may wait for the store
                    # What resolve has found, now and then the rest of it; not for rows that make room.
                    self.assertLess(counts["waits planner"], 1.8)

    def test_the_planner_does_not_wait_for_rows_outside_the_sets(self):
        counts = self.per_step("data.batch_size=512", "data.synthetic.rows=200000", "data.synthetic.cardinalities=[50,30000]",
                               "embedding.cache.memory=40KiB", "train.mode=hybrid", "train.deterministic=true")
        self.assertGreater(counts["rows_written"], 200)
        self.assertLess(counts["waits planner"], 3)


class SeveralGpus(partitioned_cache_test.PartitionedCache):
    """A GPU for each rank, which NCCL connects, or one for all. (The tests of PartitionedCache have one for each.)"""

    def test_ranks_that_share_a_gpu_exchange_rows_in_the_memory_of_the_host(self):
        settings = [*cache_test.mode_of("sync"), partitioned_cache_test.cache(5)]
        digests = set()
        for gpus, says in (("1", "in the host's memory: ranks 0 and 1 have one GPU"), ("2", "from GPU to GPU, by NCCL")):
            with mock.patch.dict(os.environ, SIMT_DEVICES=gpus), self.job(*settings, ranks=2) as job:
                digests.add(self.finish(job))
                self.assertIn(f"the ranks exchange rows and gradients {says}", job.output())
        self.assertEqual(len(digests), 1)

    def test_a_rank_that_hangs_ends_the_others_at_the_deadline_and_the_job_goes_on(self):
        mode = [*cache_test.mode_of(4), cache_test.BUSY, "checkpoint.every=3 steps", "cluster.timeout=10s"]
        expected = self.digest_without(*mode, ranks=2)
        with self.job(*mode, partitioned_cache_test.cache(5), ranks=2) as job:
            job.start("--resume")
            job.wait_until(lambda: job.output().count("examples/s") > 2 or not job.is_running(), JOB_S, "steps")
            for victim in job.members("rank")[-1:]:
                victim.send(signal.SIGSTOP)
            self.assertEqual(job.end(JOB_S), 0, job.describe())
            self.assertEqual(job.digest(JOB_S), expected)


class Started(unittest.TestCase):
    def test_jobs_with_a_cache_had_the_device(self):
        started = pathlib.Path(os.environ["SATRAP_BIN"]).with_name("started").read_text().splitlines()
        self.assertGreater(len(started), 1 if SANITIZED else 15)


def load_tests(loader, *_):
    print(f"SIMT_SEED={os.environ['SIMT_SEED']}", file=sys.stderr)
    cases = [Samples]
    if not SANITIZED:  # there the same tests run with caches of the host
        cases += [Counts, cache_test.Cache, partitioned_cache_test.PartitionedCache]
    suite = unittest.TestSuite(map(loader.loadTestsFromTestCase, cases))
    if not SANITIZED:
        suite.addTests(SeveralGpus(name) for name in vars(SeveralGpus) if name.startswith("test"))
    suite.addTests(loader.loadTestsFromTestCase(Started))  # last
    return suite


if __name__ == "__main__":
    unittest.main(verbosity=2)
