"""A job of ranks and shards whose run_dir is in a store: killed in the middle of an upload, it continues from what the
store has, with the bits of an undisturbed one."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from cluster_job import JOB_S, SATRAP, ClusterJob

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import store_server

CONFIG = """\
seed: 7
device: cpu
data:
  format: synthetic
  batch_size: 64
  synthetic: {rows: 1920, cardinalities: [100, 1000], num_numeric: 2}
tables: {default: {dim: 4, optimizer: {type: adagrad, lr: 0.05}}}
model: {type: dlrm, bottom: [8, 4], top: [8]}
embedding: {store: ps}
train: {mode: hybrid, staleness: 2, deterministic: true, precision: fp32, threads: 1}
checkpoint: {every: 10 steps, keep: 2}
cluster: {timeout: 60s, heartbeat: 30s}
"""  # 30 steps of two ranks


def satrap(*arguments):
    return subprocess.run([SATRAP, *arguments], capture_output=True, text=True, timeout=JOB_S)


class StoreCluster(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="satrap-store-cluster-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        (self.dir / "job.yaml").write_text(CONFIG)
        self.server = store_server.Server()
        self.addCleanup(self.server.close)
        patched = mock.patch.dict(os.environ, {**self.server.environment(), "SATRAP_SCRATCH": str(self.dir)})
        patched.start()
        self.addCleanup(patched.stop)

    def run_job(self, name, run_dir):
        job = ClusterJob(self.dir / name, self.dir / "job.yaml", max_restarts=2, settings=[f"run_dir={run_dir}"])
        self.addCleanup(job.kill_all)
        status = job.start().end(JOB_S)
        self.assertEqual(status, 0, job.output())
        return job

    def digests(self, run):
        done = satrap("checkpoint", "verify", run)
        self.assertEqual(done.returncode, 0, done.stderr)
        return dict(re.findall(r"(step-\d+): ok, digest ([0-9a-f]+)", done.stdout))

    def test_rank_0_is_killed_before_a_checkpoint_is_complete(self):
        self.run_job("local", self.dir / "run")
        expected = self.digests(self.dir / "run")
        for scheme in ("s3", "hdfs"):
            if f"\n{scheme:10} off:" in satrap("doctor").stdout:
                continue
            with self.subTest(scheme):
                killed = []

                def kill(key):
                    if killed or not key.endswith("step-000000000020/manifest.json"):
                        return None
                    killed.append(json.loads(self.server.files[f"runs/{scheme}/owner.json"])["pid"])
                    os.kill(killed[0], signal.SIGKILL)
                    return "reset"

                self.server.write_fault = kill
                url = self.server.url(scheme, f"runs/{scheme}")
                job = self.run_job(scheme, url)
                self.assertEqual((len(killed), job.restarts()), (1, 1), job.output())
                self.assertNotIn("copied to", job.output())  # the newest was on this machine
                self.assertEqual(self.digests(url), expected)
                files = [key for key in self.server.files if f"runs/{scheme}/checkpoints/step-000000000030/" in key]
                self.assertTrue(any("table-1.shard-1.bin" in key for key in files), files)
                self.assertTrue(any("pending-1.bin" in key for key in files), files)


if __name__ == "__main__":
    unittest.main(verbosity=2)
