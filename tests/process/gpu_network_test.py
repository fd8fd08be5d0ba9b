"""The network on a GPU, its rows where a CPU's are: in the host's tables or on shards. Whole jobs, whose GPUs are the
executor's (tests/support/simt), end with the bits of a CPU where libtorch computes the network as well."""
import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

from cache_test import CONFIG, mode_of, satrap
from cluster_job import JOB_S, SANITIZED, ClusterJob

BUILD = pathlib.Path(os.environ["SATRAP_BUILD_DIR"])
LIMITS = ["tables.default.capacity_rows=2000", "tables.C2.ttl_steps=10", "tables.C3.admit_after=2"]
ON_GPU = ["device=cuda", "embedding.cache.memory=0"]
ON_CPU = ["device=cpu"]

if not (BUILD / "simt" / "satrap").exists():
    print("skipped: this build has no program on the executor")
    sys.exit(77)


class NetworkOnTheGpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="satrap-gpu-network-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)
        cls.config = cls.scratch / "job.yaml"
        cls.config.write_text(CONFIG.replace("rows: 6400", "rows: 3200"))
        cls.programs = cls.scratch / "bin"
        cls.programs.mkdir()
        for name, program in (("satrap", BUILD / "simt/satrap"), ("satrap-ps", BUILD / "bin/satrap-ps")):
            (cls.programs / name).symlink_to(program)
        cls.count = 0

    def end_of(self, *settings, shards=0, ranks=1):
        """Digest of the job, its metrics and its device; self.said: what it said."""
        type(self).count += 1
        settings = ["model.engine=graph", "train.precision=fp32", *settings]
        if shards == 0:
            run = self.scratch / f"run-{self.count}"
            self.said = satrap("train", self.config, f"run_dir={run}", *settings, program=self.programs / "satrap").stderr
            return self.result(run)
        with ClusterJob(self.scratch / f"job-{self.count}", self.config, shards=shards, ranks=ranks,
                        settings=["embedding.store=ps", *settings], bin_dir=self.programs) as job:
            self.assertEqual(job.start().end(JOB_S), 0, job.describe())
            self.said = job.output()
            return self.result(job.run_dir)

    @staticmethod
    def result(run):
        summary = json.loads((run / "summary.json").read_text())
        newest = max((run / "checkpoints").glob("step-*"), key=lambda path: path.name)
        digest = satrap("checkpoint", "verify", newest).stdout.split("digest ")[1]
        return (digest, summary["train"], summary["eval"]), summary["device"]

    def test_rows_in_tables_or_on_shards_with_and_without_limits(self):
        cases = [("sync", []), (4, LIMITS), ("sync", LIMITS), (4, [])]
        for staleness, limits in cases[:2] if SANITIZED else cases:
            mode = mode_of(staleness)
            expected, device = self.end_of(*ON_CPU, *mode, *limits)
            self.assertEqual(device, "cpu")
            for shards in (0, 1, 2):
                with self.subTest(staleness=staleness, limits=limits, shards=shards):
                    found, device = self.end_of(*ON_GPU, *mode, *limits, shards=shards)
                    self.assertEqual((found, device), (expected, "cuda"))
                    self.assertIn(f"rows stay {'on the shards' if shards else 'in the host'}", self.said)

    def test_two_ranks_with_a_gpu_each(self):
        mode = mode_of(1)
        expected, _ = self.end_of(*ON_CPU, *mode, shards=1, ranks=2)
        found, device = self.end_of(*ON_GPU, *mode, shards=1, ranks=2)
        self.assertEqual((found, device), (expected, "cuda"))

    def test_a_job_that_cannot_have_a_cache_has_none(self):
        for limit in ["tables.C2.ttl_steps=10", *LIMITS[:1]]:
            _, device = self.end_of("device=cuda", "train.max_steps=3", limit)
            self.assertEqual(device, "cuda")
            self.assertIn("capacity_rows, ttl_steps or admit_after", self.said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
