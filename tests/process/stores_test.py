"""Jobs whose files and runs are in a real HDFS and on a real server of S3: what they teach, and what is refused."""
import gzip
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "app"))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import hdfs_server
import java_server
import ports
import s3_server
from cli import CliTest, satrap

JOB = """\
run_dir: run
device: cpu
seed: 7
data:
  train: {train}
  batch_size: 100
  schema: {{label: click, numeric: [price], features: [user]}}
tables: {{default: {{dim: 4, optimizer: {{type: adagrad, lr: 0.05}}}}}}
model: {{type: deepfm, hidden: [8]}}
train: {{mode: hybrid, staleness: 2, deterministic: true, threads: 1}}
"""


def rows(begin, end):
    lines = (f"{int(i * 7 % 5 < 2)},{i * 13 % 97 / 4},user {i * i % 501}\n" for i in range(begin, end))
    return ("click,price,user\n" + "".join(lines)).encode()


# The last is longer than a block of HDFS.
DAYS = {"day_2.csv": rows(0, 1000), "day_10.csv.gz": gzip.compress(rows(1000, 2000)),
        "day_11.csv": rows(2000, 3000) + b"\n" * (2 << 20)}


class ServersInJava(CliTest):
    """That a server which cannot start is seen at once; without java."""

    def test_one_of_two_processes_ends(self):
        def command(folder, program, options=()):
            return [sys.executable, "-c", program]

        with mock.patch.object(java_server, "command", command):
            lives = java_server.JavaProcess(self.dir, "lives", "import signal; signal.pause()")
            self.addCleanup(lives.kill)
            ends = java_server.JavaProcess(self.dir, "ends", "raise SystemExit('a port is in use')")
        with self.assertRaisesRegex(RuntimeError, "^ends did not start: a port is in use"):
            java_server.wait_until(lambda: False, [lives, ends])
        self.assertIsNotNone(lives.process.poll())

    def test_ports_differ(self):
        [port] = ports.free_ports(1)
        chosen = itertools.chain([port, port], iter(lambda: random.choice(ports.PORTS), None))
        with mock.patch.object(ports.random, "SystemRandom") as source:
            source.return_value.choice = lambda _: next(chosen)
            self.assertEqual(len({port, *ports.free_ports(2)}), 3)

    def test_another_process_gets_other_ports(self):
        mine = ports.free_ports(1)
        look = (f"import sys; sys.path.insert(0, {os.path.dirname(ports.__file__)!r}); import ports; "
                f"print(ports._can_be_mine({mine[0]}))")
        done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual(done.stdout, "False\n")


class Stores(CliTest):
    def setUp(self):
        super().setUp()
        for name, content in DAYS.items():
            (self.dir / name).write_bytes(content)

    def start(self, module, scheme):
        if f"\n{scheme:10} off:" in satrap("doctor").stdout:
            self.skipTest(f"this satrap was built without {scheme}")
        folder = tempfile.TemporaryDirectory(prefix=f"satrap-{scheme}-")
        self.addCleanup(folder.cleanup)
        try:
            server = module.Server(folder.name)
        except java_server.Unavailable as why:
            self.skipTest(str(why))
        self.addCleanup(server.close)
        return server

    def train(self, train, **environment):
        self.write("job.yaml", JOB.format(train=train))
        self.succeed("train", "job.yaml", "--overwrite", cwd=self.dir, env={**os.environ, **environment})
        newest = self.checkpoints("run")[-1]
        return newest, self.digest(self.dir / "run" / "checkpoints" / newest)

    def keep_run(self, url, **environment):
        """A run in a store is stopped, continued from an empty scratch folder, and begun anew. Returns the newest
        checkpoint of each, as train() does."""
        environment = {**os.environ, "SATRAP_SCRATCH": str(self.dir / "scratch"), **environment}
        for arguments in (["train.max_steps=20"], ["--resume"]):
            self.succeed("train", "job.yaml", f"run_dir={url}", *arguments, cwd=self.dir, env=environment)
            shutil.rmtree(self.dir / "scratch")
        continued = self.newest_of(url, environment)
        self.succeed("train", "job.yaml", f"run_dir={url}", "--overwrite", cwd=self.dir, env=environment)
        self.succeed("predict", "--checkpoint", url, "--data", "day_2.csv", "--out", self.dir / "scores", cwd=self.dir,
                     env=environment)
        return {continued, self.newest_of(url, environment)}

    def newest_of(self, url, environment):
        said = self.succeed("checkpoint", "verify", url, cwd=self.dir, env=environment).stdout
        return re.findall(r"(step-\d+): ok, digest ([0-9a-f]+)", said)[-1]

    def refuse(self, train, *words, **environment):
        self.write("job.yaml", JOB.format(train=train))
        error = self.fail_with(1, "train", "job.yaml", "--overwrite", cwd=self.dir, env={**os.environ, **environment})
        self.assert_words(error, *words)
        return error

    def test_s3(self):
        server = self.start(s3_server, "s3")
        folder = server.data / "clicks" / "date=2026-11-27"
        folder.mkdir(parents=True)
        for name, content in DAYS.items():
            (folder / name).write_bytes(content)
        expected = self.train("day_*")
        environment = server.environment()
        for path in ("date=*/day_*", "date=2026-11-27/day_*"):
            self.assertEqual(self.train(f"s3://clicks/{path}", **environment), expected)
        # S3Proxy does not know the checksums that the SDK adds otherwise.
        error = self.fail_with(1, "train", "job.yaml", "run_dir=s3://clicks/runs/one", cwd=self.dir,
                               env={**os.environ, **environment})
        self.assert_words(error, "AWS_REQUEST_CHECKSUM_CALCULATION=when_required")
        self.assertEqual(self.keep_run("s3://clicks/runs/one", AWS_REQUEST_CHECKSUM_CALCULATION="when_required",
                                       **environment), {expected})
        wrong = {**environment, "AWS_SECRET_ACCESS_KEY": "wrong-secret"}
        for name in ("day_2.csv", "day_*"):
            error = self.refuse(f"s3://clicks/date=2026-11-27/{name}", "cannot read 's3://clicks/date=2026-11-27",
                                "AWS_SECRET_ACCESS_KEY", **wrong)
            self.assertNotIn("wrong-secret", error)
        self.refuse("s3://clicks/date=2026-11-27/day_3.csv", "day_3.csv'", "no such object", **environment)
        expected = self.train("day_2.csv")
        for name in ("day 1+2=3&4%25~#;,@$!'().csv", "übung €.csv"):
            (folder / name).write_bytes(DAYS["day_2.csv"])
            url = json.dumps(f"s3://clicks/date=2026-11-27/{name}")
            self.assertEqual(self.train(url, **environment), expected, name)

    def test_hdfs(self):
        server = self.start(hdfs_server, "hdfs")
        for name, content in DAYS.items():
            server.write(f"/clicks/date=2026-11-27/{name}", content)
        expected = self.train("day_*")
        for path in ("date=*/day_*", "date=2026-11-27/day_*"):
            self.assertEqual(self.train(f"hdfs://{server.address}/clicks/{path}", HADOOP_USER_NAME="satrap"), expected)
        server.ask("PUT", "/runs", "MKDIRS", permission="777")
        run = f"hdfs://{server.address}/runs/one"
        self.assertEqual(self.keep_run(run, HADOOP_USER_NAME="satrap"), {expected})
        server.ask("PUT", "/runs/one", "SETPERMISSION", permission="755")
        stranger = {"HADOOP_USER_NAME": "stranger", "SATRAP_SCRATCH": str(self.dir / "scratch")}
        error = self.fail_with(1, "train", "job.yaml", f"run_dir={run}", "--resume", cwd=self.dir,
                               env={**os.environ, **stranger})
        self.assert_words(error, f"cannot write '{run}/owner.json'", "403", "Permission denied", "HADOOP_USER_NAME")
        self.refuse(f"hdfs://{server.address}/clicks/day_3.csv", "clicks/day_3.csv'", "no such file")
        self.refuse(f"hdfs://{server.rpc_address}/clicks/day_3.csv", "dfs.namenode.http-address", "9870")
        server.ask("PUT", "/clicks/date=2026-11-27/day_2.csv", "SETPERMISSION", permission="600")
        self.refuse(f"hdfs://{server.address}/clicks/date=2026-11-27/day_2.csv", "403", "Permission denied",
                    "HADOOP_USER_NAME", HADOOP_USER_NAME="stranger")


if __name__ == "__main__":
    unittest.main(verbosity=2)
