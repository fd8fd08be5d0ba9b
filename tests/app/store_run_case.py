"""A job with a run_dir in a simulated store, for tests."""
import json
import os
import pathlib
import re
import subprocess
import sys
from unittest import mock

from cli import SATRAP, TIMEOUT_S, CliTest, satrap

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import store_server

DOCTOR = satrap("doctor").stdout
SCHEMES = [scheme for scheme in ("s3", "hdfs") if f"\n{scheme:10} off:" not in DOCTOR]
if not SCHEMES:
    print("skipped: this satrap was built without S3 and HDFS")
    sys.exit(77)

SECRET = "secret-of-the-tests"
ROWS = 2500  # 25 steps
JOB = """\
run_dir: run
device: cpu
seed: 7
data:
  train: rows.csv
  eval: rows.csv
  batch_size: 100
  schema: {label: click, numeric: [price], features: [user]}
tables: {default: {dim: 4, optimizer: {type: adagrad, lr: 0.05}}}
model: {type: deepfm, hidden: [8]}
train: {mode: hybrid, staleness: 2, deterministic: true, threads: 1, report_every: 5 steps}
checkpoint: {every: 5 steps, keep: 2}
"""


def plain(key):
    """Without the folder that only one process writes, in that of a checkpoint."""
    return re.sub(r"(/step-\d+)/[0-9a-f]{16}/", r"\1/", key)


def flipped(content):
    """With another bit in its last byte."""
    return content[:-1] + bytes([content[-1] ^ 1])


class StoreRunCase(CliTest):
    def setUp(self):
        super().setUp()
        self.server = store_server.Server()
        self.addCleanup(self.server.close)
        patched = mock.patch.dict(os.environ, {
            **self.server.environment(), "HADOOP_USER_NAME": "satrap", "SATRAP_REMOTE_TIMEOUT": "5min",
            "SATRAP_REMOTE_STALL": "1min", "SATRAP_SCRATCH": str(self.dir / "scratch")})
        patched.start()
        self.addCleanup(patched.stop)
        lines = (f"{int(i * 7 % 5 < 2)},{i * 13 % 97 / 4},user {i * i % 501}\n" for i in range(ROWS))
        self.write("rows.csv", "click,price,user\n" + "".join(lines))
        self.write("job.yaml", JOB)

    def url(self, scheme):
        return self.server.url(scheme, f"runs/{scheme}")

    def train(self, url, *more, **environment):
        return self.succeed("train", "job.yaml", f"run_dir={url}", *more, cwd=self.dir,
                            env={**os.environ, **environment})

    def digests(self, run):
        """Of its checkpoints, by their names."""
        said = self.succeed("checkpoint", "verify", run, cwd=self.dir).stdout
        return dict(re.findall(r"(step-\d+): ok, digest ([0-9a-f]+)", said))

    def names_in_store(self, scheme):
        folder = f"runs/{scheme}/"
        return sorted(plain(key).removeprefix(folder) for key in self.server.files
                      if key.startswith(folder) and not key.endswith("/"))

    def train_locally(self):
        self.succeed("train", "job.yaml", cwd=self.dir)
        return self.digests("run")

    def metrics(self, scheme):
        text = self.server.files[f"runs/{scheme}/metrics.jsonl"].decode()
        return [json.loads(line) for line in text.splitlines()]

    def assert_same_files(self, scheme):
        """The store has what the local run has."""
        local = sorted(str(path.relative_to(self.dir / "run")) for path in (self.dir / "run").rglob("*")
                       if path.is_file())
        self.assertEqual(self.names_in_store(scheme), sorted([*local, "owner.json"]))
        self.assertEqual([line["step"] for line in self.metrics(scheme) if "train" in line], [5, 10, 15, 20, 25])
        summary = json.loads(self.server.files[f"runs/{scheme}/summary.json"])
        self.assertTrue(summary["finished"])
        self.assertNotIn(SECRET.encode(), b"".join(self.server.files.values()))

    def kill_in_upload(self, file, *command):
        """Runs a command until it would upload `file`, and kills it there."""
        program = self.start_command(*command)

        def kill(key):
            if not plain(key).endswith(file):
                return None
            program.kill()
            return "reset"

        self.server.write_fault = kill
        self.expect_killed(program)
        self.server.write_fault = lambda key: None

    def start_command(self, *command):
        return subprocess.Popen([SATRAP, *command], cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)

    def expect_killed(self, program):
        _, said = program.communicate(timeout=TIMEOUT_S)
        self.assertEqual(program.returncode, -9, said)
