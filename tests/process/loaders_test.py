"""Loaders read the training data of a job whose processes are killed: the digest is that of ranks that read them."""
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import unittest

from cluster_job import JOB_S, SATRAP, ClusterJob

CONFIG = """\
seed: 7
device: cpu
data:
  schema: criteo
  train: {path: ["data/p*.tsv"]}
  batch_size: 80
  shuffle_rows: 300
tables:
  default: {dim: 4, optimizer: {type: adagrad, lr: 0.05}}
model: {type: dlrm, bottom: [16, 4], top: [16]}
embedding: {store: ps}
train: {mode: hybrid, staleness: 2, deterministic: true, precision: fp32, threads: 1, epochs: 2, report_every: 5 steps}
checkpoint: {every: 40 steps}
cluster: {timeout: 60s}
"""
ROWS, FILES = 12000, 3  # 6 turns of loaders and 150 steps in an epoch


class Loaders(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="satrap-loaders-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        text = subprocess.run([SATRAP, "data", "generate", "--rows", str(ROWS), "--scale", "0.001", "--out", "-"],
                              check=True, capture_output=True, text=True, timeout=JOB_S).stdout
        rows = text.splitlines(keepends=True)
        (cls.dir / "data").mkdir()
        for i in range(FILES):
            (cls.dir / "data" / f"p{i}.tsv").write_text("".join(rows[i * ROWS // FILES:(i + 1) * ROWS // FILES]))
        (cls.dir / "job.yaml").write_text(CONFIG)
        whole = cls.job("whole")
        assert whole.start().end(JOB_S) == 0, whole.output()
        cls.digest = whole.digest(JOB_S)

    @classmethod
    def job(cls, name, **options):
        job = ClusterJob(cls.dir / name, cls.dir / "job.yaml", shards=1, ranks=2, **options)
        cls.addClassCleanup(job.kill_all)
        return job

    def expect_same_bits(self, job):
        self.assertEqual(job.end(JOB_S), 0, job.output())
        self.assertEqual(job.digest(JOB_S), self.digest, job.output())

    def test_undisturbed(self):
        job = self.job("undisturbed", options=["--loaders", "2"]).start()
        self.expect_same_bits(job)
        read = [path.read_text().count("reads rows from") for path in self.dir.glob("undisturbed/logs/*/loader-*.log")]
        self.assertEqual(len(read), 2)
        self.assertGreater(sum(read), 1)
        logs = "".join(path.read_text() for path in self.dir.glob("undisturbed/logs/*/loader-*.log"))
        self.assertRegex(logs, r"has read for rank .* for .*: rows were ready and waited for it \d+% of the time")

    def test_loaders_that_are_killed(self):
        draw = random.Random(4)
        job = self.job("killed", options=["--loaders", "2"]).start()
        for lines in [5, *sorted(draw.randrange(15, 90) for _ in range(3))]:
            job.wait_lines(lines, JOB_S)
            if loaders := job.any_members("loader", JOB_S):
                draw.choice(loaders).send(signal.SIGKILL)
        self.expect_same_bits(job)
        self.assertIn("it is started again", job.output())
        self.assertEqual(job.restarts(), 0)

    def test_a_rank_that_is_killed(self):
        job = self.job("rank", options=["--loaders", "2"]).start()
        checkpoints = job.run_dir / "checkpoints"
        job.wait_until(lambda: list(checkpoints.glob("step-*")) or not job.is_running(), JOB_S, "a checkpoint")
        for rank in job.members("rank")[:1]:
            rank.send(signal.SIGKILL)
        self.expect_same_bits(job)


if __name__ == "__main__":
    unittest.main(verbosity=2)
