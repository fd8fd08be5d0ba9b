"""Jobs whose training data are a topic of Kafka, read from librdkafka's mock broker in this process."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from cli import SATRAP, TIMEOUT_S, CliTest, satrap

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import kafka_client

if "\nkafka      librdkafka" not in satrap("doctor").stdout or kafka_client.LIB is None:
    print("skipped: this satrap was built without Kafka")
    sys.exit(77)

PARTITIONS = 3
TURN = 1000  # messages of a partition, one after another
JOB = """\
run_dir: run
device: cpu
seed: 7
data:
  train: {train}
{kafka}  batch_size: 100
  schema: {{header: false, columns: [click, price, user], label: click, numeric: [price], features: [user]}}
tables: {{default: {{dim: 4, optimizer: {{type: adagrad, lr: 0.05}}}}}}
model: {{type: deepfm, hidden: [8]}}
train: {{mode: hybrid, staleness: 2, deterministic: true, threads: 1}}
checkpoint: {{every: 10 steps, keep: 3}}
"""


def rows(begin, end):
    """Lines, each with a user of its own."""
    return [f"{int(i * 7 % 5 < 2)},{i * 13 % 97 / 4},u{i}\n".encode() for i in range(begin, end)]


class Kafka(CliTest):
    @classmethod
    def setUpClass(cls):
        cls.broker = kafka_client.MockBroker()
        cls.addClassCleanup(cls.broker.close)

    def topic(self):
        """A new one, its URL."""
        self.name = self.id().rsplit(".", 1)[1]
        self.broker.create(self.name, PARTITIONS)
        return f"kafka://{self.broker.brokers}/{self.name}"

    def produce(self, partition, values):
        kafka_client.produce(self.broker.brokers, self.name, partition, values)

    def job(self, train, kafka="", name="job"):
        options = f"  kafka: {{timeout: 5min{kafka}}}\n" if str(train).startswith("kafka:") else ""
        self.write(f"{name}.yaml", JOB.format(train=train, kafka=options))

    def train(self, name, *more):
        return self.succeed("train", f"{name}.yaml", f"run_dir={name}", *more, cwd=self.dir)

    def result(self, name):
        newest = self.checkpoints(name)[-1]
        return newest, self.digest(self.dir / name / "checkpoints" / newest)

    def summary(self, name):
        return json.loads((self.dir / name / "summary.json").read_text())

    def test_a_topic_teaches_what_a_file_with_its_rows_does_also_when_it_is_resumed(self):
        url = self.topic()
        parts = [rows(0, 1200), rows(5000, 5030), rows(6000, 7100)]
        self.produce(0, [line.rstrip(b"\n") for line in parts[0]])
        self.produce(1, [b"".join(parts[1][:20]), None, b"".join(parts[1][20:])])
        self.produce(2, parts[2] + [None])
        in_turns = [part[i:i + TURN] for i in range(0, 1200, TURN) for part in parts]
        self.write("all.csv", b"".join(line for turn in in_turns for line in turn).decode())
        self.job(self.dir / "all.csv", name="file")
        self.job(url, name="job")
        self.train("file")
        self.train("job", "train.max_steps=13")
        metrics = (self.dir / "job" / "metrics.jsonl").read_text()
        for name in ("lag", "age", "data_wait_share"):
            self.assertIn(f'"{name}"', metrics)
        self.produce(0, rows(9000, 9010))  # come after the end of the job
        self.train("job", "--resume")
        self.assertEqual(self.result("job"), self.result("file"))
        self.assertEqual(self.summary("job")["lag"], 0)
        self.assertGreaterEqual(self.summary("job")["age"], 0)

    def test_without_an_end_it_waits_until_a_signal_and_continues_with_every_row_once(self):
        url = self.topic()
        self.job(url, kafka=", end: never, group: trainer")
        for start, steps in enumerate((5, 15)):
            self.produce(start, rows(1000 * start, 1000 * start + 750) + [None])
            process = subprocess.Popen(
                [SATRAP, "train", "job.yaml", "run_dir=job", "checkpoint.every=5 steps", "--resume"], cwd=self.dir,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            self.addCleanup(process.stderr.close)
            self.addCleanup(process.kill)
            self.wait_for(lambda: f"step-{steps:012}" in self.published(), process)
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=TIMEOUT_S)
            self.assertEqual(process.returncode, 143, log)
        self.assertEqual(self.summary("job")["examples"], 1500)
        self.assertEqual(self.summary("job")["rows"], 1500)
        # The partition that was read last may be some messages behind.
        offsets = kafka_client.committed(self.broker.brokers, "trainer", self.name, PARTITIONS)
        self.assertGreaterEqual(max(offsets), 750)

    def test_what_makes_no_sense_is_refused(self):
        url = self.topic()
        self.job(url)
        evaluation = self.write("eval.csv", b"".join(rows(0, 10)).decode())
        for settings, words in (
                ([f"data.eval.path={url}"], ["data.eval.path", "not topics"]),
                (["data.eval.fraction=0.1"], ["data.eval.fraction", "write data.eval.path"]),
                ([f"data.train.path=[{url},{evaluation}]"], ["data.train.path", "cannot be combined"]),
                (["data.train.path=kafka://somewhere"], ["data.train.path", "names no topic"]),
                (["data.schema.header=true"], ["data.schema.header", "header: false", "data.format: json"]),
                (["data.schema.columns=[]"], ["data.schema.columns", "must name"]),
                (["data.kafka.start=latest"], ["data.kafka.start", "end: never"]),
                (["data.kafka.start=noon"], ["data.kafka.start", "'noon'", "UTC"]),
                (["data.kafka.end=never", "data.shuffle_rows=10"], ["data.shuffle_rows"]),
                (["data.kafka.end=never", "train.epochs=2"], ["several epochs"]),
                ([f"data.train.path={evaluation}"], ["data.kafka.timeout", "without a topic"]),
                (["data.kafka.timeout=soon"], ["data.kafka.timeout"]),
                (["data.kafka.properties=[group.id=me]"], ["group.id", "data.kafka.group"]),
                (["data.kafka.properties=['metadata.broker.list=me']"], ["metadata.broker.list", "data.train.path"]),
                (["data.kafka.properties=[linger]"], ["'linger' must be name=value"]),
                (["data.kafka.properties=['sasl.password=${KAFKA_NOT_SET}']"], ["${KAFKA_NOT_SET} is not set"]),
                (["data.kafka.properties=['sasl.username=${AWS_SECRET_ACCESS_KEY}']"], ["${AWS_SECRET_ACCESS_KEY}", "KAFKA"]),
                (["data.kafka.properties=['sasl.kerberos.principal=a; touch b']"], ["part of a command", "'a; touch b'"])):
            with self.subTest(settings):
                error = self.fail_with(2, "train", "job.yaml", *settings, cwd=self.dir)
                self.assert_words(error, *words)
        error = self.fail_with(2, "train", "job.yaml", "data.kafka.properties=['sasl.password=hush']", cwd=self.dir)
        self.assert_words(error, "sasl.password=${KAFKA_NAME}")
        for name in ("plugin.library.paths", "ssl.engine.location", "ssl.engine.id", "ssl.providers",
                     "sasl.kerberos.kinit.cmd"):
            error = self.fail_with(2, "config", "check", "job.yaml", f"data.kafka.properties=['{name}=/tmp/evil.so']",
                                   cwd=self.dir)
            self.assert_words(error, f"{name} cannot be set", "a configuration runs none")
        self.assert_words(self.fail_with(2, "init", url), "a topic of kafka", "data.train.path")
        error = self.fail_with(1, "train", "job.yaml", "--overwrite", cwd=self.dir)
        self.assert_words(error, "no row of the training data", url)

    def test_a_secret_of_the_environment_is_in_no_file(self):
        url = self.topic()
        self.produce(0, rows(0, 100))
        self.job(url, kafka=", properties: ['ssl.key.password=${TEST_KAFKA_SECRET}']")
        done = subprocess.run([SATRAP, "train", "job.yaml"], cwd=self.dir, capture_output=True, text=True,
                              env={**os.environ, "TEST_KAFKA_SECRET": "hush-hush"}, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        written = [path for path in (self.dir / "run").rglob("*") if path.is_file()]
        self.assertIn("config.yaml", [path.name for path in written])
        self.assertFalse([path for path in written if b"hush-hush" in path.read_bytes()])
        self.assertNotIn("hush-hush", done.stderr)

    def test_rows_are_shown_before_training(self):
        url = self.topic()
        self.produce(1, rows(0, 3))
        self.job(url)
        self.assertIn("u2", self.succeed("data", "head", "job.yaml", cwd=self.dir).stdout)
        for more in ([], ["data.kafka.end=never"], ["data.kafka.end=never", "data.kafka.start=latest"]):
            text = self.succeed("train", "job.yaml", "--dry-run", *more, cwd=self.dir).stdout
            self.assert_words(text, f"messages of {url}", "price", "feature 'user'", "first batch: 3 examples")
        self.succeed("config", "check", "job.yaml", "--data", cwd=self.dir)

    def test_a_signal_ends_the_wait_for_a_broker(self):
        self.job("kafka://127.0.0.1:1/clicks")
        process = subprocess.Popen([SATRAP, "train", "job.yaml"], cwd=self.dir, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        self.wait_for((self.dir / "run").exists, process)
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 130, log)
        self.assert_words(log, "stopped before the first step", "kafka://127.0.0.1:1")

    def published(self):
        folder = self.dir / "job" / "checkpoints"
        return [path.name for path in folder.iterdir()] if folder.exists() else []

    def wait_for(self, holds, process):
        deadline = time.monotonic() + TIMEOUT_S
        while not holds():
            self.assertIsNone(process.poll(), "it ended")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)


if __name__ == "__main__":
    unittest.main()
