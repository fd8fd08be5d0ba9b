"""Training data that change between a stop and --resume of a job of two ranks: every rank compares its files, and a
job that cannot continue ends with status 2, without a restart."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from cluster_job import SATRAP, ClusterJob

JOB_S = 1500 if os.environ.get("SATRAP_SANITIZE") else 300

CONFIG = """\
seed: 7
device: cpu
data:
  schema: criteo
  train: {path: "data/p*.tsv"}
  batch_size: 40
tables:
  default: {dim: 4, optimizer: {type: adagrad, lr: 0.05}}
model: {type: dlrm, bottom: [16, 4], top: [16]}
embedding: {store: ps}
train: {mode: hybrid, staleness: 2, deterministic: true, precision: fp32, threads: 1}
checkpoint: {every: 100 steps}
cluster: {timeout: 60s}
"""
# Rank 1 reads the job, and so the files, of another folder.
ELSEWHERE = """\
#!/bin/sh
if [ "$RANK" = 1 ]; then
  shift 2
  set -- train {folder}/job.yaml "$@"
fi
exec {satrap} "$@"
"""


class ChangedData(unittest.TestCase):
    """Stopped after step 4, at row 160 of four files of 100 rows, of which rank 1 has read the last 20."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="satrap-cluster-data-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        generated = subprocess.run([SATRAP, "data", "generate", "--rows", "400", "--scale", "0.001", "--out", "-"],
                                   check=True, capture_output=True, text=True, timeout=JOB_S).stdout
        rows = generated.splitlines(keepends=True)
        self.data = self.dir / "data"
        self.data.mkdir()
        for i in range(4):
            (self.data / f"p{i}.tsv").write_text("".join(rows[100 * i:100 * (i + 1)]))
        (self.dir / "job.yaml").write_text(CONFIG)

    def job(self, name, **options):
        job = ClusterJob(self.dir / name, self.dir / "job.yaml", shards=1, ranks=2, max_restarts=2, **options)
        self.addCleanup(job.kill_all)
        return job

    def run_job(self, job, *flags):
        status = job.start(*flags).end(JOB_S)
        return status, job.output()

    def test_every_kind(self):
        whole = self.job("whole")
        self.assertEqual(self.run_job(whole)[0], 0, whole.output())
        job = self.job("stopped", settings=["train.max_steps=4"])
        self.assertEqual(self.run_job(job)[0], 0, job.output())
        checkpoint = self.dir / "stopped" / "run" / "checkpoints" / "step-000000000004"

        def continues(name, **options):
            return self.run_job(self.job(name, **options), "--resume-from", str(checkpoint), *self.flags)

        self.flags = []
        with self.subTest("nothing: the bits are those of a run that was not stopped"):
            status, output = continues("same")
            self.assertEqual(status, 0, output)
            self.assertNotIn("data file", output)
            self.assertEqual(self.job_digest("same"), self.job_digest("whole"))

        with self.subTest("rank 1 alone sees another file"):
            programs = self.dir / "bin"
            programs.mkdir()
            (programs / "satrap").write_text(ELSEWHERE.format(satrap=SATRAP, folder=self.dir / "elsewhere"))
            (programs / "satrap").chmod(0o755)
            (programs / "satrap-ps").symlink_to(SATRAP.parent / "satrap-ps")
            shutil.copytree(self.data, self.dir / "elsewhere" / "data")
            shutil.copy(self.dir / "job.yaml", self.dir / "elsewhere")
            with (self.dir / "elsewhere" / "data" / "p3.tsv").open("a") as file:
                file.write((self.data / "p0.tsv").read_text())
            job = self.job("elsewhere-run", bin_dir=programs)
            status, output = self.run_job(job, "--resume-from", str(checkpoint))
            self.assertEqual(status, 2, output)
            self.assertIn("rank 1 sees other data files than rank 0", output)
            self.assertIn("data/p3.tsv", output)
            self.assertEqual(job.restarts(), 0)

        (self.data / "p0.tsv").unlink()
        with self.subTest("a file that was read is gone"):
            status, output = continues("gone")
            self.assertEqual(status, 2, output)
            self.assertIn("data file data/p0.tsv", output)
            self.assertIn("--accept-changed-data", output)
            self.assertNotIn("starts from the last checkpoint", output)

        with self.subTest("which is accepted"):
            self.flags = ["--accept-changed-data"]
            status, output = continues("accepted")
            self.assertEqual(status, 0, output)
            self.assertEqual(output.count("accepted: data file data/p0.tsv"), 1, output)  # the chief's alone
            self.assertIn("at row 160 of epoch 1", output)

    def job_digest(self, name):
        newest = sorted((self.dir / name / "run" / "checkpoints").glob("step-*"))[-1]
        return newest.name, subprocess.run([SATRAP, "checkpoint", "verify", newest], check=True, capture_output=True,
                                           text=True, timeout=JOB_S).stdout.split("digest")[1]


if __name__ == "__main__":
    unittest.main(verbosity=2)
